"""Who wrote a post and when, on pages of unknown software, and what on them is no post. Pages written by hand."""

# ruff: noqa: E501 - markup is easier to compare on one line
from __future__ import annotations

import pytest

from headwater.model import Item, Page, Response, Source
from headwater.sources import forum
from support.posts import NOON

URL = "https://odd.example/topic/12/"
WORDS = "The quick fan is never the quiet one, whatever they say about blades and bearings."
TEXT = '<div class="entry-text">' + WORDS + " Number {n}.</div>"


def told(body: str, attributes: str = "") -> Page:
    html = f"<!doctype html><html lang=en><head><title>Fans</title></head><body {attributes}>{body}</body></html>"
    response = Response(URL, 200, {"content-type": "text/html"}, html.encode(), NOON)
    return forum.read_item(Source(1, "forum", URL), Item("12", URL), response)


def entries(row: str) -> str:
    return "".join(f'<section class="entry">{row.format(n=n)}</section>' for n in range(1, 6))


@pytest.mark.parametrize(
    "row",
    [
        '<div class="entry-user"><a class="avatar" href="/members/{n}/">T</a><a class="username" href="/members/{n}/">tree{n}</a><h5 class="userTitle">Well-known member</h5><dl class="userStats"><dd>May 1, 2011</dd><dd>887</dd></dl></div>'
        '<header><a href="#p{n}"><time datetime="2024-03-0{n}T13:00:00Z">then</time></a></header>' + TEXT,
        '<div class="author-pane"><a href="/profile/{n}/">tree{n}</a> <span class="rank">Senior</span> 4,522</div><div>Posted <time datetime="2024-03-0{n}T13:00:00Z">then</time></div>'
        + TEXT,
        '<div class="flex">tree{n} &middot; <span class="text-sm">March {n}, 2024 1:00 pm</span></div>' + TEXT,
        '<div class="x1"><div class="x2">tree{n}</div><div class="x3">March {n}, 2024 1:00 pm</div></div>' + TEXT,
        '<x-post author="tree{n}" created-timestamp="2024-03-0{n}T13:00:00Z">' + TEXT + "</x-post>",
        '<p class="author">by <a href="/user/{n}">tree{n}</a> » March {n}, 2024 1:00 pm</p><dl class="profile"><dt>Founded</dt><dd>May 1, 2011</dd></dl>'
        + TEXT,
        '<div class="user">Joined: May 1, 2011</div><a class="user" href="/user/{n}">tree{n}</a><span>March {n}, 2024 1:00 pm</span><div class="edited">Last edited <time datetime="2025-03-05T12:00:00Z">x</time></div>'
        + TEXT,
        '<div class="entry-text"><a href="/user/77">@birch</a> '
        + WORDS
        + ' Number {n}.</div><div class="user-details"><a href="/user/{n}">tree{n}</a></div><time datetime="2024-03-0{n}T13:00:00Z">x</time>',
    ],
    ids=[
        "rank and date of joining beside the name",
        "rank and points in the element of the name",
        "a name before the date on its line",
        "classes that say nothing",
        "attributes of an element of its own",
        "a line with both",
        "dates of joining and of an edit",
        "below a text that names somebody else",
    ],
)
def test_a_post_has_its_authors_name_and_its_own_date(row: str) -> None:
    posts = told(f"<h1>Fans</h1><main>{entries(row)}</main>").posts
    assert [post.author for post in posts] == [f"tree{n}" for n in range(1, 6)]
    assert [(post.dated, post.created_at.year, post.created_at.day) for post in posts] == [
        (True, 2024, n) for n in range(1, 6)
    ]


SIGNED = '<a class="user" href="/user/{n}">tree{n}</a><time datetime="2024-03-0{n}T13:00:00Z">x</time>'


