"""Following redirects: which, how far, with which headers, and what is remembered."""

from __future__ import annotations

import asyncio
import string
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetch.raw_server import RawServer, answer, path_of
from headwater import urls
from headwater.errors import AddressRefused, ConnectionFailed, HeadwaterError, TooManyRedirects
from headwater.fetch import hops
from headwater.fetch.client import Client
from headwater.model import Request

Serve = Callable[..., Awaitable[RawServer]]
NewClient = Callable[..., Client]
Writer = asyncio.StreamWriter


def site(pages: dict[str, bytes]) -> Callable[[bytes, Writer], Awaitable[None]]:
    async def speak(head: bytes, writer: Writer) -> None:
        writer.write(pages.get(path_of(head), answer("404 Not Found")))

    return speak


def moved(status: int, location: str) -> bytes:
    return answer(f"{status} Moved", Location=location)


def headers_of(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}


@pytest.mark.parametrize(
    ("statuses", "remembered"),
    [
        *[([301], True), ([308], True), ([301, 308, 301], True), ([302], False), ([307], False), ([303], False)],
        *[([301, 302], False), ([302, 301], False), ([308, 307, 301], False)],
    ],
)
async def test_an_address_is_remembered_only_if_every_step_was_permanent(
    serve: Serve, new_client: NewClient, statuses: list[int], remembered: bool
) -> None:
    pages = {f"/{step}": moved(status, f"/{step + 1}") for step, status in enumerate(statuses)}
    last = f"/{len(statuses)}"
    server = await serve(site(pages | {last: answer(body=b"here")}))

    response = await new_client().fetch(Request(server.url("/0")))

    assert (response.status, response.body, response.url) == (200, b"here", server.url(last))
    assert response.moved_to == (server.url(last) if remembered else None)


async def test_an_answer_without_redirects_has_not_moved(serve: Serve, new_client: NewClient) -> None:
    server = await serve(answer())
    assert (await new_client().fetch(Request(server.url()))).moved_to is None


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("b", "/a/b"),
        ("/c d", "/c%20d"),
        ("?q=1", "/a/x?q=1"),
        ("../e#part", "/e"),
        ("/caf\u00e9", "/caf%C3%A9"),
        ("/caf\u00c3\u00a9", "/caf%C3%A9"),
    ],
)
async def test_real_world_locations_are_understood(
    serve: Serve, new_client: NewClient, location: str, path: str
) -> None:
    server = await serve(site({"/a/x": moved(302, location), path: answer(body=b"here")}))
    assert (await new_client().fetch(Request(server.url("/a/x")))).body == b"here"


async def test_a_redirect_without_a_location_is_an_answer(serve: Serve, new_client: NewClient) -> None:
    server = await serve(answer("302 Found"))
    assert (await new_client().fetch(Request(server.url()))).status == 302


async def test_a_loop_stops(serve: Serve, new_client: NewClient) -> None:
    # H15
    server = await serve(site({"/a": moved(301, "/b"), "/b": moved(301, "/a")}))
    with pytest.raises(TooManyRedirects, match="10 redirects"):
        await new_client().fetch(Request(server.url("/a")))
    assert len(server.heads) == 11


@pytest.mark.parametrize("length", [10, 11])
async def test_a_chain_of_ten_is_followed_and_one_of_eleven_is_not(
    serve: Serve, new_client: NewClient, length: int
) -> None:
    # H15
    pages = {f"/{step}": moved(302, f"/{step + 1}") for step in range(length)}
    server = await serve(site(pages | {f"/{length}": answer(body=b"end")}))
    fetching = new_client().fetch(Request(server.url("/0")))
    if length == 10:
        assert (await fetching).body == b"end"
    else:
        with pytest.raises(TooManyRedirects):
            await fetching


async def test_secrets_stay_with_the_host_they_were_for(serve: Serve, new_client: NewClient) -> None:
    # H14
    other = await serve(answer(body=b"other"))
    first = await serve(moved(302, other.url()))
    secrets = (("Authorization", "Bearer s3cret"), ("Cookie", "a=s3cret"), ("X-Api-Key", "s3cret"))

    await new_client().fetch(Request(first.url(), (*secrets, ("Accept", "text/xml"), ("If-None-Match", '"v"'))))

    assert b"s3cret" in first.heads[0]
    assert b"s3cret" not in other.heads[0]
    assert headers_of(other.heads[0])["accept"] == "text/xml"
    assert headers_of(other.heads[0])["if-none-match"] == '"v"'


async def test_secrets_go_along_on_the_same_host(serve: Serve, new_client: NewClient) -> None:
    server = await serve(site({"/a": moved(302, "/b"), "/b": answer()}))
    await new_client().fetch(Request(server.url("/a"), (("Authorization", "Bearer s3cret"),)))
    assert headers_of(server.heads[1])["authorization"] == "Bearer s3cret"


