"""Where a request may go: spellings, names, redirects and proxies, against real connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from fetch.raw_server import LOOPBACK, PUBLIC_ONLY, RawServer, answer, path_of
from headwater.errors import AddressRefused, BadAddress, BadInput, NameUnknown
from headwater.fetch.client import Client
from headwater.fetch.guard import AddressGuard, parse_allow
from headwater.model import Request

Serve = Callable[..., Awaitable[RawServer]]
NewClient = Callable[..., Client]


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "0.0.0.0", "[::1]", "localhost"),  # H1
        *("[::ffff:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]"),  # H5
        *("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1"),  # H6
        *("１２７.0.0.1", "127。0。0。1", "ⓛocalhost"),  # H7
        *("10.0.0.1", "192.168.1.1", "[fc00::1]"),  # H2
        *("169.254.169.254", "[fd00:ec2::254]"),  # H3
        "100.64.0.1",  # H4
    ],
)
async def test_no_spelling_of_an_internal_address_gets_through(serve: Serve, new_client: NewClient, host: str) -> None:
    server = await serve(answer(body=b"secret"))
    client = new_client(guard=PUBLIC_ONLY)

    with pytest.raises((AddressRefused, BadAddress)) as caught:
        await client.fetch(Request(f"http://{host}:{server.port}/"))

    assert caught.value.detail
    assert server.connections == 0


async def test_the_reason_of_a_refusal_reaches_the_caller(new_client: NewClient) -> None:
    with pytest.raises(AddressRefused, match=r"10\.1\.2\.3 is private") as caught:
        await new_client(guard=PUBLIC_ONLY).fetch(Request("http://10.1.2.3/"))

    assert "HEADWATER_ALLOW_PRIVATE_NETWORKS" in caught.value.detail
    assert caught.value.facts["host"] == "10.1.2.3"


@pytest.mark.parametrize("host", ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"])
async def test_metadata_addresses_are_refused_even_where_private_ones_are_allowed(
    new_client: NewClient, host: str
) -> None:
    # H3
    with pytest.raises(AddressRefused, match="metadata"):
        await new_client(guard=AddressGuard(allow=True)).fetch(Request(f"http://{host}/latest/meta-data/"))


@pytest.mark.parametrize("address", ["http://host.example\\@127.0.0.1/", "http://127.0.0.1\\.example/", "http:\\\\a/"])
async def test_an_address_that_parsers_read_differently_is_refused(new_client: NewClient, address: str) -> None:
    # H8
    with pytest.raises(BadAddress):
        await new_client().fetch(Request(address))


async def test_of_public_and_private_records_only_an_allowed_one_is_used(serve: Serve, new_client: NewClient) -> None:
    # H9
    server = await serve(answer(body=b"from the allowed address"))
    names = [f"mixed.example:{server.port}:10.0.0.1,127.0.0.1,[::1]"]

    response = await new_client(resolve=names).fetch(Request(server.url(host="mixed.example")))

    assert response.body == b"from the allowed address"


async def test_a_name_with_only_refused_records_is_refused(serve: Serve, new_client: NewClient) -> None:
    # H9
    server = await serve(answer())
    client = new_client(guard=PUBLIC_ONLY, resolve=[f"inside.example:{server.port}:127.0.0.1,[::1],10.0.0.1"])

    with pytest.raises(AddressRefused, match=r"inside\.example"):
        await client.fetch(Request(server.url(host="inside.example")))
    assert server.connections == 0


async def test_a_name_that_looked_public_a_moment_ago_is_checked_at_the_connection(
    serve: Serve, new_client: NewClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # H10: whoever asks first is told a public address; the connection is told loopback.
    server = await serve(answer(body=b"secret"))
    public = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", server.port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: public)
    client = new_client(guard=PUBLIC_ONLY, resolve=[f"rebinding.example:{server.port}:127.0.0.1"])

    with pytest.raises(AddressRefused, match="loopback"):
        await client.fetch(Request(server.url(host="rebinding.example")))
    assert server.connections == 0


@pytest.mark.parametrize("target", ["http://10.0.0.1/", "http://169.254.169.254/", "http://2130706434:81/", "//[::1]/"])
async def test_a_redirect_to_a_private_address_is_refused(serve: Serve, new_client: NewClient, target: str) -> None:
    # H11
    server = await serve(answer("302 Found", Location=target))
    guard = AddressGuard(parse_allow("127.0.0.1/32"))

    with pytest.raises(AddressRefused):
        await new_client(guard=guard).fetch(Request(server.url()))
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    "target",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "ftp://a.example/",
        "javascript:1",
        "data:,x",
        "http://:80/",
        "http://a\\@b/",
    ],
)
async def test_a_redirect_to_something_that_is_not_the_web_is_refused(
    serve: Serve, new_client: NewClient, target: str
) -> None:
    # H12
    server = await serve(answer("302 Found", Location=target))

    with pytest.raises(AddressRefused, match="redirects to an address that cannot be used"):
        await new_client().fetch(Request(server.url()))


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "source:file:///etc/passwd", "file:/etc/passwd", "ftp://a.example/", ""]
)
async def test_only_web_addresses_are_fetched(new_client: NewClient, address: str) -> None:
    # H13
    with pytest.raises(BadAddress):
        await new_client().fetch(Request(address))


@pytest.mark.parametrize("port", [22, 25, 6379])
async def test_ports_that_are_not_for_the_web_are_refused(new_client: NewClient, port: int) -> None:
    # H17
    with pytest.raises(AddressRefused, match=f"port {port} is not a web port"):
        await new_client().fetch(Request(f"http://127.0.0.1:{port}/"))


@pytest.mark.parametrize("character", ["\r", "\n", "\t", "\x00", " "])
async def test_control_characters_in_an_address_are_refused(new_client: NewClient, character: str) -> None:
    # H18
    with pytest.raises(BadAddress):
        await new_client().fetch(Request(f"http://127.0.0.1/a{character}b"))


@pytest.mark.parametrize(
    "header",
    [
        ("X-A", "a\r\nX-B: b"),
        ("X-A", "a\nb"),
        ("X-A", "a\tb"),
        ("X-A", "a\x00b"),
        ("X-A: b\r\nX-C", "c"),
        ("", "a"),
        ("Host", "b"),
    ],
)
async def test_headers_that_would_change_the_request_are_refused(
    new_client: NewClient, header: tuple[str, str]
) -> None:
    # H18
    with pytest.raises(BadInput):
        await new_client().fetch(Request("http://127.0.0.1:1/", (header,)))


async def test_a_method_that_would_change_the_request_is_refused(new_client: NewClient) -> None:
    # H18
    with pytest.raises(BadInput):
        await new_client().fetch(Request("http://127.0.0.1:1/", (), "GET / HTTP/1.1\r\nX: y"))


async def test_an_address_of_a_megabyte_is_refused(new_client: NewClient) -> None:
    # H19
    with pytest.raises(BadAddress, match="characters"):
        await new_client().fetch(Request("http://127.0.0.1/" + "a" * 1_000_000))


async def test_a_redirect_of_a_megabyte_is_refused(serve: Serve, new_client: NewClient) -> None:
    # H19
    server = await serve(answer("302 Found", Location="/" + "a" * 20_000))

    with pytest.raises(AddressRefused):
        await new_client().fetch(Request(server.url()))


async def test_a_private_proxy_is_allowed_while_its_targets_are_checked(serve: Serve, new_client: NewClient) -> None:
    # H20
    proxy = await serve(answer(body=b"through the proxy"))
    names = ["public.example:80:93.184.216.34", "inside.example:80:93.184.216.34,10.0.0.1"]
    client = new_client(guard=PUBLIC_ONLY, proxy=proxy.url(), resolve=names)

    response = await client.fetch(Request("http://public.example/feed"))
    assert response.body == b"through the proxy"
    assert path_of(proxy.heads[0]) == "http://public.example/feed"

    for target in ("http://inside.example/", "http://127.0.0.1/", "http://2130706433/", "http://93.184.216.34:25/"):
        with pytest.raises(AddressRefused):
            await client.fetch(Request(target))
    assert len(proxy.heads) == 1


async def test_a_redirect_behind_a_proxy_is_checked_too(serve: Serve, new_client: NewClient) -> None:
    # H11, H20
    proxy = await serve(answer("302 Found", Location="http://192.168.0.1/"))
    client = new_client(guard=PUBLIC_ONLY, proxy=proxy.url(), resolve=["public.example:80:93.184.216.34"])

    with pytest.raises(AddressRefused, match="private"):
        await client.fetch(Request("http://public.example/"))
    assert len(proxy.heads) == 1


async def test_a_proxy_in_the_environment_is_not_used(
    serve: Serve, new_client: NewClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(answer(body=b"direct"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")

    assert (await new_client().fetch(Request(server.url()))).body == b"direct"


async def test_an_international_name_is_fetched_by_its_ascii_form(serve: Serve, new_client: NewClient) -> None:
    # H7
    server = await serve(answer(body=b"ok"))
    client = new_client(resolve=[f"xn--bcher-kva.example:{server.port}:127.0.0.1"])

    response = await client.fetch(Request(server.url("/ä", host="bücher.example")))

    assert response.url == f"http://xn--bcher-kva.example:{server.port}/%C3%A4"
    assert f"Host: xn--bcher-kva.example:{server.port}".encode() in server.heads[0]


async def test_a_name_that_does_not_exist_is_unknown(new_client: NewClient) -> None:
    with pytest.raises(NameUnknown, match=r"name\.invalid"):
        await new_client().fetch(Request("http://name.invalid/"))


async def test_a_refused_connection_leaves_other_requests_alone(serve: Serve, new_client: NewClient) -> None:
    server = await serve(answer(body=b"ok"))
    client = new_client(guard=LOOPBACK)

    results = await asyncio.gather(
        *(client.fetch(Request(url)) for url in (server.url(), "http://10.0.0.1/", server.url("/2"))),
        return_exceptions=True,
    )

    assert [type(result).__name__ for result in results] == ["Response", "AddressRefused", "Response"]
