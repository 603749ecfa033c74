"""Which pages are taken for a list of articles: blogs and news sites are, shops, threads and articles are not."""

# ruff: noqa: E501 - markup is easier to compare on one line
from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from headwater.model import Response, Source
from headwater.sources import news
from headwater.sources.sites.links import text_within

SITE = "https://cranes.example"
WORDS = "The quay was built in the year when the old lighthouse fell down, and nobody has liked it since then. "
TITLES = (
    "How we mended the old crane",
    "Crane 1.26 is here",
    "Ropes, chains and other lies",
    "A winter on the eastern quay",
    "What the gulls know of tides",
    "Why our crane is painted red",
)


def is_list(body: str, head: str = "", url: str = f"{SITE}/") -> bool:
    html = f"<!doctype html><html lang=en><head><title>Cranes</title>{head}</head><body>{body}</body></html>"
    response = Response(url, 200, {}, html.encode(), datetime(2026, 11, 16, tzinfo=UTC))
    return news.recognise(Source(1, "news", url), response) is not None


def rows(row: str, **more: str) -> str:
    return "".join(row.format(n=n, title=title, words=WORDS, **more) for n, title in enumerate(TITLES, 1))


@pytest.mark.parametrize(
    "row",
    [
        '<p class="title"><a href="/blog/crane{n}">{title}</a>, <span class="date">{n} March 2026</span><br>Ada</p><p>{words}</p>',
        '<li><time datetime="2026-03-0{n}">March {n}</time> <a href="/posts/c{n}">{title}</a></li>',
        '<article><h2><a href="/our-crane-{n}/">{title}</a></h2><p>March {n}, 2026</p><p>{words}{words}{words}{words}</p></article>',
        '<section><a href="/2026/03/crane-{n}"><img></a><h2><a href="/2026/03/crane-{n}">{title}</a></h2><div><p>{words}</p>'
        '<p>{words}{words}{words}{words}</p></div><a href="/2026/03/crane-{n}#more">Read more</a></section>',
        '<div class="post"><h3><a href="/notes/{n}-the-crane-and-the-quay">{title}</a></h3><div class="text"><p>{words}</p></div></div>',
        '<h2><a href="/posts/c{n}/">{title}</a></h2><p>{words}</p>',
        '<li><span>Mar {n}, 2026</span><h3><a href="/c{n}.html">{title}</a></h3></li>',
        '2026-03-0{n} <a href="/c{n}.html">{title}</a><br>',
        '<dt>{n} March 2026</dt><dd><a href="/log/{n}.html">{title}</a></dd>',
        '<div><a href="/p/the-crane-{n}">{title}</a> <time datetime="2026-03-0{n}">Mar {n}</time></div>',
        '<h3><a href="/archives/2026/03/c{n}.html">{title}</a></h3><div><p>{words}</p></div>',
        '<h3><a href="/2026/Mar/{n}/crane/">{title}</a></h3><div><p>{words}</p></div>',
        '<h2><a href="/our-old-crane-{n}/">{title}</a></h2><p>{words}{words}{words}</p><p>{words}{words}{words}</p><h4>More</h4><p>{words}</p>',
        '<div class="hentry tag-navigation category-cranes"><h2><a href="/our-old-crane-{n}/">{title}</a></h2><p>{words}</p></div>',
    ],
    ids=[
        "lines with a date",
        "an index with dates",
        "whole posts",
        "long excerpts",
        "no dates",
        "short names below posts",
        "short names at the top of the site",
        "lines without boxes",
        "a list of terms",
        "a newsletter",
        "archives by month",
        "months by name",
        "whole posts without boxes",
        "tags that are named like parts of a page",
    ],
)
def test_a_plain_blog_is_a_list(row: str) -> None:
    assert is_list(f"<main>{rows(row)}</main>")


def test_a_blog_with_one_post_much_longer_than_the_others_is_a_list() -> None:
    long = f'<article><h2><a href="/the-longest-crane-of-all/">The longest crane</a></h2><p>{WORDS * 9}</p></article>'
    short = '<article><h2><a href="/our-old-crane-{n}/">{title}</a></h2><p>{words}</p></article>'
    assert is_list(f"<main>{long}{rows(short)}</main>")


