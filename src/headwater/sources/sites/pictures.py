"""The pictures of an article: the one it is shown with elsewhere, and those that stand in its text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml.html import HtmlElement

from headwater.model import Image
from headwater.sources.sites.page import WebPage
from headwater.text import plain
from headwater.urls import identity, safe_link

MAX_PICTURES = 30
MAX_ALT = 500
SMALLEST = 120
_SOURCES = ("data-src", "data-original", "data-lazy-src", "data-srcset", "srcset", "src")
_DECORATION = re.compile(
    r"(?:^|[/_.-])(?:logo|icon|avatar|gravatar|sprite|spacer|blank|pixel|badge|emoji|button|placeholder)s?(?:[/_.-]|\d|$)|\.svg(?:\?|$)",
    re.IGNORECASE,
)
_ASIDE = ("aside", "nav", "footer", "header", "form")


def pictures_of(page: WebPage, shown_with: str | None) -> tuple[Image, ...]:
    """Each picture once, in the order of the page, after the one that the page names itself."""
    found: dict[str, Image] = {}
    if shown_with:
        found[identity(shown_with)] = Image(shown_with)
    for image in _in_text(_text_box(page.tree), page.base):
        known = found.setdefault(identity(image.url), image)
        if not known.alt and image.alt:
            found[identity(image.url)] = image
        if len(found) == MAX_PICTURES:
            break
    return tuple(found.values())


def _text_box(tree: HtmlElement) -> HtmlElement | None:
    """The element that the article stands in: the box whose own paragraphs have the most text."""
    weights: dict[HtmlElement, int] = {}
    for paragraph in tree.iter("p"):
        box = paragraph.getparent()
        if box is not None:
            weights[box] = weights.get(box, 0) + len(paragraph.text_content())
    best = max(weights, key=weights.__getitem__, default=None)
    around = next(best.iterancestors("article", "main"), None) if best is not None else None
    return around if around is not None else best


def _in_text(box: HtmlElement | None, base: str) -> Iterator[Image]:
    if box is None:
        return
    for node in box.iter("img"):
        if _is_small(node) or next(node.iterancestors(*_ASIDE), None) is not None:
            continue
        link = next((link for name in _SOURCES if (link := _link(node.get(name), base))), None)
        if link and not _DECORATION.search(link):
            yield Image(link, plain(node.get("alt") or "")[:MAX_ALT])


def _link(value: str | None, base: str) -> str | None:
    """The first address of a source or a set of sources; what is loaded later often has a stand-in as its source."""
    first = (value or "").strip().partition(" ")[0].rstrip(",")
    link = safe_link(first, base) if first and not first.startswith("data:") else None
    return link if link and link.startswith(("http://", "https://")) else None


def _is_small(node: HtmlElement) -> bool:
    sizes = [size.removesuffix("px") for name in ("width", "height") if (size := (node.get(name) or "").strip())]
    return any(size.isascii() and size.isdigit() and int(size[:6]) < SMALLEST for size in sizes)
