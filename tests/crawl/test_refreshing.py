"""Visits that people ask for: they overtake what waits, they have results, and they bring retired sources back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Row, delete, select
from typer.testing import CliRunner, Result

from api.running import Client, Running, running
from headwater.cli.commands import program
from headwater.errors import BadInput, TooManySources
from headwater.store.tables import event_outbox, visit_tasks
from headwater.store.tables import sources as sources_table
from support.posts import a_post
from support.processes import kill, start, wait_until
from support.web import Answer, Asked, Web, rss

OVERDUE = 60


@contextmanager
def crawling(environ: dict[str, str], processes: int = 1) -> Iterator[None]:
    started = [start(environ) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            kill(process)


@pytest.fixture
def instance(environ: dict[str, str]) -> Iterator[Running]:
    """A server that answers the API and does not crawl."""
    with running(environ["HEADWATER_DATABASE_URL"], HEADWATER_DATA_DIR=environ["HEADWATER_DATA_DIR"]) as made:
        yield made


def follow(instance: Running, address: str) -> int:
    source_id: int = instance.program().post("/api/sources", {"address": address}).json()["id"]
    return source_id


def force(instance: Running, source_id: int) -> dict[str, object]:
    body = {"feed_id": source_id, "force_immediate": True}
    scheduled: dict[str, object] = instance.program().post("/api/queue/schedule-feed", body).json()
    return scheduled


def finished(environ: dict[str, str], client: Client, *tasks: object) -> list[dict[str, Any]]:
    """Crawls until these tasks have their results."""
    with crawling(environ):
        wait_until(lambda: all(client.get(f"/api/queue/tasks/{task}").json()["result"] for task in tasks))
    return [client.get(f"/api/queue/tasks/{task}").json() for task in tasks]


def row_of(instance: Running, source_id: int) -> Row[Any]:
    query = select(sources_table).where(sources_table.c.id == source_id)
    return instance.parts.db.read_now(lambda conn: conn.execute(query).one())


def cli(environ: dict[str, str], *words: str) -> Result:
    return CliRunner().invoke(program(), list(words), env=environ)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_visit_that_a_person_asks_for_overtakes_everything_that_waits(
    environ: dict[str, str], instance: Running, world: Web, processes: int
) -> None:  # D3, D12
    world.fallback = lambda asked: Answer(rss(asked.path), delay=0.1)
    for number in range(OVERDUE):
        follow(instance, world.url(f"/feed{number}"))
    wanted = follow(instance, world.url("/wanted"))
    with crawling({**environ, "HEADWATER_MAX_CONCURRENCY": "1"}, processes):
        wait_until(lambda: len(world.asked) >= 5)
        assert force(instance, wanted)["status"] == "queued"
        before = len(world.asked)
        wait_until(lambda: "/wanted" in world.paths())
    place = world.paths().index("/wanted")
    assert place - before <= 4 * processes, f"{place - before} requests went before it"


def test_the_result_of_a_visit_that_was_asked_for_is_kept_for_a_day(
    environ: dict[str, str], instance: Running, world: Web
) -> None:  # D12
    world.pages["/feed"] = Answer(rss("one", "two", "three"))
    world.pages["/gone"] = Answer(status=500)
    ids = [follow(instance, world.url(path)) for path in ("/feed", "/gone")]
    tasks = [str(force(instance, source_id)["task_id"]) for source_id in ids]
    client = instance.program()
    waiting = client.get(f"/api/queue/tasks/{tasks[0]}").json()
    assert (waiting["task_id"], waiting["status"], waiting["result"]) == (tasks[0], "PENDING", None)
    assert force(instance, ids[0])["task_id"] == tasks[0]
    done, failed = finished(environ, client, *tasks)
    assert done["status"] == "SUCCESS"
    assert done["date_done"] is not None
    assert {**done["result"], "duration_ms": 0} == {
        "success": True,
        "feed_id": ids[0],
        "article_count": 3,
        "duration_ms": 0,
    }
    assert isinstance(done["result"]["duration_ms"], int)
    assert (failed["status"], failed["result"]["success"], failed["result"]["feed_id"]) == ("FAILURE", False, ids[1])
    assert "500" in failed["error"]
    assert force(instance, ids[0])["task_id"] not in tasks
    later = instance.parts.now() + timedelta(hours=24, minutes=1)
    instance.parts.now = lambda: later
    assert client.get(f"/api/queue/tasks/{tasks[0]}").status == 404
    assert cli(environ, "run", "forget-visits").exit_code == 0
    assert instance.parts.db.read_now(lambda conn: len(conn.execute(select(visit_tasks)).all())) == 3


def test_a_task_is_seen_only_by_those_who_follow_its_source(instance: Running, world: Web) -> None:  # D12, H68
    source_id = follow(instance, world.url("/feed"))
    task = force(instance, source_id)["task_id"]
    client = instance.program()
    assert client.get(f"/api/queue/tasks/{task}").status == 200
    assert client("DELETE", f"/api/sources/{source_id}").status == 204
    assert client.get(f"/api/queue/tasks/{task}").status == 404
    assert client.get("/api/queue/tasks/none").status == 404


def test_a_task_whose_process_is_killed_is_finished_by_another(
    environ: dict[str, str], instance: Running, world: Web
) -> None:  # D12
    def slow_at_first(asked: Asked) -> Answer:
        return Answer(rss("one"), delay=60 if len(world.asked) == 1 else 0)

    world.pages["/feed"] = slow_at_first
    source_id = follow(instance, world.url("/feed"))
    task, client = force(instance, source_id)["task_id"], instance.program()
    quick = {**environ, "HEADWATER_LEASE_SECONDS": "10", "HEADWATER_VISIT_SECONDS": "5"}
    killed = start(quick)
    wait_until(lambda: world.asked)
    running_now = force(instance, source_id)
    assert (running_now["status"], running_now["task_id"]) == ("already_running", None)
    assert client.get(f"/api/queue/tasks/{task}").json()["status"] == "STARTED"
    kill(killed)
    with crawling(quick):
        wait_until(lambda: client.get(f"/api/queue/tasks/{task}").json()["status"] == "SUCCESS")
    assert client.get(f"/api/queue/tasks/{task}").json()["result"]["article_count"] == 1


def test_a_task_is_tried_three_times_more_where_the_failure_may_pass(
    environ: dict[str, str], instance: Running, world: Web
) -> None:  # D9
    def broken_three_times(asked: Asked) -> Answer:
        return Answer(status=500) if world.paths().count("/shaky") <= 3 else Answer(rss("one", "two"))

    world.pages["/shaky"] = broken_three_times
    world.pages["/broken"] = Answer(status=502)
    world.pages["/wrong"] = Answer(status=404)
    ids = [follow(instance, world.url(path)) for path in ("/shaky", "/broken", "/wrong")]
    tasks = [str(force(instance, source_id)["task_id"]) for source_id in ids]
    client = instance.program()
    shaky, broken, wrong = finished(environ, client, *tasks)
    assert (shaky["status"], shaky["result"]["article_count"], shaky["error"]) == ("SUCCESS", 2, None)
    assert (broken["status"], wrong["status"]) == ("FAILURE", "FAILURE")
    assert "502" in broken["error"]
    assert {path: world.paths().count(path) for path in ("/shaky", "/broken", "/wrong")} == {
        "/shaky": 4,
        "/broken": 4,
        "/wrong": 1,
    }
    assert [row_of(instance, id).consecutive_failures for id in ids] == [0, 1, 1]


def test_a_task_goes_on_in_another_process_when_one_is_killed_between_two_tries(
    environ: dict[str, str], instance: Running, world: Web
) -> None:  # D9
    world.pages["/broken"] = Answer(status=500)
    source_id = follow(instance, world.url("/broken"))
    task, client = force(instance, source_id)["task_id"], instance.program()
    killed = start(environ)
    wait_until(lambda: row_of(instance, source_id).last_error)
    kill(killed)
    assert client.get(f"/api/queue/tasks/{task}").json()["status"] == "PENDING"
    [done] = finished(environ, client, task)
    assert done["status"] == "FAILURE"
    assert world.paths().count("/broken") == 4


def test_a_task_that_is_forgotten_is_not_tried_again(
    environ: dict[str, str], instance: Running, world: Web
) -> None:  # D9
    world.pages["/broken"] = Answer(status=500)
    source_id = follow(instance, world.url("/broken"))
    force(instance, source_id)
    instance.parts.db.write_now(lambda conn: conn.execute(delete(visit_tasks)))
    with crawling(environ):
        wait_until(lambda: row_of(instance, source_id).last_error)
    assert row_of(instance, source_id).next_check_at > instance.parts.now() + timedelta(minutes=10)
    assert row_of(instance, source_id).task_id is None


@pytest.mark.parametrize("status", [503, 500])
def test_a_server_that_asks_for_a_pause_is_not_asked_again_for_a_task(
    environ: dict[str, str], instance: Running, world: Web, status: int
) -> None:  # D9
    world.pages["/busy"] = Answer(status=status, headers={"Retry-After": "3600"})
    task, client = force(instance, follow(instance, world.url("/busy")))["task_id"], instance.program()
    [done] = finished(environ, client, task)
    assert done["status"] == "FAILURE"
    assert world.paths().count("/busy") == 1


def test_a_visit_that_nobody_waits_for_is_not_tried_again_at_once(
    environ: dict[str, str], instance: Running, world: Web
) -> None:  # D9
    world.pages["/broken"] = Answer(status=500)
    source_id = follow(instance, world.url("/broken"))
    assert cli(environ, "crawl", world.url("/broken")).exit_code == 1
    assert row_of(instance, source_id).next_check_at > instance.parts.now() + timedelta(minutes=10)


def retired(environ: dict[str, str], world: Web) -> None:
    """Has a feed that was followed answer 410 once, and then work again."""
    world.pages["/feed"] = Answer(rss("one"))
    assert cli(environ, "add", world.url("/feed")).exit_code == 0
    world.pages["/feed"] = Answer(status=410)
    assert cli(environ, "crawl", world.url("/feed")).exit_code == 1
    assert json.loads(cli(environ, "sources", "--json").output)["active"] is False
    world.pages["/feed"] = Answer(rss("one", "two"))


def test_adding_a_retired_source_brings_it_back_and_says_so(environ: dict[str, str], world: Web) -> None:  # D1, F4
    retired(environ, world)
    added = cli(environ, "add", world.url("/feed"))
    assert "Visiting again" in added.output
    assert "2 posts" in added.output
    shown = json.loads(cli(environ, "sources", "--json").output)
    assert (shown["active"], shown["status"], shown["last_error"]) == (True, "ok", None)
    assert "Already following" in cli(environ, "add", world.url("/feed")).output


def test_adding_a_source_that_is_still_gone_says_that_it_stays_retired(environ: dict[str, str], world: Web) -> None:
    retired(environ, world)
    world.pages["/feed"] = Answer(status=410)
    added = cli(environ, "add", world.url("/feed"))
    assert added.exit_code == 1
    assert "retired" in added.output
    assert "tried again" not in added.output
    assert json.loads(cli(environ, "sources", "--json").output)["active"] is False


@pytest.mark.parametrize("way", ["schedule-feed", "refresh", "page", "follow", "crawl"])
def test_a_retired_source_that_works_again_is_visited_from_then_on(
    environ: dict[str, str], instance: Running, world: Web, way: str
) -> None:  # D3, D10, F4
    retired(environ, world)
    client, asked = instance.program(), len(world.asked)
    source_id = client.get("/api/sources").json()["items"][0]["id"]
    if way == "schedule-feed":
        force(instance, source_id)
    elif way == "refresh":
        assert client.post(f"/api/sources/{source_id}/refresh").json() == {"status": "queued"}
    elif way == "page":
        browser = instance.browser()
        page = browser.get(f"/sources/{source_id}").text
        key = page.partition('name="form_key" value="')[2].partition('"')[0]
        body = f"form_key={key}".encode()
        posted = browser.post(f"/sources/{source_id}/refresh", body, Content_Type="application/x-www-form-urlencoded")
        assert posted.status == 303
    elif way == "follow":
        assert client.post("/api/sources", {"address": world.url("/feed")}).status == 202
    else:
        assert cli(environ, "crawl", world.url("/feed")).exit_code == 0
    with crawling(environ):
        wait_until(lambda: client.get(f"/api/sources/{source_id}").json()["status"] == "ok")
    shown = client.get(f"/api/sources/{source_id}").json()
    assert shown["active"] is True
    assert len(world.asked) == asked + 1
    kinds = instance.parts.db.read_now(lambda conn: [row.kind for row in conn.execute(select(event_outbox))])
    assert kinds.count("source.recovered") == 1


def test_the_reader_chooses_how_often_a_source_is_visited(
    environ: dict[str, str], instance: Running, world: Web
) -> None:  # D11
    world.pages["/feed"] = Answer(rss("one"))
    address = world.url("/feed")
    assert cli(environ, "add", address, "--every", "600").exit_code == 0
    client = instance.program()
    [source] = client.get("/api/sources").json()["items"]
    path = f"/api/sources/{source['id']}"

    def minutes_between() -> float:
        shown = client.get(path).json()
        db = instance.parts.db
        row = db.read_now(lambda conn: conn.execute(select(sources_table)).one())
        assert shown["refresh_interval"] == (row.chosen_seconds // 60 if row.chosen_seconds else None)
        between: timedelta = row.next_check_at - row.last_crawled_at
        return between / timedelta(minutes=1)

    assert 600 <= minutes_between() <= 661
    assert client.patch(path, {"refresh_interval": 45}).json()["refresh_interval"] == 45
    assert 45 <= minutes_between() <= 46
    assert client.patch(path, {"title": "Mine"}).json()["refresh_interval"] == 45
    said = cli(environ, "interval", address, "120")
    assert "every 120 minutes" in said.output
    assert 120 <= minutes_between() <= 121
    browser = instance.browser()
    page = browser.get(f"/sources/{source['id']}").text
    assert '<option value="120" selected>' in page
    key = page.partition('name="form_key" value="')[2].partition('"')[0]
    body = f"form_key={key}&minutes=360".encode()
    form = "application/x-www-form-urlencoded"
    assert browser.post(f"/sources/{source['id']}/interval", body, Content_Type=form).status == 303
    assert 360 <= minutes_between() <= 361
    assert cli(environ, "crawl", address).exit_code == 0
    assert 360 <= minutes_between() <= 397
    assert "as usual" in cli(environ, "interval", address).output
    assert 30 <= minutes_between() <= 34


def test_an_interval_that_makes_no_sense_is_refused_in_words(
    environ: dict[str, str], instance: Running, world: Web
) -> None:  # D11
    source_id = follow(instance, world.url("/feed"))
    client = instance.program()
    for wrong in (0, -5, 10_081, 1.5, "often", True):
        assert client.patch(f"/api/sources/{source_id}", {"refresh_interval": wrong}).status == 422, wrong
    said = cli(environ, "interval", str(source_id), "0")
    assert isinstance(said.exception, BadInput)
    assert "1 to 10,080 minutes" in said.exception.detail


def test_what_the_source_itself_wants_is_the_floor_of_every_choice(
    environ: dict[str, str], instance: Running, world: Web
) -> None:  # D11, H31
    feed = rss("one").replace("<channel>", "<channel><ttl>300</ttl>")
    world.pages["/feed"] = Answer(feed)
    address = world.url("/feed")
    assert cli(environ, "add", address, "--every", "5").exit_code == 0

    def wait() -> timedelta:
        row = instance.parts.db.read_now(lambda conn: conn.execute(select(sources_table)).one())
        assert row.last_crawled_at is not None
        return timedelta(seconds=(row.next_check_at - row.last_crawled_at).total_seconds())

    assert wait() >= timedelta(minutes=300)
    assert cli(environ, "interval", address, "1").exit_code == 0
    assert wait() >= timedelta(minutes=300)
    world.pages["/feed"] = Answer(status=503, headers={"Retry-After": "7200"})
    assert cli(environ, "crawl", address).exit_code == 1
    assert cli(environ, "interval", address, "2").exit_code == 0
    assert wait() >= timedelta(hours=2)


def test_a_constantly_edited_post_keeps_a_few_of_its_texts_and_says_how_many_went(
    environ: dict[str, str], instance: Running
) -> None:  # A3
    source_id = instance.source()
    hour = timedelta(hours=1)
    begun = instance.parts.now() - 40 * hour
    for number in range(31):
        instance.parts.now = lambda number=number: begun + number * hour  # type: ignore[misc]
        instance.publish(source_id, a_post("1", f"Text {number}"))
    client = instance.program()
    post_id = client.get("/api/posts").json()["items"][0]["id"]
    path = f"/api/posts/{post_id}/versions"
    assert client.get(path).json()["thinned"] == 0
    assert cli({**environ, "HEADWATER_POST_VERSIONS": "5"}, "run", "thin-versions").exit_code == 0
    found = client.get(path).json()
    assert (len(found["versions"]), found["thinned"], found["revision"]) == (6, 25, 31)
    assert [found["versions"][place]["version"] for place in (0, 1, -1)] == [31, 30, 1]
    kept = {one["version"] for one in found["versions"]}
    missing = next(version for version in range(1, 31) if version not in kept)
    at = (begun + (missing - 1) * hour + hour / 2).isoformat().replace("+00:00", "Z")
    answer = client.get(f"{path}?at={at}")
    assert answer.status == 404
    assert "25 of its texts were deleted" in answer.json()["detail"]
    assert "25 more texts are not kept" in instance.browser().get(f"/posts/{post_id}").text
    assert "25 more texts are not kept" in cli(environ, "post", str(post_id)).output
    assert cli({**environ, "HEADWATER_POST_VERSIONS": "0"}, "run", "thin-versions").exit_code == 0
    assert client.get(path).json() == found


def test_a_change_of_score_counts_and_makes_no_new_text(instance: Running) -> None:  # A3
    source_id = instance.source()
    [post_id] = instance.publish(source_id, a_post("1", score=1))
    client = instance.program()

    def counted() -> tuple[int, int]:
        found = client.get(f"/api/posts/{post_id}/versions").json()
        return found["revision"], len(found["versions"])

    assert counted() == (1, 1)
    instance.publish(source_id, a_post("1", score=2))
    assert counted() == (2, 1)
    instance.publish(source_id, a_post("1", score=2))
    assert counted() == (2, 1)
    instance.publish(source_id, a_post("1", "Other words", score=3))
    assert counted() == (3, 2)
    assert client.get(f"/api/posts/{post_id}").json()["version"] == 2


def test_nobody_follows_more_sources_than_the_setting_allows(environ: dict[str, str], store_url: str) -> None:  # H50
    with running(store_url, HEADWATER_MAX_SOURCES="5") as instance:
        client = instance.program()
        for number in range(3):
            follow(instance, f"https://host{number}.example/feed")

        def listed(first: int, last: int) -> bytes:
            outlines = (f"<outline xmlUrl='https://host{number}.example/feed'/>" for number in range(first, last))
            return f"<opml><body>{''.join(outlines)}</body></opml>".encode()

        refused = client.post("/api/opml", listed(0, 6))
        assert (refused.status, refused.json()["code"]) == (422, "too_many_sources")
        assert "HEADWATER_MAX_SOURCES" in refused.json()["detail"]
        assert len(client.get("/api/sources").json()["items"]) == 3
        assert client.post("/api/opml", listed(0, 5)).json()["added"] == 2
        again = client.post("/api/sources", {"address": "https://other.example/feed"})
        assert (again.status, again.json()["code"]) == (422, "too_many_sources")
        assert len(client.get("/api/sources").json()["items"]) == 5
        assert client.post("/api/opml", listed(0, 5)).json()["already"] == 5
    said = cli({**environ, "HEADWATER_MAX_SOURCES": "5"}, "add", "https://other.example/feed")
    assert isinstance(said.exception, TooManySources)
    assert "at most 5 are allowed" in said.exception.detail


def test_refreshing_all_lets_a_single_visit_overtake(instance: Running) -> None:  # D12
    for number in range(3):
        instance.publish(instance.source(f"https://host{number}.example/"))
    assert instance.program().post("/api/sources/refresh").json() == {"asked": 3}
    asked = instance.parts.db.read_now(lambda conn: [row.asked_at for row in conn.execute(select(sources_table))])
    assert asked == [None] * 3
