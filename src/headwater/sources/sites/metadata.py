"""What a page says about its article: title, author, dates, address, language, image. From JSON-LD, meta and markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson
from lxml.etree import XPath
from lxml.html import HtmlElement

from headwater.sources.dates import parse_date, plausible
from headwater.sources.encoding import undo_double_encoding
from headwater.sources.feeds.posts import MAX_NAME, MAX_TITLE
from headwater.sources.json_values import Json
from headwater.sources.sites.byline import byline_of, is_name
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
    "published-date",
    "published_date",
    "published",
    "published_time",
    "cxenseparse:publishtime",
    "cxenseparse:recs:publishtime",
    "date",
    "citation_publication_date",
    "citation_online_date",
    "citation_date",
)
_MODIFIED = ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "last-modified")
_AUTHORS = (
    "author",
    "article:author",
    "parsely-author",
    "dc.creator",
    "sailthru.author",
    "citation_author",
    "byl",
    "cxenseparse:author",
)
_SEPARATORS = (" | ", " - ", " – ", " — ", " :: ", " · ", "_")
_BY = re.compile(
    r"^(?:(?:written |posted )?by\b:?|(?:von|par|por|di|door|av)\s|作者\s*[:：]?|文[/／]|记者\s*[:：]?)\s*",
    re.IGNORECASE,
)
_CHANGED_BY = re.compile(r"(?:^|,?\s+)(?:updated|edited|reviewed|fact[- ]checked) by .*$", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_NAME_LETTERS = re.compile(r"[^\W\d_]{2}")
_LAST_NAME_FIRST = re.compile(r"[A-Z][\w'’-]+, [A-Z][\w'’.-]*(?: [A-Z]\.?)?")
_SAME_DAY = timedelta(hours=48)  # zones and the end of the day make a difference
_SHORT_TITLE = 12  # letters; less, before a bar, is a section
_LABEL = 4  # words; a heading that is no title is a name or a label
_ALIKE = 0.3  # of the words of two titles, if they are of one article
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
    title = _title(page, articles, meta)
    declared_authors = _authors(page, articles, meta)
    persons = _persons(declared_authors, articles, meta)
    # A person who signed the article goes before the site itself.
    seen = byline_of(page.tree, title, received_at, with_authors=not persons)
    declared = _first_plausible(_published(page, articles, meta), received_at)
    published = _shown(declared, seen.published)
    modified = _first_plausible([*_property(articles, "dateModified"), *_values(meta, _MODIFIED)], received_at)
    modified = modified or seen.modified
    published = published or _first_plausible(_in_address(page.url), received_at) or seen.modified
    images = [*_property(articles, "image"), *_values(meta, ("og:image", "og:image:url", "twitter:image"))]
    return Metadata(
        title=title,
        author=", ".join(persons or seen.authors or declared_authors)[:MAX_NAME] or None,
        published=published,
        modified=modified if modified and (not published or modified >= published) else None,
        url=_address(page, meta),
        language=_language(page, meta),
        image=next((link for image in images if (link := safe_link(image, page.base))), None),
        body=max((text for article in articles for text in _strings(article.get("articleBody"))), key=len, default=""),
    )


def _shown(declared: datetime | None, seen: datetime | None) -> datetime | None:
    """Returns the day that readers see, with the time that is declared for it.

    Sites declare the day on which a page was first made, or last moved, more often than they show a wrong one.
    """
    if not declared or not seen:
        return declared or seen
    return declared if abs(declared - seen) < _SAME_DAY else seen


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
    """Returns the headline that a reader sees, if the page has one; otherwise the title that it declares."""
    site = next((_line(name) for name in _values(meta, ("og:site_name", "application-name"))), "")
    in_head = page.tree.find(".//head/title")
    whole = _line(in_head.text_content()) if in_head is not None else ""
    declared = [
        _line(text) for text in (*_property(articles, "headline"), *_values(meta, ("og:title", "twitter:title")))
    ]
    declared = [title for title in declared if title and title != site]
    headline = _headline(_headings(page), [*declared, whole], _own_names(site, page.url))
    if headline:
        return headline
    own = _own_names(site, page.url)
    given = (_without_site(title, own) for title in (*declared, whole))
    return next((title for title in given if title and _letters(title) not in own), "") or whole[:MAX_TITLE]


def _headings(page: NewsPage) -> list[str]:
    """Returns the texts of the page's `h1`, each once."""
    heads = dict.fromkeys(_heading(node) for node in page.tree.iter("h1") if not _leads_home(node, page))
    return [head for head in heads if head]


def _heading(node: HtmlElement) -> str:
    has_lines = next(node.iterdescendants("br", "div", "p"), None) is not None
    return _line(" ".join(map(str, node.itertext())) if has_lines else node.text_content())


