"""Servers that answer badly: the visit fails and says why, what was there before stays, and the neighbours are fine."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fetch.raw_server import CHUNKED, HEAD, Speaker, answer, dripping_body, dripping_head
from headwater.store.tables import event_outbox
from hostile.sites import WALLS
from hostile.target import Source, Target, attacked, feed
from support.web import Answer, Web, rss

Writer = asyncio.StreamWriter
MAX_BYTES = 300_000


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("target")
    with attacked(folder, HEADWATER_FETCH_MAX_BYTES=str(MAX_BYTES)) as made:
        yield made


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One that soon gives up, but not before a busy machine has brought it a good answer."""
    with attacked(tmp_path_factory.mktemp("hasty"), HEADWATER_FETCH_SECONDS="4") as made:
        yield made


def first_well(attack: Speaker | bytes) -> Speaker:
    """Whoever comes first is given a good feed; whoever comes later is attacked."""
    came: list[bytes] = []

    async def speak(head: bytes, writer: Writer) -> None:
        came.append(head)
        if len(came) == 1:
            writer.write(feed("kept", ETag='"good"'))
        elif isinstance(attack, bytes):
            writer.write(attack)
            await writer.drain()
            writer.close()
        else:
            await attack(head, writer)

    return speak


def survives(target: Target, world: Web, attack: Speaker | bytes, code: str, *, status: str = "failing") -> Source:
    """A source that turns hostile loses nothing, is marked, does not harm its neighbour, and can recover."""
    world.pages[f"/neighbour-of-{code}"] = Answer(rss("neighbour"))
    with target.server(first_well(attack)) as server:
        [good] = target.visit(server.url(f"/{code}"))
        assert (good["status"], good["posts"]) == ("ok", 1)
        bad, neighbour = target.visit_again(good["id"], target.follow(world.url(f"/neighbour-of-{code}")))
    assert neighbour["status"] == "ok"
    assert (bad["visits"][0]["outcome"], bad["visits"][0]["new"]) == ("failed", 0)
    assert (bad["status"], bad["last_error_code"], bad["consecutive_failures"]) == (status, code, 1)
    assert bad["last_error"]
    assert (bad["active"], bad["newest_post_at"]) == (True, good["newest_post_at"])
    assert [(post["title"], post["version"]) for post in target.posts(bad)] == [("kept", 1)]
    return bad


def test_headers_that_drip_end_at_the_deadline(hasty: Target, world: Web) -> None:  # H21
    survives(hasty, world, dripping_head, "timed_out")


def test_a_body_that_drips_ends_at_the_deadline(hasty: Target, world: Web) -> None:  # H22
    survives(hasty, world, dripping_body, "timed_out")


def test_an_answer_without_end_is_cut_off_at_the_limit(target: Target, world: Web) -> None:  # H23
    sent = 0

    async def speak(head: bytes, writer: Writer) -> None:
        nonlocal sent
        writer.write(CHUNKED)
        while not writer.is_closing():
            writer.write(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
            sent += 0x2000
            await writer.drain()

    bad = survives(target, world, speak, "answer_too_large")
    assert f"{MAX_BYTES:,} bytes" in bad["last_error"]
    # Whatever is in the sockets' buffers by then was sent in vain.
    assert sent < MAX_BYTES + 20_000_000


BOMB = gzip.compress(b"<rss>" + b" " * 50_000_000, 9)


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (BOMB, "gzip"),
        (gzip.compress(BOMB), "gzip, gzip"),
        (zlib.compress(b" " * 50_000_000, 9), "deflate"),
        (gzip.compress(b" " * 1000) * 20_000, "gzip"),
    ],
    ids=["gzip", "nested", "deflate", "many members"],
)
def test_a_compression_bomb_is_not_unpacked(target: Target, world: Web, body: bytes, coding: str) -> None:  # H24
    assert len(body) < 2 * MAX_BYTES
    survives(target, world, answer(body=body, Content_Encoding=coding), "answer_too_large")


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip, gzip, gzip", "gzip, br"])
def test_a_compression_that_nobody_asked_for_is_not_undone(target: Target, world: Web, coding: str) -> None:  # H24
    survives(target, world, answer(body=b"\x28\xb5\x2f\xfd", Content_Encoding=coding), "answer_broken")


