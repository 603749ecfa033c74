"""What belongs to an article and what does not: whole texts, and nothing around them. Pages written by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from headwater.model import Item, Post, Response, Source
from headwater.sources import news

NOW = datetime(2026, 11, 16, tzinfo=UTC)
URL = "https://paper.example/harbour/third-crane"
TITLE = "The harbour gets a third crane"


def told(number: int) -> str:
    return (
        f"Part {number} of the story is about the harbour and its crane number {number}, which lifts {number * 7} tons,"
        f" and about the crew of {number + 3} people who keep it running through the long winter nights."
    )


def read(body: str, head: str = "") -> Post:
    html = f"<!doctype html><html lang=en><head><meta charset=utf-8>{head}</head><body>{body}</body></html>"
    page = news.read_item(Source(1, "news", URL), Item("1", URL), Response(URL, 200, {}, html.encode(), NOW))
    return page.posts[0]


def article(end: str = "", start: str = "") -> str:
    paragraphs = "".join(f"<p>{told(number)}</p>" for number in range(1, 9))
    return f"<main><article><h1>{TITLE}</h1>{start}{paragraphs}{end}</article></main>"


def test_a_story_of_many_slides_is_kept_whole() -> None:
    slides = "".join(
        f'<article class="stop"><h3>Crane {number}</h3><div class="stop-excerpt"><p>{told(number)}</p></div>'
        f'<a href="/book/{number}">Book</a></article>'
        for number in range(1, 31)
    )
    lead = "".join(f"<p>{told(number)}</p>" for number in range(40, 50))
    body = f'<section><h1>{TITLE}</h1><div class="page"><div class="lead post-content">{lead}</div>'
    content = read(f'{body}<div class="page-footer"><div class="stops">{slides}</div></div></div></section>').content
    assert all(told(number) in content for number in (1, 15, 30))


def test_a_text_in_several_columns_is_kept_whole() -> None:
    boxes = "".join(
        f'<div class="grid"><div class="article__body">{"".join(f"<p>{told(n)}</p>" for n in range(at, at + 4))}</div>'
        f'<div class="ads"><p>Buy now</p></div></div>'
        for at in (1, 5, 9, 13)
    )
    content = read(f"<main><article><header><h1>{TITLE}</h1></header><div>{boxes}</div></article></main>").content
    assert all(told(number) in content for number in range(1, 17))
    assert "Buy now" not in content


def test_a_short_article_beside_many_teasers_stays_short() -> None:
    teasers = "".join(
        f'<article class="item"><a href="/a/{number}"><h2>Story {number}</h2><p>{told(number)}</p></a></article>'
        for number in range(20, 60)
    )
    content = read(f"{article()}<section>{teasers}</section>").content
    assert told(8) in content
    assert told(30) not in content


@pytest.mark.parametrize(
    "end",
    [
        "<h2>About the author</h2><p>Ada has lived by the sea for many years and writes about ships and tides.</p>",
        "<h3>Related articles</h3><p>The second crane was built in the year when the old lighthouse fell down.</p>",
        "<p><b>You may also like</b></p><p>Where the gulls of the harbour sleep when the winter storms arrive.</p>",
        "<h2>Footnotes</h2><p>This was first measured with a rope and a bucket by the harbour master's son. ↩</p>",
        "<h2>References</h2><ol><li>Alder, A. On cranes and their makers. Port Press.</li></ol>",
        "<h2>Leave a comment</h2><p>Your address will not be shown to other readers of the page at any time.</p>",
        "<p>Follow Ada Alder on Twitter for more about the harbour and its cranes, ships and people.</p>",
        "<p>(Reporting by Ada Alder; editing by Bo Birch)</p>",
        "<p>Ada Alder is a reporter who has written about ships, cranes and tides since she left the sea.</p>",
        "<p>Ada Alder, a former sailor, writes about ships, cranes and tides for this paper and for others.</p>",
    ],
)
def test_what_follows_an_article_is_not_part_of_it(end: str) -> None:
    content = read(article(end), '<meta name="author" content="Ada Alder">').content
    assert content.rstrip().endswith(f"<p>{told(8)}</p>")


def test_the_same_headings_in_the_first_half_end_nothing() -> None:
    start = f"<h2>Sources</h2><p>{told(20)}</p><h2>Related news</h2><p>{told(21)}</p><p>Ada Alder is one of them.</p>"
    content = read(article(start=start), '<meta name="author" content="Ada Alder">').content
    assert told(20) in content
    assert told(21) in content
    assert "Ada Alder is one of them." in content
    assert told(8) in content


def test_a_last_sentence_that_starts_like_a_heading_is_kept() -> None:
    end = "<p>More on the harbour will be known when the board meets again in spring.</p>"
    assert "when the board meets again" in read(article(end)).content


def test_the_byline_above_the_text_is_not_part_of_it() -> None:
    content = read(article(start="<p>By Ada Alder</p><p>November 2, 2026</p><p>6 min read</p>")).content
    assert content.startswith(f"<p>{told(1)}</p>")


def test_teasers_in_a_list_at_the_end_are_left_out_and_lists_of_the_article_stay() -> None:
    teasers = "".join(
        f'<li><a href="/s/{n}">Crane {n} stands still</a><h4>Nobody knows why it stopped</h4></li>' for n in range(3)
    )
    own = "".join(
        f'<li><a href="/crane/{n}">Crane {n}</a>, built in {1950 + n} by the yard itself</li>' for n in range(3)
    )
    content = read(article(f"<ul>{own}</ul><ul>{teasers}</ul>")).content
    assert "built in 1952" in content
    assert "Nobody knows" not in content
    assert told(8) in content


def test_a_biography_of_several_paragraphs_is_left_out() -> None:
    head = '<meta name="author" content="Ada Alder">'
    biography = (
        "<p>Ada Alder is the owner of a yard by the sea, and has built cranes of every kind for twenty years.</p>"
        "<p>Ada holds a degree in engineering from a university on the coast, and another in the law of harbours.</p>"
        "<p>When she is not at the yard, Ada teaches her daughters how to sail, whatever the weather may be.</p>"
    )
    content = read(article(biography), head).content
    assert told(8) in content
    assert "university" not in content
    assert "daughters" not in content


def test_what_the_author_did_is_kept_where_the_story_goes_on() -> None:
    head = '<meta name="author" content="Ada Alder">'
    story = f"<p>Ada Alder was there when the crane fell, and ran.</p><p>{told(9)}</p>"
    content = read(article(story), head).content
    assert "when the crane fell" in content
    assert told(9) in content


def test_a_quoted_post_is_part_of_the_story() -> None:
    said = "The crane sings at night, and nobody who has heard it has ever forgotten the tune."
    quoted = f'<div class="social-embed"><blockquote class="twitter-tweet"><p>{said}</p>- Ada</blockquote></div>'
    buttons = '<div class="social-embed"><p>Share this story with everybody you know and love.</p></div>'
    content = read(article(f"{quoted}<p>{told(9)}</p>{buttons}")).content
    assert said in content
    assert "everybody you know" not in content


def test_headings_between_paragraphs_are_kept() -> None:
    parts = "".join(
        f"<div><h2>What does crane {number} lift?</h2><p>{told(number)}</p></div>" for number in range(1, 12)
    )
    content = read(f'<div class="page"><h1>{TITLE}</h1><div class="columns"><div>{parts}</div></div></div>').content
    assert content.count("<h2>What does crane") == 11


def test_ten_thousand_quoted_posts_are_read_in_one_go() -> None:  # H42
    quoted = '<div class="embed"><blockquote class="twitter-tweet">said</blockquote></div>' * 10_000
    assert told(8) in read(article(quoted)).content
