"""Boards and news sites that turn hostile, in their list or in what it names: as feeds, they cost nothing but a visit.

Each attack is tried on the list and on an item of both kinds of site at once, beside a neighbour who is well.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import NamedTuple

import pytest
from selectolax.lexbor import LexborHTMLParser
from sqlalchemy import select

from fetch.raw_server import CHUNKED, HEAD, RawServer, Speaker, answer, dripping_body, dripping_head
from headwater.store.tables import items
from hostile.sites import FORUM, NEWS, PLACES, SENTENCE, SETTINGS, WALLS, Kind, Place, Site, html
from hostile.target import Source, Target, attacked
from hostile.test_hostile_html import XSS
from hostile.test_hostile_http import certified_by_itself
from support.web import Answer, Web, rss

Writer = asyncio.StreamWriter
MAX_BYTES = 300_000
PAGE = html(FORUM.page_of(12, "half a page")).partition(b"\r\n\r\n")[2]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with attacked(tmp_path_factory.mktemp("target"), HEADWATER_FETCH_MAX_BYTES=str(MAX_BYTES)) as made:
        yield made


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One that soon gives up, but not before a busy machine has brought it a good answer."""
    with attacked(tmp_path_factory.mktemp("hasty"), HEADWATER_FETCH_SECONDS="4") as made:
        yield made


class Visited(NamedTuple):
    place: Place
    site: Site
    source_id: int
    server: RawServer


class KnownItem(NamedTuple):
    state: str
    attempts: int
    error: str | None


def followed(target: Target, stack: ExitStack, host: str = "127.0.0.1", **how: object) -> list[Visited]:
    """A site for each place, each followed and visited once while all is well."""
    found = []
    for place in PLACES:
        site = Site(place)
        server = stack.enter_context(target.server(site.speak, **how))
        address = server.url(place.kind.list_path, host=host)
        source_id = target.follow(address, kind=place.kind.name, settings=SETTINGS[place.kind.name])
        found.append(Visited(place, site, source_id, server))
    for source in target.visit_again(*(one.source_id for one in found)):
        assert (source["status"], source["posts"]) == ("ok", 1), source
    return found


def newest_item(target: Target, source_id: int) -> KnownItem:
    """What became of the item that was listed last."""
    query = select(items.c.state, items.c.attempts, items.c.error).where(items.c.source_id == source_id)
    rows = target.headwater.parts.db.read_now(lambda conn: conn.execute(query.order_by(items.c.id.desc())).all())
    return KnownItem(*rows[0])


class Failure(NamedTuple):
    """What the source of a list that failed has to say."""

    code: str
    status: str = "failing"
    words: str = ""


def assert_the_list_failed(target: Target, source: Source, failure: Failure) -> None:
    assert (source["status"], source["last_error_code"]) == (failure.status, failure.code), source["last_error"]
    assert failure.words in source["last_error"]
    reached = target.program.get(f"/api/checkpoints/{source['id']}").json()
    assert (reached["status"], reached["error"]) == ("error", source["last_error"])


def survive(target: Target, world: Web, attack: Speaker | bytes, failure: Failure) -> None:
    """What was stored stays, the neighbour is fine, it is said what is wrong, and when it is over all is read."""
    world.pages["/neighbour"] = Answer(rss("neighbour"))
    neighbour = target.follow(world.url("/neighbour"))
    with ExitStack() as stack:
        sites = followed(target, stack)
        for one in sites:
            one.site.turn(attack)
        *found, beside = target.visit_again(*(one.source_id for one in sites), neighbour)
        assert beside["status"] == "ok"
        for one, source in zip(sites, found, strict=True):
            assert (source["posts"], source["active"]) == (1, True), one.place
            if one.place.is_list:
                assert_the_list_failed(target, source, failure)
            else:
                item = newest_item(target, one.source_id)
                assert (item.state, item.attempts) == ("failed", 1), one.place
                assert failure.words in (item.error or ""), one.place
                assert source["status"] == "ok"
            one.site.recover()
        for source in target.visit_again(*(one.source_id for one in sites)):
            assert (source["status"], source["posts"]) == ("ok", 2)


@pytest.mark.parametrize("attack", [dripping_head, dripping_body])
def test_pages_that_drip_end_at_the_deadline(hasty: Target, world: Web, attack: Speaker) -> None:  # H21, H22
    survive(hasty, world, attack, Failure("timed_out"))


