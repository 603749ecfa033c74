"""Titles, authors and dates that a page shows to readers. Pages written by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headwater.model import Item, Post, Response, Source
from headwater.sources import news

NOW = datetime(2026, 11, 16, tzinfo=UTC)
URL = "https://paper.example/harbour/third-crane"
TITLE = "The harbour gets a third crane"
TEXT = "".join(
    f"<p>{sentence}</p>"
    for sentence in (
        "The board voted on Monday to build a third crane, which the port has wanted for more than eleven years.",
        "It will cost forty million and take two winters, said the engineer who drew the plans for the quay.",
        "Fishermen fear for their berths; the board has promised them new ones on the eastern side of the port.",
    )
)


def read(body: str, head: str = "", url: str = URL) -> Post:
    html = f"<!doctype html><html lang=en><head><meta charset=utf-8>{head}</head><body>{body}</body></html>"
    page = news.read_item(Source(1, "news", url), Item("1", url), Response(url, 200, {}, html.encode(), NOW))
    return page.posts[0]


def article(below: str = "", above: str = "", title: str = TITLE) -> str:
    return f"<main>{above}<h1>{title}</h1>{below}<article>{TEXT}</article></main>"


@pytest.mark.parametrize(
    ("head", "heading", "title"),
    [
        ('<meta property="og:title" content="Third crane: what it means for you">', TITLE, TITLE),
        (f"<title>{TITLE} | The Paper</title>", f"{TITLE} | Opinion", TITLE),
        ('<meta property="og:site_name" content="The Paper"><title>x</title>', f"{TITLE} – The Paper", TITLE),
        (f"<title>{TITLE} | Paper</title>", '<a href="/">Tides and Times</a>', TITLE),
        (f'<title>{TITLE}</title><meta property="og:title" content="{TITLE}">', "Paper.example", TITLE),
        ("<title>Two new cranes</title>", "Two new<br>cranes", "Two new cranes"),
    ],
    ids=[
        "the headline, not what is made for search engines",
        "without the section behind a bar",
        "without the site",
        "not a heading that leads home",
        "not the site's own name",
        "lines are words",
    ],
)
def test_the_title_is_the_headline_that_readers_see(head: str, heading: str, title: str) -> None:
    assert read(article(title=heading), head).title == title


def test_among_several_headings_the_title_is_the_one_that_the_page_declares() -> None:
    body = f"<h1>Weather and tides</h1>{article()}<h1>More of our reports</h1>"
    assert read(body, f"<title>{TITLE}</title>").title == TITLE


@pytest.mark.parametrize(
    ("below", "author"),
    [
        ('<p class="meta">By <a href="/team/7">Ada Alder</a></p>', "Ada Alder"),
        ("<div><div>By</div><div>Ada Alder</div><div>|</div><div>6 mins</div></div>", "Ada Alder"),
        ("<p>Written by: Ada Alder and Bo Birch</p>", "Ada Alder, Bo Birch"),
        ("<p>Posted by Ada Alder on Monday, November 2, 2026</p>", "Ada Alder"),
        ('<a href="/authors/ada-alder">Ada Alder</a><span>4 min read</span>', "Ada Alder"),
        ('<div class="post__author-name">Ada Alder</div>', "Ada Alder"),
        ('<div class="byline__name">Newsdesk</div>', "Newsdesk"),
        ("<p>By</p><p>February 3, 2026</p>", None),
        ('<div class="author-box">About the author</div>', None),
    ],
)
def test_the_author_is_whoever_signed_the_article(below: str, author: str | None) -> None:
    assert read(article(below)).author == author


@pytest.mark.parametrize(
    ("declared", "author"),
    [
        ("The Paper", "Ada Alder"),  # the site itself gives way to a person
        ("Bo Birch", "Bo Birch"),
        ("https://social.example/bo", "Ada Alder"),
        ("262588213843476", "Ada Alder"),
        ("Birch, Bo", "Bo Birch"),
        ("Bo Birch, Updated by Cy Cedar", "Bo Birch"),
    ],
)
def test_a_declared_author_goes_first_if_it_is_a_person(declared: str, author: str) -> None:
    head = f'<meta property="og:site_name" content="The Paper"><meta name="author" content="{declared}">'
    assert read(article("<p>By Ada Alder</p>"), head).author == author


@pytest.mark.parametrize(
    ("below", "day"),
    [
        ("<p>November 2, 2026</p>", "2026-11-02"),
        ("<span>2 Nov, 2026</span><span>3 min read</span>", "2026-11-02"),
        ("<div><h4>Published</h4><div>Nov. 2, 2026</div><h4>Updated</h4><div>Nov. 9, 2026</div></div>", "2026-11-02"),
        ("<p>Last updated: Nov 9, 2026</p><p>Published on Nov 2, 2026</p>", "2026-11-02"),
        ("<p>Last updated: 9 November 2026</p>", "2026-11-09"),
        ("<p>2026年11月2日</p>", "2026-11-02"),
        ("<p>02.11.2026</p>", "2026-11-02"),
    ],
)
def test_a_date_by_the_headline_is_the_date_if_none_is_declared(below: str, day: str) -> None:
    post = read(article(below))
    assert post.dated
    assert post.created_at.date().isoformat() == day


def test_a_date_above_the_headline_counts_as_well() -> None:
    assert read(article(above="<p>November 2, 2026</p>")).created_at.date().isoformat() == "2026-11-02"


@pytest.mark.parametrize(
    "elsewhere",
    [
        "<p>The offer is valid until December 3, 2026, as the port has said in a statement that was long enough.</p>",
        "<em>and is valid November 26 – December 3, 2025</em>",
        "<footer>November 2, 2026</footer>",
        f"{'<p>' + 'Much is written here about the port. ' * 40 + '</p>'}<p>November 2, 2026</p>",
    ],
    ids=["in a sentence", "in a part of one", "in the footer", "far below"],
)
def test_a_date_that_is_not_by_the_headline_is_not_the_article_s(elsewhere: str) -> None:
    assert not read(article(elsewhere)).dated


def test_a_page_that_only_declares_a_change_has_no_date_of_publication() -> None:
    post = read(article(), '<meta property="og:updated_time" content="2026-11-09T08:00:00Z">')
    assert not post.dated
    assert post.updated_at == datetime(2026, 11, 9, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("declared", "shown", "created"),
    [
        ("2026-11-02T21:30:00-05:00", "November 2, 2026", datetime(2026, 11, 3, 2, 30, tzinfo=UTC)),
        ("2024-01-05T08:00:00Z", "November 2, 2026", datetime(2026, 11, 2, tzinfo=UTC)),
    ],
    ids=["the same day: its time", "another day: the one that readers see"],
)
def test_the_day_that_readers_see_is_kept_with_the_time_that_is_declared(
    declared: str, shown: str, created: datetime
) -> None:
    head = f'<meta property="article:published_time" content="{declared}">'
    assert read(article(f"<p>{shown}</p>"), head).created_at == created
