"""Visits and periodic work by Celery: real workers and beats, on PostgreSQL and Redis."""

from __future__ import annotations

import json
import signal
import threading
from datetime import timedelta

from sqlalchemy import update

from headwater.app import refresh
from headwater.follow.add import follow
from headwater.model import Reader
from headwater.store.tables import crawls, posts, sources
from headwater.wire import Parts
from support.cluster import Cluster, add_feeds, count_of, held_back, lease, make_due
from support.processes import wait_until
from support.web import Answer, Asked, Web, rss


def test_a_beat_and_a_worker_visit_what_is_due_again_and_again(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # A9
    add_feeds(parts, owner, world, 120)
    cluster.worker()
    cluster.beat()
    wait_until(lambda: count_of(parts, crawls) == 120)
    make_due(parts)
    wait_until(lambda: count_of(parts, crawls) == 240)
    assert count_of(parts, posts) == 120


def test_a_task_for_one_feed_gives_the_documents_result_for_a_day(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # D12
    [feed_id] = add_feeds(parts, owner, world, 1)
    cluster.worker()
    task_id = cluster.send("tasks.feeds.refresh_feed", str(feed_id)).id
    result = cluster.result(task_id)
    assert (result["success"], result["feed_id"], result["article_count"]) == (True, feed_id, 1)
    assert result["duration_ms"] > 0
    kept = json.loads(cluster.redis.get(f"celery-task-meta-{task_id}"))  # type: ignore[arg-type]
    assert (kept["status"], kept["result"]) == ("SUCCESS", result)
    assert 86000 < cluster.redis.ttl(f"celery-task-meta-{task_id}") <= 86400  # type: ignore[operator]


def test_what_a_message_says_about_a_feed_is_not_believed(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # H78
    [feed_id] = add_feeds(parts, owner, world, 1)
    world.pages["/forged"] = Answer(rss("forged"))
    cluster.worker()
    forged = {"feed_id": str(feed_id), "feed_url": world.url("/forged"), "user_id": "99", "refresh_interval": 1}
    sent = cluster.app.send_task("tasks.feeds.refresh_feed", kwargs=forged, queue="default")
    assert cluster.result(sent.id)["success"]
    assert world.paths() == ["/0"]


def test_a_task_whose_source_is_visited_or_not_due_is_rejected_and_not_sent_again(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # D12
    leased, visited = add_feeds(parts, owner, world, 2)
    lease(parts, leased)
    worker = cluster.worker()
    cluster.result(cluster.send("tasks.feeds.refresh_feed", visited).id)
    for task, argument in (
        ("tasks.feeds.refresh_feed", leased),
        ("tasks.feeds.refresh_feed", visited),
        ("tasks.feeds.refresh_feed", 987654),
        ("tasks.feeds.refresh_feeds", [leased, visited]),
        ("tasks.crawler.crawl_community", str(leased)),
    ):
        cluster.send(task, argument)
    wait_until(lambda: worker.text().count("reject requeue=False") == 5)
    cluster.wait_until_idle()
    assert world.paths() == ["/1"]


def test_a_feed_can_be_asked_for_though_it_is_not_due(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:
    [feed_id] = add_feeds(parts, owner, world, 1)
    cluster.worker()
    for _ in range(2):
        sent = cluster.app.send_task("tasks.feeds.refresh_feed", (feed_id,), {"force_immediate": True}, queue="high")
        assert cluster.result(sent.id)["success"]
    assert world.paths() == ["/0", "/0"]


def test_a_task_is_tried_three_times_more_and_has_its_result_at_the_end(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # D9
    def broken_twice(_: Asked) -> Answer:
        return Answer(status=502) if world.paths().count("/shaky") <= 2 else Answer(rss("one"))

    world.pages |= {"/shaky": broken_twice, "/broken": Answer(status=502), "/asked": Answer(status=502)}
    shaky, broken, asked = (
        parts.db.write_now(follow, owner, world.url(path), parts.now()).source_id for path in world.pages
    )
    not_due = update(sources).values(next_check_at=parts.now() + timedelta(days=1))
    parts.db.write_now(lambda conn: conn.execute(not_due))
    task = parts.db.write_now(refresh.request_visit, owner, asked, parts.now(), at_once=True)["task_id"]
    assert task
    cluster.worker()
    cluster.beat()
    sent = [
        cluster.app.send_task("tasks.feeds.refresh_feed", (id,), {"force_immediate": True}, queue="high").id
        for id in (shaky, broken)
    ]
    results = [cluster.result(id) for id in (*sent, task)]
    assert [one["success"] for one in results] == [True, False, False]
    assert {path: world.paths().count(path) for path in world.pages} == {"/shaky": 3, "/broken": 4, "/asked": 4}


def test_every_message_twice_and_two_workers_make_one_visit_of_each_feed(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # H84
    ids = add_feeds(parts, owner, world, 60, delay=0.02)
    for start in range(0, 60, 10):
        for _ in range(2):
            cluster.send("tasks.feeds.refresh_feeds", ids[start : start + 10])
    cluster.worker()
    cluster.worker()
    wait_until(lambda: count_of(parts, crawls) == 60)
    cluster.wait_until_idle()
    assert world.overlaps == []
    assert sorted(world.paths()) == sorted(world.pages)


def test_what_a_person_asked_for_overtakes_everything_that_waits(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # D3 D12
    cluster.environ["HEADWATER_MAX_CONCURRENCY"] = "1"
    add_feeds(parts, owner, world, 60, delay=0.02)
    last = parts.db.write_now(follow, owner, world.url("/last"), parts.now()).source_id
    world.pages["/last"] = Answer(rss("last"))
    cluster.worker()
    cluster.beat()
    wait_until(lambda: len(world.asked) > 3)
    asked = parts.db.write_now(refresh.request_visit, owner, last, parts.now(), at_once=True)
    assert asked["task_id"]
    assert cluster.result(asked["task_id"])["feed_id"] == last
    wait_until(lambda: count_of(parts, crawls) == 61)
    assert world.paths().index("/last") < 50
    shown = parts.db.read_now(refresh.task, owner, asked["task_id"], parts.now())
    assert (shown["status"], shown["result"] and shown["result"]["article_count"]) == ("SUCCESS", 1)


def test_an_emptied_redis_costs_messages_and_nothing_else(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # H86 D6
    add_feeds(parts, owner, world, 200, delay=0.05)
    cluster.beat()
    wait_until(lambda: cluster.waiting("default") > 0)
    cluster.redis.flushdb()
    cluster.worker()
    wait_until(lambda: count_of(parts, crawls) > 20)
    cluster.redis.flushdb()
    wait_until(lambda: count_of(parts, crawls) >= 200)
    assert count_of(parts, posts) == 200
    assert world.overlaps == []


def test_what_a_killed_worker_had_in_hand_is_visited_by_another_when_its_lease_ends(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # D9 H79
    cluster.environ |= {"HEADWATER_LEASE_SECONDS": "10", "HEADWATER_VISIT_SECONDS": "5"}
    killed, answers = threading.Event(), threading.Event()

    def feed(_: Asked) -> Answer:
        if not killed.is_set():
            answers.wait(60)
        return Answer(rss("the post"))

    world.pages["/feed"] = feed
    parts.db.write_now(follow, owner, world.url("/feed"), parts.now())
    worker = cluster.worker()
    cluster.beat()
    wait_until(lambda: world.asked)
    worker.kill()
    killed.set()
    answers.set()
    cluster.worker()
    wait_until(lambda: count_of(parts, crawls) == 1)
    assert count_of(parts, posts) == 1


def test_a_worker_that_is_told_to_end_finishes_what_it_has_in_hand(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # H97
    [feed_id] = add_feeds(parts, owner, world, 1)
    answers = held_back(world, "/0")
    worker = cluster.worker()
    cluster.send("tasks.feeds.refresh_feed", feed_id)
    wait_until(lambda: world.asked)
    worker.popen.send_signal(signal.SIGTERM)
    wait_until(lambda: worker.says("Warm shutdown"))
    answers.set()
    worker.popen.wait(120)
    assert (count_of(parts, crawls), count_of(parts, posts)) == (1, 1)
    assert cluster.unacknowledged() == 0


def test_redis_shows_who_visits_a_feed_and_when_its_host_was_asked(
    parts: Parts, owner: Reader, world: Web, cluster: Cluster
) -> None:  # D5 D7
    cluster.environ["HEADWATER_HOST_GAP_SECONDS"] = "60"
    [feed_id] = add_feeds(parts, owner, world, 1)
    answers = held_back(world, "/0")
    cluster.worker()
    sent_at = parts.now()
    task_id = cluster.send("tasks.feeds.refresh_feed", feed_id).id
    key = f"tasklock:feed:{feed_id}"
    wait_until(lambda: cluster.redis.get(key))
    assert cluster.redis.get(key) == task_id
    assert 100 < cluster.redis.ttl(key) <= 180  # type: ignore[operator]
    domain = "ratelimit:domain:127.0.0.1"
    wait_until(lambda: cluster.redis.get(domain))
    asked_at = int(cluster.redis.get(domain))  # type: ignore[arg-type]
    assert sent_at.timestamp() * 1000 - 1 <= asked_at <= parts.now().timestamp() * 1000 + 1
    may_be_asked_in: int = cluster.redis.pttl(domain)  # type: ignore[assignment]
    assert asked_at + 60_000 >= parts.now().timestamp() * 1000 + may_be_asked_in - 1000, "until it may be asked again"
    assert 0 < may_be_asked_in <= 60_000
    answers.set()
    cluster.result(task_id)
    wait_until(lambda: cluster.redis.get(key) is None)
