"""Text from outside: safe HTML, plain text, printable characters, fingerprints."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.text import clean_html, looks_like_html, plain, printable, text_as_html, text_hash
from support.growth import assert_cost_is_linear

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))

from unsafe import unsafe_in

BASE = "https://a.example/posts/1"


@pytest.mark.parametrize(
    ("html", "cleaned"),
    [
        ("just text", "just text"),
        ("AT&T &amp; friends &#8217;", "AT&amp;T &amp; friends ’"),
        ("1 < 2", "1 &lt; 2"),
        ("<p>One<p>Two", "<p>One</p><p>Two</p>"),
        ("<b><i>mixed</b></i>", "<b><i>mixed</i></b>"),
        ('<span style="color:red">styled</span> <font>old</font>', "styled old"),
        ("</div></div>out", "out"),
    ],
)
def test_content_keeps_its_words_and_its_shape(html: str, cleaned: str) -> None:
    assert clean_html(html, BASE) == cleaned


def test_links_and_images_become_absolute_and_links_give_nothing_away() -> None:  # H62
    assert clean_html('<a href="/x" target="_blank">x</a><img src="../i.png" alt="i">', BASE) == (
        '<a href="https://a.example/x" rel="noopener noreferrer">x</a><img src="https://a.example/i.png" alt="i">'
    )


def test_without_a_base_relative_links_go_and_their_words_stay() -> None:
    assert clean_html('<a href="/x">x</a>', None) == '<a rel="noopener noreferrer">x</a>'
    assert clean_html('<a href="/x">x</a>', "not an address") == '<a rel="noopener noreferrer">x</a>'


@pytest.mark.parametrize(
    "html",
    [
        '<a href="jav&#x09;ascript:alert(1)">x</a>',  # H55
        '<a href="&#106;avascript:alert(1)">x</a>',  # H55
        '<a href="data:text/html,x">x</a>',  # H48
        '<img src=x onerror=alert(1)><p onclick="x">',  # H56
        "<svg><g onload=alert(1)></svg>",  # H56
        '<math><mtext><table><mglyph><style><img src=x onerror="alert(1)">',  # H56
        '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',  # H56
        '<iframe srcdoc="<script>alert(1)</script>"></iframe>',  # H57
        '<form action="https://evil.example"><input name=a><button formaction="x">',  # H57
        '<base href="https://evil.example/">',  # H57
        '<meta http-equiv="refresh" content="0;url=https://evil.example">',  # H57
        '<div style="position:fixed;background:url(https://evil.example)">x</div>',  # H58
        '<style>@import "https://evil.example";</style>',  # H58
        '<img srcset="https://evil.example/a 1x, javascript:alert(1) 2x" src="https://a.example/i.png">',  # H59
        "<template><script>alert(1)</script></template>",
        '<object data="x"><embed src="x">',
        "<script>alert(1)</script>",
        '<a href="x" ping="https://evil.example" download>x</a>',
        "<!--><img src=x onerror=alert(1)>-->",
        '<p title="&quot; onmouseover=alert(1) x=&quot;">x</p>',
        "<<script>alert(1)</script>",
        "<textarea><img src=x onerror=alert(1)></textarea>",
        "<title><img src=x onerror=alert(1)></title>",
        "<xmp><img src=x onerror=alert(1)></xmp>",
        "<plaintext><img src=x onerror=alert(1)>",
    ],
)
def test_nothing_that_could_run_or_spy_is_left(html: str) -> None:
    assert unsafe_in(clean_html(html, BASE)) == []


@pytest.mark.parametrize(
    "image",
    [
        '<img src="https://a.example/i.gif" width="1" height="1">',
        '<img width=0 src="https://a.example/i.gif">',
        '<img src="https://feeds.feedburner.com/~r/x/~4/abc" height="200">',
        '<img src="https://pixel.wp.com/b.gif?host=x">',
        '<img alt="no source">',
        '<img src="data:image/gif;base64,R0lGOD">',
    ],
)
def test_images_that_are_there_to_be_counted_go(image: str) -> None:  # H59
    assert clean_html(f"<p>a{image}b</p>", BASE) == "<p>ab</p>"


PIECES = (
    "<p> </p> <div> </div> <b> </b> <a href='/x'> </a> <img src=x> <table> <tr> <td> </table> <svg> </svg> <script>"
    " </script> <style> </style> <li> <ul> </ul> <!-- --> ]]> <![CDATA[ &amp; &lt; &#x3c; &quot; \" ' > < <noscript>"
    " </noscript> <math> <mtext> <br/> <select> <option> <template> onclick=alert(1) style=x javascript:x <iframe>"
    " <title> <textarea> <form> <base href=x> <plaintext> text"
)
FRAGMENTS = st.lists(st.sampled_from(PIECES.split()) | st.text(max_size=10), max_size=40).map("".join)


@given(FRAGMENTS)
def test_whatever_is_cleaned_is_safe_stays_so_and_can_be_stored(html: str) -> None:
    cleaned = clean_html(html, BASE)
    assert unsafe_in(cleaned) == []
    assert unsafe_in(clean_html(cleaned, BASE)) == []
    assert printable(cleaned) == cleaned


@given(FRAGMENTS)
def test_plain_text_has_no_line_breaks_and_can_be_stored(html: str) -> None:
    text = plain(html)
    assert text == " ".join(text.split())
    assert printable(text) == text


@pytest.mark.parametrize(
    ("made", "times"),
    [
        (lambda times: "<div>" * times, 100_000),
        (lambda times: "<ul><li>" * times, 50_000),
        (lambda times: "<b></p>" * times, 50_000),
        (lambda times: "<a " + " ".join(f"a{number}=1" for number in range(times)) + ">", 50_000),
        (lambda times: "<" * times, 200_000),
        (lambda times: "<a " * times, 200_000),
        (lambda times: "<!--" * times, 100_000),
        (lambda times: "<script>" * times, 100_000),
        (lambda times: "<title>" * times, 100_000),
        (lambda times: "&" * times, 200_000),
    ],
    ids=["div", "list", "b-p", "attributes", "brackets", "open a", "comments", "scripts", "titles", "references"],
)
def test_html_made_to_keep_a_parser_busy_costs_no_more_than_its_size(
    made: Callable[[int], str], times: int
) -> None:  # H42
    html = made(times)
    assert unsafe_in(clean_html(html, BASE)) == []
    assert printable(plain(html)) == plain(html)
    assert_cost_is_linear(lambda size: (clean_html(made(size), BASE), plain(made(size))), times // 4)


def test_titles_lose_their_tags_and_their_escapes() -> None:
    assert plain("A <b>bold</b> &amp; <i>new</i>&nbsp;title\n of two lines") == "A bold & new title of two lines"
    assert plain("<p>One</p><p>Two</p>Three<br>Four") == "One Two Three Four"
    assert plain("x<script>alert(1)</script>y<!-- z") == "x y"


@pytest.mark.parametrize("text", ["a <b>b</b>", "&#8217;", "x<br/>y", "</p>", "<!-- -->", "&rsquo;"])
def test_html_is_known_by_tags_and_references_that_html_has(text: str) -> None:
    assert looks_like_html(text)


@pytest.mark.parametrize("text", ["plain", "1 < 2 and 3 > 2", "Vec<T>", "AT&T", "a <- b", "<query, value>"])
def test_other_text_is_not_taken_for_html(text: str) -> None:
    assert not looks_like_html(text)


def test_text_becomes_html_with_its_lines() -> None:
    assert text_as_html("a < b\nc") == "a &lt; b<br>\nc"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\0b\x07c\x1b[31m", "abc[31m"),  # H47
        ("lone \ud800 surrogate", "lone  surrogate"),  # H47
        ("abc\u202egpj.exe\u202c \u2066x\u2069", "abcgpj.exe x"),  # H47
        ("don\x92t \x93quote\x94", "don’t “quote”"),
        ("tab\tand\nline, \u200fשלום\u200e é 中 😀", "tab\tand\nline, \u200fשלום\u200e é 中 😀"),
        ("\ufeffmark\uffff", "mark"),
    ],
)
def test_only_what_can_be_stored_and_shown_is_kept(text: str, kept: str) -> None:
    assert printable(text) == kept


@given(st.text(alphabet=st.characters(codec=None), max_size=50))
def test_printable_text_can_be_encoded_and_has_no_nul(text: str) -> None:
    kept = printable(text)
    assert b"\0" not in kept.encode("utf-8")
    assert printable(kept) == kept


def test_the_fingerprint_does_not_see_markup_white_space_or_form() -> None:
    original = text_hash(
        "A title", '<p class="x">Some <a href="https://a.example/?utm_source=1">words</a> ﬁne&nbsp;text</p>'
    )
    assert original == text_hash("A  title", "<div>Some\n<b>words</b>\tfine text</div>")
    assert len(original) == 16


def test_the_fingerprint_sees_every_word_and_where_it_stands() -> None:
    different = {
        text_hash("A title", "Some words"),
        text_hash("A title", "Some other words"),
        text_hash("A titleSome", "words"),
        text_hash("a title", "Some words"),
        text_hash("", ""),
    }
    assert len(different) == 5


@given(FRAGMENTS, FRAGMENTS)
def test_the_fingerprint_depends_on_the_text_alone(title: str, html: str) -> None:
    cleaned = clean_html(html, BASE)
    # White space only between tags and words: within a word or a reference it would be another text.
    spaced = re.sub(r"(<[^>]*>)", r" \1\n", cleaned)
    assert text_hash(plain(title), cleaned) == text_hash(plain(title), spaced)
