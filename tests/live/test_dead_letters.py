"""Dead letters and health over HTTP, on the pages and in the terminal: read, replay, skip; for operators alone."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, text

from api.running import Client, Running, running
from headwater.accounts import tokens
from headwater.cli.events import moment_in
from headwater.consumers import search
from headwater.errors import BadInput
from headwater.model import Event, Reader
from headwater.store.log import outbox
from headwater.store.tables import users
from support import forked
from support.log import consume_all
from support.posts import NOON, a_post

FORM = "application/x-www-form-urlencoded"
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def break_an_event(headwater: Running, name: str = "1") -> int:
    """An event that the search index cannot read dies; returns its letter."""
    db, now = headwater.parts.db, headwater.parts.now()
    nonsense = Event("post.stored", 1, "source:1", '{"post_id": "nonsense"}', f"nonsense:{name}")
    db.write_now(outbox.append, [nonsense], now)
    for later in (0, 10):
        consume_all(db, search.CONSUMER, now + timedelta(seconds=later))
    last = db.read_now(lambda conn: conn.execute(text("SELECT max(id) FROM event_dlq WHERE state = 'dead'")).scalar())
    assert isinstance(last, int)
    return last


def repair(headwater: Running, letter_id: int, post_id: int) -> None:
    """What a person does about it: the event is made what it should have been."""
    facts = {"post_id": post_id, "source_id": 1, "source_post_id": "1", "version": 1, "title": "x", "url": None}
    data = json.dumps({**facts, "created_at": "2026-01-01T00:00:00Z"})
    query = text(
        f"UPDATE event_dlq SET payload = {'CAST(:data AS jsonb)' if is_postgres(headwater) else ':data'} WHERE id = :id"
    )
    headwater.parts.db.write_now(lambda conn: conn.execute(query, {"data": data, "id": letter_id}))


def is_postgres(headwater: Running) -> bool:
    return not headwater.parts.db.is_sqlite


def a_plain_reader(headwater: Running) -> Client:
    def make(conn: Connection) -> Reader:
        values = {"tenant_id": headwater.owner.tenant_id, "name": "reader", "role": "reader"}
        made = insert(users).values(**values, created_at=headwater.parts.now()).returning(users.c.id)
        return Reader(headwater.owner.tenant_id, conn.execute(made).scalar_one(), "reader", "reader")

    reader = headwater.parts.db.write_now(make)
    secret = headwater.parts.db.write_now(tokens.issue, reader, "api", "test", headwater.parts.now())
    return Client(headwater.port, {"Authorization": f"Bearer {secret}"})


def test_a_letter_is_read_replayed_and_has_its_effect_once(on_both: Running) -> None:  # E5
    client = on_both.program()
    [post_id] = on_both.publish(on_both.source(), a_post("1", "Rivers"))
    letter_id = break_an_event(on_both)
    [listed] = client.get("/api/dead-letters").json()["items"]
    assert (listed["id"], listed["consumer"], listed["state"], listed["attempts"]) == (letter_id, "search", "dead", 3)
    assert listed["data"] == {"post_id": "nonsense"}
    assert "UnreadableEvent" in listed["error"]
    again = client.post(f"/api/dead-letters/{letter_id}/replay")
    assert (again.status, again.json()["state"], again.json()["attempts"]) == (200, "dead", 4)
    repair(on_both, letter_id, post_id)
    assert client.post(f"/api/dead-letters/{letter_id}/replay").json()["state"] == "replayed"
    assert client.get("/api/dead-letters").json()["items"] == []
    assert client.post(f"/api/dead-letters/{letter_id}/replay").status == 409
    assert client.get(f"/api/dead-letters/{letter_id}").json()["state"] == "replayed"


def test_letters_are_skipped_replayed_together_and_listed_in_pages(on_both: Running) -> None:
    client = on_both.program()
    ids = [break_an_event(on_both, str(number)) for number in range(3)]
    first = client.get("/api/dead-letters?limit=2").json()
    second = client.get(f"/api/dead-letters?limit=2&cursor={first['next_cursor']}").json()
    assert [letter["id"] for letter in first["items"] + second["items"]] == ids[::-1]
    assert client.post(f"/api/dead-letters/{ids[0]}/skip").json()["state"] == "skipped"
    assert client.post("/api/dead-letters/replay?consumer=search").json() == {"replayed": 0, "failed": 2}
    assert client.post("/api/dead-letters/replay?kind=post.changed").json() == {"replayed": 0, "failed": 0}
    assert client.post("/api/dead-letters/replay?consumer=nobody").status == 422
    assert [one["id"] for one in client.get("/api/dead-letters?state=skipped").json()["items"]] == [ids[0]]
    assert client.get("/api/dead-letters/4711").status == 404


def test_letters_are_for_operators_alone(on_both: Running) -> None:
    letter_id = break_an_event(on_both)
    reader = a_plain_reader(on_both)
    for method, path in (
        ("GET", "/api/dead-letters"),
        ("GET", f"/api/dead-letters/{letter_id}"),
        ("POST", f"/api/dead-letters/{letter_id}/replay"),
        ("POST", f"/api/dead-letters/{letter_id}/skip"),
        ("POST", "/api/dead-letters/replay"),
        ("GET", f"/health/dead-letters/{letter_id}"),
        ("POST", f"/health/dead-letters/{letter_id}/skip"),
    ):
        assert reader(method, path).status == 403, path
    page = reader.get("/health", Accept="text/html")
    assert page.status == 403
    assert "nonsense" not in page.text


def test_health_has_every_figure_with_its_limit_and_state(on_both: Running) -> None:  # E9
    client = on_both.program()
    on_both.publish(on_both.source(), a_post("1"))
    for consumer in on_both.parts.consumers:
        consume_all(on_both.parts.db, consumer, on_both.parts.now())
    answer = client.get("/api/health").json()
    figures = {(one["name"], one["consumer"]): one for one in answer["figures"]}
    assert answer["state"] == "ok", answer
    for name, limit in (("outbox_backlog", 100), ("dlq_share", 0.001), ("write_to_visible_p95", 3.0)):
        assert figures[name, None]["limit"] == limit
    assert figures["consumer_lag", "search"]["limit"] == 6.0
    assert figures["cache_hit_rate", None]["value"] is None
    assert answer["unknown"]["cache_hit_rate"] == figures["cache_hit_rate", None]["advice"] != ""
    break_an_event(on_both)
    answer = client.get("/api/health").json()
    assert answer["state"] == "bad"
    assert next(one for one in answer["figures"] if one["name"] == "dlq_count")["value"] == 1
    metrics = client.get("/metrics").text
    for line in (
        'headwater_dead_letters{consumer="search"} 1.0',
        'headwater_outbox_backlog{consumer="search"} 0.0',
    ):
        assert line in metrics


def test_a_stopped_consumer_is_seen(store_url: str) -> None:  # E9, H89
    clock: list[datetime] = []
    with running(store_url, now=lambda: clock[-1] if clock else datetime.now().astimezone()) as headwater:
        headwater.publish(headwater.source(), *[a_post(str(number)) for number in range(150)])
        clock.append(headwater.parts.now() + timedelta(minutes=5))
        answer = headwater.program().get("/api/health").json()
        figures: dict[Any, Any] = {(one["name"], one["consumer"]): one for one in answer["figures"]}
        assert answer["state"] == "bad"
        assert figures["outbox_backlog", None]["value"] >= 150
        assert figures["consumer_lag", "search"]["value"] >= 290
        assert 'headwater_outbox_backlog{consumer="search"} 15' in headwater.program().get("/metrics").text


def test_the_page_works_without_script(on_both: Running) -> None:
    letter_id = break_an_event(on_both)
    session = on_both.session()
    browser = on_both.browser(session)
    page = browser.get("/health", Accept="text/html").text
    assert "Trouble" in page
    assert f"/health/dead-letters/{letter_id}/replay" in page
    assert "<svg" in page
    assert "nonsense" in browser.get(f"/health/dead-letters/{letter_id}", Accept="text/html").text
    key = tokens.form_key(session)
    assert (
        browser.post(f"/health/dead-letters/{letter_id}/skip", b"form_key=wrong", Content_Type=FORM).status == 403
    )  # H73
    sent = browser.post(f"/health/dead-letters/{letter_id}/replay", f"form_key={key}".encode(), Content_Type=FORM)
    assert (sent.status, sent.headers["location"]) == (303, f"/health/dead-letters/{letter_id}")
    assert browser.post("/health/dead-letters/replay", f"form_key={key}".encode(), Content_Type=FORM).status == 303
    assert (
        browser.post(f"/health/dead-letters/{letter_id}/skip", f"form_key={key}".encode(), Content_Type=FORM).status
        == 303
    )
    assert "Every event was handled" in browser.get("/health", Accept="text/html").text


class Terminal:
    """Runs commands on a store, as a person would."""

    def __init__(self, headwater: Running) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        url = headwater.parts.settings.store_url()
        self._environ = {**kept, "HEADWATER_DATABASE_URL": url, "HEADWATER_LOG_LEVEL": "error"}

    def __call__(self, *words: str, code: int = 0) -> str:
        return self.run("-m", "headwater", *words, code=code)

    def run(self, *words: str, code: int = 0) -> str:
        done = forked.run(*words, env=self._environ)
        assert done.returncode == code, done.stderr
        return done.stdout or done.stderr


def test_letters_in_the_terminal(headwater: Running) -> None:
    terminal = Terminal(headwater)
    [post_id] = headwater.publish(headwater.source(), a_post("1", "Rivers"))
    first, second = break_an_event(headwater, "1"), break_an_event(headwater, "2")
    listed = [json.loads(line) for line in terminal("dlq", "list", "--json").splitlines()]
    assert [letter["id"] for letter in listed] == [second, first]
    assert "nonsense" in terminal("dlq", "show", str(first))
    repair(headwater, first, post_id)
    assert "1 replayed, 1 failed." in terminal("dlq", "replay", "--all", code=1)
    assert terminal("dlq", "resolve", str(second), "--json") == f'{{"id":{second},"state":"skipped"}}\n'


def test_the_log_is_replayed_in_the_terminal(headwater: Running) -> None:
    terminal = Terminal(headwater)
    headwater.publish(headwater.source(), a_post("1", "Rivers"))
    consume_all(headwater.parts.db, search.CONSUMER, headwater.parts.now())
    words = ("replay", "--start", "2h", "--consumer", "search")
    counted = json.loads(terminal(*words, "--dry-run", "--json"))
    assert counted == {"consumer": "search", "found": 1, "handled": 1, "delivered": 0, "unreached": 0, "dry_run": True}
    assert "1 found, 1 handled before, 0 delivered" in terminal(*words)
    assert "cannot be rebuilt" in terminal("replay", "--rebuild", "--consumer", "search", code=2)


def test_the_scripts_of_the_document_replay_as_it_says(headwater: Running) -> None:  # E5
    terminal, now = Terminal(headwater), headwater.parts.now()
    letter_id = break_an_event(headwater)
    event_id = headwater.program().get(f"/api/dead-letters/{letter_id}").json()["event_id"]
    tried = terminal.run(str(SCRIPTS / "replay_dlq.py"), "--event-id", event_id, "--json", code=1)
    assert json.loads(tried)["id"] == letter_id, "it fails again, because it is still broken"
    window = (f"{now - timedelta(hours=1):%Y-%m-%d %H:%M}", f"{now + timedelta(hours=1):%Y-%m-%d %H:%M}")
    script = str(SCRIPTS / "replay_events.py")
    counted = terminal.run(script, "--start", window[0], "--end", window[1], "--consumer", "search", "--json")
    assert json.loads(counted)["found"] == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("90s", NOON - timedelta(seconds=90)),
        ("2h", NOON - timedelta(hours=2)),
        ("2h ago", NOON - timedelta(hours=2)),
        (" 7d ", NOON - timedelta(days=7)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T10:00", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01T10:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
    ],
)
def test_times_are_typed_as_dates_or_as_how_long_ago(typed: str, meant: datetime) -> None:
    assert moment_in(typed, NOON) == meant


@pytest.mark.parametrize("typed", ["", "yesterday", "2w", "-2h", "999999d", "2026-13-01"])
def test_what_is_no_time_is_said(typed: str) -> None:
    with pytest.raises(BadInput, match="is not a time"):
        moment_in(typed, NOON)


def test_a_dead_letter_is_replayed_by_its_event(on_both: Running) -> None:  # E13
    letter_id = break_an_event(on_both)
    client = on_both.program()
    letter = client.get(f"/api/dead-letters/{letter_id}").json()
    assert (letter["state"], letter["resolved"]) == ("dead", False)
    environ = {**os.environ, "HEADWATER_DATABASE_URL": on_both.parts.settings.store_url()}

    def replay(*words: str) -> subprocess.CompletedProcess[str]:
        return forked.run("-m", "headwater", "dlq", "replay", *words, "--json", env=environ, timeout=300)

    unknown = replay("--event-id", "019b9a3c-7f00-7c3e-9d5e-1a2b3c4d5e6f")
    assert (unknown.returncode, "headwater dlq list" in unknown.stderr) == (1, True)
    tried = replay("--event-id", letter["event_id"])
    assert json.loads(tried.stdout)["id"] == letter_id, "it fails again, because it is still broken"
    client.post(f"/api/dead-letters/{letter_id}/skip")
    assert client.get(f"/api/dead-letters/{letter_id}").json()["resolved"] is True
    assert client.post(f"/api/dead-letters/replay?event_id={letter['event_id']}").status == 409
