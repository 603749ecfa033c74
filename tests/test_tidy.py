"""The quick cleaner: what nh3 makes of well-formed HTML, or no answer. HOSTILE 47, 48, 55-58 hold for it too."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from html.entities import html5
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.text import clean_html, cleaned_by_parser, printable, untagged_uncompiled
from headwater.text.tidy import tidied, untagged

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))

from fuzz_tidy import fragments  # noqa: E402
from unsafe import unsafe_in  # noqa: E402

BASE = "https://a.example/posts/1"


@pytest.mark.parametrize(
    ("html", "clean"),
    [
        ("<p>One &amp; two</p>", "<p>One &amp; two</p>"),
        ("<p>One<p>Two", "<p>One</p><p>Two</p>"),
        ("<ul><li>One<li>Two</ul>", "<ul><li>One</li><li>Two</li></ul>"),
        ("<p>Before<div>after</div></p>", "<p>Before</p><div>after</div><p></p>"),
        ("a &#8217; &rsquo; &nbsp;\xa0 AT&T <b>></b>", "a ’ ’ &nbsp;&nbsp; AT&amp;T <b>&gt;</b>"),
        ('<img class="x" src="/a.png" onerror="alert(1)" />', '<img src="https://a.example/a.png">'),
        ("<a href='https://b.e/?a=1&b=2'>x</a>", '<a href="https://b.e/?a=1&amp;b=2" rel="noopener noreferrer">x</a>'),
        ('<a href="javascript:alert(1)">x</a>', '<a rel="noopener noreferrer">x</a>'),
        ('<span class="k">if</span> <font>x</font>', "if x"),
        ("<video><p>No video</p></video><!-- note -->", "<p>No video</p>"),
        ("<script>if (a < b) run()</script>x<style>p { color: red }</style>", "x"),
        ("<script>x</SCRIPT>y<script>z</script>", "y"),
        ("<pre>\n\nx</pre>", "<pre>\nx</pre>"),
        ("<table><tr><td>1<td>2</table>", "<table><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"),
        ("<p>text</p></div></img></em>", "<p>text</p>"),
    ],
)  # fmt: skip
def test_what_programs_write_is_cleaned_as_nh3_does_it(html: str, clean: str) -> None:
    assert tidied(html, BASE) == clean == cleaned_by_parser(html, BASE)


@pytest.mark.parametrize(
    "html",
    [
        "<b><i>mixed</b></i>",
        "<p><b>one<p>two",
        "<table><p>x</p></table>",
        "<table>text</table>",
        "<a href='/a'>x<a href='/b'>y</a></a>",
        "<svg><style><img src=x onerror=alert(1)></style></svg>",
        "<math><mtext></p></mtext></math>",
        "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
        "<script><!--<script></script>--></script>",
        "<form><p>x</p></form>",
        "<P>upper case</P>",
        '<a href="https://1.2.3.4/">x</a>',
        '<a href="https://xn--a.example/">x</a>',
        '<a href="ht&#116;ps://a.example/">x</a>',
        '<p title="a"title="b">x</p>',
        '<a href="/a" href="/b">x</a>',
        "<p>&copy 2026</p>",
        "<p>&#128;</p>",
        "<p>&#8238;</p>",
        "<p>\u202e\x07</p>",
        "a\rb<br>",
        "<p>\ud800</p>",
        "<p",
        '<p title="',
        "<!-- x",
        "<" + "div><" * 1000 + "p>",
    ],
)
def test_what_takes_a_parser_is_left_to_it(html: str) -> None:
    assert tidied(html, BASE) is None
    assert unsafe_in(clean_html(html, BASE)) == []


@pytest.mark.parametrize("seed", range(4))
def test_random_fragments_are_answered_as_nh3_answers_or_not_at_all(seed: int) -> None:
    answered = 0
    for html in fragments(random.Random(f"tidy {seed}"), 5_000):
        clean = tidied(html, BASE)
        if clean is not None:
            answered += 1
            assert clean == printable(cleaned_by_parser(html, BASE)), html
            assert unsafe_in(clean) == [], html
    assert answered > 500


@pytest.mark.parametrize(
    "piece",
    ["<", "&", "&a", "<!--", "<span", "<script>", "<p>", "<a href='x'>", "<li>", "</p>", "\xa0", "<b>", "<img ", "'"],
)  # fmt: skip
def test_a_megabyte_of_anything_is_looked_at_once(piece: str) -> None:
    html = "<i>x</i>" + piece * (1_000_000 // len(piece))
    clean = tidied(html, BASE)
    assert clean is None or len(clean) >= len("<i>x</i>")


@given(st.text(alphabet="<> /pé中\ud800\xa0", max_size=40), st.sampled_from(["", " "]))
def test_tags_are_taken_out_as_without_a_compiler(html: str, gap: str) -> None:
    assert untagged(html, gap) == untagged_uncompiled(html, gap).replace("\ud800", "")


def test_every_reference_is_known_and_stands_for_something_that_can_be_printed() -> None:
    html = "<p>" + " ".join(f"&{name}" for name in html5 if name.endswith(";")) + "</p>"
    assert tidied(html, None) == printable(cleaned_by_parser(html, None))


def test_without_a_compiler_everything_is_cleaned_all_the_same() -> None:
    """The installation goes on where the quick cleaner cannot be compiled; nh3 does it all then."""
    html = "<p>One<p><img src='/a.png' onerror='x'>"
    program = (
        "import sys; sys.modules['headwater.text.tidy'] = None\n"
        "from headwater.text import clean_html, tidied\n"
        f"print(tidied({html!r}, None), clean_html({html!r}, {BASE!r}), sep='|')"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    said = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == f"None|{clean_html(html, BASE)}"
