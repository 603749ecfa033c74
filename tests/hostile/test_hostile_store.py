"""A store that is locked, full, damaged or gone under a running Headwater (H90, H91)."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from api.running import Client, Running, running
from cli.conftest import Ran
from headwater import wire
from headwater.work import upkeep
from support import forked
from support.disks import small_disk
from support.posts import a_post
from support.services import fresh_postgres_database, service_url
from support.whole import headwater_process

LIMITS = {"HEADWATER_LOCK_SECONDS": "0.5", "HEADWATER_STATEMENT_SECONDS": "1"}


@pytest.fixture
def on_postgres(postgres_schema: str) -> Iterator[tuple[Running, str]]:
    with fresh_postgres_database(service_url("postgres"), postgres_schema) as url, running(url, **LIMITS) as made:
        yield made, url


@contextmanager
def locked(url: str, table: str) -> Iterator[None]:
    with psycopg.connect(url) as holder:
        holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


def test_a_locked_table_is_answered_by_503_and_stops_no_other_page(on_postgres: tuple[Running, str]) -> None:  # H90
    headwater, url = on_postgres
    program, person = headwater.program(), headwater.browser()
    headwater.publish(headwater.source(), a_post("1"))
    assert program.get("/api/webhooks").status == 200
    with locked(url, "webhooks"), ThreadPoolExecutor(30) as crowd:
        waiting = [crowd.submit(program.get, "/api/webhooks") for _ in range(24)]
        others = [crowd.submit(client.get, path) for client, path in ((program, "/api/stream"), (person, "/"))]
        # They are answered while the others wait.
        for other in others:
            assert other.result().status == 200
        assert not all(one.done() for one in waiting)
        for one in waiting:
            answer = one.result()
            assert (answer.status, answer.json()["code"]) == (503, "store_unavailable")
            assert answer.headers["retry-after"]
        refused = headwater.stranger.get("/readyz")
        assert (refused.status, refused.json()["code"]) == (503, "store_unavailable")
        assert headwater.stranger.get("/healthz").status == 200
        figure = next(one for one in program.get("/api/health").json()["figures"] if one["name"] == "store")
        assert figure["state"] == "bad"
        assert "holds a lock" in figure["advice"]
        assert "holds a lock" in person.get("/", Accept="text/html").text
    assert program.get("/api/webhooks").status == 200
    assert headwater.stranger.get("/readyz").status == 200


def test_a_statement_that_takes_too_long_is_ended(on_postgres: tuple[Running, str]) -> None:  # H90
    headwater, url = on_postgres
    with psycopg.connect(url, autocommit=True) as other:
        # A view that takes its time, in the place of the table that a page reads. OFFSET keeps conditions outside: an
        # empty table that is read first would make the sleep superfluous.
        other.execute("ALTER TABLE webhooks RENAME TO slow_webhooks")
        other.execute("CREATE VIEW webhooks AS SELECT t.* FROM pg_sleep(20) LEFT JOIN slow_webhooks t ON true OFFSET 0")
        answer = headwater.program().get("/api/webhooks")
    assert (answer.status, answer.json()["code"]) == (503, "store_unavailable")
    assert "too long" in answer.json()["detail"]


def test_migrations_are_not_limited(postgres_url: str) -> None:
    with running(postgres_url, HEADWATER_STATEMENT_SECONDS="0.1", HEADWATER_LOCK_SECONDS="0.1") as headwater:
        shown = headwater.parts.db.read_now(lambda conn: conn.execute(text("SHOW statement_timeout")).scalar())
    assert shown == "100ms"


# What happens to a file


def ask(port: int, token: str) -> Client:
    return Client(port, {"Authorization": f"Bearer {token}", "Accept": "text/html"})


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HEADWATER_DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def command(environ: dict[str, str]) -> Callable[..., Ran]:
    def run(*words: str, **more: str) -> Ran:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
        done = forked.run("-m", "headwater", *words, env={**kept, **environ, **more})
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


def store_figure(client: Client) -> dict[str, Any]:
    figures = client.get("/api/health").json()["figures"]
    return next(one for one in figures if one["name"] == "store")


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_file_that_is_taken_away_is_noticed_at_once(
    environ: dict[str, str], command: Callable[..., Ran], how: str
) -> None:  # H91
    file = Path(environ["HEADWATER_DATA_DIR"], "headwater.db")
    with headwater_process("up", "--no-crawl", environ=environ) as (_, port):
        client = ask(port, command("token").out.strip())
        assert client.get("/readyz").status == 200
        assert store_figure(client)["state"] == "ok"
        if how == "deleted":
            file.unlink()
        elif how == "moved":
            file.rename(file.with_name("elsewhere.db"))
        else:
            shutil.copy(file, file.with_name("new.db"))
            file.with_name("new.db").rename(file)
        refused = client.post("/api/sources", {"address": "https://news.example/feed"})
        assert (refused.status, refused.json()["code"]) == (503, "store_lost")
        assert "tart Headwater again" in refused.json()["detail"]
        assert client.get("/readyz", Accept="*/*").json()["code"] == "store_lost"
        assert str(file) not in client.get("/readyz").text, "anybody may ask this"
        assert store_figure(client)["state"] == "bad"
        assert "while Headwater was running" in client.get("/").text
        assert "while Headwater was running" in client.get("/health").text


def test_an_empty_store_is_not_made_where_there_was_one(environ: dict[str, str], command: Callable[..., Ran]) -> None:
    file = Path(environ["HEADWATER_DATA_DIR"], "headwater.db")
    command("db", "upgrade")
    token = command("token").out
    assert token
    kept = file.read_bytes()
    for content in (None, b""):
        for left in file.parent.glob("headwater.db*"):
            if left.suffix != ".marker":
                left.unlink()
        if content is not None:
            file.write_bytes(content)
        for words in (["token"], ["sources"], ["up"], ["db", "upgrade"]):
            ran = command(*words)
            assert (ran.code, ran.out) == (1, ""), words
            assert "backup" in ran.err
            assert "headwater.db.marker" in ran.err
            assert not file.exists() or file.stat().st_size == 0
        checked = command("doctor")
        assert checked.code == 1
        assert "FAIL  database: The database" in checked.out
    file.write_bytes(kept)
    assert command("sources").code == 0
    file.unlink()
    file.with_name("headwater.db.marker").unlink()
    assert command("db", "upgrade").code == 0
    assert command("token").out != token


def test_a_damaged_file_is_said_everywhere(environ: dict[str, str], command: Callable[..., Ran]) -> None:  # H91
    file = Path(environ["HEADWATER_DATA_DIR"], "headwater.db")
    assert command("db", "upgrade").code == 0
    assert "is intact" in command("doctor", HEADWATER_PORT="1").out
    with file.open("r+b") as opened:
        opened.seek(4096 * 3)
        opened.write(b"\xa5" * (file.stat().st_size - 4096 * 6))
    checked = command("doctor")
    assert checked.code == 1
    assert "FAIL  database file: The database file is damaged" in checked.out
    assert "backup" in checked.out


def test_damage_under_a_running_headwater_is_said_everywhere(tmp_path: Path) -> None:  # H91
    file = tmp_path / "headwater.db"
    with running(f"sqlite:///{file}") as headwater:
        source = headwater.source()
        headwater.publish(source, *(a_post(str(number), content="words " * 1000) for number in range(300)))
        headwater.parts.db.write_now(lambda conn: conn.execute(text("DELETE FROM crawls")))
    with running(f"sqlite:///{file}") as headwater:
        program, person = headwater.program(), headwater.browser()
        assert headwater.stranger.get("/readyz").status == 200
        whole = file.stat().st_size
        with file.open("r+b") as opened:
            opened.seek(whole // 4 // 4096 * 4096)
            opened.write(b"\xa5" * (whole // 2))
        # Whoever reads a damaged page is told, and from then on everybody.
        answers = [program.get(path) for path in ("/api/posts?limit=200", "/api/posts?q=words", "/api/sources")]
        codes = {answer.json().get("code") for answer in answers if answer.status == 503}
        assert codes == {"store_damaged"}
        assert headwater.stranger.get("/readyz").json()["code"] == "store_damaged"
        assert "backup" in person.get("/login", Accept="text/html").text or "backup" in person.get("/").text


@contextmanager
def watching(parts: wire.Parts) -> Iterator[None]:
    """Watches over the store as a process does."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(wire.watch_store(parts, stop)))
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def test_damage_that_nobody_has_read_is_found_by_the_daily_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # H91
    file = tmp_path / "headwater.db"
    with running(f"sqlite:///{file}") as headwater:
        posts = [a_post(str(number), content="words " * 1000) for number in range(300)]
        headwater.publish(headwater.source(), *posts)
    with running(f"sqlite:///{file}") as headwater:
        program, person = headwater.program(), headwater.browser()
        with file.open("r+b") as opened:
            opened.seek(file.stat().st_size // 2 // 4096 * 4096)
            opened.write(b"\xa5" * 4096)
        assert headwater.stranger.get("/readyz").status == 200
        assert store_figure(program)["state"] == "ok"
        monkeypatch.setattr(upkeep, "FIRST_CHECK_SECONDS", 0.0)
        with capture_logs() as logged, watching(headwater.parts):
            while not logged:
                time.sleep(0.05)
        assert [(line["event"], line["code"]) for line in logged] == [("store.trouble", "store_damaged")]
        assert headwater.stranger.get("/readyz").json()["code"] == "store_damaged"
        assert store_figure(program)["state"] == "bad"
        for page in ("/", "/health"):
            said = person.get(page, Accept="text/html").text
            assert "is damaged" in said, page
            assert "backup" in said, page


def test_a_full_disk_is_said_everywhere_and_nothing_is_lost(tmp_path: Path) -> None:  # H91
    with small_disk(tmp_path / "disk", megabytes=24) as disk:
        file, ballast = disk / "headwater.db", disk / "ballast"
        with running(f"sqlite:///{file}", HEADWATER_DATA_DIR=str(disk)) as headwater:
            program, person = headwater.program(), headwater.browser()
            source = headwater.source()
            before = headwater.publish(source, a_post("1"))
            fill(ballast)
            for number in range(2000):
                answer = program.post("/api/sources", {"address": f"https://news.example/{number}/{'x' * 1000}"})
                if answer.status != 202:
                    break
            assert (answer.status, answer.json()["code"]) == (503, "store_unavailable")
            assert "disk is full" in answer.json()["detail"]
            assert headwater.stranger.get("/readyz").status == 503
            assert store_figure(program)["state"] == "bad"
            assert "is full" in person.get("/").text
            ballast.unlink()
            assert program.post("/api/sources", {"address": "https://news.example/again"}).status == 202
            assert headwater.stranger.get("/readyz").status == 200
            assert [post["id"] for post in program.get("/api/posts").json()["items"]] == before
            headwater.parts.db.quick_check()


def fill(file: Path) -> None:
    """Writes until nothing more goes in."""
    with file.open("wb", buffering=0) as opened:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    opened.write(b"\0" * size)
            except OSError:
                continue


def test_doctor_tries_to_write_before_it_says_that_it_can(tmp_path: Path, command: Callable[..., Ran]) -> None:  # H91
    with small_disk(tmp_path / "disk", megabytes=8) as disk:
        fill(disk / "ballast")
        checked = command("doctor", HEADWATER_DATA_DIR=str(disk))
    assert checked.code == 1
    assert "FAIL  data folder" in checked.out
    assert "No space left" in checked.out


def test_what_is_stored_is_nobody_elses(environ: dict[str, str], command: Callable[..., Ran]) -> None:
    folder = Path(environ["HEADWATER_DATA_DIR"])
    folder.mkdir(mode=0o755, parents=True)
    for above in (folder, *folder.parents):
        if above.owner() == folder.owner() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    assert command("db", "upgrade").code == 0
    modes = {file.name: file.stat().st_mode & 0o077 for file in folder.iterdir()}
    assert modes
    assert set(modes.values()) == {0}
    (folder / "headwater.db").chmod(0o644)
    checked = command("doctor")
    assert "others on this machine can read it: chmod 700" in checked.out
