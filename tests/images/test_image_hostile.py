"""Servers that answer badly where an image should be: each is said, none is kept by half, the others are saved."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from fetch.raw_server import CHUNKED, HEAD, RawServer, Speaker, answer, dripping_body, dripping_head, path_of
from headwater.store.tables import images
from hostile.test_hostile_http import certified_by_itself
from images.painted import HTML, png
from images.saving import Saving, opened

Writer = asyncio.StreamWriter
PICTURE = png()
PACKED = gzip.compress(PICTURE)


@pytest.fixture
def hasty(environ: dict[str, str]) -> Iterator[Saving]:
    with opened({**environ, "HEADWATER_FETCH_SECONDS": "3"}) as made:
        yield made


async def endless(head: bytes, writer: Writer) -> None:
    writer.write(CHUNKED + b"%x\r\n%b\r\n" % (len(PICTURE), PICTURE))
    while not writer.is_closing():
        writer.write(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
        await writer.drain()


# Each has a host of its own, so that none waits for the one before it.
ATTACKS: dict[str, tuple[str, Speaker | bytes, str, str]] = {
    "drip-head": ("127.1", dripping_head, "waiting", "timed_out"),  # H21
    "drip-body": ("0x7f.1", dripping_body, "waiting", "timed_out"),  # H22
    "endless": ("0177.1", endless, "skipped", "answer_too_large"),  # H23
    "cut": ("0x7f.0x1", answer(body=PACKED[:-9], Content_Encoding="gzip"), "waiting", "answer_broken"),  # H25
    "short": ("0177.0x1", HEAD + b"Content-Length: 9999\r\n\r\n" + PICTURE, "waiting", "answer_broken"),  # H26
    "no-last-chunk": (
        "127.0x1",
        CHUNKED + b"%x\r\n%b\r\n" % (len(PICTURE), PICTURE),
        "waiting",
        "answer_broken",
    ),  # H26
    "lengths": (
        "127.01",
        HEAD + b"Content-Length: 9\r\nContent-Length: 8\r\n\r\n" + PICTURE,
        "waiting",
        "answer_broken",
    ),  # H27
    "empty": ("0x7f.01", answer(), "waiting", "not_an_image"),  # H28
    "wall": ("0177.01", answer(body=HTML, Content_Type="image/png"), "waiting", "not_an_image"),  # H29, H34
    "unasked": ("127.0.1", answer("304 Not Modified"), "waiting", "status_refused"),  # H30
    "gone": ("127.0.0x1", answer("410 Gone"), "failed", "status_refused"),  # H32
    "headers": (
        "127.0.01",
        HEAD + b"".join(b"X-%d: y\r\n" % n for n in range(10_000)) + b"\r\n" + PICTURE,
        "waiting",
        "answer_broken",
    ),  # H36
}


async def speak(head: bytes, writer: Writer) -> None:
    attack = ATTACKS.get(path_of(head)[1:])
    if attack is None:
        writer.write(answer(body=PICTURE))
    elif isinstance(attack[1], bytes):
        writer.write(attack[1])
        await writer.drain()
        writer.close()
    else:
        await attack[1](head, writer)


async def tried(saving: Saving, *urls: str) -> dict[str, tuple[str, str | None]]:
    """What became of pictures at these addresses, after each was asked for once."""
    post_id = saving.publish("1", *urls)
    async with saving.running():
        await saving.until(lambda: all(record.tried_at for record in saving.records(post_id)))
    found = saving.records(post_id)
    assert all(record.attempts <= 1 for record in found)
    assert all(record.error for record in found if record.state != "saved")
    return {record.url: (record.state, record.error_code) for record in found}


async def test_whatever_a_server_does_it_costs_one_picture_which_says_why(hasty: Saving) -> None:
    # H21, H22, H23, H25, H26, H27, H28, H29, H30, H32, H34, H36
    server = RawServer(speak)
    await server.start()
    try:
        urls = {name: server.url(f"/{name}", host=host) for name, (host, *_) in ATTACKS.items()}
        found = await tried(hasty, *urls.values(), server.url("/good"))
    finally:
        await server.stop()
    expected = {name: (state, code) for name, (_, _, state, code) in ATTACKS.items()}
    assert {name: found[url] for name, url in urls.items()} == expected
    assert found[server.url("/good")] == ("saved", None)
    assert [file.read_bytes() for file in hasty.files()] == [PICTURE]


async def test_what_was_saved_stays_when_its_server_turns_hostile(saving: Saving) -> None:
    # H25
    answers = iter([answer(body=PICTURE), answer(body=b"something else")])

    async def turning(head: bytes, writer: Writer) -> None:
        writer.write(next(answers))

    server = RawServer(turning)
    await server.start()
    try:
        assert await tried(saving, server.url("/a")) == {server.url("/a"): ("saved", None)}
        saving.turn_clock(days=2)
        assert await tried(saving, server.url("/a")) == {server.url("/a"): ("saved", None)}
    finally:
        await server.stop()
    assert [file.read_bytes() for file in saving.files()] == [PICTURE]
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    ("wish", "least", "most"),
    [("7200", 120, 134), ("Fri, 31 Dec 9999 23:59:59 GMT", 24 * 60, 24 * 67), ("-100", 0, 3), ("9" * 19, 1440, 1608)],
)
async def test_a_wish_to_be_left_alone_is_obeyed_within_reason(
    saving: Saving, wish: str, least: int, most: int
) -> None:  # H31
    server = RawServer(answer("429 Busy", Retry_After=wish))
    await server.start()
    try:
        before = saving.parts.now()
        found = await tried(saving, server.url("/a"))
    finally:
        await server.stop()
    assert list(found.values()) == [("waiting", "status_refused")]
    due_at = saving.parts.db.read_now(lambda conn: conn.execute(select(images.c.next_try_at)).scalar_one())
    assert timedelta(minutes=least) <= due_at - before <= timedelta(minutes=most)


async def test_a_certificate_that_cannot_be_trusted_and_a_name_that_is_dead_are_said(
    saving: Saving, tmp_path: Path
) -> None:  # H35, H37
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: None)
    server = RawServer(answer(body=PICTURE))
    await server.start(tls=certified_by_itself(tmp_path, (-10, -2)))
    try:
        found = await tried(saving, server.url("/a", scheme="https"), "http://dead.invalid/b.png")
    finally:
        await server.stop()
    assert [code for _, code in found.values()] == ["certificate_bad", "name_unknown"]
    assert (server.heads, saving.files()) == ([], [])
