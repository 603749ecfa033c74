"""What a failed transfer means: turns libcurl's codes into our errors, with words that say what to do."""

from __future__ import annotations

import errno
import os
from enum import IntEnum
from typing import NamedTuple

from headwater.errors import (
    AddressRefused,
    AnswerBroken,
    AnswerTooLarge,
    CertificateBad,
    ConnectionFailed,
    FetchFailed,
    NameUnknown,
    TimedOut,
)


class Code(IntEnum):
    """How a transfer ended, in libcurl's codes, which never change. They stand here because the first request loads
    libcurl, and who only asks what an error means should not."""

    CLOSED = -1  # our own: the client was closed during the transfer
    OK = 0
    UNSUPPORTED_PROTOCOL = 1
    URL_MALFORMAT = 3
    COULDNT_RESOLVE_PROXY = 5
    COULDNT_RESOLVE_HOST = 6
    COULDNT_CONNECT = 7
    WEIRD_SERVER_REPLY = 8
    PARTIAL_FILE = 18
    HTTP2 = 16
    OPERATION_TIMEDOUT = 28
    SSL_CONNECT_ERROR = 35
    GOT_NOTHING = 52
    SEND_ERROR = 55
    RECV_ERROR = 56
    PEER_FAILED_VERIFICATION = 60
    FILESIZE_EXCEEDED = 63
    SSL_CACERT_BADFILE = 77
    SSL_ISSUER_ERROR = 83
    SSL_INVALIDCERTSTATUS = 91
    HTTP2_STREAM = 92
    TOO_LARGE = 100


_BROKEN_ANSWER = frozenset(
    {
        Code.UNSUPPORTED_PROTOCOL,  # the answer is not HTTP
        Code.WEIRD_SERVER_REPLY,  # contradictory or impossible headers
        Code.PARTIAL_FILE,
        Code.HTTP2,
        Code.HTTP2_STREAM,
        Code.TOO_LARGE,  # more headers than libcurl reads
    }
)
_BAD_CERTIFICATE = frozenset({Code.PEER_FAILED_VERIFICATION, Code.SSL_ISSUER_ERROR, Code.SSL_INVALIDCERTSTATUS})
_HUNG_UP = frozenset({Code.GOT_NOTHING, Code.RECV_ERROR, Code.SEND_ERROR})
_NO_WAY_OUT = frozenset({errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL})


class Ended(NamedTuple):
    """How a transfer without a usable answer ended."""

    host: str
    code: int
    message: str
    os_errno: int
    max_bytes: int
    seconds: float
    through_proxy: bool = False


def failure(ended: Ended) -> FetchFailed:
    host, code, message = ended.host, ended.code, ended.message
    if code == Code.CLOSED:
        return stopping()
    if code == Code.OPERATION_TIMEDOUT:
        return _timed_out(ended)
    if code == Code.COULDNT_CONNECT:
        return _not_connected(ended)
    if code in _HUNG_UP and message.startswith("CONNECT tunnel"):
        return ConnectionFailed(f"The proxy did not connect to {host}: {message}.", host=host)
    if code == Code.RECV_ERROR and not ended.os_errno:
        return AnswerBroken(f"The answer of {host} cannot be used: {message}.", host=host)
    if code in _HUNG_UP:
        return ConnectionFailed(f"{host} closed the connection before its answer was complete.", host=host)
    if code in _BROKEN_ANSWER:
        return AnswerBroken(f"The answer of {host} cannot be used: {message}.", host=host)
    if code == Code.FILESIZE_EXCEEDED:
        return AnswerTooLarge(f"The answer of {host} is larger than the limit of {ended.max_bytes:,} bytes.", host=host)
    if code == Code.COULDNT_RESOLVE_HOST:
        return name_unknown(host)
    if code == Code.COULDNT_RESOLVE_PROXY:
        return _no_proxy(host)
    if code in _BAD_CERTIFICATE:
        return CertificateBad(f"The certificate of {host} cannot be verified: {message}.", host=host)
    if code == Code.SSL_CACERT_BADFILE:
        return CertificateBad(f"The file of trusted certificates cannot be used: {message}.", host=host)
    if code == Code.SSL_CONNECT_ERROR:
        return ConnectionFailed(f"No secure connection to {host} could be agreed on: {message}.", host=host)
    if code == Code.URL_MALFORMAT:
        return AddressRefused(f"The address on {host} is ambiguous: {message}.", host=host)
    return FetchFailed(f"The transfer from {host} failed: {message} (curl {code}).", host=host)


def refused(host: str, reason: str) -> AddressRefused:
    return AddressRefused(f"Headwater may not connect to {host}: {reason}.", host=host, reason=reason)


def stopping() -> FetchFailed:
    return FetchFailed("Headwater is stopping.", our_network=True)


def no_socket(os_errno: int) -> ConnectionFailed:
    return ConnectionFailed(f"This machine could not open a connection: {os.strerror(os_errno)}.", our_network=True)


def name_unknown(host: str, *, no_name_server: bool = False) -> NameUnknown:
    if no_name_server:
        return NameUnknown(f"No name server could resolve {host}.", host=host, no_way_out=True)
    return NameUnknown(f"The name {host} does not resolve. Check the address for a typing error.", host=host)


def _timed_out(ended: Ended) -> TimedOut:
    if ended.message.startswith("Resolving"):
        return TimedOut(f"No name server resolved {ended.host} in time.", host=ended.host, no_way_out=True)
    if ended.message.startswith(("Connection", "SSL")):
        return TimedOut(f"{ended.host} did not accept a connection in time.", host=ended.host)
    return TimedOut(f"{ended.host} had not answered completely after {ended.seconds:g} s.", host=ended.host)


def _not_connected(ended: Ended) -> ConnectionFailed:
    host = ended.host
    if ended.through_proxy:
        return _no_proxy(host)
    if ended.os_errno in _NO_WAY_OUT:
        return ConnectionFailed(f"There is no route to {host} from this network.", host=host, no_way_out=True)
    if ended.os_errno == errno.ECONNREFUSED:
        return ConnectionFailed(f"{host} refused the connection: no server is running there.", host=host)
    return ConnectionFailed(f"No connection to {host} could be made.", host=host)


def _no_proxy(host: str) -> ConnectionFailed:
    return ConnectionFailed("The proxy cannot be reached. Check its setting.", host=host, our_network=True)


class Outage:
    """Distinguishes failures of our own network from failures of a source.

    One host that cannot be resolved or reached proves nothing. Two different ones in a row, with no sign of life from
    any host in between, mean that our network is down.
    """

    def __init__(self) -> None:
        self._suspects: set[str] = set()

    def sign_of_life(self) -> None:
        self._suspects.clear()

    def judge(self, error: FetchFailed) -> None:
        """Records on the error whether it was our network."""
        if error.facts.get("no_way_out"):
            self._suspects.add(str(error.facts["host"]))
            error.facts["our_network"] = len(self._suspects) > 1
        elif not is_our_network(error) and not isinstance(error, TimedOut | AddressRefused):
            # The host refused, hung up or sent nonsense, or a name server knew that it does not exist: we are online.
            self.sign_of_life()


def is_our_network(error: BaseException) -> bool:
    """Whether a failure came from our side, so that it must not be counted against the source."""
    return isinstance(error, FetchFailed) and bool(error.facts.get("our_network"))