async def endless(head: bytes, writer: Writer) -> None:
    writer.write(CHUNKED)
    while not writer.is_closing():
        writer.write(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
        await writer.drain()


@pytest.mark.parametrize(
    "attack",
    [endless, answer(body=gzip.compress(PAGE + b" " * 50_000_000, 9), Content_Encoding="gzip")],
    ids=["endless", "bomb"],
)
def test_pages_without_end_are_cut_off_at_the_limit(target: Target, world: Web, attack: Speaker | bytes) -> None:
    # H23, H24
    survive(target, world, attack, Failure("answer_too_large", words=f"{MAX_BYTES:,} bytes"))


PACKED = gzip.compress(PAGE * 10)
BROKEN = {
    "packed data that ends early": answer(body=PACKED[: len(PACKED) // 2], Content_Encoding="gzip"),  # H25
    "fewer bytes than announced": HEAD + b"Content-Length: %d\r\n\r\n" % (len(PAGE) + 1000) + PAGE,  # H26
    "no last chunk": CHUNKED + b"%x\r\n%b\r\n" % (len(PAGE), PAGE),  # H26
    "two lengths": HEAD + b"Content-Length: 500\r\nContent-Length: 400\r\n\r\n" + PAGE,  # H27
    "ten thousand headers": HEAD + b"".join(b"X-%d: y\r\n" % n for n in range(10_000)) + b"\r\n" + PAGE,  # H36
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_page_that_came_in_pieces_is_none(target: Target, world: Web, name: str) -> None:  # H25, H26, H27, H36
    survive(target, world, BROKEN[name], Failure("answer_broken"))


@pytest.mark.parametrize("body", [b"", b" \r\n\t ", b"\0\0\0"])
def test_a_page_with_nothing_on_it_is_a_failure(target: Target, world: Web, body: bytes) -> None:  # H28
    survive(target, world, answer(body=body), Failure("empty_answer", words="empty answer"))


@pytest.mark.parametrize("name", WALLS)
def test_a_wall_instead_of_a_page_is_called_blocked(target: Target, world: Web, name: str) -> None:  # H29
    words = {"bot wall": "bot check", "login": "login"}[name]
    survive(target, world, html(WALLS[name]), Failure("blocked", "blocked", words))


def turned(target: Target, sites: list[Visited], attack: Speaker | bytes) -> list[Source]:
    for one in sites:
        one.site.turn(attack)
    return target.visit_again(*(one.source_id for one in sites))


def test_a_304_to_a_question_without_a_condition_is_asked_again_once(target: Target) -> None:  # H30
    came = []

    async def speak(head: bytes, writer: Writer) -> None:
        came.append(head)
        writer.write(answer("304 Not Modified"))

    with ExitStack() as stack:
        sites = [one for one in followed(target, stack) if not one.place.is_list]
        for source in turned(target, sites, speak):
            assert (source["status"], source["posts"]) == ("ok", 1)
            assert "HTTP 304" in (newest_item(target, source["id"]).error or "")
    assert len(came) == 2 * len(sites)


@pytest.mark.parametrize(
    ("place", "host", "status", "wish", "least", "most"),
    [
        (PLACES[0], "127.1", 429, "7200", 120, 134),
        (PLACES[1], "0x7f.0x1", 503, "7200", 120, 134),
        (PLACES[2], "0177.1", 503, "-100", 30, 34),
        (PLACES[3], "0x7f.1", 429, "Fri, 31 Dec 9999 23:59:59 GMT", 24 * 60, 24 * 67),
    ],
    ids=str,
)
def test_a_site_that_asks_for_quiet_gets_it_within_reason(
    target: Target, place: Place, host: str, status: int, wish: str, least: int, most: int
) -> None:  # H31
    with ExitStack() as stack:
        sites = [one for one in followed(target, stack, host) if one.place == place]
        [source] = turned(target, sites, answer(f"{status} Busy", Retry_After=wish))
    wait = datetime.fromisoformat(source["next_check_at"]) - datetime.now(UTC)
    assert timedelta(minutes=least - 1) < wait < timedelta(minutes=most)
    assert (source["active"], source["posts"]) == (True, 1)
    assert newest_item(target, source["id"]).attempts == 0


def test_a_list_that_is_gone_for_good_is_retired_and_an_item_is_noted(target: Target) -> None:  # H32
    with ExitStack() as stack:
        sites = followed(target, stack)
        for one, source in zip(sites, turned(target, sites, answer("410 Gone")), strict=True):
            expected = ("retired", False) if one.place.is_list else ("ok", True)
            assert (source["status"], source["active"], source["posts"]) == (*expected, 1)
            if not one.place.is_list:
                assert "gone for good" in (newest_item(target, one.source_id).error or "")


@pytest.mark.parametrize(
    ("charset", "header"),
    [
        ("utf-8", "text/html; charset=iso-8859-1"),
        ("cp1252", "text/html"),
        ("utf-16-le", "text/html"),
        ("utf-16", "text/html; charset=utf-8"),
        ("utf-8", "text/html; charset=nonsense"),
        ("utf-8", "image/png"),
    ],
)
def test_pages_are_read_whatever_is_said_of_their_letters_and_their_type(
    target: Target, charset: str, header: str
) -> None:  # H33, H34
    words = "Grüße aus Zürich"
    with ExitStack() as stack:
        sites = followed(target, stack)
        for one in sites:
            kind = one.place.kind
            page = kind.list_of([12, 11]) if one.place.is_list else kind.page_of(12, f"<p>{SENTENCE}{words}</p>")
            one.site.turn(answer(body=page.encode(charset), Content_Type=header))
        for one, source in zip(sites, target.visit_again(*(one.source_id for one in sites)), strict=True):
            assert (source["status"], source["posts"]) == ("ok", 2), (one.place, source["last_error"])
            texts = [post["content"] for post in target.posts(source)]
            assert one.place.is_list or any(words in text for text in texts), one.place


@pytest.mark.parametrize("kind", [FORUM, NEWS], ids=["forum", "news"])
def test_a_site_whose_certificate_cannot_be_trusted_is_not_read(target: Target, tmp_path: Path, kind: Kind) -> None:
    # H35
    async def refuse_quietly() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, told: None)

    target.portal.call(refuse_quietly)
    with target.server(Site(Place(kind, True)).speak, tls=certified_by_itself(tmp_path, (-1, 1))) as server:
        address = server.url(kind.list_path, scheme="https")
        source_id = target.follow(address, kind=kind.name, settings=SETTINGS[kind.name])
        [source] = target.visit_again(source_id)
    assert (source["status"], source["last_error_code"]) == ("failing", "certificate_bad")
    assert server.heads == []


@pytest.mark.parametrize("kind", [FORUM, NEWS], ids=["forum", "news"])
def test_a_site_whose_name_is_dead_is_asked_for_less_and_less(target: Target, world: Web, kind: Kind) -> None:  # H37
    world.pages["/alive"] = Answer(rss("alive"))
    dead, alive = target.follow(f"http://dead.invalid/{kind.name}", kind=kind.name), target.follow(world.url("/alive"))
    waits = []
    for _ in range(3):
        source, beside = target.visit_again(dead, alive)
        waits.append(datetime.fromisoformat(source["next_check_at"]) - datetime.now(UTC))
        assert beside["status"] == "ok"
    assert (source["last_error_code"], source["active"]) == ("name_unknown", True)
    assert waits == sorted(waits)


@pytest.mark.parametrize("kind", [FORUM, NEWS], ids=["forum", "news"])
def test_names_and_words_of_a_site_are_shown_as_text(target: Target, world: Web, kind: Kind) -> None:  # H60, H62
    text = escape(XSS)

    def named(page: str) -> str:
        said = re.sub(r"(Thread|The board|The paper|Story|A story of number)( \d+)?", text, page)
        return said.replace('data-author="alder"', f'data-author="{text}"')

    world.pages[f"/named-{kind.name}"] = Answer(named(kind.list_of([77])))
    world.pages[kind.path_of(77)] = Answer(named(kind.page_of(77, "<p>words</p>")))
    source_id = target.follow(world.url(f"/named-{kind.name}"), kind=kind.name, settings=SETTINGS[kind.name])
    [source] = target.visit_again(source_id)
    [post] = target.posts(source)
    paths = ("/", f"/?source_id={source_id}", f"/posts/{post['id']}", "/sources", f"/sources/{source_id}", "/crawling")
    for path in paths:
        page = LexborHTMLParser(target.page(path))
        assert [one.html for one in page.css("script") if not one.attributes.get("src")] == [], path
        assert page.css("[onerror], img[src=x]") == [], path
        for link in page.css("a[href^=http]"):
            assert "noopener" in (link.attributes.get("rel") or ""), link.html
