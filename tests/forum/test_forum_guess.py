"""Forums of software that nobody told us about."""

# ruff: noqa: E501 - markup is easier to compare on one line
from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headwater.errors import Blocked, ReadFailed
from headwater.model import Item, Page, Response, Source, SourceState
from headwater.sources import forum
from support.posts import NOON

SITE = "https://odd.example"
SOURCE = Source(1, "forum", f"{SITE}/board")
WORDS = "The quick fan is never the quiet one, whatever they say about blades and bearings."


def page(html: str, url: str = f"{SITE}/thread/12") -> Response:
    return Response(url, 200, {"content-type": "text/html"}, html.encode(), NOON)


def told(html: str) -> Page:
    return forum.read_item(SOURCE, Item("12", f"{SITE}/thread/12"), page(html))


def reply(number: int, inside: str = "") -> str:
    return (
        f'<section class="entry" id="e{number}"><div class="who"><a class="nickname" href="/user/{number}">tree{number}</a></div>'
        f'<time datetime="2024-03-05T12:{number:02}:00Z">Mar 5</time><div class="entry-text"><p>{WORDS} Number {number}.</p></div>'
        f'<div class="buttons"><a href="#">Like</a><a href="#">Report</a></div>{inside}</section>'
    )


NAVIGATION = "".join(
    f'<li class="menu-item"><a href="/m{number}">A way to somewhere else {number}</a></li>' for number in range(30)
)


def test_posts_are_found_by_what_repeats() -> None:
    html = f"<html><body><ul>{NAVIGATION}</ul><h1>Quiet fans</h1><main>{''.join(map(reply, range(1, 6)))}</main></body></html>"
    read = told(html)
    assert read.facts.format == "guessed"
    assert [post.source_post_id for post in read.posts] == [f"12/{number}" for number in range(1, 6)]
    assert [post.author for post in read.posts] == [f"tree{number}" for number in range(1, 6)]
    assert read.posts[2].created_at == datetime(2024, 3, 5, 12, 3, tzinfo=UTC)
    assert read.posts[0].title == "Quiet fans"
    assert all("Like" not in post.content and "somewhere" not in post.content for post in read.posts)


def test_answers_within_what_they_answer_are_posts_of_their_own() -> None:
    html = f"<html><body><main>{reply(1, reply(2, reply(3)))}{reply(4)}</main></body></html>"
    posts = told(html).posts
    assert [post.author for post in posts] == ["tree1", "tree2", "tree3", "tree4"]
    assert all(post.content.count("Number") == 1 for post in posts)


def test_an_opening_post_with_a_look_of_its_own_is_found() -> None:
    opening = f'<article class="topic"><div class="topic-body">{WORDS * 3}</div></article>'
    posts = told(f"<html><body><main>{opening}{reply(1)}{reply(2)}{reply(3)}</main></body></html>").posts
    assert len(posts) == 4
    assert WORDS in posts[0].content


def test_an_opening_post_that_is_a_list_of_links_is_found() -> None:
    links = "".join(
        f'<li><a href="/change/{number}">A change that somebody made, number {number}</a></li>' for number in range(9)
    )
    opening = f'<article id="postContent"><p>{WORDS * 2}</p><ul>{links}</ul></article>'
    posts = told(f"<html><body><main>{opening}{reply(1)}{reply(2)}{reply(3)}</main></body></html>").posts
    assert len(posts) == 4
    assert "number 8" in posts[0].content


def test_a_first_post_that_lacks_a_class_of_the_others_is_one_of_them() -> None:
    def entry(number: int, declared: str) -> str:
        return f'<div class="who"><a href="/user/{number}">tree{number}</a> <time datetime="2024-03-05T12:{number:02}:00Z"></time></div><div class="narrow" {declared}><p>{WORDS} Number {number}.</p></div>'

    declared = 'itemprop="text"'
    summary = f'<meta itemprop="text" content="{WORDS}">'
    html = f"<html><body>{summary}<main>{entry(1, '')}{''.join(entry(number, declared) for number in range(2, 7))}</main></body></html>"
    posts = told(html).posts
    assert [f"Number {number}" in post.content for number, post in enumerate(posts, 1)] == [True] * 6
    assert all(post.dated for post in posts)