def test_a_list_below_a_long_request_for_consent_is_a_list() -> None:
    consent = f'<div id="onetrust-consent-sdk"><div><p>{WORDS * 30}</p></div></div>'
    assert is_list(f"<ul>{rows(CARD, path='/news', inside='')}</ul>{consent}")


def test_an_archive_of_months_is_no_list_of_articles() -> None:
    months = "".join(f'<li><a href="/archives/2026/0{n}/">All of month {n} in 2026</a></li>' for n in range(1, 10))
    assert not is_list(f"<ul>{months}</ul>")


CARD = '<li class="card"><h3><a href="{path}/the-{n}-ton-red-crane">{title}</a></h3>{inside}</li>'


@pytest.mark.parametrize(
    ("path", "inside", "head"),
    [
        ("", '<span class="price">$1,249.00</span>', ""),
        ("", "<span>1.249,00 €</span>", ""),
        ("/products", "", ""),
        ("/collections/cranes/products", "", ""),
        ("", "<button>Add to cart</button>", ""),
        ("", '<a href="/cart">Your cart</a>', ""),
        ("", "", '<meta property="og:type" content="product.group">'),
        ("", "", f'<script type="application/ld+json">{json.dumps({"@type": "Product", "name": "Crane"})}</script>'),
    ],
    ids=[
        "prices",
        "prices in euro",
        "products",
        "a collection",
        "carts",
        "a cart and no dates",
        "declared",
        "a product with others beside it",
    ],
)
def test_a_shop_is_no_list_of_articles(path: str, inside: str, head: str) -> None:
    assert not is_list(f"<ul>{rows(CARD, path=path, inside=inside)}</ul>", head)


def test_cards_that_are_called_products_are_no_articles() -> None:
    card = CARD.replace('class="card"', 'class="grid__item product-card"')
    assert not is_list(f"<ul>{rows(card, path='', inside='')}</ul>")


def test_prices_in_headlines_do_not_make_a_shop() -> None:
    row = '<li class="card"><h3><a href="/news/the-{n}-ton-red-crane">{title} costs $4{n} million</a></h3></li>'
    assert is_list(f"<ul>{rows(row)}</ul>")


@pytest.mark.parametrize(
    ("path", "head", "url"),
    [
        ("/threads", "", f"{SITE}/talk"),
        ("/news", "", f"{SITE}/threads/who-paints-cranes.12/"),
        ("/news", "", "https://forum.cranes.example/who-paints-cranes"),
        ("/news", '<script type="application/ld+json">{"@type": "DiscussionForumPosting"}</script>', f"{SITE}/who"),
    ],
    ids=["links to threads", "the address of a thread", "the host of a forum", "declared"],
)
def test_a_thread_is_no_list_of_articles(path: str, head: str, url: str) -> None:
    assert not is_list(f"<ul>{rows(CARD, path=path, inside='')}</ul>", head, url)


def test_a_page_of_comments_is_no_list_of_articles() -> None:
    said = '<div itemscope itemtype="https://schema.org/Comment">{words}</div>' + CARD
    assert not is_list(f"<main>{rows(said, path='/news', inside='')}</main>")


def test_an_article_with_related_ones_below_it_is_no_list() -> None:
    related = f"<ul>{rows(CARD, path='/news', inside='')}</ul>"
    linked = f'<h2><a href="/news/the-9-ton-red-crane">Again</a></h2><p>{WORDS * 4}</p>'
    assert not is_list(f"<main><h1>Crane</h1><div><p>{WORDS * 5}</p><p>{WORDS * 6}</p>{linked}</div></main>{related}")


def test_a_page_of_thousands_of_links_in_one_box_is_read_once_not_once_for_each() -> None:
    """Counts what is read: boxes that are too long for an excerpt are left after their first letters."""
    read = []

    class Box:
        def itertext(self) -> object:
            for part in ("a word " * 20,) * 100_000:
                read.append(part)
                yield part

    assert text_within(Box(), 1_000) is None  # type: ignore[arg-type]
    assert len(read) < 10
