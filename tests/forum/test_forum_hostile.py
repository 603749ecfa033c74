"""Pages that a forum would not send, or not by choice: walls, bombs, lies."""

# ruff: noqa: E501 - markup is easier to compare on one line
from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written import SITE, WRITTEN

from headwater.errors import Blocked, EmptyAnswer, ReadFailed, SourceFailure, TooDeep
from headwater.model import Item, Page, Response, Source, SourceState
from headwater.sources import forum
from support.posts import NOON

SOURCE = Source(1, "forum", f"{SITE}/")
THREAD = Item("12", f"{SITE}/12")


def page(html: str | bytes, url: str = f"{SITE}/threads/a.12/", content_type: str = "text/html") -> Response:
    body = html if isinstance(html, bytes) else html.encode("utf-8", "surrogatepass")
    return Response(url, 200, {"content-type": content_type}, body, NOON)


def told(html: str | bytes) -> Page:
    return forum.read_item(SOURCE, THREAD, page(html))


def listed(html: str | bytes) -> Page:
    return forum.read(SOURCE, SourceState(), page(html))


def xenforo(*said: str) -> str:
    posts = "".join(
        f'<article class="message" data-content="post-{number}" data-author="alder"><div class="bbWrapper">{text}</div></article>'
        for number, text in enumerate(said, 501)
    )
    return f'<html id="XF"><head><title>A thread</title></head><body>{posts}</body></html>'.replace(
        'class="bbWrapper"', 'class="message-body"'
    )


@pytest.mark.parametrize("body", ["", " \n", "\0"])
def test_an_answer_with_nothing_in_it_is_a_failure(body: str) -> None:  # H28
    for read in (told, listed):
        with pytest.raises((EmptyAnswer, ReadFailed)):
            read(body)


@pytest.mark.parametrize(
    "html",
    [
        "<html><head><title>Just a moment...</title></head><body><div class='cf-chl-widget'></div></body></html>",
        "<html><body><form><input type='password' name='p'></form></body></html>",
    ],
)
def test_a_wall_is_said_to_be_one(html: str) -> None:  # H29
    for read in (told, listed):
        with pytest.raises(Blocked):
            read(html)


def test_a_page_without_a_forum_is_refused_in_words() -> None:
    for read in (told, listed):
        with pytest.raises(ReadFailed, match="found"):
            read("<html><body><h1>Hello</h1><p>Nothing to see.</p></body></html>")


@pytest.mark.parametrize(
    "tag", ["div", "b", "blockquote", "table", "font", "article class=message data-content=post-1"]
)
def test_nesting_without_end_is_refused_or_read_but_never_waited_for(tag: str) -> None:  # H42
    for read in (told, listed):
        with pytest.raises(ReadFailed):
            read("<html id=XF><body>" + f"<{tag}>" * 200_000)


def test_a_tag_with_attributes_without_end_is_refused() -> None:  # H42
    many = " ".join(f'a{number}="1"' for number in range(200_000))
    with pytest.raises(TooDeep):
        told(f"<html id=XF><body><div {many}>x</div>")


def test_posts_without_end_are_cut_and_the_page_says_so() -> None:  # H43
    read = told(xenforo(*["words"] * 5_000))
    assert len(read.posts) == 2_000
    assert read.facts.truncated


def test_threads_without_end_are_cut_and_the_page_says_so() -> None:  # H43
    rows = "".join(
        f'<div class="structItem--thread"><div class="structItem-title"><a href="/threads/a.{id}/">t</a></div></div>'
        for id in range(5_000)
    )
    read = listed(f"<html id=XF><body>{rows}")
    assert len(read.items) == 2_000
    assert read.facts.truncated


def test_nested_posts_are_each_their_own() -> None:
    inner = '<article class="message js-post" data-content="post-{}" data-author="a"><div class="message-body">{}</div>{}</article>'
    html = inner.format(1, "outer words", inner.format(2, "inner words", inner.format(3, "deepest words", "")))
    posts = told(f"<html id=XF><body>{html}</body></html>").posts
    assert [post.source_post_id for post in posts] == ["12/1", "12/2", "12/3"]
    assert [post.content for post in posts] == ["outer words", "inner words", "deepest words"]


