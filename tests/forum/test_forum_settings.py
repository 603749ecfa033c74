"""The settings of a forum source, and forums that only settings can explain."""

# ruff: noqa: E501 - markup is easier to compare on one line
from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from written import WRITTEN

from headwater.errors import BadInput, Blocked, ReadFailed
from headwater.model import Item, Reference, Response, Source, SourceState
from headwater.sources import forum
from support.posts import NOON

SITE = "https://odd.example"
OWN: dict[str, Any] = {
    "profile": "generic",
    "selectors": {
        "thread": "p.t",
        "thread_link": "a.go",
        "thread_id": "/topic/{id}.htm",
        "replies": "b",
        "pinned": ".top",
        "next_page": "a.older@href",
        "title": "h2",
        "post": "div.said",
        "post_id": "@data-n",
        "author": "i",
        "date": "u@title | u",
        "content": "q",
        "reply_to": "s",
        "dropped": ".ad",
    },
    "utc_offset": "+08:00",
    "max_pages": 0,
}
SOURCE = Source(1, "forum", f"{SITE}/", settings=OWN)


def page(html: str, url: str = f"{SITE}/") -> Response:
    return Response(url, 200, {"content-type": "text/html"}, html.encode(), NOON)


def test_selectors_alone_are_enough_to_read_a_forum() -> None:
    forum.check(OWN)
    rows = '<p class="t top"><a class=go href="/topic/rules.htm">Rules</a></p><p class=t><b>4 posts</b><a class=go href="/topic/x-9.htm">X</a></p>'
    listed = forum.read(SOURCE, SourceState(), page(f'{rows}<a class=older href="/2">older</a>'))
    assert [(item.id, item.pinned, item.mark) for item in listed.items] == [("rules", True, ""), ("x-9", False, "4/")]
    assert listed.next is not None
    assert listed.next.url == f"{SITE}/2"
    posts = (
        "<h2>X</h2><div class=said data-n=7><i>alder</i><u title='2024-3-5 20:30'>lately</u><q>Hello <em class=ad>ad</em></q></div>"
        "<div class=said data-n=8><i>birch</i><u>2024-3-5 21:00</u><s>post=7</s><q>Hi</q></div>"
    )
    first, second = forum.read_item(SOURCE, Item("x-9", f"{SITE}/topic/x-9.htm"), page(posts)).posts
    assert (first.source_post_id, first.author, first.content.strip()) == ("x-9/7", "alder", "Hello")
    assert first.created_at == datetime(2024, 3, 5, 12, 30, tzinfo=UTC)
    assert second.reference == Reference("reply", "x-9/7")


def test_a_selector_takes_the_place_of_the_profiles() -> None:
    html = (
        WRITTEN["xenforo"]
        .thread_page.replace('class="message-body"', 'class="skin-body"')
        .replace("bbWrapper", "skin-text")
    )
    source = SOURCE._replace(settings={"profile": "xenforo", "selectors": {"content": ".skin-text"}})
    assert [post.author for post in forum.read_item(source, Item("12", SITE), page(html)).posts] == ["alder", "birch"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"profil": "phpbb"}, "profil"),
        ({"profile": "nope"}, "not known"),
        ({"profile": 7}, "profile"),
        ({"max_pages": -1}, "max_pages"),
        ({"max_pages": None}, "max_pages"),
        ({"utc_offset": "Asia/Shanghai"}, "utc_offset"),
        ({"utc_offset": "+99:00"}, "utc_offset"),
        ({"selectors": {"post": "div["}}, "selectors.post"),
        ({"selectors": {"pst": "div"}}, "pst"),
        ({"selectors": {"thread_id": "/topic/"}}, "thread_id"),
        ({"selectors": {"post": "x" * 1001}}, "characters"),
        ({"profile": "generic"}, "needs thread"),
    ],
)
def test_settings_that_are_not_understood_are_refused_by_name(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        forum.check(settings)


@pytest.mark.parametrize("settings", [{}, {"profile": "phpbb"}, {"max_pages": 3, "utc_offset": "-05:00"}])
def test_settings_that_make_sense_are_taken(settings: dict[str, Any]) -> None:
    forum.check(settings)


def test_an_index_of_boards_says_which_boards_to_follow() -> None:
    html = '<body id="phpbb"><ul><li class="row"><a class="forumtitle" href="./viewforum.php?f=2&amp;sid=x">Fans</a></li></ul>'
    with pytest.raises(
        ReadFailed, match=r"Follow one of them instead\. Fans: https://odd\.example/viewforum\.php\?f=2"
    ):
        forum.read(Source(1, "forum", SITE), SourceState(), page(html))


def test_the_address_of_a_thread_is_said_to_be_one() -> None:
    written = WRITTEN["xenforo"]
    with pytest.raises(ReadFailed, match="Follow the board"):
        forum.read(Source(1, "forum", SITE), SourceState(), page(written.thread_page, written.thread_url))


def test_a_board_that_shows_a_login_form_and_no_threads_may_be_for_members() -> None:  # H29
    with pytest.raises(Blocked, match="members"):
        forum.read(
            Source(1, "forum", SITE), SourceState(), page('<body id="phpbb"><form><input type="password"></form>')
        )


def test_a_page_says_the_zone_of_its_times() -> None:
    html = WRITTEN["mybb"].thread_page.replace("</body>", "All times are GMT +1. The time now is 3:00 PM.</body>")
    posts = forum.read_item(Source(1, "forum", SITE), Item("12", SITE), page(html)).posts
    assert posts[0].created_at == datetime(2024, 3, 5, 11, 30, tzinfo=UTC)