def test_compressed_data_that_ends_early_is_not_half_a_feed(target: Target, world: Web) -> None:  # H25
    whole = gzip.compress(rss(*(f"new {number}" for number in range(200))).encode())
    survives(target, world, answer(body=whole[: len(whole) // 2], Content_Encoding="gzip"), "answer_broken")


def test_fewer_bytes_than_announced_are_not_a_change(target: Target, world: Web) -> None:  # H26
    body = rss("kept", "new").encode()
    announced = b"Content-Length: %d\r\n\r\n" % (len(body) + 1000)
    survives(target, world, HEAD + announced + body, "answer_broken")


def test_a_chunked_answer_without_its_last_chunk_is_not_a_change(target: Target, world: Web) -> None:  # H26
    body = rss("kept", "new").encode()
    survives(target, world, CHUNKED + b"%x\r\n%b\r\n" % (len(body), body), "answer_broken")


def test_two_lengths_that_contradict_each_other_are_refused(target: Target, world: Web) -> None:  # H27
    body = rss("kept", "new").encode()
    lengths = b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % (len(body), len(body) - 20)
    survives(target, world, HEAD + lengths + body, "answer_broken")


@pytest.mark.parametrize("body", [b"", b" \r\n\t ", b"\xef\xbb\xbf", b"\0\0\0"])
def test_a_good_status_with_nothing_in_it_is_a_failure(target: Target, world: Web, body: bytes) -> None:  # H28
    survives(target, world, answer(body=body), "empty_answer")


@pytest.mark.parametrize("page", WALLS.values(), ids=WALLS)
def test_a_wall_instead_of_the_feed_is_called_blocked(target: Target, world: Web, page: str) -> None:  # H29
    walled = answer(body=page.encode(), Content_Type="text/html")
    bad = survives(target, world, walled, "blocked", status="blocked")
    assert "Blocked" in target.page(f"/sources/{bad['id']}")


def test_a_304_without_anything_to_compare_is_asked_for_again_once(target: Target, world: Web) -> None:  # H30
    answers = [Answer(status=304), Answer(rss("at last"))]
    world.pages["/late"] = lambda asked: answers.pop(0)
    world.pages["/never"] = Answer(status=304)
    late, never = target.visit(world.url("/late"), world.url("/never"))
    assert (late["status"], late["posts"]) == ("ok", 1)
    assert (never["posts"], world.paths().count("/never")) == (0, 2)


# Each case has a host of its own, as far as a host's pause is concerned.
@pytest.mark.parametrize(
    ("host", "status", "wish", "least", "most"),
    [
        ("127.1", 429, "7200", 120, 134),
        ("0x7f.0x1", 503, "7200", 120, 134),
        ("0177.1", 503, "-100", 30, 34),
        ("0x7f.1", 429, "Fri, 31 Dec 9999 23:59:59 GMT", 24 * 60, 24 * 67),
        ("2130706433", 429, "9" * 19, 24 * 60, 24 * 67),
        ("0x7f000001", 503, "Thu, 01 Jan 1970 00:00:00 GMT", 30, 34),
        ("017700000001", 503, "tomorrow, perhaps", 30, 34),
    ],
)
def test_a_wish_to_be_left_alone_is_obeyed_within_reason(
    target: Target, host: str, status: int, wish: str, least: int, most: int
) -> None:  # H31
    with target.server(answer(f"{status} Busy", Retry_After=wish)) as server:
        [source] = target.visit(server.url("/busy", host=host))
    wait = datetime.fromisoformat(source["next_check_at"]) - datetime.now(UTC)
    assert timedelta(minutes=least - 1) < wait < timedelta(minutes=most)
    assert source["active"]


def test_a_source_that_is_gone_for_good_is_retired_and_its_reader_is_told(target: Target) -> None:  # H32
    with target.server(first_well(answer("410 Gone"))) as server:
        [good] = target.visit(server.url("/gone"))
        [gone] = target.visit_again(good["id"])
    assert (gone["status"], gone["active"], gone["posts"]) == ("retired", False, 1)
    assert "gone for good" in gone["last_error"]
    assert "Gone for good" in target.page("/sources?attention=1")
    kinds = target.headwater.parts.db.read_now(lambda conn: conn.execute(event_outbox.select()).mappings().all())
    assert [event["kind"] for event in kinds if event["key"] == f"source:{gone['id']}"][-1] == "source.retired"


WORDS = "Grüße aus Zürich"
XML = '<?xml version="1.0" encoding="{}"?>' + rss(WORDS, title="Zürich")


@pytest.mark.parametrize(
    ("path", "body", "content_type"),
    [
        ("/header-lies", XML.format("utf-8").encode(), "text/xml; charset=iso-8859-1"),
        ("/declaration-lies", XML.format("iso-8859-1").encode(), "text/xml; charset=utf-8"),
        ("/both-lie", XML.format("us-ascii").encode(), "text/xml; charset=koi8-r"),
        ("/bytes-are-windows", XML.format("utf-8").encode("cp1252"), "text/xml"),
        ("/utf-16-without-mark", XML.format("utf-16").encode("utf-16-le"), "text/xml"),
        ("/utf-16-named-8", XML.format("utf-8").encode("utf-16"), "text/xml; charset=utf-8"),
        ("/no-such-charset", XML.format("x-klingon").encode(), "text/xml; charset=nonsense"),
    ],
)
def test_the_right_characters_are_found_whatever_is_said_of_them(
    target: Target, world: Web, path: str, body: bytes, content_type: str
) -> None:  # H33
    world.pages[path] = Answer(body, headers={"Content-Type": content_type})
    [source] = target.visit(world.url(path))
    assert (source["title"], [post["title"] for post in target.posts(source)]) == ("Zürich", [WORDS])


def test_utf_7_hides_nothing(target: Target, world: Web) -> None:  # H33
    hidden = XML.format("utf-7").replace(WORDS, "+ADw-script+AD4-alert(1)+ADw-/script+AD4-")
    world.pages["/utf-7"] = Answer(hidden, headers={"Content-Type": "text/xml; charset=utf-7"})
    [source] = target.visit(world.url("/utf-7"))
    assert [post["title"] for post in target.posts(source)] == ["+ADw-script+AD4-alert(1)+ADw-/script+AD4-"]
    assert "<script>alert" not in target.page(f"/?source_id={source['id']}")


def test_a_type_that_lies_changes_neither_what_is_read_nor_how_it_is_shown(target: Target, world: Web) -> None:  # H34
    page = "<html><body><script>alert(1)</script></body></html>"
    world.pages["/picture"] = Answer(page, headers={"Content-Type": "image/png"})
    world.pages["/painted"] = Answer(rss("a feed all the same"), headers={"Content-Type": "image/png"})
    picture, painted = target.visit(world.url("/picture"), world.url("/painted"))
    assert (picture["last_error_code"], painted["status"]) == ("not_a_feed", "ok")
    [post] = target.posts(painted)
    for path in ("/", f"/posts/{post['id']}", "/api/posts", "/api/opml", "/static/logo.svg"):
        shown = target.person.get(path)
        assert shown.headers["x-content-type-options"] == "nosniff", path
        assert "script-src 'self'" in shown.headers["content-security-policy"], path


def certified_by_itself(folder: Path, days: tuple[int, int]) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([]), datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now + timedelta(days[0])).not_valid_after(now + timedelta(days[1]))
    loopback = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signed = builder.add_extension(loopback, critical=False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    file = folder / "certificate.pem"
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + signed.public_bytes(pem)
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    return tls


@pytest.mark.parametrize("days", [(-1, 1), (-10, -2)], ids=["self-signed", "expired"])
def test_a_certificate_that_cannot_be_trusted_ends_the_visit(
    target: Target, tmp_path: Path, days: tuple[int, int]
) -> None:  # H35
    async def refuse_quietly() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, told: None)

    target.portal.call(refuse_quietly)
    with target.server(feed("secret"), tls=certified_by_itself(tmp_path, days)) as server:
        [source] = target.visit(server.url(f"/{days[1]}", scheme="https"))
    assert (source["status"], source["last_error_code"]) == ("failing", "certificate_bad")
    assert (server.heads, source["address"][:8]) == ([], "https://")


def test_more_headers_than_anybody_needs_are_an_error(target: Target, world: Web) -> None:  # H36
    many = b"".join(b"X-%d: y\r\n" % number for number in range(10_000))
    body = rss("new").encode()
    survives(target, world, HEAD + many + b"Content-Length: %d\r\n\r\n" % len(body) + body, "answer_broken")


def test_a_huge_cookie_is_neither_kept_nor_sent_back(target: Target) -> None:  # H36
    with target.server(feed("cookie", Set_Cookie="a=" + "x" * 65_536)) as server:
        for source in (*target.visit(server.url("/cookie")), *target.visit(server.url("/cookie"))):
            assert source["status"] in ("ok", "failing")
            assert len(source["last_error"] or "") < 500
    assert not [head for head in server.heads if b"cookie:" in head.lower()]


def test_a_name_that_is_dead_for_hours_is_asked_for_less_and_less(target: Target, world: Web) -> None:  # H37
    world.pages["/alive"] = Answer(rss("alive"))
    waits = []
    for _ in range(3):
        dead, alive = target.visit("http://dead.invalid/feed", world.url("/alive"))
        waits.append(datetime.fromisoformat(dead["next_check_at"]) - datetime.now(UTC))
        assert (alive["status"], alive["consecutive_failures"]) == ("ok", 0)
    assert dead["last_error_code"] == "name_unknown"
    assert dead["active"]
    assert waits == sorted(waits)