@pytest.mark.parametrize(
    "evil",
    [
        "<script>evil()</script>",
        '<a href="jav&#x09;ascript:evil()">x</a>',
        '<img src="x" onerror="evil()">',
        '<iframe srcdoc="evil()"></iframe>',
        '<form action="evil()"><input></form>',
        '<base href="evil()">',
        '<meta http-equiv="refresh" content="0;url=evil()">',
        '<div style="position:fixed;background:url(evil())">x</div>',
        "<svg><script>evil()</script></svg>",
        "<math><mtext><table><mglyph><style><img src=x onerror=evil()>",
        "<noscript><p title='</noscript><img src=x onerror=evil()>'>",
        '<a href="data:text/html,evil()">x</a>',
    ],
)
def test_nothing_that_runs_comes_through(evil: str) -> None:  # H55 H56 H57 H58
    [post] = told(xenforo(f"before {evil} after")).posts
    assert "evil" not in post.content
    assert "before" in post.content


def test_pictures_are_only_those_that_may_be_fetched() -> None:  # H48 H59
    shown = (
        '<img src="javascript:evil()"><img src="data:image/png;base64,AA"><img src="/a.png" width=1><img src="/b.png">'
    )
    later = '<img src="/none.gif" data-src="/c.png"><img src="/none.gif" file="javascript:evil()">'
    [post] = told(xenforo(shown + later)).posts
    assert [image.url for image in post.images] == [f"{SITE}/b.png", f"{SITE}/c.png"]


def test_names_and_titles_are_text() -> None:  # H60
    html = xenforo("words").replace('data-author="alder"', 'data-author="&lt;script&gt;evil()&lt;/script&gt;bob"')
    html = html.replace("<body>", '<body><h1 class="p-title-value">A &lt;b&gt; &amp; more\u202e</h1>')
    [post] = told(html).posts
    assert post.author == "bob"
    assert "<" not in post.title
    assert "\u202e" not in post.title


def test_lone_surrogates_and_controls_survive_as_nothing() -> None:  # H47
    [post] = told(xenforo("a\ud800b\x00c\u202ed")).posts
    post.content.encode("utf-8")
    assert "\x00" not in post.content
    assert "\u202e" not in post.content


def test_links_to_other_servers_are_no_threads_and_no_next_page() -> None:
    row = '<div class="structItem--thread"><div class="structItem-title"><a href="{}">t</a></div></div>'
    rows = (
        row.format("https://evil.example/threads/a.1/") + row.format("javascript:evil()") + row.format("/threads/a.2/")
    )
    read = listed(f'<html id=XF><head><link rel=next href="https://evil.example/2"></head><body>{rows}')
    assert [item.id for item in read.items] == ["2"]
    assert read.next is None


def test_posts_without_ids_keep_their_identity_when_others_come_before_them() -> None:  # H44
    before = told(
        xenforo("first", "second")
        .replace("data-content", "data-x")
        .replace('class="message"', 'class="message js-post"')
    )
    after = told(
        xenforo("zeroth", "first", "second")
        .replace("data-content", "data-x")
        .replace('class="message"', 'class="message js-post"')
    )
    assert before.posts[1].source_post_id == after.posts[2].source_post_id
    assert before.posts[0].source_post_id == "12/opening"


def test_the_same_post_twice_is_one() -> None:  # H44
    assert len(told(xenforo("words").replace("</body>", "") + xenforo("words")).posts) == 1


@pytest.mark.parametrize("charset", ["utf-7", "utf-16-le", "nonsense"])
def test_lies_about_the_charset_are_read_without_a_crash(charset: str) -> None:  # H33
    body = WRITTEN["xenforo"].thread_page.encode("utf-8")
    read = forum.read_item(SOURCE, THREAD, page(body, content_type=f"text/html; charset={charset}"))
    assert len(read.posts) == 2


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(st.sampled_from(sorted(WRITTEN)), st.data())
def test_a_damaged_page_is_read_or_refused(name: str, data: st.DataObject) -> None:  # H25 H46
    html = WRITTEN[name].thread_page
    start = data.draw(st.integers(0, len(html)))
    end = data.draw(st.integers(start, len(html)))
    junk = data.draw(st.text(max_size=20))
    for read in (told, listed):
        try:
            result = read(html[:start] + junk + html[end:])
        except SourceFailure:
            continue
        assert all(post.source_post_id.startswith("12/") for post in result.posts)
