"""Threads whose pages keep names and dates where others do not. Pages written by hand."""

# ruff: noqa: E501 - markup is easier to compare on one line
from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from headwater.model import Item, Page, Response, Source
from headwater.sources import forum
from headwater.sources.dates import parse_forum_date
from support.posts import NOON

URL = "https://odd.example/topic/12/"
WORDS = "The quick fan is never the quiet one, whatever they say about blades and bearings."


def response(body: str, attributes: str = "") -> Response:
    html = f"<!doctype html><html lang=en><head><title>Fans</title></head><body {attributes}>{body}</body></html>"
    return Response(URL, 200, {"content-type": "text/html"}, html.encode(), NOON)


def told(body: str, attributes: str = "") -> Page:
    return forum.read_item(Source(1, "forum", URL), Item("12", URL), response(body, attributes))


def test_bbpress_keeps_the_date_in_a_header_before_the_reply() -> None:
    posts = "".join(
        f'<div id="post-{number}" class="bbp-reply-header"><div class="bbp-meta"><span class="bbp-reply-post-date">March {number}, 2024 at 1:00 pm'
        f'</span> <a href="{URL}#post-{number}" class="bbp-reply-permalink">#{number}</a></div></div>\n'
        f'<div class="loop-item odd post-{number} reply type-reply"><div class="bbp-reply-author"><a><span class="bbp-author-name">tree{number}</span></a></div>'
        f'<div class="bbp-reply-content"><p>{WORDS}</p></div></div>'
        for number in (5, 6)
    )
    read = told(f'<div id="bbpress-forums"><ul class="bbp-replies"><li class="bbp-body">{posts}</li></ul></div>')
    assert read.facts.format == "bbpress"
    assert [post.source_post_id for post in read.posts] == ["12/5", "12/6"]
    assert [post.created_at for post in read.posts] == [datetime(2024, 3, day, 13, tzinfo=UTC) for day in (5, 6)]
    assert [post.url for post in read.posts] == [f"{URL}#post-5", f"{URL}#post-6"]


def test_invision_without_its_roles_is_read() -> None:
    posts = "".join(
        f'<article id="elComment_{number}" class="cPost ipsBox ipsComment"><aside class="ipsComment_author"><h3>tree{number}</h3></aside>'
        f'<div class="ipsComment_meta">Posted <time datetime="2024-03-0{number}T13:00:00Z">March {number}</time></div>'
        f'<div class="cPost_contentWrap"><div class="ipsType_normal ipsType_richText"><p>{WORDS}</p></div></div></article>'
        for number in (5, 6)
    )
    read = told(posts, "class=ipsApp")
    assert read.facts.format == "invision"
    assert [(post.source_post_id, post.author) for post in read.posts] == [("12/5", "tree5"), ("12/6", "tree6")]
    assert all(WORDS in post.content and post.dated for post in read.posts)


def test_a_link_called_like_v2ex_does_not_make_a_page_of_it() -> None:
    article = f'<article><h1>Fans</h1><p>{WORDS}</p><a class="topic-link" href="/topics/fans">Fans</a></article>'
    assert forum.recognise(Source(1, "forum", URL), response(article)) is None
    node = '<div id="Main"><div class="cell item"><span class="item_title"><a class="topic-link" href="/t/12">Fans</a></span></div></div>'
    assert forum.recognise(Source(1, "forum", URL), response(node)) == {"profile": "v2ex"}


