"""Finds the links on a page of a list: to its articles, and to its next page.

The articles are found by a selector, or by what many of their links have in common. A site writes the addresses of its
articles in one way: with a date, a number, a long name. Links are grouped into families by the shape of their
addresses, and families whose members look like articles are the list. Links to sections, tags and authors have short
texts and plain addresses, and are in boxes of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from lxml.html import HtmlElement
from selectolax.lexbor import LexborHTMLParser

from headwater.sources.dates import named_day
from headwater.sources.web_page import NewsPage
from headwater.text import plain
from headwater.urls import identity, safe_link, without_tracking

MAX_LINKS = 10_000
MAX_ITEMS = 1_000
MAX_TITLE = 300
FEWEST = 4
GOOD = 4.0
DATE_CLIMB = 4  # elements around a link that are searched for a date
MAX_BESIDE = 1_000  # letters
MAX_LINE = 100  # letters
MAX_ANCHORS = 5_000  # the last ones of a page, where its link to the next one is
_BOXES = ("nav", "footer", "aside", "form", "menu")
_HEADINGS = ("h1", "h2", "h3", "h4")
_ROLES = re.compile(
    r"(?:^|[\s_-])(?:nav|navigation|menu|footer|breadcrumbs?|sidebar|social|share|tags?|pagination|pager|cookie|comments?|byline|widget)"
    r"(?:[\s_-]|$)",
    re.IGNORECASE,
)
_POST = re.compile(r"(?:^|\s)(?:hentry|type-post)(?:\s|$)")  # WordPress names a post after its tags: `tag-navigation`
_ELSEWHERE = re.compile(
    r"/(?:tags?|topics?|categor(?:y|ies)|sections?|authors?|users?|profiles?|people|members?|about|contact|privacy|terms|login|signin|"
    r"sign-?up|register|subscribe|account|search|feeds?|rss|help|faq|jobs?|careers|advertise|cookies?|legal|policies|share|"
    r"comments?|page|archives?|newsletters?|podcasts?|shop|cart|donate|wp-admin|wp-login\.php|cdn-cgi)(?:/|$)",
    re.IGNORECASE,
)
_FILE = re.compile(r"\.(?:jpe?g|png|gif|webp|svg|pdf|zip|mp[34]|css|js|xml|rss|docx?|xlsx?|exe|dmg)$", re.IGNORECASE)
_DATE = re.compile(
    r"/(?:19|20)\d\d[/-]?(?:0?[1-9]|1[0-2]|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)"
    r"(?:[/-]?(?:0?[1-9]|[12]\d|3[01]))?(?=[/_-]|$)",
    re.IGNORECASE,
)
# Where sites keep what they write. What is below it is an article even if its name is short.
_WRITING = re.compile(
    r"/(?:blog|posts?|p|articles?|news|stor(?:y|ies)|entr(?:y|ies)|notes?|essays?|journal|log|diary|writing|til)/[^/?]+",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d{4,}")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SECTION = re.compile(r"(?<=/)[^/#~*0?][^/]*(?=/)")
_UNNAMED = {"", "index"}  # the front page
_NEXT = re.compile(
    r"\W*(?:next(?: page)?|older(?: posts| entries| articles| stories)?|more (?:posts|stories|articles|news)|load more"
    r"|show more|weiter|nächste(?: seite)?|ältere (?:beiträge|artikel)|suivante?s?|page suivante|siguiente|próxim[ao]"
    r"|successiv[ao]|volgende|下一页|下一頁|下页|后一页|更多|次へ|次のページ|다음|далее|следующая)\W*",
    re.IGNORECASE,
)
_ARROW = re.compile(r"\s*[›»→>]{1,2}\s*")
_NAMED_NEXT = re.compile(r"(?:^|[\s_-])(?:next|older|pagination-next|nav-previous)(?:[\s_-]|$)", re.IGNORECASE)
_PAGER = re.compile(r"pag(?:er|ination|es|ing)|page-?nav|wp-pagenavi", re.IGNORECASE)
_PAGE_NUMBER = re.compile(
    r"(?:[?&](?:page|p|pg|paged|pn|pageno|pagenum|seite)=|/(?:page|seite|p)[/-]?|[_-])(\d{1,5})(?=\D*$)", re.IGNORECASE
)


class ArticleLink(NamedTuple):
    url: str
    text: str
    score: float = 0.0
    shape: str = ""


class ArticleLinks(NamedTuple):
    """`by` says what the links have in common, for people."""

    links: list[ArticleLink]
    by: str
    truncated: bool = False


def selected(page: NewsPage, selector: str) -> ArticleLinks:
    """Returns the links that a CSS selector matches, or that are in the elements it matches."""
    tree = LexborHTMLParser(page.source.decode("utf-8", "replace"))
    found: dict[str, ArticleLink] = {}
    nodes = tree.css(selector)
    for box in nodes[:MAX_LINKS]:
        node = box if box.tag == "a" else box.css_first("a[href]")
        url = _article_address(node.attributes.get("href"), page) if node is not None else None
        if node is not None and url:
            found.setdefault(identity(url), ArticleLink(url, plain(node.text())[:MAX_TITLE]))
    return ArticleLinks(list(found.values())[:MAX_ITEMS], f"the selector {selector}", len(found) > MAX_ITEMS)


def discovered(page: NewsPage, fewest: int = FEWEST) -> ArticleLinks:
    """Returns the links that look like a list of articles; none if fewer than this look alike."""
    best: dict[str, ArticleLink] = {}
    anchors = list(page.tree.iter("a"))
    for node in anchors[:MAX_LINKS]:
        link = _judged(node, page)
        if link and (link.url not in best or link.score > best[link.url].score):
            best[link.url] = link
    good = _families(best.values(), lambda link: link.shape, fewest)
    chosen = {link.url for links in good.values() for link in links if link.score >= GOOD}
    # Sites with many sections have few articles in each. Links that are certain by themselves are grouped across them.
    certain = [link for link in best.values() if link.score > GOOD and link.url not in chosen]
    wide = _families(certain, lambda link: _SECTION.sub("*", link.shape), fewest)
    chosen |= {link.url for links in wide.values() for link in links}
    links = [link for link in best.values() if link.url in chosen]
    return ArticleLinks(links[:MAX_ITEMS], _in_words(good | wide), len(anchors) > MAX_LINKS or len(links) > MAX_ITEMS)


def _families(
    links: Iterable[ArticleLink], shape_of: Callable[[ArticleLink], str], fewest: int
) -> dict[str, list[ArticleLink]]:
    """Links by the shape of their addresses; only families with enough members that look like articles."""
    families: dict[str, list[ArticleLink]] = {}
    for link in links:
        families.setdefault(shape_of(link), []).append(link)
    return {shape: members for shape, members in families.items() if _is_list(members, fewest)}


def _is_list(links: list[ArticleLink], fewest: int) -> bool:
    strong = [link for link in links if link.score >= GOOD]
    return len(strong) >= fewest and len(strong) * 2 >= len(links)


def _in_words(families: dict[str, list[ArticleLink]]) -> str:
    names = sorted(families, key=lambda shape: -len(families[shape]))
    return "their addresses " + ", ".join(names[:3]) if names else ""


def _judged(node: HtmlElement, page: NewsPage) -> ArticleLink | None:
    """Returns the link, with a score for how much it looks like a link to an article."""
    url = address_of(node, page)
    if url is None:
        return None
    parts = urlsplit(url)
    if (_ELSEWHERE.search(parts.path) and not _is_dated_page(parts.path)) or _FILE.search(parts.path):
        return None
    heading = next(node.iterdescendants(*_HEADINGS), None)
    text = plain((heading if heading is not None else node).text_content()[: MAX_TITLE * 4])[:MAX_TITLE]
    shape, score = _shape(parts.path, parts.query)
    score += _by_text(text)
    if heading is not None or next(node.iterancestors(*_HEADINGS), None) is not None:
        score += 2
    if _is_in_box(node):
        score -= 4
    elif 0 <= score < GOOD and _has_date_beside(node):
        score += 3
    if score >= GOOD and shape.count("/") == 1:
        shape = "/*"  # the names at the top of a site have nothing in common but that they look like articles
    return ArticleLink(url, text, score, shape)


def _is_dated_page(path: str) -> bool:
    """Whether an address is below a date, as `/archives/2026/03/the-crane.html` is; the month itself is a list."""
    date = _DATE.search(path)
    return date is not None and len(path) - date.end() > 2


def address_of(node: HtmlElement, page: NewsPage) -> str | None:
    """Returns where a link leads, if that is another page of the same site."""
    return _article_address(node.get("href"), page)


def text_within(box: HtmlElement, most: int) -> str | None:
    """Returns the text of a box, with a space between its parts; None if it has more letters than this.

    It stops reading there: the boxes of many links are one, and reading all of it for each would take too long.
    """
    parts, letters = [], 0
    for part in box.itertext():
        letters += len(part) + 1
        if letters > most:
            return None
        parts.append(str(part))
    return " ".join(parts)


def has_date(node: HtmlElement, page: NewsPage) -> bool:
    """Whether a link has a date, in its address or beside it, as articles have and products do not."""
    url = address_of(node, page)
    return url is not None and (_DATE.search(urlsplit(url).path) is not None or _has_date_beside(node))


def _has_date_beside(node: HtmlElement) -> bool:
    """Whether a date is written next to a link, as blogs do. Of several links beside it, the longest is the title."""
    if named_day(_text_before(node)):
        return True
    length = len(node.text_content())
    for depth, box in enumerate(node.iterancestors()):
        if depth == DATE_CLIMB or box.tag in ("body", "main"):
            return False
        text = text_within(box, MAX_BESIDE)
        if text is None:
            return False
        if next(box.iter("time"), None) is not None or named_day(text):
            return all(len(other.text_content()) <= length for other in box.iter("a"))
    return False


def _text_before(node: HtmlElement) -> str:
    """Returns the line before a link: the text that ends where it starts, or the term that it is the description of."""
    before, around = node.getprevious(), node.getparent()
    if around is not None and around.tag == "dd" and before is None and around.getprevious() is not None:
        return text_within(around.getprevious(), MAX_LINE) or ""
    text = before.tail if before is not None else around.text if around is not None else ""
    return (text or "")[-MAX_LINE:]


def _by_text(text: str) -> float:
    """Headlines are long. A Chinese character says as much as a few letters."""
    length = len(text) + 2 * len(_CJK.findall(text))
    return 2.0 if length >= 25 else 1.0 if length >= 15 else -1.0 if length < 8 else 0.0


def _shape(path: str, query: str) -> tuple[str, float]:
    """Returns how an address is written, with the parts that differ between articles left open, and a score for it."""
    score = 2.5 if _DATE.search(path) else 1.5 if _WRITING.search(path) else 0.0
    steps = [step for step in path.split("/") if step]
    shape = []
    for position, step in enumerate(steps):
        name = step.rpartition(".")[0] if step.endswith((".html", ".htm", ".shtml", ".php", ".aspx")) else step
        words = len([word for word in re.split(r"[-_+]|%20", name) if word])
        last = position == len(steps) - 1
        if name.isdigit():
            shape.append("0000" if re.fullmatch(r"(?:19|20)\d\d", name) else "00" if len(name) < 3 else "#")
            score += 2.0 if last and len(name) > 3 else 0.0
        elif words >= 3 or _NUMBER.search(name) or (len(name) > 24 and last) or "%" in name:
            shape.append("~")
            score += 2.0 if last else 0.5
        else:
            shape.append("*" if last and position else name)
    if query and re.search(r"(?:^|&)(?:p|id|aid|nid|newsid|articleid|article_id|docid)=\d+", query, re.IGNORECASE):
        shape.append("?id")
        score += 2.0
    return "/" + "/".join(shape), score


def _is_in_box(node: HtmlElement) -> bool:
    for depth, box in enumerate(node.iterancestors()):
        if box.tag in _BOXES:
            return True
        named = f"{box.get('class', '')} {box.get('id', '')}"
        if depth < 6 and box.tag not in ("body", "html", "main") and _ROLES.search(named) and not _POST.search(named):
            return True
    return False


def _article_address(href: str | None, page: NewsPage) -> str | None:
    """Returns the address of a link that leads to another page of the same site."""
    if not href or href.startswith(("#", "javascript:", "mailto:")):
        return None
    url = safe_link(href, page.base)
    if not url or not url.startswith(("http://", "https://")):
        return None
    url = without_tracking(url.partition("#")[0])
    parts = urlsplit(url)
    if _site(parts.hostname) != _site(urlsplit(page.url).hostname) or parts.port != urlsplit(page.url).port:
        return None
    if not parts.query and parts.path.strip("/").partition(".")[0] in _UNNAMED:
        return None
    return None if identity(url) == identity(page.url) else url


def _site(host: str | None) -> str:
    """Returns the host, without common prefixes such as www."""
    labels = (host or "").split(".")
    return (
        ".".join(labels[1:])
        if len(labels) > 2 and labels[0] in ("www", "m", "news", "amp", "mobile")
        else ".".join(labels)
    )


class NextPage(NamedTuple):
    """`by` says how it was found, for people."""

    url: str
    by: str


def linked_next_page(page: NewsPage) -> NextPage | None:
    """Returns the next page that a list links to; None if there is none."""
    for node in page.tree.xpath('.//link[@rel="next"] | .//a[contains(concat(" ", @rel, " "), " next ")]'):
        if url := _address(node, page):
            return NextPage(url, "rel=next")
    anchors = list(page.tree.iter("a"))[-MAX_ANCHORS:]
    for node in anchors:
        text = " ".join(node.text_content()[:200].split()) or (node.get("aria-label") or node.get("title") or "")
        if (_NEXT.fullmatch(text) or (_ARROW.fullmatch(text) and _in_pager(node))) and (url := _address(node, page)):
            return NextPage(url, f"the link “{text.strip()[:30]}”")
    for node in anchors:
        if _NAMED_NEXT.search(f"{node.get('class', '')} {node.get('id', '')}") and (url := _address(node, page)):
            return NextPage(url, "the link named next")
    return _by_number(anchors, page)


def _by_number(anchors: list[HtmlElement], page: NewsPage) -> NextPage | None:
    """Returns the number after this page's, in a row of page numbers."""
    here = _page_number(page.url) or 1
    for node in anchors:
        if node.text_content().strip() == str(here + 1) and _in_pager(node):
            url = _address(node, page)
            if url and _page_number(url) == here + 1:
                return NextPage(url, "the row of page numbers")
    return None


def _page_number(url: str) -> int | None:
    parts = urlsplit(url)
    found = _PAGE_NUMBER.search(f"{parts.path}?{parts.query}" if parts.query else parts.path)
    return int(found[1]) if found else None


def _in_pager(node: HtmlElement) -> bool:
    boxes = [node, *node.iterancestors()][:6]
    return any(
        _PAGER.search(f"{box.get('class', '')} {box.get('id', '')} {box.get('aria-label', '')}") for box in boxes
    )


def _address(node: HtmlElement, page: NewsPage) -> str | None:
    href = (node.get("href") or "").strip()
    url = safe_link(href, page.base) if href and not href.startswith("#") else None
    if not url or not url.startswith(("http://", "https://")):
        return None
    url = url.partition("#")[0]
    same_host = urlsplit(url).netloc == urlsplit(page.url).netloc
    return url if same_host and url != page.url.partition("#")[0] else None
