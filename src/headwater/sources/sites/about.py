"""What a page says about its article besides the text: title, author, dates, address, language, picture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from lxml.etree import XPath

from headwater.sources.feeds.dates import parse_date
from headwater.sources.feeds.encoding import unmixed
from headwater.sources.feeds.posts import EARLIEST, MAX_NAME, MAX_TITLE, TOO_FAR_AHEAD
from headwater.sources.sites.page import WebPage
from headwater.sources.sites.structured import articles_in, strings
from headwater.text import plain
from headwater.urls import safe_link, same_server

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
_AUTHOR_PLACES: tuple[Any, ...] = (
    XPath('.//*[@itemprop="author"]//*[@itemprop="name"]'),
    XPath('.//*[@itemprop="author"]'),
    XPath('.//a[contains(concat(" ", @rel, " "), " author ")]'),
    XPath('.//*[@class="byline" or @class="author" or @class="author-name" or @class="byline-name"]'),
)


class About(NamedTuple):
    """`body` is the article's whole text as the page tells it to programs, where it does."""

    title: str
    author: str | None
    published: datetime | None
    modified: datetime | None
    url: str
    language: str | None
    picture: str | None
    body: str


def about(page: WebPage, received_at: datetime) -> About:
    told = articles_in(page.tree)
    meta = _meta(page)
    published = _believed(_published(page, told, meta), received_at)
    modified = _believed([*_said(told, "dateModified"), *_values(meta, _MODIFIED)], received_at)
    pictures = [*_said(told, "image"), *_values(meta, ("og:image", "og:image:url", "twitter:image"))]
    return About(
        title=_title(page, told, meta),
        author=_author(page, told, meta),
        published=published,
        modified=modified if modified and (not published or modified >= published) else None,
        url=_address(page, meta),
        language=_language(page, meta),
        picture=next((link for picture in pictures if (link := safe_link(picture, page.base))), None),
        body=max((text for node in told for text in strings(node.get("articleBody"))), key=len, default=""),
    )


def _meta(page: WebPage) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in page.tree.iter("meta"):
        name = node.get("property") or node.get("name") or node.get("itemprop")
        content = (node.get("content") or "").strip()
        if name and content:
            found.setdefault(name.lower(), []).append(content)
    return found


def _said(told: Iterable[dict[str, Any]], name: str) -> list[str]:
    return [text for node in told for text in strings(node.get(name))]


def _values(meta: dict[str, list[str]], names: Iterable[str]) -> list[str]:
    return [value for name in names for value in meta.get(name, ())]


def _title(page: WebPage, told: list[dict[str, Any]], meta: dict[str, list[str]]) -> str:
    site = next((_line(name) for name in _values(meta, ("og:site_name", "application-name"))), "")
    heads = [_line(node.text_content()) for node in page.tree.iter("h1")]
    heads = [head for head in heads if head]
    in_head = page.tree.find(".//head/title")
    whole = _line(in_head.text_content()) if in_head is not None else ""
    given = [*_said(told, "headline"), *_values(meta, ("og:title", "twitter:title"))]
    for title in (_without_site(_line(text), site) for text in given):
        if title and title != site:
            return title
    # One headline that the window's title repeats is the article's; else the window's title without the site.
    named = next((head for head in heads if head in whole), heads[0] if len(heads) == 1 else "")
    return named or _without_site(whole, site) or (heads[0] if heads else "")


def _without_site(title: str, site: str) -> str:
    if site:
        for mark in _SEPARATORS:
            title = title.removesuffix(mark + site)
    return title[:MAX_TITLE].rstrip()


def _author(page: WebPage, told: list[dict[str, Any]], meta: dict[str, list[str]]) -> str | None:
    return _names(_said(told, "author")) or _names(_values(meta, _AUTHORS)) or _names(_bylines(page))


def _names(said: list[str]) -> str | None:
    names = dict.fromkeys(_BY.sub("", _line(name)) for name in said[:20])
    good = [name for name in names if 1 < len(name) <= 100 and "://" not in name and "@" not in name]
    return ", ".join(good[:10])[:MAX_NAME] or None


def _bylines(page: WebPage) -> list[str]:
    for place in _AUTHOR_PLACES:
        texts = [text for node in place(page.tree)[:5] if 1 < len(text := _line(node.text_content())) < 80]
        if texts:
            return texts[:3]
    return []


def _published(page: WebPage, told: list[dict[str, Any]], meta: dict[str, list[str]]) -> Iterator[str]:
    """Where the date may stand, the surest place first."""
    yield from _said(told, "datePublished")
    yield from _values(meta, _PUBLISHED)
    for node in page.tree.xpath('.//*[@itemprop="datePublished"]')[:3]:
        yield node.get("datetime") or node.get("content") or _line(node.text_content())
    for node in page.tree.xpath(".//article//time | .//main//time | .//time")[:3]:
        yield node.get("datetime") or _line(node.text_content())
    if in_address := _DATE_IN_ADDRESS.search(page.url):
        yield "-".join(in_address.groups())


def _believed(dates: Iterable[str], received_at: datetime) -> datetime | None:
    for text in dates:
        moment = parse_date(text[:100])
        if moment and EARLIEST <= moment <= received_at + TOO_FAR_AHEAD:
            return moment
    return None


def _address(page: WebPage, meta: dict[str, list[str]]) -> str:
    """The address that the page gives itself, if it is one of the same server; a foreign one would be a claim."""
    links = page.tree.xpath('.//link[translate(@rel, "CANOIL", "canoil")="canonical"]/@href')
    for link in [*map(str, links[:1]), *meta.get("og:url", ())]:
        address = safe_link(link, page.base)
        if address and address.startswith(("http://", "https://")) and _is_page_of(page.url, address):
            return address
    return page.url


def _is_page_of(url: str, address: str) -> bool:
    # A site that gives every page its front page as canonical address says nothing with it.
    return same_server(url, address) and address.rstrip("/").count("/") > 2


def _language(page: WebPage, meta: dict[str, list[str]]) -> str | None:
    for text in (page.tree.get("lang"), page.tree.get("xml:lang"), *_values(meta, ("og:locale", "language"))):
        code = (text or "").strip().replace("_", "-")
        if _LANGUAGE.fullmatch(code):
            return code
    return None


def _line(text: str) -> str:
    return plain(unmixed(text[: MAX_TITLE * 4]))[:MAX_TITLE].rstrip()
