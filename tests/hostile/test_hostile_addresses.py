"""Addresses that lead where nobody may go, on every way in: typed, imported, redirected to, named by a page."""

from __future__ import annotations

import asyncio
import socket
from html import unescape
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

from fetch.raw_server import answer
from headwater.errors import BadAddress
from hostile import rebinding
from hostile.target import Source, Target, attacked, feed, trap
from support.web import Answer, Web, rss

PUBLIC = "93.184.216.34"  # no connection is ever made to it: it is asked for through a proxy on loopback


def opml_of(*addresses: str) -> bytes:
    outlines = "".join(f"<outline xmlUrl={quoteattr(address)}/>" for address in addresses)
    return f"<opml><body>{outlines}</body></opml>".encode()


def refused_at_the_door(target: Target, *addresses: str) -> None:
    """No way in takes these: not the API, not the page, not the command line, not a list."""
    for address in addresses:
        answered = target.program.post("/api/sources", {"address": address})
        assert (answered.status, answered.json()["code"]) == (422, "bad_address"), address[:80]
        assert answered.json()["detail"]
        with pytest.raises(BadAddress):
            target.follow(address)
    importable = [address for address in addresses if not set(address) & {"\0", "\r", "\n", "\t"}]
    report = target.program.post("/api/opml", opml_of(*importable)).json()
    assert (report["added"], len(report["refused"])) == (0, len(importable))
    assert all(one["reason"] for one in report["refused"])


def refused_at_the_visit(target: Target, *hosts: str, reason: str) -> None:
    """They can be written down by every way in, but a visit connects to none of them and says why."""
    with trap() as port:
        typed, listed = ([f"http://{host}:{port}/{way}" for host in hosts] for way in ("typed", "listed"))
        ids = []
        for address in typed:
            answered = target.program.post("/api/sources", {"address": address})
            assert answered.status == 202, answered.text
            ids.append(answered.json()["id"])
        assert target.program.post("/api/opml", opml_of(*listed)).json()["added"] == len(listed)
        for source in [*target.visit_again(*ids), *target.visit(*listed)]:
            assert (source["status"], source["last_error_code"]) == ("failing", "address_refused"), source
            assert reason in source["last_error"]
            assert source["last_error"] in unescape(target.page(f"/sources/{source['id']}"))


def redirected(target: Target, world: Web, path: str, location: str) -> Source:
    world.pages[path] = Answer(status=302, headers={"Location": location})
    [source] = target.visit(world.url(path))
    return source


def test_this_machine_is_refused_and_the_reason_is_shown(strict: Target) -> None:  # H1
    refused_at_the_visit(strict, "127.0.0.1", "127.8.9.10", "0.0.0.0", "localhost", reason="this machine")
    refused_at_the_visit(strict, "[::1]", "[::]", reason="this machine")


def test_private_networks_are_refused_unless_they_are_allowed(strict: Target, target: Target, world: Web) -> None:  # H2
    refused_at_the_visit(strict, "10.0.0.1", "172.16.0.1", "192.168.1.1", "[fc00::1]", reason="is private")
    world.pages["/allowed"] = Answer(rss("allowed"))
    [allowed] = target.visit(world.url("/allowed"))
    assert (allowed["status"], allowed["posts"]) == ("ok", 1)


def test_metadata_addresses_are_refused_whatever_is_allowed(strict: Target, tmp_path: Path) -> None:  # H3
    hosts = ("169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]")
    refused_at_the_visit(strict, *hosts, reason="metadata")
    with attacked(tmp_path, HEADWATER_ALLOW_PRIVATE_NETWORKS="true") as open_to_all:
        refused_at_the_visit(open_to_all, *hosts, reason="metadata")


def test_the_space_of_carriers_is_refused(strict: Target) -> None:  # H4
    refused_at_the_visit(strict, "100.64.0.1", "100.127.255.254", reason="carrier")


def test_addresses_within_addresses_are_unwrapped_and_refused(strict: Target) -> None:  # H5
    refused_at_the_visit(strict, "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", reason="loopback")


def test_no_other_way_to_write_a_number_leads_to_this_machine(strict: Target) -> None:  # H6
    refused_at_the_visit(strict, "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", reason="loopback")


def test_names_in_other_letters_are_the_same_names(strict: Target, target: Target, world: Web) -> None:  # H7
    refused_at_the_visit(strict, "１２７.0.0.1", "127。0。0。2", "ⓛocalhost", reason="loopback")
    [source] = target.visit("http://bücher.invalid/")
    assert source["address"] == "http://xn--bcher-kva.invalid/"


