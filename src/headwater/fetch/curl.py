"""libcurl: a handle that is configured once and used for many transfers, and transfers on the event loop.

Many transfers run at once, each awaited as a future. libcurl says which sockets it waits for. They go into one selector
of our own, and the event loop only watches that. Registering each socket with the loop costs a third to two thirds more
CPU per request, because the loop then wakes once per socket (`bench/fetch.py` measures both).
"""

from __future__ import annotations

import asyncio
import os
import selectors
import ssl
import threading
from collections.abc import Callable, Sequence
from functools import cache
from io import BytesIO
from math import inf
from socket import socket
from typing import Any

import pycurl

from headwater.errors import AnswerBroken
from headwater.fetch.body import ACCEPTED
from headwater.fetch.client import Options
from headwater.fetch.failures import Code
from headwater.fetch.hops import Hop

_BUFFER_BYTES = 65536
_ALWAYS_SENT = (f"Accept-Encoding: {ACCEPTED}".encode(),)
_CA_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS, BSD
)

MAX_HEAD_BYTES = 65536
MAX_HEAD_LINES = 500
_CONTROLS = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in b"\r\n")
_TO_SPACES = bytes.maketrans(_CONTROLS, b" " * len(_CONTROLS))
Easy = Any  # pycurl.Curl; the module has no type hints
_CLOSING_SECONDS = 1.0


class Handle:
    """One libcurl handle. It is used for one transfer at a time."""

    def __init__(self, options: Options, lend: Callable[[socket], socket]) -> None:
        self.easy: Any = _configured(options)
        self.easy.setopt(pycurl.OPENSOCKETFUNCTION, self._open)
        self._guard = None if options.proxy else options.guard
        self._lend = lend
        self._lines: list[bytes] = []
        self.easy.setopt(pycurl.HEADERFUNCTION, self._lines.append)
        self._fresh_body()
        self._seconds = 0.0
        self._max_bytes = 0
        self._opened = False
        self._refusal: str | None = None
        self.own_errno = 0
        self.reusable = True

    def prepare(self, hop: Hop, max_bytes: int, seconds: float) -> None:
        """Sets only what differs from the last transfer. Each option costs time, and most never change."""
        self._lines.clear()
        self._opened = False
        self._refusal = None
        self.own_errno = 0
        easy = self.easy
        easy.setopt(pycurl.URL, hop.url)
        easy.setopt(pycurl.HTTPHEADER, [*_ALWAYS_SENT, *map(_header_line, hop.headers)])
        if seconds != self._seconds:
            self._seconds = seconds
            easy.setopt(pycurl.TIMEOUT_MS, max(1, int(seconds * 1000)))
        if max_bytes != self._max_bytes:
            self._max_bytes = max_bytes
            easy.setopt(pycurl.MAXFILESIZE_LARGE, max(1, max_bytes))
        if hop.method != "GET" or hop.body is not None:
            self._set_method(hop)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Returns status, headers and body of the transfer that has just succeeded."""
        body = self._body.getvalue()
        if body:
            self._fresh_body()
        return self.easy.getinfo(pycurl.RESPONSE_CODE), read_head(self._lines), body

    @property
    def os_errno(self) -> int:
        """The error of the system call that failed, or 0."""
        return int(self.easy.getinfo(pycurl.OS_ERRNO))

    @property
    def refusal(self) -> str | None:
        """Why the guard refused every connection; None if it allowed one, even to another address of the host."""
        return None if self._opened else self._refusal

    def close(self) -> None:
        self.easy.close()

    def _fresh_body(self) -> None:
        self._body = BytesIO()
        self.easy.setopt(pycurl.WRITEFUNCTION, self._body.write)

    def _set_method(self, hop: Hop) -> None:
        """Sets the method. The handle is not reused: undoing what a body takes is not worth it."""
        self.reusable = False
        if hop.method == "HEAD":
            self.easy.setopt(pycurl.NOBODY, 1)
            return
        self.easy.setopt(pycurl.CUSTOMREQUEST, hop.method)
        if hop.body is not None:
            self.easy.setopt(pycurl.POSTFIELDS, hop.body)
            self.easy.setopt(pycurl.HTTPHEADER, [*_ALWAYS_SENT, b"Expect:", *map(_header_line, hop.headers)])

    def _open(self, purpose: int, address: Any) -> socket | int:
        ip, port = address.addr[:2]
        refusal = self._guard.refusal(ip, port) if self._guard else None
        if refusal:
            self._refusal = refusal
            return int(pycurl.SOCKET_BAD)
        self._opened = True
        try:
            return self._lend(socket(address.family, address.socktype, address.protocol))
        except OSError as error:
            self.own_errno = error.errno or 0
            return int(pycurl.SOCKET_BAD)


def _configured(options: Options) -> Any:
    easy = pycurl.Curl()
    easy.setopt(pycurl.NOSIGNAL, 1)
    easy.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
    easy.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
    easy.setopt(pycurl.FOLLOWLOCATION, 0)
    easy.setopt(pycurl.SSL_VERIFYPEER, 1)
    easy.setopt(pycurl.SSL_VERIFYHOST, 2)
    if trusted := options.ca_file or trusted_certificates():
        easy.setopt(pycurl.CAINFO, trusted)
        easy.setopt(pycurl.PROXY_CAINFO, trusted)
    easy.setopt(pycurl.USERAGENT, options.user_agent)
    easy.setopt(pycurl.CONNECTTIMEOUT_MS, int(options.connect_timeout * 1000))
    easy.setopt(pycurl.BUFFERSIZE, _BUFFER_BYTES)
    # Set even if they are empty, or libcurl takes them from the environment.
    easy.setopt(pycurl.PROXY, options.proxy)
    easy.setopt(pycurl.NOPROXY, "")
    if options.resolve:
        easy.setopt(pycurl.RESOLVE, list(options.resolve))
    return easy


def _header_line(header: tuple[str, str]) -> bytes:
    name, value = header
    # To libcurl, "Name:" means to leave the header out, and "Name;" means the header without a value.
    return (f"{name}: {value}" if value else f"{name};").encode("latin-1")


@cache
def trusted_certificates() -> str | None:
    """Returns the trusted certificates. The OpenSSL in libcurl's wheel only looks where its builder had them."""
    candidates: Sequence[str | None] = (ssl.get_default_verify_paths().cafile, *_CA_FILES)
    for path in candidates:
        if path and os.path.isfile(path):
            return path
    try:
        import certifi
    except ImportError:
        return None
    return certifi.where()


