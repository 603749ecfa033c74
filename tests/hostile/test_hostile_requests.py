"""What strangers send to a running Headwater: endless heads, drips, idle connections, contradictory requests."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import structlog
from structlog.typing import EventDict

from api.running import Running, running
from headwater.http.connections import MAX_HEAD_BYTES, MOST_DESCRIPTORS, RESERVE
from support.processes import wait_until
from support.whole import headwater_process

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
PLACES = 30
QUICK = {"HEADWATER_MAX_CONNECTIONS": str(PLACES), "HEADWATER_REQUEST_SECONDS": "0.5"}
MEGABYTE = 1024 * 1024


@pytest.fixture
def crowded(sqlite_url: str) -> Iterator[Running]:
    """A Headwater with few places, whose clients have to be quick."""
    with running(sqlite_url, **QUICK) as made:
        yield made


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def all_of(client: socket.socket) -> bytes:
    """What the server says until it closes."""
    said = b""
    with suppress(ConnectionError):
        while piece := client.recv(65536):
            said += piece
    return said


def told(port: int, *pieces: bytes) -> bytes:
    with connected(port) as client:
        with suppress(ConnectionError):
            for piece in pieces:
                client.sendall(piece)
        return all_of(client)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


ENDLESS: dict[str, tuple[int, bytes, bytes]] = {
    "headers": (431, HEAD, b"X-More: " + b"x" * 1000 + b"\r\n"),
    "one header": (431, HEAD + b"X-More: ", b"x" * 1000),
    "header name": (431, HEAD + b"X", b"x" * 1000),
    "folded header": (431, HEAD + b"X-More: x", b"\r\n " + b"x" * 1000),
    "cookie": (431, HEAD + b"Cookie: a=", b"x" * 1000),
    "address": (414, b"GET /", b"x" * 1000),
    "query": (414, b"GET /?q=", b"x" * 1000),
    "trailer": (431, HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-More: ", b"x" * 1000),
    "trailers": (431, HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-More: " + b"x" * 1000 + b"\r\n"),
    "chunk extension": (431, HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;x=", b"x" * 1000),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_never_ends_is_refused_at_64_kb(headwater: Running, kind: str) -> None:  # H19, H36
    status, start, more = ENDLESS[kind]
    answer = told(headwater.port, start, more * (4 * MEGABYTE // len(more)))
    # llhttp itself may refuse the form before its size is known.
    assert status_of(answer) in (status, 400), answer
    assert headwater.stranger.get("/healthz").status == 200


@pytest.mark.parametrize("kind", ["headers", "one header", "address", "query"])
def test_what_is_too_large_says_so(headwater: Running, kind: str) -> None:  # H19, H36
    status, start, more = ENDLESS[kind]
    answer = told(headwater.port, start, more * (MAX_HEAD_BYTES // len(more) + 2))
    assert status_of(answer) == status
    assert b'"code":' in answer
    assert b"65,536 bytes" in answer


def test_a_large_head_below_the_limit_is_served(headwater: Running) -> None:
    answer = told(headwater.port, HEAD + b"Connection: close\r\nX-More: " + b"x" * 50_000 + b"\r\n\r\n")
    assert status_of(answer) == 200


def test_ten_thousand_headers_are_refused(headwater: Running) -> None:  # H36
    assert status_of(told(headwater.port, HEAD + b"X-A: b\r\n" * 10_000 + b"\r\n")) == 431


def test_memory_stays_flat_whatever_one_connection_sends(tmp_path: Path) -> None:  # H36
    with headwater_process("up", "--no-crawl", environ={"HEADWATER_DATA_DIR": str(tmp_path / "data")}) as started:
        process, port = started
        told(port, HEAD + b"\r\n")
        before = peak_memory(process.pid)
        for _, start, more in ENDLESS.values():
            piece = more * (MEGABYTE // len(more))
            told(port, start, *[piece] * 20)
        assert peak_memory(process.pid) - before < 20 * MEGABYTE
        assert status_of(told(port, HEAD + b"Connection: close\r\n\r\n")) == 200


def peak_memory(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def test_two_names_for_the_server_are_refused(headwater: Running) -> None:
    for second in (b"localhost", b"evil.example"):
        answer = told(headwater.port, HEAD + b"Host: " + second + b"\r\n\r\n")
        assert status_of(answer) == 400
        assert b"one Host header" in answer


def test_a_trailer_is_no_header(headwater: Running) -> None:
    late = f"Authorization: Bearer {headwater.token()}\r\n".encode()
    head = HEAD.replace(b"/healthz", b"/api/stream") + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert status_of(told(headwater.port, head + b"0\r\n" + late + b"\r\n")) == 401


SLOW: dict[str, bytes] = {
    "half a request line": b"GET /hea",
    "half a header": HEAD + b"X-Half: ",
    "no end of the head": HEAD,
    "a body that does not come": HEAD + b"Content-Length: 100\r\n\r\n",
    "half a body": HEAD + b"Content-Length: 100\r\n\r\n0123",
    "a chunk that does not come": HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
}


@pytest.mark.parametrize("kind", SLOW)
def test_whoever_does_not_finish_a_request_is_told_and_closed(crowded: Running, kind: str) -> None:  # H21, H22
    assert status_of(told(crowded.port, SLOW[kind])) == 408


def test_whoever_says_nothing_is_closed(crowded: Running) -> None:  # H21
    assert told(crowded.port) == b""


def test_empty_lines_between_requests_do_not_keep_a_connection(crowded: Running) -> None:  # H21
    with connected(crowded.port) as client:
        client.sendall(HEAD + b"\r\n")
        assert status_of(client.recv(65536)) == 200
        client.settimeout(0.1)
        for _ in range(600):
            with suppress(TimeoutError):
                if not client.recv(65536):
                    return
            with suppress(ConnectionError):
                client.sendall(b"\r\n")
    pytest.fail("it was kept")


def test_dripping_does_not_prolong_the_time(crowded: Running) -> None:  # H21
    with connected(crowded.port) as client:
        client.sendall(HEAD)
        client.settimeout(0.1)
        for number in range(600):
            with suppress(TimeoutError):
                assert status_of(client.recv(65536)) == 408
                return
            client.sendall(b"X-%d: y\r\n" % number)
    pytest.fail("it was kept")


def test_a_body_that_nobody_will_read_does_not_keep_a_connection(crowded: Running) -> None:  # H22
    asked = b"POST /api/sources HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    assert status_of(told(crowded.port, asked + b"x")) == 401


def test_two_requests_over_one_connection_are_answered_in_order(headwater: Running) -> None:
    last = HEAD.replace(b"/healthz", b"/readyz") + b"Connection: close\r\n\r\n"
    answer = told(headwater.port, HEAD + b"\r\n" + HEAD.replace(b"/healthz", b"/api/stream") + b"\r\n" + last)
    statuses = [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 401, 200]


@pytest.mark.parametrize("said", [b"", b"GET / HT", HEAD, HEAD + b"Content-Length: 9\r\n\r\n"])
def test_more_connections_than_places_keep_nobody_out(sqlite_url: str, said: bytes) -> None:  # H21, H22
    with (
        structlog.testing.capture_logs() as logged,
        running(sqlite_url, HEADWATER_MAX_CONNECTIONS=str(PLACES)) as headwater,
        ExitStack() as held,
    ):
        program = headwater.program()
        for _ in range(PLACES * 4):
            client = held.enter_context(connected(headwater.port))
            client.sendall(said)
        for _ in range(3):
            assert headwater.stranger.get("/healthz").status == 200
            assert headwater.stranger.get("/readyz").status == 200
            assert program.get("/api/stream").status == 200
        assert [line for line in logged if line["event"] == "connections.closed" and line["reasons"]["gave way"]]
        assert len(closings(logged)) < PLACES, "one line for each would fill the log"


def closings(logged: list[EventDict]) -> list[EventDict]:
    return [line for line in logged if line["event"].startswith("connections.")]


def test_when_every_place_is_at_work_health_is_still_answered(sqlite_url: str) -> None:
    with running(sqlite_url, HEADWATER_MAX_CONNECTIONS="3") as headwater, ExitStack() as held:
        follow = f"GET /api/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {headwater.token()}\r\n\r\n"
        program = headwater.program()
        for _ in range(3):
            client = held.enter_context(connected(headwater.port))
            client.sendall(follow.encode())
            assert status_of(client.recv(65536)) == 200
        assert headwater.stranger.get("/healthz").status == 200
        refused = program.get("/api/stream")
        assert (refused.status, refused.json()["code"]) == (503, "busy")
        assert refused.headers["retry-after"]
        for _ in range(RESERVE * 2):
            held.enter_context(connected(headwater.port))
        assert headwater.stranger.get("/healthz").status == 200


def test_places_come_back(sqlite_url: str) -> None:
    with running(sqlite_url, HEADWATER_MAX_CONNECTIONS="2") as headwater:
        follow = f"GET /api/live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {headwater.token()}\r\n\r\n"
        program = headwater.program()
        with ExitStack() as held:
            for _ in range(2):
                client = held.enter_context(connected(headwater.port))
                client.sendall(follow.encode())
                client.recv(65536)
            assert program.get("/api/stream").status == 503
        wait_until(lambda: program.get("/api/stream").status == 200)


def test_the_limit_of_open_files_is_raised_as_far_as_it_may_be(tmp_path: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    environ = {"HEADWATER_DATA_DIR": str(tmp_path / "data")}
    with headwater_process("up", "--no-crawl", environ=environ, descriptors=(256, hard)) as (process, _):
        soft = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0]
    assert soft == min(hard, MOST_DESCRIPTORS)


def test_idle_connections_do_not_stop_a_server_with_few_descriptors(tmp_path: Path) -> None:  # H21, H22
    environ = {"HEADWATER_DATA_DIR": str(tmp_path / "data")}
    started = headwater_process("up", "--no-crawl", environ=environ, descriptors=(1024, 1024))
    with started as (_, port), ExitStack() as held:
        for number in range(1200):
            client = held.enter_context(connected(port))
            client.sendall(list(SLOW.values())[number % len(SLOW)] if number % 3 else b"")
        for path in (b"/healthz", b"/readyz"):
            asked = HEAD.replace(b"/healthz", path) + b"Connection: close\r\n\r\n"
            assert status_of(told(port, asked)) == 200
