"""What a connection may cost before anybody is signed in: bytes of a head, time to send a request, a place; and TLS.

These limits hold below the application, because by the time it sees a request the whole head is in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import ssl
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httptools
import orjson
import structlog
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from headwater.errors import BadSetting
from headwater.http.problems import MEDIA_TYPE, RETRY_AFTER_SECONDS, Problem

MAX_HEAD_BYTES = 64 * 1024
BODY_FACTOR = 8  # a body may take this many times as long as a head
STALLED_SECONDS = 60.0  # a client that reads nothing of its answer for this long is gone
LINGER_SECONDS = 2.0  # what still arrives after a refusal is thrown away: a reset would take the answer with it
NOTE_SECONDS = 10.0
RENEWED_SECONDS = 60.0
RESERVE = 16
HEALTH_PATHS = frozenset({b"/healthz", b"/readyz"})
MOST_DESCRIPTORS = 8192
OTHER_DESCRIPTORS = 256  # files, database, pipes to parsers

_LINE_TOO_LONG = Problem(
    414, "too_long", "The address is too long", f"A request's first line has at most {MAX_HEAD_BYTES:,} bytes."
)
_HEAD_TOO_LARGE = Problem(
    431, "head_too_large", "The headers are too large", f"A request's head has at most {MAX_HEAD_BYTES:,} bytes in all."
)
_TOO_SLOW = Problem(408, "too_slow", "The request took too long", "Send it again, at once and whole.")
_NOT_HTTP = Problem(400, "bad_request", "The request cannot be read", "This is not HTTP/1.1.")
_TWO_HOSTS = Problem(400, "bad_request", "The request cannot be read", "A request has one Host header.")
_FULL = Problem(503, "busy", "Too many connections at once", "Try again in a moment.")

log = structlog.get_logger(__name__)


class Certificate:
    """The certificate of this server and its key, for TLS 1.3. A renewed one counts for connections from then on."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises BadSetting if a file cannot be read, or is not safe to use."""
        self._files = (certificate, key)
        self._seen = self._state()
        self.context = _context(certificate, key)

    def renew(self) -> bool:
        """Reads the files again if they were changed. Returns whether they were. Bad ones are logged and left alone."""
        try:
            state = self._state()
            if state == self._seen:
                return False
            self._seen = state
            _context(*self._files)
            self.context.load_cert_chain(*self._files)
        except BadSetting as error:
            log.error("certificate.refused", detail=error.detail)
            return False
        log.info("certificate.renewed", file=str(self._files[0]))
        return True

    async def watch(self, stop: asyncio.Event) -> None:
        """Looks for a renewed certificate every minute until `stop` is set."""
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), RENEWED_SECONDS)
            await asyncio.to_thread(self.renew)

    def _state(self) -> list[tuple[int, int, int]]:
        try:
            found = [file.stat() for file in self._files]
        except OSError as error:
            raise _bad_file(error.filename, error.strerror or "unknown") from error
        return [(one.st_ino, one.st_mtime_ns, one.st_size) for one in found]


