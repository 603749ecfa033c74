"""What a page of a list names, and where the list goes on. Pages written by hand."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from headwater.errors import BadSetting, Blocked, NotAFeed
from headwater.model import Page, Response, Source, SourceState
from headwater.sources import news

NOW = datetime(2026, 11, 16, tzinfo=UTC)
SITE = "https://paper.example"
MENU = "<nav>" + "".join(f'<a href="/section/{name}">{name}</a>' for name in ("world", "money", "sport")) + "</nav>"
STORIES = [f"The harbour gets its {number}th crane this year" for number in range(11, 20)]


def listed(*extra: str, address: str = "/2026/11/{place:02}/the-harbour-gets-crane-{place}") -> str:
    boxes = "".join(
        f'<div class=box><h2><a href="{address.format(place=place)}?utm_source=x">{title}</a></h2></div>'
        for place, title in enumerate(STORIES, 1)
    )
    footer = '<footer><a href="/about/imprint-and-more-words">Imprint and a long text about us</a></footer>'
    return f"<!doctype html><html lang=en><title>Paper</title>{MENU}<main>{boxes}</main>{''.join(extra)}{footer}"


def answer(body: str | bytes, url: str = SITE + "/news", **headers: str) -> Response:
    return Response(url, 200, headers, body.encode() if isinstance(body, str) else body, NOW)


def read(response: Response, state: SourceState = SourceState(), **settings: Any) -> Page:
    return news.read(Source(1, "news", SITE + "/news", settings=settings), state, response)


def first(state: SourceState = SourceState(), **settings: Any) -> str:
    return news.first(Source(1, "news", SITE + "/news", settings=settings), state).url


def test_the_articles_of_an_ordinary_page_are_found_without_settings_and_the_note_says_how() -> None:
    page = read(answer(listed('<a rel=next href="/news?page=2">more</a>')))
    assert [item.title for item in page.items] == STORIES
    assert page.items[0].url == SITE + "/2026/11/01/the-harbour-gets-crane-1"
    assert page.items[0].id == "paper.example/2026/11/01/the-harbour-gets-crane-1"
    assert page.next is not None
    assert page.next.url == SITE + "/news?page=2"
    assert page.facts.note == "9 articles found by their addresses /0000/00/00/~, next page by rel=next."
    assert (page.facts.title, page.facts.language) == ("Paper", "en")


@pytest.mark.parametrize(
    "address",
    ["/story/{place}4711", "/article.php?id={place}123", "/p/harbour-gets-its-crane-{place}", "/a/{place}00001.html"],
)
def test_articles_are_known_by_many_kinds_of_addresses(address: str) -> None:
    assert [item.title for item in read(answer(listed(address=address))).items] == STORIES


def test_chinese_headlines_are_as_good_as_long_ones() -> None:
    titles = [f"临江图书馆第{number}次重新开放" for number in "一二三四五六"]
    links = "".join(
        f'<li><a href="/n/2026110{place}/c{place}778899.html">{text}</a>' for place, text in enumerate(titles, 1)
    )
    page = read(answer(f'<meta charset=gbk><ul>{links}</ul><a href="list_2.html">下一页</a>'.encode("gbk")))
    assert [item.title for item in page.items] == titles
    assert page.next is not None
    assert page.next.url == SITE + "/list_2.html"


@pytest.mark.parametrize(
    ("pager", "by"),
    [
        ("<a href='/news/page/2'>Older posts</a>", "the link “Older posts”"),
        ("<div class=pagination><a href='/news?page=2'>»</a></div>", "the link “»”"),
        ("<a class='btn next' href='/news?p=2'>+</a>", "the link named next"),
        ("<ul class=pager><li>1<li><a href='/news?page=2'>2</a></ul>", "the row of page numbers"),
        ("<link rel=next href='/news?page=2'>", "rel=next"),
    ],
)
def test_the_next_page_is_found_by_what_sites_write(pager: str, by: str) -> None:
    page = read(answer(listed(pager)))
    assert page.next is not None
    assert page.facts.note.endswith(f"next page by {by}.")


@pytest.mark.parametrize("href", ["#", "javascript:next()", "https://other.example/news?page=2", SITE + "/news"])
def test_a_next_page_that_leads_nowhere_else_is_none(href: str) -> None:
    assert read(answer(listed(f'<a rel=next href="{href}">next</a>'))).next is None


def test_a_selector_says_which_links_are_articles() -> None:
    page = read(answer("<ul id=x><li><a href=/a>One</a><li><a href=/b>Two</a></ul><a href=/c>No</a>"), items="#x a")
    assert [(item.url, item.title) for item in page.items] == [(SITE + "/a", "One"), (SITE + "/b", "Two")]
    with pytest.raises(NotAFeed, match="matches the selector"):
        read(answer("<p>nothing</p>"), items="#x a")


def test_pages_are_counted_and_offsets_added_where_the_address_has_a_place_for_them() -> None:
    pages = {"list": SITE + "/news?page={page}", "first_page": 0}
    assert first(**pages) == SITE + "/news?page=0"
    following = read(answer(listed(), SITE + "/news?page=0"), **pages).next
    assert following is not None
    assert following.url == SITE + "/news?page=1"
    offsets = {"list": SITE + "/news/{offset}"}
    following = read(answer(listed(), first(**offsets)), **offsets).next
    assert following is not None
    assert following.url == SITE + "/news/9"


JSON = {"form": "json", "items": "data.items[*]", "list": SITE + "/api?after={cursor}", "next": "data.next"}


def endpoint(next: str = "c/2", **more: object) -> str:
    items = [{"id": 7, "url": "/a/7", "title": "Seven &amp; up", "date": "2026-11-01T10:00:00Z", **more}, {"id": 6}]
    return json.dumps({"data": {"items": items, "next": next}})


def test_a_json_endpoint_with_a_cursor_is_followed() -> None:
    page = read(answer(endpoint(), SITE + "/api?after="), **JSON)
    [item] = page.items
    assert (item.id, item.url, item.title) == ("7", SITE + "/a/7", "Seven & up")
    assert item.created_at == datetime(2026, 11, 1, 10, tzinfo=UTC)
    assert page.next is not None
    assert page.next.url == SITE + "/api?after=c%2F2"
    assert read(answer(endpoint(), page.next.url), **JSON).next is None  # the same cursor again: a loop
    assert read(answer(endpoint(""), SITE + "/api?after="), **JSON).next is None


def test_what_a_list_tells_whole_is_a_post_at_once() -> None:
    told = {**JSON, "text": "body", "author": "by"}
    page = read(answer(endpoint(body="<p>All of it</p><script>x</script>", by="Ada"), SITE + "/api?after="), **told)
    [post] = page.posts
    assert (post.source_post_id, post.content, post.author) == ("7", "<p>All of it</p>", "Ada")
    assert page.items == ()


def test_an_ascending_list_goes_on_behind_the_highest_id_and_is_read_from_the_lowest_up() -> None:
    # B6
    given = {
        "list": SITE + "/news?since={min_id}",
        "order": "ascending",
        "id_pattern": r"/story/(\d+)",
        "min_id": 100,
    }
    assert first(**given) == SITE + "/news?since=100"
    assert first(SourceState(last_seen_post_id="4711"), **given) == SITE + "/news?since=4711"
    page = read(answer(listed(address="/story/{place}00"), SITE + "/news?since=100"), **given)
    assert [item.id for item in page.items] == [f"{place}00" for place in range(1, 10)]
    assert page.next is not None
    assert page.next.url == SITE + "/news?since=900"
    assert read(answer(listed(address="/story/{place}00"), SITE + "/news?since=900"), **given).next is None


def test_a_descending_list_goes_on_below_the_lowest_id_within_its_bounds() -> None:
    given = {"list": SITE + "/news?before={max_id}", "id_pattern": r"/story/(\d+)", "min_id": 300, "max_id": 800}
    page = read(answer(listed(address="/story/{place}00"), SITE + "/news?before=1000"), **given)
    assert [item.id for item in page.items] == ["300", "400", "500", "600", "700", "800"]
    assert page.next is not None
    assert page.next.url == SITE + "/news?before=300"


SITEMAP = """<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:n="urn:n">
<url><loc>https://paper.example/a</loc><lastmod>2026-11-01</lastmod></url>
<url><loc>https://paper.example/b</loc><n:news><n:publication_date>2026-11-03T00:00:00Z</n:publication_date>
<n:title>B &amp; more</n:title></n:news></url><url><loc>https://evil.example/c</loc></url></urlset>"""


