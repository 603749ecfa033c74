"""What an article's page says: text, title, author, times, pictures. Pages written by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from headwater.errors import Blocked, EmptyAnswer, ReadFailed, TooDeep
from headwater.model import Image, Item, Post, Response, Source
from headwater.sources import news

NOW = datetime(2026, 11, 16, tzinfo=UTC)
URL = "https://paper.example/2026/11/02/harbour"
ITEM = Item("4711", URL, "The harbour (list)", created_at=datetime(2026, 11, 1, tzinfo=UTC))
SENTENCES = (
    "The harbour board voted on Monday to build a third crane, which the port has wanted for years.",
    "It will cost forty million and take two winters, said the engineer who drew the plans for it.",
    "Fishermen fear for their berths; the board has promised them new ones on the eastern quay.",
)
TEXT = "".join(f"<p>{sentence}</p>" for sentence in SENTENCES)


def page(body: str, head: str = "", lang: str = "en") -> bytes:
    return (
        f'<!doctype html><html lang={lang}><head><meta charset=utf-8>{head}</head><body><nav><a href="/">Home</a></nav>'
        f"{body}<footer><p>© 2026 The Paper. All rights reserved.</p></footer></body></html>"
    ).encode()


def post_of(body: bytes, url: str = URL, item: Item = ITEM, **headers: str) -> Post:
    read = news.read_item(Source(1, "news", "https://paper.example/"), item, Response(url, 200, headers, body, NOW))
    assert read.next is None
    [post] = read.posts
    return post


def test_the_text_keeps_its_structure_and_loses_what_stands_around_it() -> None:
    body = (
        f"<article><h1>The third crane</h1>{TEXT}<h2>What comes next</h2><ul><li>A vote in the town hall</li><li>A plan"
        f' for the quay</li></ul><p>More in <a href="/plans">the published plans</a> of the board, <b>today</b>.</p>'
        '<p><a href="/other">Related: The second crane</a></p><p>Sign up for our newsletter</p></article>'
    )
    post = post_of(page(body, '<meta property="og:title" content="The third crane">'))
    assert post.title == "The third crane"
    for sentence in SENTENCES:
        assert f"<p>{sentence}</p>" in post.content
    assert "<h2>What comes next</h2>" in post.content
    assert "<li>A vote in the town hall</li>" in post.content
    assert '<a href="https://paper.example/plans" rel="noopener noreferrer">the published plans</a>' in post.content
    for gone in ("The third crane", "second crane", "newsletter", "All rights", "Home"):
        assert gone not in post.content


def test_what_the_page_tells_programs_is_believed_first() -> None:
    told = {
        "@graph": [
            {"@type": "WebSite", "name": "The Paper"},
            {
                "@type": ["NewsArticle"],
                "headline": "The third &amp; last crane",
                "datePublished": "2026-11-02T08:00:00+02:00",
                "dateModified": "2026-11-03T08:00:00Z",
                "author": [{"@type": "Person", "name": "Ada Winter"}, {"name": "Jon Barlow"}],
                "image": {"url": "/crane.jpg"},
            },
        ]
    }
    script = f'<script type="application/ld+json">{json.dumps(told)}</script>'
    head = f'<title>x</title><link rel=canonical href="{URL}/">{script}'
    post = post_of(page(f"<article>{TEXT}</article>", head), URL + "?utm_source=mail")
    assert (post.title, post.author) == ("The third & last crane", "Ada Winter, Jon Barlow")
    assert post.created_at == datetime(2026, 11, 2, 6, tzinfo=UTC)
    assert post.updated_at == datetime(2026, 11, 3, 8, tzinfo=UTC)
    assert (post.source_post_id, post.url, post.lang) == ("4711", URL + "/", "en")
    assert post.images == (Image("https://paper.example/crane.jpg"),)


def test_a_canonical_address_of_another_server_or_of_the_front_page_is_not_believed() -> None:
    for other in ("https://evil.example/2026/11/02/harbour", "https://paper.example/"):
        assert post_of(page(f"<article>{TEXT}</article>", f'<link rel=canonical href="{other}">')).url == URL


@pytest.mark.parametrize("date", ["1970-01-01", "9999-12-31", "soon"])
def test_a_date_that_cannot_be_true_gives_way_to_the_next_best(date: str) -> None:
    # H45
    head = f'<meta property="article:published_time" content="{date}">'
    assert post_of(page(f"<article>{TEXT}</article>", head)).created_at == datetime(2026, 11, 2, tzinfo=UTC)
    undated = post_of(
        page(f"<article>{TEXT}</article>", head), "https://paper.example/a", ITEM._replace(created_at=None)
    )
    assert (undated.created_at, undated.dated) == (NOW, False)


def test_pictures_of_the_text_come_with_their_words_and_decoration_does_not() -> None:
    pictures = (
        '<img src="/a.jpg" alt="The crane"><img data-src="/b.jpg" src="data:image/gif;base64,R0"><img src="/logo.png">'
        '<img src="/dot.gif" width=1 height=1><img src="javascript:x"><aside><img src="/ad.jpg"></aside>'
    )
    post = post_of(page(f"<article>{TEXT}{pictures}</article>"))
    assert post.images == (Image("https://paper.example/a.jpg", "The crane"), Image("https://paper.example/b.jpg"))


def test_a_text_for_programs_that_has_more_than_the_page_shows_is_taken() -> None:
    told = {"@type": "NewsArticle", "articleBody": "\n\n".join(SENTENCES * 3)}
    head = f'<script type="application/ld+json">{json.dumps(told)}</script>'
    post = post_of(page(f"<article><p>{SENTENCES[0]}</p></article>", head))
    assert post.content.count("<p>") == 9


def test_an_edit_changes_the_fingerprint_and_the_page_around_it_does_not() -> None:
    before = post_of(page(f"<article>{TEXT}</article>"))
    around = post_of(page(f"<div class=sidebar><a href=/x>Another story</a></div><article>{TEXT}</article>"))
    edited = post_of(page(f"<article>{TEXT}<p>The board has since taken back its vote, it said.</p></article>"))
    assert before.text_hash == around.text_hash != edited.text_hash


def test_chinese_articles_are_read_in_the_charset_that_the_page_names() -> None:
    # H33
    text = "".join(f"<p>{'临江图书馆周一向附近居民通报了这一消息,多数人此前已有耳闻。' * 3}</p>" for _ in range(3))
    body = f"<html lang=zh><meta charset=gb2312><title>图书馆重新开放</title><article>{text}</article>".encode("gbk")
    for header in ({}, {"content-type": "text/html; charset=utf-8"}):
        post = post_of(body, **{name.replace("-", "_"): value for name, value in header.items()})
        assert post.title == "图书馆重新开放"
        assert "多数人此前已有耳闻" in post.content


def test_nothing_that_could_run_comes_through() -> None:
    # H55 H56 H57 H60
    body = (
        f"<article>{TEXT}<p>See <a href='java&#115;cript:alert(1)'>this</a> and <a href='data:text/html,x'>that</a>,"
        " said the board of the port.</p><p onclick=alert(1)>A sentence of the article with a handler on it.</p>"
        "<iframe srcdoc='<script>x</script>'></iframe><svg onload=alert(1)></svg></article>"
    )
    post = post_of(page(body, "<title>&lt;img src=x onerror=alert(1)&gt; The crane</title>"))
    for gone in ("javascript:", "data:", "onclick", "iframe", "onload", "<script", "<img"):
        assert gone not in post.content
    assert "<" not in post.title


def test_a_login_page_instead_of_the_article_is_a_wall() -> None:
    # H29
    with pytest.raises(Blocked, match="login page instead of the article"):
        post_of(page("<form><input type=password></form>"))
    with pytest.raises(Blocked, match="a bot check instead of the article"):
        post_of(page("<title>Just a moment</title><div class=cf-chl-x></div>"))
    with pytest.raises(ReadFailed, match="No article text"):
        post_of(page("<p>Gone</p>"))
    with pytest.raises(EmptyAnswer):  # H28
        post_of(b"  \n")


@pytest.mark.parametrize(
    "bomb",
    [
        b"<div>" * 100_000,
        b"<b><p>" * 3_000,
        b"<a href=/2026/11/02/a-b-c-d>x</a>" * 10_000,
        b"<table><tr><td>" * 5_000,
        b"<p " + b"a=b " * 100_000 + b">x",
        b'<script type="application/ld+json">' + b"[" * 50_000 + b"</script>",
        b"\xff\xfe\x00" * 2_000,
        b"<p>" + b"\x00" * 10_000 + b"\xed\xa0\x80",
    ],
)
def test_a_bomb_ends_in_words_or_in_the_article(bomb: bytes) -> None:
    # H42 H47
    try:
        post = post_of(bomb + page(f"<article>{TEXT}</article>"))
    except ReadFailed:
        return
    assert "\x00" not in post.content


@pytest.mark.parametrize(
    "control", ["&#14;", "&#x0E", "&#0000014;", "\x0e", "\x0c", "\x0b", "&#xFFFE;", "&#65535;", "\ufffe", "&#1;&#x1f;"]
)
def test_a_control_character_in_a_link_or_in_the_text_costs_nothing_but_itself(control: str) -> None:
    # H47
    linked = f'<p>{SENTENCES[0]} See <a href="/a{control}b">this</a>, and {control} that, said the board.</p>'
    post = post_of(page(f"<article>{TEXT}{linked}</article>"))
    assert "said the board" in post.content
    assert "and that" in " ".join(post.content.split())


def test_numbers_of_characters_that_can_be_shown_are_read_as_ever() -> None:
    text = "<p>A sentence of the article: &#146;quoted&#148;, &#9;&#x20AC;, &#140; and &#x1f600; stay in it.</p>"
    content = post_of(page(f"<article>{TEXT}{text}</article>")).content
    assert all(sign in content for sign in "’€Œ😀")


def test_more_elements_than_a_page_can_need_are_refused() -> None:
    # H43
    with pytest.raises(TooDeep, match="elements"):
        post_of(b"<i>x</i>" * 210_000)


def test_a_page_that_tests_the_visitor_is_no_article() -> None:  # H29
    challenge = '<title>Making sure you&#39;re not a bot!</title><script id="anubis_challenge"></script>'
    with pytest.raises(Blocked, match="bot check instead of the article"):
        post_of(page(f"<main>{TEXT * 3}</main>", challenge))
    assert (
        SENTENCES[0] in post_of(page(f"<main>{TEXT * 3}</main>", "<title>Are you a robot? A history</title>")).content
    )