def _bad_file(file: object, why: str) -> BadSetting:
    return BadSetting(f"TLS: {file} cannot be used: {why}. See HEADWATER_TLS_CERTIFICATE and HEADWATER_TLS_KEY.")


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    from cryptography import x509  # takes 7 MB, and most have a proxy that does TLS

    if key.stat().st_mode & 0o007:
        raise _bad_file(key, f"everybody on this machine can read or change it. Run: chmod o= {key}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_ciphers("DEFAULT:@SECLEVEL=2")  # neither short keys nor SHA-1
    try:
        ends_at = x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
        context.load_cert_chain(certificate, key, password=lambda: "")
    except ssl.SSLError as error:
        reason = (error.reason or "unknown").replace("_", " ").lower()
        raise _bad_file(certificate, f"{reason} ({key} has to be its key, without a password)") from error
    except OSError as error:
        raise _bad_file(error.filename, error.strerror or "unknown") from error
    except ValueError as error:
        raise _bad_file(certificate, "there is no certificate in it, in PEM") from error
    if ends_at < datetime.now(UTC):
        raise _bad_file(certificate, f"it has expired on {ends_at:%Y-%m-%d}. Renew it")
    return context


class Limits(NamedTuple):
    """`connections` do not count the few that are kept for health checks."""

    connections: int = 1000
    head_seconds: float = 15.0

    @property
    def body_seconds(self) -> float:
        return self.head_seconds * BODY_FACTOR


def descriptors(wanted: int = MOST_DESCRIPTORS) -> int:
    """Raises the limit of open files as far as it is allowed and useful. Returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return soft if soft != resource.RLIM_INFINITY else wanted


def affordable(wanted: int, elsewhere: int) -> int:
    """Returns how many connections there may be, of those wanted. `elsewhere` connections are made by the crawler."""
    most = max(RESERVE, descriptors() - OTHER_DESCRIPTORS - RESERVE - elsewhere)
    if most < wanted:
        log.warning("connections.few", most=most, wanted=wanted, advice="raise the limit of open files (ulimit -n)")
    return min(wanted, most)


class Gate:
    """All connections of one server. If there are too many, the one that has kept us waiting longest is closed."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}  # the longest first
        self._closed: Counter[str] = Counter()
        self._reporting = False

    def admit(self, connection: Connection) -> bool:
        """Counts a new connection. Returns whether it has a place; without one it may only ask for the health."""
        if len(self._open) >= self.limits.connections:
            self._close_longest_waiting()
        self._open.add(connection)
        return len(self._open) <= self.limits.connections

    def is_overrun(self) -> bool:
        return len(self._open) > self.limits.connections + RESERVE

    def leave(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def note_waiting(self, connection: Connection, waits: bool) -> None:
        if not waits:
            self._waiting.pop(connection, None)
        elif connection in self._open:
            self._waiting.setdefault(connection)

    def _close_longest_waiting(self) -> None:
        longest = next(iter(self._waiting), None)
        if longest is not None:
            self.leave(longest)
            longest.transport.abort()
            self.note("gave way")

    def note(self, reason: str) -> None:
        """Logs at once, and then one line every few seconds: whoever attacks must not fill the log."""
        self._closed[reason] += 1
        if not self._reporting:
            self._report()

    def _report(self) -> None:
        self._reporting = bool(self._closed)
        if self._closed:
            log.warning("connections.closed", open=len(self._open), reasons=dict(self._closed))
            self._closed.clear()
            asyncio.get_running_loop().call_later(NOTE_SECONDS, self._report)


class _Refused(Exception):
    """Ends the parsing of a request that was refused."""


class Connection(HttpToolsProtocol):
    def __init__(self, gate: Gate, **given: Any) -> None:
        super().__init__(**given)
        self._gate = gate
        self._limits = gate.limits
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._has_place = True
        self._refused = False
        self._in_head = False
        self._in_body = False
        self._answers = 0  # requests that were handed on and are not answered yet
        self._head_bytes = 0
        self._unparsed = 0  # bytes since the parser last had something for us; it buffers them

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._has_place = self._gate.admit(self)
        if self._gate.is_overrun():
            self._gate.note("no place")
            transport.abort()
            return
        self._set_timer(self._limits.head_seconds)
        self._gate.note_waiting(self, True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gate.leave(self)
        self._cancel_timer()
        if self._stalled:
            self._stalled.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unset_keepalive_if_required()
        if self._timer is None and not self._answers:
            self._set_timer(self._limits.head_seconds)  # empty lines between requests are no reason to wait longer
        self._unparsed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # nothing is upgraded here; the request was answered as it is
        except httptools.HttpParserError:
            self._refuse(_NOT_HTTP)
        if self._unparsed > MAX_HEAD_BYTES:
            self._refuse(_LINE_TOO_LONG if self._in_head and not self.headers else _HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0
        if self._timer is None:
            self._set_timer(self._limits.head_seconds)
        self._note_state()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_head(len(url), _LINE_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4, _HEAD_TOO_LARGE)
        if self._in_head:  # after a body they are trailers, which nobody asked for
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body, self._unparsed = False, True, 0
        if sum(name == b"host" for name, _ in self.headers) > 1:
            self._refuse(_TWO_HOSTS)
            raise _Refused
        if not self._has_place and self.url.partition(b"?")[0] not in HEALTH_PATHS:
            self.app = _answer_full
            self._gate.note("no place")
        self._answers += 1
        self._set_timer(self._limits.body_seconds)
        super().on_headers_complete()
        self._note_state()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._unparsed = False, 0
        self._cancel_timer()
        super().on_message_complete()
        self._note_state()

    def on_response_complete(self) -> None:
        self._answers -= 1
        super().on_response_complete()
        if self._in_body:  # refused before it was read
            self._set_timer(LINGER_SECONDS)
        self._note_state()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled:
            self._stalled.cancel()
            self._stalled = None

    def _count_head(self, size: int, problem: Problem) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(problem)
            raise _Refused

    def _note_state(self) -> None:
        self._gate.note_waiting(self, self._in_head or self._in_body or not self._answers)

    def _set_timer(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = self.loop.call_later(seconds, self._be_late)

    def _cancel_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _be_late(self) -> None:
        if (self._in_head or self._in_body) and not (self.cycle and self.cycle.response_started and self._in_body):
            self._refuse(_TOO_SLOW)
        else:
            self.transport.abort()  # browsers open connections that they may never use; that is not worth a line

    def _give_up(self) -> None:
        self._gate.note("answer not read")
        self.transport.abort()

    def _refuse(self, problem: Problem) -> None:
        """Answers below the application, and closes."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._gate.note(problem.code)
        if self.cycle and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = orjson.dumps(problem.as_json())
        lines = [f"content-type: {MEDIA_TYPE}", f"content-length: {len(body)}", "connection: close", "", ""]
        self.transport.write(STATUS_LINE[problem.status] + "\r\n".join(lines).encode() + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._cancel_timer()
        self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)


async def _answer_full(scope: Scope, receive: Receive, send: Send) -> None:
    body = orjson.dumps(_FULL.as_json())
    headers = {
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        "connection": "close",
        "retry-after": str(RETRY_AFTER_SECONDS),
    }
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": _FULL.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def protocol(limits: Limits) -> Callable[..., Connection]:
    """Returns what makes the connections of one server."""
    gate = Gate(limits)
    return lambda **given: Connection(gate, **given)
