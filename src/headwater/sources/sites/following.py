"""Where an HTML list goes on: the link to its next page."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from lxml.html import HtmlElement

from headwater.sources.sites.page import WebPage
from headwater.urls import safe_link

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
MAX_LOOKED_AT = 5_000


class Following(NamedTuple):
    """`by` says in words how it was found."""

    url: str
    by: str


def following(page: WebPage) -> Following | None:
    """The next page of a list; None where it names none."""
    for node in page.tree.xpath('.//link[@rel="next"] | .//a[contains(concat(" ", @rel, " "), " next ")]'):
        if url := _address(node, page):
            return Following(url, "rel=next")
    anchors = list(page.tree.iter("a"))[-MAX_LOOKED_AT:]
    for node in anchors:
        text = " ".join(node.text_content()[:200].split()) or (node.get("aria-label") or node.get("title") or "")
        if (_NEXT.fullmatch(text) or (_ARROW.fullmatch(text) and _in_pager(node))) and (url := _address(node, page)):
            return Following(url, f"the link “{text.strip()[:30]}”")
    for node in anchors:
        if _NAMED_NEXT.search(f"{node.get('class', '')} {node.get('id', '')}") and (url := _address(node, page)):
            return Following(url, "the link named next")
    return _by_number(anchors, page)


def _by_number(anchors: list[HtmlElement], page: WebPage) -> Following | None:
    """In a row of page numbers, the one after this page's."""
    here = _number(page.url) or 1
    for node in anchors:
        if node.text_content().strip() == str(here + 1) and _in_pager(node):
            url = _address(node, page)
            if url and _number(url) == here + 1:
                return Following(url, "the row of page numbers")
    return None


def _number(url: str) -> int | None:
    parts = urlsplit(url)
    found = _PAGE_NUMBER.search(f"{parts.path}?{parts.query}" if parts.query else parts.path)
    return int(found[1]) if found else None


def _in_pager(node: HtmlElement) -> bool:
    boxes = [node, *node.iterancestors()][:6]
    return any(
        _PAGER.search(f"{box.get('class', '')} {box.get('id', '')} {box.get('aria-label', '')}") for box in boxes
    )


def _address(node: HtmlElement, page: WebPage) -> str | None:
    href = (node.get("href") or "").strip()
    url = safe_link(href, page.base) if href and not href.startswith("#") else None
    if not url or not url.startswith(("http://", "https://")):
        return None
    url = url.partition("#")[0]
    same_host = urlsplit(url).netloc == urlsplit(page.url).netloc
    return url if same_host and url != page.url.partition("#")[0] else None
