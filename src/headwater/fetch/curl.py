"""A libcurl handle, configured once and used for many transfers, and the headers that arrive on it."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence
from io import BytesIO
from socket import socket
from typing import Any, NamedTuple

import pycurl

from headwater.errors import AnswerBroken
from headwater.fetch.body import ACCEPTED
from headwater.fetch.guard import AddressGuard
from headwater.fetch.hops import Hop

_BUFFER_BYTES = 65536
_ALWAYS_SENT = (f"Accept-Encoding: {ACCEPTED}".encode(),)
_CA_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS, BSD
)

MAX_BYTES = 65536
MAX_LINES = 500
_CONTROLS = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in b"\r\n")
_TO_SPACES = bytes.maketrans(_CONTROLS, b" " * len(_CONTROLS))


class Options(NamedTuple):
    """The options that are the same for every transfer of a client."""

    guard: AddressGuard
    user_agent: str
    connect_timeout: float
    proxy: str
    ca_file: str | None
    resolve: tuple[str, ...]


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
    if options.ca_file:
        easy.setopt(pycurl.CAINFO, options.ca_file)
        easy.setopt(pycurl.PROXY_CAINFO, options.ca_file)
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
    if len(lines) > MAX_LINES:
        raise AnswerBroken(f"The answer has more than {MAX_LINES} header lines.")
    block = b"".join(lines)
    if len(block) > MAX_BYTES:
        raise AnswerBroken(f"The answer has {len(block):,} bytes of headers; at most {MAX_BYTES:,} are read.")
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