@pytest.mark.parametrize("packed", [False, True])
def test_a_sitemap_is_a_list_the_newest_first_and_only_of_its_own_host(packed: bool) -> None:
    body = gzip.compress(SITEMAP.encode()) if packed else SITEMAP.encode()
    page = read(answer(body, SITE + "/sitemap.xml.gz"))
    assert [(item.url, item.title, item.mark) for item in page.items] == [
        (SITE + "/b", "B & more", ""),
        (SITE + "/a", "", "2026-11-01"),
    ]


def test_of_a_sitemap_index_the_newest_map_is_read() -> None:
    maps = "".join(
        f"<sitemap><loc>{SITE}/{name}.xml</loc><lastmod>{day}</lastmod></sitemap>"
        for name, day in (("old", "2025-01-01"), ("new", "2026-11-01"))
    )
    page = read(answer(f"<sitemapindex>{maps}</sitemapindex>"))
    assert page.next is not None
    assert page.next.url == SITE + "/new.xml"


def test_a_page_without_a_list_is_refused_in_words() -> None:
    with pytest.raises(NotAFeed, match="No list of articles was found"):
        read(answer("<p>Hello</p>" + MENU))
    with pytest.raises(Blocked, match="login page instead of the list"):  # H29
        read(answer("<form><input type=password></form>"))


def test_a_list_is_recognised_and_an_article_or_a_front_door_is_not() -> None:
    source = Source(1, "news", SITE)
    assert news.recognise(source, answer(listed())) == {}
    assert news.recognise(source, answer(SITEMAP)) == {"form": "sitemap"}
    assert news.recognise(source, answer("<h1>Welcome</h1>" + MENU)) is None
    article = "<article>" + f"<p>{'A long sentence of an article that goes on. ' * 20}</p>" * 6 + "</article>"
    assert news.recognise(source, answer(article + listed())) is None
    assert news.recognise(source, answer(b"")) is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"pages": 3}, "unknown field `pages`"),
        ({"order": "up"}, "order"),
        ({"max_pages": -1}, "max_pages"),
        ({"list": "https://a.example/{seite}"}, "{seite}"),
        ({"list": "ftp://a.example/{page}"}, "`list` is not an address"),
        ({"list": "https://a.example/{page}{page}"}, "twice"),
        ({"list": "https://a.example/{cursor}"}, "`next` has to say"),
        ({"form": "json"}, "`items` has to say"),
        ({"form": "json", "items": "a..b"}, "is not a path into JSON"),
        ({"form": "json", "items": "a | keys(@)"}, "is not a path into JSON"),  # H54
        ({"items": "a[["}, "not a CSS selector"),
        ({"id_pattern": "("}, "not a regular expression"),
        ({"id_pattern": "abc"}, "exactly one group"),
        ({"min_id": 9, "max_id": 1}, "no article is between"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_words_that_name_them(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSetting) as refusal:
        news.check(settings)
    assert words in refusal.value.detail
