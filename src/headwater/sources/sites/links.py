"""The links of a page that lead to articles, found without being told: by what many of them have in common.

A site writes the addresses of its articles in one way: with a date, a number, a long name. Links are put into families
by the shape of their addresses; families whose members look like articles are the list. Navigation, tags and authors
have short words and plain shapes, and stand in boxes made for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from lxml.html import HtmlElement
from selectolax.lexbor import LexborHTMLParser

from headwater.sources.sites.page import WebPage
from headwater.text import plain
from headwater.urls import identity, safe_link, without_tracking

MAX_LINKS = 10_000
MAX_ITEMS = 1_000
MAX_TITLE = 300
FEWEST = 4
GOOD = 4.0
_BESIDE = ("nav", "footer", "aside", "form", "menu")
_HEADINGS = ("h1", "h2", "h3", "h4")
_ROLES = re.compile(
    r"(?:^|[\s_-])(?:nav|navigation|menu|footer|breadcrumbs?|sidebar|social|share|tags?|pagination|pager|cookie|comments?|byline|widget)"
    r"(?:[\s_-]|$)",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"/(?:tags?|topics?|categor(?:y|ies)|sections?|authors?|users?|profiles?|people|members?|about|contact|privacy|terms|login|signin|"
    r"sign-?up|register|subscribe|account|search|feeds?|rss|help|faq|jobs?|careers|advertise|cookies?|legal|policies|share|"
    r"comments?|page|archives?|newsletters?|podcasts?|shop|cart|donate|wp-admin|wp-login\.php|cdn-cgi)(?:/|$)",
    re.IGNORECASE,
)
_FILE = re.compile(r"\.(?:jpe?g|png|gif|webp|svg|pdf|zip|mp[34]|css|js|xml|rss|docx?|xlsx?|exe|dmg)$", re.IGNORECASE)
_DATE = re.compile(r"/(?:19|20)\d\d[/-]?(?:0?[1-9]|1[0-2])(?:[/-]?(?:0?[1-9]|[12]\d|3[01]))?(?=[/_-]|$)")
_NUMBER = re.compile(r"\d{4,}")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SECTION = re.compile(r"(?<=/)[^/#~*0?][^/]*(?=/)")
_UNNAMED = {"", "index"}  # the front page


class Link(NamedTuple):
    url: str
    text: str
    score: float = 0.0
    shape: str = ""


class Found(NamedTuple):
    """`by` says in words what the links have in common."""

    links: list[Link]
    by: str
    truncated: bool = False


def selected(page: WebPage, selector: str) -> Found:
    """The links that a CSS selector names, or that stand in the boxes it names."""
    tree = LexborHTMLParser(page.source.decode("utf-8", "replace"))
    found: dict[str, Link] = {}
    nodes = tree.css(selector)
    for box in nodes[:MAX_LINKS]:
        node = box if box.tag == "a" else box.css_first("a[href]")
        url = _article_address(node.attributes.get("href"), page) if node is not None else None
        if node is not None and url:
            found.setdefault(identity(url), Link(url, plain(node.text())[:MAX_TITLE]))
    return Found(list(found.values())[:MAX_ITEMS], f"the selector {selector}", len(found) > MAX_ITEMS)


def discovered(page: WebPage, fewest: int = FEWEST) -> Found:
    """The links that look like a list of articles; empty where there are not at least so many of a kind."""
    best: dict[str, Link] = {}
    anchors = list(page.tree.iter("a"))
    for node in anchors[:MAX_LINKS]:
        link = _judged(node, page)
        if link and (link.url not in best or link.score > best[link.url].score):
            best[link.url] = link
    good = _families(best.values(), lambda link: link.shape, fewest)
    chosen = {link.url for links in good.values() for link in links if link.score >= GOOD}
    # Sites with many sections have few articles of each; what is certain of itself is held together by the rest.
    certain = [link for link in best.values() if link.score > GOOD and link.url not in chosen]
    wide = _families(certain, lambda link: _SECTION.sub("*", link.shape), fewest)
    chosen |= {link.url for links in wide.values() for link in links}
    links = [link for link in best.values() if link.url in chosen]
    return Found(links[:MAX_ITEMS], _in_words(good | wide), len(anchors) > MAX_LINKS or len(links) > MAX_ITEMS)


def _families(links: Iterable[Link], shape_of: Callable[[Link], str], fewest: int) -> dict[str, list[Link]]:
    """Links by the shape of their addresses, as far as a family has members enough that look like articles."""
    families: dict[str, list[Link]] = {}
    for link in links:
        families.setdefault(shape_of(link), []).append(link)
    return {shape: members for shape, members in families.items() if _is_list(members, fewest)}


def _is_list(links: list[Link], fewest: int) -> bool:
    strong = [link for link in links if link.score >= GOOD]
    return len(strong) >= fewest and len(strong) * 2 >= len(links)


def _in_words(families: dict[str, list[Link]]) -> str:
    names = sorted(families, key=lambda shape: -len(families[shape]))
    return "their addresses " + ", ".join(names[:3]) if names else ""


def _judged(node: HtmlElement, page: WebPage) -> Link | None:
    """A link with how much it looks like one to an article."""
    url = _article_address(node.get("href"), page)
    if url is None:
        return None
    parts = urlsplit(url)
    if _ELSEWHERE.search(parts.path) or _FILE.search(parts.path):
        return None
    heading = next(node.iterdescendants(*_HEADINGS), None)
    text = plain((heading if heading is not None else node).text_content()[: MAX_TITLE * 4])[:MAX_TITLE]
    shape, score = _shape(parts.path, parts.query)
    score += _by_text(text)
    if heading is not None or next(node.iterancestors(*_HEADINGS), None) is not None:
        score += 2
    if _stands_beside(node):
        score -= 4
    return Link(url, text, score, shape)


def _by_text(text: str) -> float:
    """Headlines are long; a sign of Chinese says as much as a few letters."""
    length = len(text) + 2 * len(_CJK.findall(text))
    return 2.0 if length >= 25 else 1.0 if length >= 15 else -1.0 if length < 8 else 0.0


def _shape(path: str, query: str) -> tuple[str, float]:
    """How an address is written, with what differs from article to article left open, and what that says."""
    score = 2.5 if _DATE.search(path) else 0.0
    steps = [step for step in path.split("/") if step]
    shape = []
    for place, step in enumerate(steps):
        name = step.rpartition(".")[0] if step.endswith((".html", ".htm", ".shtml", ".php", ".aspx")) else step
        words = len([word for word in re.split(r"[-_+]|%20", name) if word])
        last = place == len(steps) - 1
        if name.isdigit():
            shape.append("0000" if re.fullmatch(r"(?:19|20)\d\d", name) else "00" if len(name) < 3 else "#")
            score += 2.0 if last and len(name) > 3 else 0.0
        elif words >= 3 or _NUMBER.search(name) or (len(name) > 24 and last) or "%" in name:
            shape.append("~")
            score += 2.0 if last else 0.5
        else:
            shape.append("*" if last and place else name)
    if query and re.search(r"(?:^|&)(?:p|id|aid|nid|newsid|articleid|article_id|docid)=\d+", query, re.IGNORECASE):
        shape.append("?id")
        score += 2.0
    return "/" + "/".join(shape), score


def _stands_beside(node: HtmlElement) -> bool:
    for depth, box in enumerate(node.iterancestors()):
        if box.tag in _BESIDE:
            return True
        if (
            depth < 6
            and box.tag not in ("body", "html", "main")
            and _ROLES.search(f"{box.get('class', '')} {box.get('id', '')}")
        ):
            return True
    return False


def _article_address(href: str | None, page: WebPage) -> str | None:
    """A link's address if it leads to another page of the same site."""
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
    """The host without what sites put in front of their one name."""
    labels = (host or "").split(".")
    return (
        ".".join(labels[1:])
        if len(labels) > 2 and labels[0] in ("www", "m", "news", "amp", "mobile")
        else ".".join(labels)
    )
