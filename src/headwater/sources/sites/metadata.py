"""What a page says about its article: title, author, dates, address, language, image. From JSON-LD, meta and markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from lxml.etree import XPath
from lxml.html import HtmlElement

from headwater.sources.dates import parse_date, plausible
from headwater.sources.feeds.encoding import undo_double_encoding
from headwater.sources.feeds.posts import MAX_NAME, MAX_TITLE
from headwater.sources.json_values import Json
from headwater.sources.web_page import NewsPage
from headwater.text import plain
from headwater.urls import safe_link, same_server

MAX_SCRIPT = 1_000_000
MAX_NODES = 5_000
MAX_DEPTH = 20
_ARTICLE_TYPES = ("article", "posting", "report", "newsarticle")
_PUBLISHED = (
    "article:published_time",
    "og:published_time",
    "parsely-pub-date",
    "sailthru.date",
    "dc.date.issued",
    "dcterms.created",
    "dc.date",
    "pubdate",
    "publishdate",
    "publish-date",
    "publish_date",
    "article.published",
    "datepublished",
    "date",
    "citation_publication_date",
)
_MODIFIED = ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "last-modified")
_AUTHORS = ("author", "article:author", "parsely-author", "dc.creator", "sailthru.author", "citation_author", "byl")
_SEPARATORS = (" | ", " - ", " – ", " — ", " :: ", " · ", "_")
_BY = re.compile(r"^(?:by|von|par|por|di|door|av|作者[::]?|文[//]|记者[::]?)\s+", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,3}")
_DATE_IN_ADDRESS = re.compile(r"/((?:19|20)\d\d)[/-]?(0[1-9]|1[0-2])[/-]?(0[1-9]|[12]\d|3[01])(?:/|-|_|\b)")
_BYLINES: tuple[Any, ...] = (
    XPath('.//*[@itemprop="author"]//*[@itemprop="name"]'),
    XPath('.//*[@itemprop="author"]'),
    XPath('.//a[contains(concat(" ", @rel, " "), " author ")]'),
    XPath('.//*[@class="byline" or @class="author" or @class="author-name" or @class="byline-name"]'),
)


class Metadata(NamedTuple):
    """`body` is the article's whole text, if the page provides it for programs."""

    title: str
    author: str | None
    published: datetime | None
    modified: datetime | None
    url: str
    language: str | None
    image: str | None
    body: str


def metadata_of(page: NewsPage, received_at: datetime) -> Metadata:
    articles = _articles_in(page.tree)
    meta = _meta(page)
    published = _first_plausible(_published(page, articles, meta), received_at)
    modified = _first_plausible([*_property(articles, "dateModified"), *_values(meta, _MODIFIED)], received_at)
    images = [*_property(articles, "image"), *_values(meta, ("og:image", "og:image:url", "twitter:image"))]
    return Metadata(
        title=_title(page, articles, meta),
        author=_author(page, articles, meta),
        published=published,
        modified=modified if modified and (not published or modified >= published) else None,
        url=_address(page, meta),
        language=_language(page, meta),
        image=next((link for image in images if (link := safe_link(image, page.base))), None),
        body=max((text for article in articles for text in _strings(article.get("articleBody"))), key=len, default=""),
    )


def _meta(page: NewsPage) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in page.tree.iter("meta"):
        name = node.get("property") or node.get("name") or node.get("itemprop")
        content = (node.get("content") or "").strip()
        if name and content:
            found.setdefault(name.lower(), []).append(content)
    return found


def _property(articles: Iterable[Json], name: str) -> list[str]:
    return [text for article in articles for text in _strings(article.get(name))]


def _values(meta: dict[str, list[str]], names: Iterable[str]) -> list[str]:
    return [value for name in names for value in meta.get(name, ())]


def _title(page: NewsPage, articles: list[Json], meta: dict[str, list[str]]) -> str:
    site = next((_line(name) for name in _values(meta, ("og:site_name", "application-name"))), "")
    heads = [_line(node.text_content()) for node in page.tree.iter("h1")]
    heads = [head for head in heads if head]
    in_head = page.tree.find(".//head/title")
    whole = _line(in_head.text_content()) if in_head is not None else ""
    given = [*_property(articles, "headline"), *_values(meta, ("og:title", "twitter:title"))]
    for title in (_without_site(_line(text), site) for text in given):
        if title and title != site:
            return title
    # A headline that the window's title repeats is the article's. Otherwise it is the window's title without the site.
    named = next((head for head in heads if head in whole), heads[0] if len(heads) == 1 else "")
    return named or _without_site(whole, site) or (heads[0] if heads else "")