async def test_user_and_password_of_an_address_become_a_header_and_are_not_shown(
    serve: Serve, new_client: NewClient
) -> None:
    # H16
    server = await serve(site({"/a": moved(301, "/b"), "/b": answer(body=b"in")}))
    address = server.url("/a").replace("://", "://me%40home:p%3Aw@")

    response = await new_client().fetch(Request(address))

    assert [path_of(head) for head in server.heads] == ["/a", "/b"]
    assert {headers_of(head)["authorization"] for head in server.heads} == {"Basic bWVAaG9tZTpwOnc="}
    assert response.url == server.url("/b")
    assert response.moved_to == server.url("/b").replace("://", "://me%40home:p%3Aw@")


async def test_user_and_password_do_not_move_to_another_host(serve: Serve, new_client: NewClient) -> None:
    # H14, H16
    other = await serve(answer())
    first = await serve(moved(301, other.url()))

    response = await new_client().fetch(Request(first.url().replace("://", "://me:pw@")))

    assert b"Authorization" not in other.heads[0]
    assert response.moved_to == other.url()


async def test_a_server_cannot_make_us_log_in_elsewhere(serve: Serve, new_client: NewClient) -> None:
    other = await serve(answer())
    first = await serve(moved(302, other.url().replace("://", "://me:pw@")))
    await new_client().fetch(Request(first.url()))
    assert b"Authorization" not in other.heads[0]


async def test_user_and_password_are_in_no_error(serve: Serve, new_client: NewClient) -> None:
    # H16
    server = await serve(b"")
    broken = await serve(b"nonsense")
    looping = await serve(moved(302, "/"))
    client = new_client()
    for url in (server.url(), broken.url(), looping.url(), "http://10.0.0.1/", "http://name.invalid/"):
        with pytest.raises(HeadwaterError) as caught:
            await client.fetch(Request(url.replace("://", "://me:s3cret@")))
        assert "s3cret" not in str(caught.value) + repr(caught.value.facts)


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        *[(301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST")],
        *[(308, "POST", "POST"), (303, "HEAD", "HEAD"), (302, "HEAD", "HEAD"), (303, "PUT", "GET")],
        (302, "PUT", "PUT"),
    ],
)
def test_the_method_after_a_redirect_is_what_browsers_use(status: int, method: str, then: str) -> None:
    body = b"x" if method in ("POST", "PUT") else None
    hop = hops.first(Request("http://a.example/", (), method, body))
    following = hops.following(hop, status, {"location": "/b"})
    assert following is not None
    assert following.method == then
    assert following.body == (body if then == method else None)


def test_a_move_from_http_to_https_keeps_secrets_and_is_remembered() -> None:
    hop = hops.first(Request("http://me:pw@a.example/feed"))
    following = hops.following(hop, 301, {"location": "https://a.example/feed"})
    assert following is not None
    assert dict(following.headers)["Authorization"].startswith("Basic ")
    assert hops.is_permanent(hop, 301, following)
    assert following.address == "https://me:pw@a.example/feed"


def test_a_step_down_from_https_is_followed_without_secrets_and_not_remembered() -> None:
    # H14, H35
    hop = hops.first(Request("https://me:pw@a.example/feed"))
    following = hops.following(hop, 301, {"location": "http://a.example/feed"})
    assert following is not None
    assert following.headers == ()
    assert not hops.is_permanent(hop, 301, following)


@pytest.mark.parametrize("target", ["http://a.example:8080/", "https://a.example:8443/", "http://b.a.example/"])
def test_another_port_or_name_is_another_host(target: str) -> None:
    # H14
    hop = hops.first(Request("http://a.example/", (("Cookie", "a=b"),)))
    following = hops.following(hop, 302, {"location": target})
    assert following is not None
    assert following.headers == ()


async def test_a_failure_after_a_redirect_names_the_host_that_failed(serve: Serve, new_client: NewClient) -> None:
    gone = await serve(b"")
    await gone.stop()
    server = await serve(moved(302, gone.url(host="localhost")))
    with pytest.raises(ConnectionFailed, match="localhost"):
        await new_client().fetch(Request(server.url()))


addresses = st.one_of(
    st.from_regex(
        r"https?://[a-z0-9.-]{1,12}(:[0-9]{1,6})?(/[a-zA-Z0-9/%~._-]{0,8}(\?[a-z=&%;]{0,6})?)?", fullmatch=True
    ),
    st.text(string.printable, max_size=30).map("http://a.example/".__add__),
    st.text(max_size=20).map("https://".__add__),
)


@given(addresses)
def test_libcurl_gets_only_the_canonical_form_of_an_address(address: str) -> None:
    try:
        expected = urls.canonical(address)
    except HeadwaterError:
        with pytest.raises(HeadwaterError):
            hops.first(Request(address))
        return
    hop = hops.first(Request(address))
    assert hop.address == expected
    assert hop.url.isascii()
    assert "@" not in hop.url.split("/")[2]


@given(st.text(max_size=40), st.sampled_from([200, 301, 302, 303, 304, 307, 308, 404]))
def test_any_location_leads_to_a_web_address_or_is_refused(location: str, status: int) -> None:
    hop = hops.first(Request("http://a.example/feed"))
    with suppress(AddressRefused):
        following = hops.following(hop, status, {"location": location.encode("utf-8").decode("latin-1")})
        assert following is None or following.url == urls.canonical(following.url)