def test_an_address_that_two_programs_read_differently_is_refused(target: Target, world: Web) -> None:  # H8
    with trap() as port:
        tricks = [
            f"http://news.example\\@127.0.0.1:{port}/",
            f"http://127.0.0.1:{port}\\@news.example/",
            f"http://a@b@127.0.0.1:{port}/",
            f"http://127.0.0.1%2f@news.example:{port}\\/",
        ]
        refused_at_the_door(target, *tricks)
        for place, trick in enumerate(tricks):
            assert redirected(target, world, f"/trick{place}", trick)["last_error_code"] == "address_refused"


def test_of_a_name_with_several_addresses_only_the_allowed_one_is_used(target: Target) -> None:  # H9
    with (
        target.server(feed("pinned")) as server,
        socket.create_server(("::1", server.port), family=socket.AF_INET6) as forbidden,
    ):
        [source] = target.visit(server.url("/pinned", host="localhost"))
        assert (source["status"], source["posts"]) == ("ok", 1)
        forbidden.setblocking(False)
        with pytest.raises(BlockingIOError):
            forbidden.accept()


def test_a_name_that_was_public_a_moment_ago_is_judged_by_its_connection(
    strict: Target, monkeypatch: pytest.MonkeyPatch
) -> None:  # H10
    truthful = socket.getaddrinfo

    def rebinding(host: str, *how: Any, **more: Any) -> Any:
        return truthful(PUBLIC if host == "localhost" else host, *how, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with trap() as port:
        assert socket.getaddrinfo("localhost", port)[0][4] == (PUBLIC, port)
        [source] = strict.visit(f"http://localhost:{port}/rebinding")
    assert source["last_error_code"] == "address_refused"
    assert "loopback" in source["last_error"]


def test_a_name_server_that_changes_its_mind_leads_nowhere(tmp_path: Path) -> None:  # H9, H10
    found = rebinding.outcome(tmp_path)
    said, told = found["said"], found["told"]
    assert all("first" in one for one in said["public.example"])
    assert all("loopback" in one for one in said["inside.example"])
    assert rebinding.INSIDE in told["rebinds.example"][1:]
    assert "loopback" in said["rebinds.example"][-1]
    assert "loopback" in said["returns.example"][0]
    assert set(found["visitors"]) == {rebinding.PUBLIC}


def test_every_hop_of_a_redirect_is_judged(target: Target, world: Web) -> None:  # H11, H1, H2, H3, H4, H5
    inside = ("[::1]", "0.0.0.0", "10.0.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "[64:ff9b::a00:1]")
    with trap() as port:
        for place, host in enumerate(inside):
            world.pages[f"/last{place}"] = Answer(status=301, headers={"Location": f"http://{host}:{port}/"})
            source = redirected(target, world, f"/first{place}", f"/last{place}")
            assert source["last_error_code"] == "address_refused", host
            assert source["address"] == world.url(f"/first{place}")


@pytest.mark.parametrize("scheme", ["file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/x", "dict://x/"])
def test_a_redirect_out_of_the_web_is_refused(target: Target, world: Web, scheme: str) -> None:  # H12
    source = redirected(target, world, f"/to-{scheme[:4]}", scheme)
    assert source["last_error_code"] == "address_refused"
    assert "http://" in source["last_error"]


def test_files_are_no_sources_however_they_are_written(target: Target, world: Web) -> None:  # H13
    refused_at_the_door(
        target, "file:///etc/passwd", "file:/etc/passwd", "FILE:///etc/passwd", "source:file:///etc/passwd"
    )
    world.pages["/names-a-file"] = Answer(
        '<html><link rel="alternate" type="application/rss+xml" href="file:///etc/passwd"><body>words</body></html>'
    )
    [source] = target.visit(world.url("/names-a-file"))
    assert (source["status"], source["last_error_code"], source["posts"]) == ("failing", "not_a_feed", 0)


def test_a_redirect_to_another_host_takes_no_credentials_along(target: Target) -> None:  # H14
    with target.server(feed("elsewhere")) as elsewhere:
        away = answer("302 Found", Location=elsewhere.url("/14"), Set_Cookie="session=secret; Domain=127.0.0.1; Path=/")
        with target.server(away) as first:
            [source] = target.visit(f"http://me:secret@localhost:{first.port}/14")
        assert source["status"] == "ok"
        assert b"Authorization: Basic" in first.heads[0]
        assert b"authorization" not in elsewhere.heads[0].lower()
        assert b"cookie" not in elsewhere.heads[0].lower()


def test_redirects_without_end_are_a_failure_that_is_counted(target: Target, world: Web) -> None:  # H15
    world.pages["/loop"] = Answer(status=302, headers={"Location": "/loop"})
    for place in range(12):
        world.pages[f"/chain{place}"] = Answer(status=301, headers={"Location": f"/chain{place + 1}"})
    world.pages["/chain12"] = Answer(rss("too far"))
    for source in target.visit(world.url("/loop"), world.url("/chain0")):
        assert (source["last_error_code"], source["consecutive_failures"]) == ("too_many_redirects", 1)
    assert world.paths().count("/loop") == 11
    assert "/chain11" not in world.paths()


def test_a_password_in_an_address_reaches_its_host_and_nobody_else(tmp_path: Path) -> None:  # H16
    with attacked(tmp_path) as target, target.server(answer("500 Oops", body=b"no")) as server:
        [source] = target.visit(f"http://me:hunter2@127.0.0.1:{server.port}/16")
        assert (source["status"], source["address"]) == ("failing", server.url("/16"))
        told = [target.page(path) for path in ("/sources", f"/sources/{source['id']}")]
        told += [target.program.get(path).text for path in ("/api/sources", "/api/opml", "/metrics")]
        assert not [page for page in [str(source), *told] if "hunter2" in page]
    assert b"Authorization: Basic bWU6aHVudGVyMg==" in server.heads[0]
    assert b"hunter2" not in server.heads[0]
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"hunter2" in file.read_bytes()]


@pytest.mark.parametrize("port", [22, 25, 6379])
def test_ports_of_other_services_are_refused(target: Target, world: Web, port: int) -> None:  # H17
    [source] = target.visit(f"http://127.0.0.1:{port}/")
    moved = redirected(target, world, f"/to-port-{port}", f"http://127.0.0.1:{port}/")
    for refused in (source, moved):
        assert refused["last_error_code"] == "address_refused"
        assert f"port {port} is not a web port" in refused["last_error"]


def test_control_characters_in_an_address_are_refused(target: Target, world: Web) -> None:  # H18
    refused_at_the_door(
        target,
        "http://news.example/\r\nHost: evil",
        "http://news.example/\nx",
        "http://news.ex\tample/",
        "http://news.example/\x7f",
    )
    nul = target.program.post("/api/sources", {"address": "http://news.example/\0"})
    assert (nul.status, nul.json()["code"]) == (422, "bad_document")


def test_control_characters_in_an_answers_headers_get_into_no_request(target: Target) -> None:  # H18
    good = feed("calm", ETag='"a\x01b\tc\x7f"', Last_Modified="never\x0bX-Evil: 1")
    redirect = answer("302 Found", Location="/after\x01this\x7f")

    async def speak(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(good if b"GET /after" in head else redirect)

    with target.server(speak) as server:
        for _ in range(2):
            [source] = target.visit(server.url("/control"))
            assert source["last_error"] is None
    assert len(server.heads) == 4
    for head in server.heads:
        assert not [byte for byte in head.replace(b"\r\n", b"") if byte < 32 or byte == 127]
        assert b"\nX-Evil" not in head


def test_an_address_of_a_megabyte_is_refused(target: Target) -> None:  # H19
    long = "http://news.example/" + "x" * 1_000_000
    refused_at_the_door(target, long)
    with target.server(answer("302 Found", Location=long)) as server:
        [source] = target.visit(server.url("/19"))
    assert (source["status"], source["posts"]) == ("failing", 0)
    assert len(source["last_error"]) < 1000


def test_a_private_proxy_is_used_while_what_it_is_asked_for_is_judged(strict: Target, tmp_path: Path) -> None:  # H20
    with strict.server(feed("through the proxy")) as proxy:
        settings = {"HEADWATER_PROXY_URL": proxy.url(), "HEADWATER_ALLOW_PRIVATE_NETWORKS": "false"}
        with attacked(tmp_path, **settings) as target:
            [public] = target.visit(f"http://{PUBLIC}/feed")
            private = target.visit(
                "http://127.0.0.1/", "http://2130706433/", "http://10.0.0.1/", f"http://{PUBLIC}:25/"
            )
    assert (public["status"], public["posts"]) == ("ok", 1)
    assert {source["last_error_code"] for source in private} == {"address_refused"}
    assert [head.split(b" ")[1] for head in proxy.heads] == [f"http://{PUBLIC}/feed".encode()]