def _without_site(title: str, site: str) -> str:
    if site:
        for mark in _SEPARATORS:
            title = title.removesuffix(mark + site)
    return title[:MAX_TITLE].rstrip()


def _author(page: NewsPage, articles: list[Json], meta: dict[str, list[str]]) -> str | None:
    return _names(_property(articles, "author")) or _names(_values(meta, _AUTHORS)) or _names(_bylines(page))


def _names(said: list[str]) -> str | None:
    names = dict.fromkeys(_BY.sub("", _line(name)) for name in said[:20])
    good = [name for name in names if 1 < len(name) <= 100 and "://" not in name and "@" not in name]
    return ", ".join(good[:10])[:MAX_NAME] or None


def _bylines(page: NewsPage) -> list[str]:
    for byline in _BYLINES:
        texts = [text for node in byline(page.tree)[:5] if 1 < len(text := _line(node.text_content())) < 80]
        if texts:
            return texts[:3]
    return []


def _published(page: NewsPage, articles: list[Json], meta: dict[str, list[str]]) -> Iterator[str]:
    """Dates that may be the date of publication, the most reliable first."""
    yield from _property(articles, "datePublished")
    yield from _values(meta, _PUBLISHED)
    for node in page.tree.xpath('.//*[@itemprop="datePublished"]')[:3]:
        yield node.get("datetime") or node.get("content") or _line(node.text_content())
    for node in page.tree.xpath(".//article//time | .//main//time | .//time")[:3]:
        yield node.get("datetime") or _line(node.text_content())
    if in_address := _DATE_IN_ADDRESS.search(page.url):
        yield "-".join(in_address.groups())


def _first_plausible(dates: Iterable[str], received_at: datetime) -> datetime | None:
    moments = (plausible(parse_date(text[:100]), received_at) for text in dates)
    return next((moment for moment in moments if moment), None)


def _address(page: NewsPage, meta: dict[str, list[str]]) -> str:
    """Returns the canonical address, if it is on the same server. One on another server cannot be trusted."""
    links = page.tree.xpath('.//link[translate(@rel, "CANOIL", "canoil")="canonical"]/@href')
    for link in [*map(str, links[:1]), *meta.get("og:url", ())]:
        address = safe_link(link, page.base)
        if address and address.startswith(("http://", "https://")) and _is_page_of(page.url, address):
            return address
    return page.url


def _is_page_of(url: str, address: str) -> bool:
    # Some sites give their front page as the canonical address of every page, which says nothing.
    return same_server(url, address) and address.rstrip("/").count("/") > 2


def _language(page: NewsPage, meta: dict[str, list[str]]) -> str | None:
    for text in (page.tree.get("lang"), page.tree.get("xml:lang"), *_values(meta, ("og:locale", "language"))):
        code = (text or "").strip().replace("_", "-")
        if _LANGUAGE.fullmatch(code):
            return code
    return None


def _line(text: str) -> str:
    return plain(undo_double_encoding(text[: MAX_TITLE * 4]))[:MAX_TITLE].rstrip()


def _articles_in(tree: HtmlElement) -> list[Json]:
    """Returns the JSON-LD objects that describe an article, in page order."""
    found = []
    for script in tree.iter("script"):
        if "ld+json" in (script.get("type") or "").lower() and script.text:
            found += [node for node in _nodes(_parsed(script.text)) if _is_article(node)]
    return found


def _strings(value: Any) -> list[str]:
    """Returns the texts of a property, which may be a text, an object with a name or an address, or a list of those."""
    match value:
        case str():
            return [value]
        case dict():
            return _strings(value.get("name") or value.get("url") or value.get("@id"))
        case list():
            return [text for one in value[:50] for text in _strings(one)]
    return []


def _is_article(node: Json) -> bool:
    return any(kind.lower().endswith(_ARTICLE_TYPES) for kind in _strings(node.get("@type")))


def _parsed(text: str) -> Any:
    text = text.strip()[:MAX_SCRIPT]
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        # Line breaks inside strings are the most common fault.
        return json.loads(text.rstrip(";"), strict=False)
    except (ValueError, RecursionError):
        return None


def _nodes(document: Any) -> Iterator[Json]:
    """Yields every object in a document, outer ones first, up to a limit."""
    waiting = [(document, 0)]
    for _ in range(MAX_NODES):
        if not waiting:
            return
        value, depth = waiting.pop(0)
        if isinstance(value, dict):
            yield value
            value = list(value.values())
        if isinstance(value, list) and depth < MAX_DEPTH:
            waiting += [(inner, depth + 1) for inner in value[:500] if isinstance(inner, dict | list)]