def _leads_home(node: HtmlElement, page: NewsPage) -> bool:
    """Whether a heading is the name of the site: it links to the front page."""
    links = (safe_link(link.get("href"), page.base) for link in (*node.iter("a"), *node.iterancestors("a")))
    return any(urlsplit(link).path in ("", "/") for link in links if link and link.startswith("http"))


def _headline(heads: list[str], declared: list[str], own: set[str]) -> str:
    """Returns the heading that is the article's: the only one, or the one that shares the most with what is declared.

    The name of the site may be a heading, and so may the name of a section. Neither has a word of the title.
    """
    best, most = "", 0.0
    wanted = [set(_WORD.findall(title.lower())) for title in declared]
    for head in heads:
        words = set(_WORD.findall(head.lower()))
        if _letters(head) in own or not words:
            continue
        shared = max((len(words & title) / len(words | title) for title in wanted if title), default=0.0)
        if shared > most:
            best, most = head, shared
    only = len(heads) == 1 and (most > 0 or not any(wanted) or len(heads[0].split()) > _LABEL)
    if only and not best and _letters(heads[0]) not in own:
        best = heads[0]
    if not best or not (only or most >= _ALIKE):
        return ""
    best = _without_site(best, own)
    first, _, rest = best.partition(" | ")
    return first if rest and len(first) > _SHORT_TITLE else best


def _own_names(site: str, url: str) -> set[str]:
    """Returns what a site may call itself, as letters: its declared name, and the names in its address."""
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    return {name for name in (_letters(site), _letters(host), _letters(host.rpartition(".")[0])) if name}


def _letters(text: str) -> str:
    return "".join(_WORD.findall(text.lower()))


def _without_site(title: str, own: set[str]) -> str:
    """Returns a title without the site's name at its end."""
    for _ in range(3):
        places = [(title.rfind(mark), mark) for mark in _SEPARATORS]
        place, mark = max(places)
        end = _letters(title[place + len(mark) :]) if place > 0 else ""
        if not end or not any(end in name or (len(name) > 3 and end.startswith(name)) for name in own):
            break
        title = title[:place]
    return title[:MAX_TITLE].rstrip()


def _authors(page: NewsPage, articles: list[Json], meta: dict[str, list[str]]) -> list[str]:
    """Returns who is declared to have written the article."""
    written = _values(meta, ("twitter:data1",)) if "Written by" in _values(meta, ("twitter:label1",)) else []
    for said in (_property(articles, "author"), _values(meta, _AUTHORS), written):
        if names := _names(said):
            return names
    return _names(_bylines(page))


def _persons(names: list[str], articles: list[Json], meta: dict[str, list[str]]) -> list[str]:
    """Returns the names without that of the site."""
    site = {_letters(name) for name in (*_values(meta, ("og:site_name",)), *_property(articles, "publisher"))}
    return [name for name in names if _letters(name) not in site]


def _names(said: list[str]) -> list[str]:
    """Returns the names, each once, without what cannot be one: addresses, numbers, the word “by” alone."""
    found: dict[str, str] = {}
    for name in (part for text in said[:20] for part in _single(_CHANGED_BY.sub("", _BY.sub("", _line(text))))):
        if _LAST_NAME_FIRST.fullmatch(name):
            name = " ".join(reversed(name.split(", ")))
        if 1 < len(name) <= 100 and "://" not in name and "@" not in name and _NAME_LETTERS.search(name):
            found.setdefault(_letters(name), name)
    return list(found.values())[:10]


def _single(text: str) -> list[str]:
    """Returns the names of a list of names; a text that may be one name with commas in it stays whole."""
    parts = [part.strip(" ,|") for part in re.split(r",\s+(?:and\s+)?", text)]
    return parts if all(" " in part and is_name(part) for part in parts) else [text.strip(" ,|")]


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


def _in_address(url: str) -> list[str]:
    found = _DATE_IN_ADDRESS.search(url)
    return ["-".join(found.groups())] if found else []


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
    return [node for node in _objects(tree) if _is_article(node)]


def _objects(tree: HtmlElement) -> Iterator[Json]:
    for script in tree.iter("script"):
        if "ld+json" in (script.get("type") or "").lower() and script.text:
            yield from _nodes(_parsed(script.text))


def declared_types(tree: HtmlElement) -> set[str]:
    """Returns what a page declares to be on it, as names of schema.org in lower case."""
    types = {kind for node in _objects(tree) for kind in _strings(node.get("@type"))}
    types |= {str(kind).rpartition("/")[2] for kind in tree.xpath(".//*[@itemscope]/@itemtype")}
    return {kind.lower() for kind in types}


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
