"""yarr (Go, SQLite with full-text search), driven through the interface its own pages use."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import uuid
from collections.abc import Callable
from urllib.error import URLError
from urllib.request import Request, urlopen

import corpus
from measure import Pass, measured
from peers import CannotBeHad, Job, Outcome, environment, go_program, go_version, last_words, wait_until
from webserver import free_ports

NAME = "yarr"
MODULE = "github.com/nkanaev/yarr"
TAGS = "sqlite_foreign_keys sqlite_json fts5"


def poll(job: Job) -> Outcome:
    program = go_program(f"{MODULE}/cmd/yarr", MODULE, "latest", TAGS)
    (port,) = free_ports(1)
    address, store = f"http://127.0.0.1:{port}", job.folder / "yarr.db"
    with (job.folder / "log").open("wb") as log:
        command = [str(program), "-addr", f"127.0.0.1:{port}", "-db", str(store)]
        process = subprocess.Popen(command, env=environment(job), stdout=log, stderr=log)
    try:
        wait_until(lambda: _answers(address), 30)
        document = corpus.opml(job.urls).encode()
        first = _pass(process, address, job, lambda: _import(address, document))
        unchanged = _pass(process, address, job, lambda: _call(address, "/api/feeds/refresh", b""))
    finally:
        process.terminate()
        process.wait(30)
    with sqlite3.connect(store) as connection:
        feeds, entries = connection.execute("SELECT count(DISTINCT feed_id), count(*) FROM items").fetchone()
    return Outcome(go_version(program, MODULE), first, unchanged, feeds, entries)


def _pass(process: subprocess.Popen[bytes], address: str, job: Job, trigger: Callable[[], object]) -> Pass:
    def work() -> None:
        trigger()
        wait_until(lambda: not json.loads(_call(address, "/api/status"))["running"], job.limit)

    spent = measured(process.pid, work)
    if process.poll() is not None:
        raise CannotBeHad(f"yarr ended: {last_words(job)}")
    return spent


def _import(address: str, document: bytes) -> None:
    border = uuid.uuid4().hex
    head = f'--{border}\r\nContent-Disposition: form-data; name="opml"; filename="feeds.opml"\r\n\r\n'
    body = head.encode() + document + f"\r\n--{border}--\r\n".encode()
    _call(address, "/opml/import", body, f"multipart/form-data; boundary={border}")


def _call(address: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
    with urlopen(Request(address + path, data=body, headers={"Content-Type": kind}), timeout=300) as answer:
        content: bytes = answer.read()
        return content


def _answers(address: str) -> bool:
    try:
        return bool(_call(address, "/api/status"))
    except URLError:
        return False
