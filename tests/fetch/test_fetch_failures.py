"""What failures say, and whether they are the source's or ours."""

from __future__ import annotations

import errno
import pickle
import socket
import subprocess
import sys

import pycurl
import pytest

from headwater.errors import ConnectionFailed, FetchFailed, NameUnknown, TimedOut
from headwater.fetch.client import addresses_of
from headwater.fetch.failures import Code, Ended, Outage, failure, is_our_network, name_unknown, no_socket, refused


def ended(host: str, code: int, message: str = "", os_errno: int = 0) -> FetchFailed:
    return failure(Ended(host, code, message, os_errno, 1000, 30.0))


def no_route(host: str) -> FetchFailed:
    return ended(host, pycurl.E_COULDNT_CONNECT, "", errno.ENETUNREACH)


def judged(outage: Outage, *errors: FetchFailed) -> list[bool]:
    for error in errors:
        outage.judge(error)
    return [is_our_network(error) for error in errors]


@pytest.mark.parametrize(
    "suspicious",
    [
        no_route,
        lambda host: ended(host, pycurl.E_COULDNT_CONNECT, "", errno.ENETDOWN),
        lambda host: ended(host, pycurl.E_OPERATION_TIMEDOUT, "Resolving timed out after 10 ms"),
        lambda host: name_unknown(host, no_name_server=True),
    ],
)
def test_two_hosts_in_a_row_without_a_way_to_them_is_our_network(suspicious: object) -> None:
    # H37: one dead host proves nothing.
    assert callable(suspicious)
    assert judged(Outage(), *map(suspicious, "aabc")) == [False, False, True, True]


@pytest.mark.parametrize(
    "sign",
    [
        ended("x", pycurl.E_COULDNT_CONNECT, "", errno.ECONNREFUSED),
        ended("x", pycurl.E_GOT_NOTHING),
        ended("x", pycurl.E_PEER_FAILED_VERIFICATION),
        name_unknown("x"),
    ],
)
def test_any_sign_of_life_in_between_clears_our_network(sign: FetchFailed) -> None:
    assert judged(Outage(), no_route("a"), sign, no_route("b")) == [False, False, False]


def test_an_answer_clears_our_network() -> None:
    outage = Outage()
    assert judged(outage, no_route("a"), no_route("b")) == [False, True]
    outage.sign_of_life()
    assert judged(outage, no_route("c")) == [False]


@pytest.mark.parametrize(
    "silence", [ended("x", pycurl.E_OPERATION_TIMEDOUT, "Operation timed out"), refused("x", "private")]
)
def test_silence_tells_nothing_about_our_network(silence: FetchFailed) -> None:
    assert judged(Outage(), no_route("a"), silence, no_route("b")) == [False, False, True]


def test_other_errors_are_never_our_network() -> None:
    assert not is_our_network(ValueError())
    assert not is_our_network(ended("a", pycurl.E_PARTIAL_FILE))


def test_a_failure_keeps_whose_it_was_across_processes() -> None:
    outage = Outage()
    error = no_route("b")
    judged(outage, no_route("a"), error)
    assert is_our_network(pickle.loads(pickle.dumps(error)))


def test_our_names_of_codes_are_those_of_libcurl() -> None:
    named = {code.name: getattr(pycurl, f"E_{code.name}") for code in Code if hasattr(pycurl, f"E_{code.name}")}
    assert named == {name: Code[name].value for name in named}
    assert set(Code.__members__) - set(named) == {"CLOSED", "WEIRD_SERVER_REPLY", "HTTP2_STREAM", "TOO_LARGE"}


def test_libcurl_is_loaded_by_the_first_request() -> None:
    loaded = (
        "import sys, headwater.fetch.client; from headwater.cli.commands import program; program();"
        "print('pycurl' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout == "False\n"
    )


@pytest.mark.parametrize("code", range(1, 110))
def test_every_code_of_libcurl_becomes_one_of_our_errors_that_names_the_host(code: int) -> None:
    error = ended("host.example", code, "what libcurl says")
    assert "host.example" in error.detail or "proxy" in error.detail or "certificates" in error.detail
    assert error.detail.endswith(".")


def test_a_connection_that_is_not_accepted_in_time_says_so() -> None:
    error = ended("a.example", pycurl.E_OPERATION_TIMEDOUT, "Connection timed out after 10 ms")
    assert isinstance(error, TimedOut)
    assert "did not accept a connection" in error.detail


@pytest.mark.parametrize(("code", "no_server"), [(socket.EAI_AGAIN, True), (socket.EAI_NONAME, False)])
async def test_a_missing_name_and_a_missing_name_server_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, code: int, no_server: bool
) -> None:
    def failing(*_: object) -> None:
        raise socket.gaierror(code, "told by the test")

    monkeypatch.setattr(socket, "getaddrinfo", failing)
    with pytest.raises(NameUnknown) as caught:
        await addresses_of("a.example", 80)
    assert bool(caught.value.facts.get("no_way_out")) == no_server


async def test_names_can_be_overridden() -> None:
    overrides = ["a.example:80:10.0.0.1,[::1]", "b.example:80:10.0.0.2"]
    assert await addresses_of("a.example", 80, overrides) == ["10.0.0.1", "::1"]
    assert await addresses_of("127.0.0.1", 80, overrides) == ["127.0.0.1"]


def test_a_machine_without_free_sockets_is_our_own_trouble() -> None:
    error = no_socket(errno.EMFILE)
    assert isinstance(error, ConnectionFailed)
    assert is_our_network(error)
    assert "open files" in error.detail