@pytest.mark.parametrize("box", ['id="onetrust-sdk"', 'class="cookie-banner"', 'role="dialog"'])
def test_a_box_that_asks_for_consent_has_no_posts(box: str) -> None:
    asks = "".join(f'<section class="group"><p class="text">{WORDS * 4} {number}</p></section>' for number in range(6))
    posts = told(
        f"<html><body><main>{''.join(map(reply, range(1, 4)))}</main><div {box}>{asks}</div></body></html>"
    ).posts
    assert [post.author for post in posts] == ["tree1", "tree2", "tree3"]


def test_a_page_on_which_nothing_repeats_has_no_posts() -> None:
    with pytest.raises(ReadFailed):
        told(f"<html><body><ul>{NAVIGATION}</ul><p>{WORDS}</p></body></html>")


def test_threads_are_the_links_that_look_alike_and_say_the_most() -> None:
    rows = "".join(
        f'<div class="row"><a class="subject" href="/thread/{id}">What I found out about fan {id}</a> <a href="/user/{id}">tree</a></div>'
        for id in range(100, 112)
    )
    html = f'<html><body><ul>{NAVIGATION[:600]}</ul>{rows}<a rel="next" href="/board?page=2">More</a></body></html>'
    read = forum.read(SOURCE, SourceState(), page(html, f"{SITE}/board"))
    assert [item.id for item in read.items] == [str(id) for id in range(100, 112)]
    assert read.items[0].title == "What I found out about fan 100"
    assert read.next is not None
    assert "not known" in read.facts.note


def test_an_unknown_page_is_not_recognised_as_a_forum() -> None:
    assert forum.recognise(SOURCE, page(f"<html><body>{reply(1)}{reply(2)}</body></html>")) is None


def utility(number: int) -> str:
    """A post whose classes only say how it looks, but for the one of its text."""
    return (
        f'<div class="relative px-4 border"><span class="font-bold break-all">tree{number}</span>'
        f'<span class="text-sm">05/03/2024 12:{number:02}</span>'
        f'<div class="post-body mt-2 leading-6">{WORDS} Number {number}.</div></div>'
    )


def test_the_frame_around_all_posts_is_no_post_and_dates_need_no_class() -> None:
    posts = "".join(map(utility, range(1, 9)))
    frame = f'<div class="gap-4">{posts}</div><div class="gap-4"><p>{WORDS}</p></div>'
    html = f"<html><body><h1>Quiet fans</h1><main>{frame}</main></body></html>"
    read = told(html).posts
    assert [post.content.count("Number") for post in read] == [1] * 8
    assert [post.created_at for post in read] == [datetime(2024, 5, 3, 12, n, tzinfo=UTC) for n in range(1, 9)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('<span class="post-when"><span title="August 13, 2023 - 3:05pm">2y</span></span>', (2023, 8, 13, 15, 5)),
        ('<a class="answer_timestamp" href="#">2y</a>', (2024, 11, 2, 12, 0)),
        ('<a class="answer_timestamp" href="#">5mo</a>', (2026, 6, 5, 12, 0)),
    ],
)
def test_a_date_stands_in_a_title_or_is_an_age_of_two_letters(written: str, meant: tuple[int, ...]) -> None:
    def post(number: int) -> str:
        name = f'<a class="nickname" href="/user/{number}">tree{number}</a>'
        return f'<section class="entry">{name}{written}<div class="entry-text">{WORDS} Number {number}.</div></section>'

    read = told(f"<html><body><main>{''.join(map(post, range(1, 5)))}</main></body></html>").posts
    assert [(post.dated, post.created_at) for post in read] == [
        (True, datetime(*meant[:3], *meant[3:], tzinfo=UTC))
    ] * 4


def test_a_page_that_tests_the_visitor_is_no_thread() -> None:  # H29
    said = "".join(f'<p class="reason-text">{WORDS}</p>' for _ in range(4))
    html = f"<html><head><title>Making sure you&#39;re not a bot!</title></head><body><main>{said}</main></body></html>"
    with pytest.raises(Blocked, match="bot check instead of the forum"):
        told(html)