def read_head(lines: list[bytes]) -> dict[str, str]:
    """Returns the headers of the last answer in `lines`. Interim answers (1xx) come before it, trailers after it.

    Text is Latin-1, byte for byte, so that a validator is sent back exactly as it came.
    """
    if len(lines) > MAX_HEAD_LINES:
        raise AnswerBroken(f"The answer has more than {MAX_HEAD_LINES} header lines.")
    block = b"".join(lines)
    if len(block) > MAX_HEAD_BYTES:
        raise AnswerBroken(f"The answer has {len(block):,} bytes of headers; at most {MAX_HEAD_BYTES:,} are read.")
    headers: dict[str, str] = {}
    for line in block.translate(_TO_SPACES).decode("latin-1").split("\n"):
        if line.startswith("HTTP/"):
            headers = {}
            continue
        name, colon, value = line.partition(":")
        if colon:
            name = name.lower()
            value = value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


class Transfers:
    """Belongs to the event loop it is made on. `run` runs a transfer, and removes it at once if it is cancelled."""

    def __init__(self, max_idle_connections: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._futures: dict[Easy, asyncio.Future[tuple[int, str]]] = {}
        self._lent: list[socket] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._kicked = False
        self._closing = False
        self._watched: set[int] = set()
        self._selector = selectors.DefaultSelector()
        self._loop.add_reader(self._selector.fileno(), self._sockets_ready)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._wake_in)
        self._multi.setopt(pycurl.M_MAXCONNECTS, max_idle_connections)

    async def run(self, easy: Easy) -> tuple[int, str]:
        """Runs a transfer to its end. Returns libcurl's code (0 is success) and message."""
        future: asyncio.Future[tuple[int, str]] = self._loop.create_future()
        self._futures[easy] = future
        self._multi.add_handle(easy)
        try:
            return await future
        finally:
            if self._futures.pop(easy, None) is not None:
                self._multi.remove_handle(easy)

    def lend(self, opened: socket) -> socket:
        """Returns a socket that libcurl is about to copy. Ours is closed as soon as it has."""
        self._lent.append(opened)
        return opened

    async def close(self) -> None:
        """Ends all transfers. Name lookups that hang cannot be interrupted, so it waits only briefly for them."""
        for easy in list(self._futures):
            self._end(easy, Code.CLOSED, "")
        # From here on the thread below owns libcurl. Nothing else may call it, and it may not call back.
        self._closing = True
        self._loop.remove_reader(self._selector.fileno())
        if self._timer:
            self._timer.cancel()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, None)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, None)
        closing = threading.Thread(target=self._multi.close, name="curl-close", daemon=True)
        closing.start()
        give_up = self._loop.time() + _CLOSING_SECONDS
        while closing.is_alive() and self._loop.time() < give_up:
            await asyncio.sleep(0.002)
        self._selector.close()

    def _watch(self, events: int, fd: int, multi: object, data: object) -> None:
        # libcurl's POLL_IN and POLL_OUT have the values of EVENT_READ and EVENT_WRITE, and so do its CSELECT flags.
        if events == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.remove(fd)
                self._selector.unregister(fd)
        elif fd in self._watched:
            self._selector.modify(fd, events)
        else:
            self._watched.add(fd)
            self._selector.register(fd, events)

    def _sockets_ready(self) -> None:
        for key, events in self._selector.select(0):
            self._multi.socket_action(key.fd, events)
        self._finish()

    def _wake_in(self, milliseconds: int) -> None:
        """Sets libcurl's one timer.

        libcurl moves it with every transfer, mostly to a later time. A timer of the loop that fires too early and is
        set again costs less than cancelling it each time.
        """
        if milliseconds == 0:
            if not self._kicked:
                self._kicked = True
                self._loop.call_soon(self._kick)
            return
        self._due = self._loop.time() + milliseconds / 1000 if milliseconds > 0 else inf
        if self._timer and self._timer.when() > self._due:
            self._timer.cancel()
            self._timer = None
        if not self._timer and self._due < inf:
            self._timer = self._loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._due <= self._loop.time():
            self._due = inf
            self._kick()
        if not self._timer and self._due < inf:
            self._timer = self._loop.call_at(self._due, self._ring)

    def _kick(self) -> None:
        self._kicked = False
        if self._closing:
            return
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._finish()

    def _finish(self) -> None:
        while self._lent:
            self._lent.pop().close()
        waiting = 1
        while waiting:
            waiting, good, bad = self._multi.info_read()
            for easy in good:
                self._end(easy, Code.OK, "")
            for easy, code, message in bad:
                self._end(easy, code, message)

    def _end(self, easy: Easy, code: int, message: str) -> None:
        future = self._futures.pop(easy, None)
        if future is None:
            return
        self._multi.remove_handle(easy)
        if not future.done():
            future.set_result((code, message))
