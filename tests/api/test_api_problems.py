"""Errors over HTTP: one shape for programs, the same words on a page for people."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog
from sqlalchemy import event

from api.running import Answer, Client, Running, running
from headwater.errors import all_errors
from headwater.http import problems
from headwater.store import db as store_db
from headwater.store import migrate
from headwater.store.posts import stream
from support.services import as_owner

MEMBERS = {"type", "title", "status", "detail", "code"}


def is_problem(answer: Answer, status: int, code: str) -> bool:
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem.keys() >= MEMBERS
    assert problem["type"] == f"urn:headwater:problem:{problem['code']}"
    assert (answer.status, problem["status"], problem["code"]) == (status, status, code)
    return True


def test_everything_that_goes_wrong_has_one_shape(headwater: Running) -> None:
    client = headwater.program()
    assert is_problem(headwater.stranger.get("/api/stream"), 401, "not_signed_in")
    assert is_problem(client.get("/api/nothing"), 404, "not_found")
    assert is_problem(client.get("/api/posts/1"), 404, "not_found")
    assert is_problem(client("PUT", "/api/posts/1"), 405, "method_not_allowed")
    assert is_problem(client.post("/api/sources", {}), 422, "bad_input")
    assert is_problem(client.post("/api/sources", b"{", Content_Type="application/json"), 422, "bad_document")
    assert is_problem(client.get("/api/stream?cursor=x"), 422, "bad_cursor")
    assert is_problem(client.get("/api/stream", Host="evil.example"), 403, "forbidden")
    assert is_problem(client.post("/api/posts/mark", b" " * 2_000_000), 413, "too_large")
    assert is_problem(client.get("/api/stream?x=" + "y" * 20_000), 414, "too_long")


def test_every_error_of_ours_becomes_a_problem() -> None:
    for kind in all_errors():
        problem = problems.of_error(kind("What happened.", source_id=7, status=1, code="mine"))
        told = problem.as_json()
        assert told["source_id"] == 7
        assert (told["status"], told["code"]) == (kind.status, kind.code), "facts do not hide the problem itself"


def test_a_wrong_field_is_named(program: Client) -> None:
    answer = program.post("/api/queue/schedule-feed", {"feed_id": "twelve", "force_immediate": 7})
    assert answer.status == 422
    assert {error["field"] for error in answer.json()["errors"]} == {"feed_id", "force_immediate"}
    assert "feed_id" in answer.json()["detail"]


def test_a_wrong_value_is_not_repeated(on_both: Running) -> None:
    # H67
    assert "hw_api_secret" not in on_both.program().post("/api/queue/schedule-feed", {"feed_id": "hw_api_secret"}).text


def test_people_get_the_same_words_on_a_page(headwater: Running) -> None:
    answer = headwater.program().get("/posts/1", Accept="text/html,*/*")
    assert answer.status == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "There is nothing here" in answer.text
    signed_out = headwater.stranger.get("/", Accept="text/html,*/*")
    assert signed_out.status == 401
    assert "headwater login" in signed_out.text
    assert headwater.program().get("/api/posts/1", Accept="text/html").headers["content-type"] == problems.MEDIA_TYPE


def test_an_unexpected_error_is_logged_and_not_told(headwater: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    # H98
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the inner secret")

    client = headwater.program()
    with monkeypatch.context() as patched, structlog.testing.capture_logs() as logged:
        patched.setattr(stream, "page", broken)
        answer = client.get("/api/stream")
        page = client.get("/", Accept="text/html")
    assert is_problem(answer, 500, "unexpected")
    assert "the inner secret" not in answer.text + page.text
    assert (page.status, page.headers["x-content-type-options"]) == (500, "nosniff")
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == ["request failed"] * 2
    assert client.get("/api/stream").status == 200


def test_a_busy_database_is_told_as_such_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # H90
    monkeypatch.setattr(store_db, "BUSY_SECONDS", 0.2)
    file = tmp_path / "headwater.db"
    with running(f"sqlite:///{file}") as headwater:
        client = headwater.program()
        blocker = sqlite3.connect(file, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        answer = client.post("/api/sources", {"address": "https://news.example/"})
        assert is_problem(answer, 503, "store_unavailable")
        assert int(answer.headers["retry-after"]) > 0
        assert client.get("/api/stream").status == 200, "reading goes on"
        blocker.execute("ROLLBACK")
        blocker.close()
        assert client.post("/api/sources", {"address": "https://news.example/"}).status == 202


@contextmanager
def a_full_disk(headwater: Running) -> Iterator[None]:
    """Connections may not let the database grow any more."""
    engine = headwater.parts.db.engine
    pages = headwater.parts.db.read_now(lambda conn: conn.exec_driver_sql("PRAGMA page_count").scalar_one())

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    engine.dispose()
    event.listen(engine, "connect", limit)
    try:
        yield
    finally:
        event.remove(engine, "connect", limit)
        engine.dispose()


def test_a_full_disk_is_told_as_such_and_recovers(headwater: Running) -> None:
    # H91
    client = headwater.program()
    outlines = "".join(f"<outline xmlUrl='https://host{number}.example/'/>" for number in range(2000))
    document = f"<opml><body>{outlines}</body></opml>".encode()
    with a_full_disk(headwater):
        answer = client.post("/api/opml", document)
        assert is_problem(answer, 503, "store_unavailable")
        assert "full" in answer.json()["detail"]
        assert client.get("/api/stream").status == 200
    assert client.post("/api/opml", document).json()["refused"] == []


def test_a_database_without_our_schema_is_not_ready(on_both: Running) -> None:
    client = on_both.program()
    assert client.get("/readyz").status == 200
    with as_owner(on_both.parts.db) as db:
        migrate.downgrade(db, "base")
    answer = on_both.stranger.get("/readyz")
    assert is_problem(answer, 503, "schema_mismatch")
    assert answer.json()["detail"] == answer.json()["title"], "strangers are told nothing about the database"
    assert on_both.stranger.get("/healthz").status == 200
    assert client.get("/api/stream").status == 503