def test_a_question_that_was_edited_has_the_date_on_which_it_was_asked() -> None:
    signed = '<div class="user-action-time">{said} <span class="relativetime" title="{at}">then</span></div>'
    edited = signed.format(said='<a href="/posts/12/revisions">edited</a>', at="2025-01-09 08:00:00Z")
    asked = signed.format(said="asked", at="2024-03-05 12:30:00Z")
    read = told(
        f'<div id="question" data-questionid="12"><div class="js-post-body">{WORDS}</div><div class="row"><div class="post-signature">{edited}</div>'
        f'<div class="post-signature owner">{asked}<div class="user-details"><a href="/users/1">alder</a></div></div><div class="spacer"></div></div></div>',
        "class=question-page",
    )
    assert [post.created_at for post in read.posts] == [datetime(2024, 3, 5, 12, 30, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("named", "dated", "text"),
    [
        pytest.param(
            '<div class="info">last post by birch <time class="u-dt" datetime="2025-01-09T08:00:00Z">x</time></div>',
            '<a class="MessageCard__date-created"><time class="u-dt" datetime="2024-03-05T12:30:00Z">y</time></a>',
            WORDS,
            id="not that of the last post",
        ),
        pytest.param(
            '<div class="user">Joined: <span>May 1, 2011</span></div>',
            '<header><a href="#post-5"><span>Mar 5, 2024 at 12:30 PM</span></a></header>',
            f"It began on May 2, 2013. {WORDS}",
            id="in no element of its own, and not that of joining",
        ),
    ],
)
def test_a_post_has_its_own_date(named: str, dated: str, text: str) -> None:
    read = told(
        f'<article class="message js-messageCard js-post" data-content="post-5" data-author="alder">{named}{dated}'
        f'<div class="message-body"><div class="bbWrapper">{text}</div></div></article>',
    )
    assert [post.created_at for post in read.posts] == [datetime(2024, 3, 5, 12, 30, tzinfo=UTC)]


def entry(number: int, before: str, own: str = "") -> str:
    return (
        f'<section class="entry">{before}<div class="entry-text">{own}<p>{WORDS} Number {number}.</p></div>'
        f'<div class="buttons"><a href="#">Like</a></div></section>'
    )


@pytest.mark.parametrize(
    "before",
    [
        '<div class="user-score">+2</div><a class="user" href="/user/{n}">tree{n}</a>',
        '<div class="user-info">Joined: May 2011</div><a class="user" href="/user/{n}">tree{n}</a>',
        '<div class="byline"><a href="/user/{n}">tree{n}</a> <a href="#">3 years ago</a></div>',
        '<div class="user-menu">Log In Sign Up</div><a class="user" href="/user/{n}">tree{n}</a>',
    ],
)
def test_a_count_or_a_label_is_nobodys_name(before: str) -> None:
    time = '<time datetime="2024-03-05T12:00:00Z">x</time>'
    posts = told("".join(entry(n, before.format(n=n) + time) for n in range(1, 6))).posts
    assert [post.author for post in posts] == [f"tree{n}" for n in range(1, 6)]


@pytest.mark.parametrize(
    "before",
    [
        '<a class="user" href="/user/{n}">tree{n}</a><span>{n}/03/2024 at 7:07 pm</span>',
        '<a class="user" href="/user/{n}">tree{n}</a><div>on Friday March {n}, 2024 @07:07PM (#640{n})</div>',
        '<a class="user" href="/user/{n}">tree{n}</a><meta itemprop="datePublished" content="2024-03-0{n}T19:07:00Z">',
        '<a class="user" href="/user/{n}">tree{n}</a><relative-time datetime="2024-03-0{n}T19:07:00Z"></relative-time>',
    ],
)
def test_dates_of_unknown_software_are_found_by_how_they_are_written(before: str) -> None:
    posts = told("".join(entry(n, before.format(n=n)) for n in range(1, 6))).posts
    assert len(posts) == 5
    assert all(post.dated and post.created_at.year == 2024 for post in posts)


@pytest.mark.parametrize("kind", ["application/ld+json", "application/json"])
def test_names_and_dates_that_only_the_data_of_the_page_has_are_used(kind: str) -> None:
    data = {
        "@type": "DiscussionForumPosting",
        "comment": [
            {
                "text": f"Fan {n} is the {n} quiet one. {WORDS}",
                "author": {"name": f"tree{n}"},
                "dateCreated": f"2024-03-0{n}T13:00:00Z",
            }
            for n in range(1, 5)
        ],
    }
    shown = "".join(f'<div class="post-content">Fan {n} is the {n} quiet one. {WORDS}</div>' for n in range(1, 5))
    posts = told(f'<script type="{kind}">{json.dumps(data)}</script><main>{shown}</main>').posts
    assert [post.author for post in posts] == [f"tree{n}" for n in range(1, 5)]
    assert [post.created_at.day for post in posts] == [1, 2, 3, 4]


def test_data_that_is_broken_or_of_other_posts_changes_nothing() -> None:
    scripts = '<script type="application/json">{"text": </script><script type="application/json">[[1], {"text": 5, "createdAt": []}]</script>'
    shown = "".join(f'<div class="post-content">Fan {n} is the {n} quiet one. {WORDS}</div>' for n in range(1, 5))
    posts = told(f"{scripts}<main>{shown}</main>").posts
    assert len(posts) == 4
    assert not any(post.dated for post in posts)


def test_a_date_with_slashes_may_have_a_word_before_its_time() -> None:
    assert parse_forum_date("28/11/2025 at 7:07 pm", NOON.replace(year=2026)) == datetime(
        2025, 11, 28, 19, 7, tzinfo=UTC
    )