def test_what_is_not_signed_among_posts_that_are_is_no_post() -> None:
    advertisement = '<section class="entry"><div class="entry-text">For more fans, visit our hub.</div></section>'
    posts = told(f"<main>{advertisement}{entries(SIGNED + TEXT)}{advertisement}</main>").posts
    assert [post.author for post in posts] == [f"tree{n}" for n in range(1, 6)]


@pytest.mark.parametrize(
    "banner",
    [
        f'<div class="notice-content">{WORDS * 3}</div>',
        f'<div><time datetime="2024-03-01T13:00:00Z">x</time><div class="summary-text">{WORDS} Number 1.{WORDS * 3}</div></div>',
    ],
    ids=["an announcement", "the first post once more"],
)
def test_a_text_above_the_posts_is_not_always_the_opening_one(banner: str) -> None:
    first = TEXT.replace("Number {n}.", "Number {n}." + WORDS * 3)
    posts = told(f"{banner}<main>{entries(SIGNED + first)}</main>").posts
    assert [post.author for post in posts] == [f"tree{n}" for n in range(1, 6)]


def test_the_head_of_a_post_is_not_part_of_its_text() -> None:
    row = (
        '<a class="user" href="/user/{n}">tree{n}</a><div class="entry-text"><div class="post_head">#{n} <span class="post_date">March {n}, 2024</span></div>'
        + WORDS
        + "</div>"
    )
    posts = told(f"<main>{entries(row)}</main>").posts
    assert [post.created_at.day for post in posts] == [1, 2, 3, 4, 5]
    assert not any("March" in post.content or "#" in post.content for post in posts)


def test_posts_that_are_there_for_readers_without_script_are_read() -> None:
    posts = told(f'<div id="app"></div><noscript>{entries(SIGNED + TEXT)}</noscript>').posts
    assert [post.author for post in posts] == [f"tree{n}" for n in range(1, 6)]


def test_a_preview_of_a_link_is_no_more_than_its_title() -> None:
    preview = '<div class="bbCodeBlock bbCodeBlock--unfurl"><h3><a href="https://a.example/">A title</a></h3><div class="contentRow-snippet">What it says</div><div class="contentRow-minor">a.example</div></div>'
    html = f'<article class="message js-post" data-content="post-5" data-author="alder"><div class="message-body"><div class="bbWrapper">{WORDS}{preview}</div></div></article>'
    [post] = told(html).posts
    assert "A title" in post.content
    assert "What it says" not in post.content
    preview = '<aside class="onebox"><header class="source">a.example</header><article class="onebox-body"><h3><a href="https://a.example/">A title</a></h3><p>What it says</p></article></aside>'
    html = f'<div class="topic-body crawler-post" id="post_1"><div class="post" itemprop="text">{WORDS}{preview}</div></div>'
    [post] = told(html).posts
    assert "A title" in post.content
    assert "What it says" not in post.content


def test_a_count_of_downloads_is_not_part_of_a_post() -> None:
    """It grows by itself, and a post must not look edited for it."""
    file = '<dl class="file"><dt><a href="/file/1">fan.zip</a></dt><dd>(95 KiB) Downloaded 478 times</dd></dl>'
    [post] = told(
        f'<div class="post" id="p5"><div class="postbody"><div class="content">{WORDS}{file}</div></div></div>',
        "id=phpbb",
    ).posts
    assert "fan.zip" in post.content
    assert "478" not in post.content


def test_an_advertisement_that_looks_like_a_post_of_invision_is_none() -> None:
    text = f'<div class="ipsType_richText"><p>{WORDS}</p><span data-excludequote>Edited by alder</span></div>'
    name = '<aside class="ipsComment_author"><h3 class="cAuthorPane_author"><strong><a href="/profile/1/">alder</a></strong> <span>4,522</span></h3></aside>'
    html = f'<article class="cPost ipsComment" id="elComment_5">{name}{text}</article><article class="cPost ipsComment">{name}{text}</article>'
    [post] = told(html, "class=ipsApp").posts
    assert post.author == "alder"
    assert "Edited" not in post.content
