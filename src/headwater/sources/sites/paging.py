"""Where a list continues: by the link to its next page, or by a template of addresses with placeholders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from lxml.html import HtmlElement

from headwater.sources.sites.page import NewsPage
from headwater.sources.sites.settings import NewsSettings
from headwater.urls import safe_link

MAX_LINKS = 5_000
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
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class NextPage(NamedTuple):
    """`by` says how it was found, for people."""

    url: str
    by: str


def linked_next_page(page: NewsPage) -> NextPage | None:
    """The next page that a list links to; None if there is none."""
    for node in page.tree.xpath('.//link[@rel="next"] | .//a[contains(concat(" ", @rel, " "), " next ")]'):
        if url := _address(node, page):
            return NextPage(url, "rel=next")
    anchors = list(page.tree.iter("a"))[-MAX_LINKS:]
    for node in anchors:
        text = " ".join(node.text_content()[:200].split()) or (node.get("aria-label") or node.get("title") or "")
        if (_NEXT.fullmatch(text) or (_ARROW.fullmatch(text) and _in_pager(node))) and (url := _address(node, page)):
            return NextPage(url, f"the link “{text.strip()[:30]}”")
    for node in anchors:
        if _NAMED_NEXT.search(f"{node.get('class', '')} {node.get('id', '')}") and (url := _address(node, page)):
            return NextPage(url, "the link named next")
    return _by_number(anchors, page)


def _by_number(anchors: list[HtmlElement], page: NewsPage) -> NextPage | None:
    """The number after this page's, in a row of page numbers."""
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


def _filled(template: str, values: Mapping[str, str | int | None]) -> str:
    """The template with its placeholders filled in; those without a value become empty."""
    return _PLACEHOLDER.sub(lambda found: quote(str(_value(values, found[1])), safe=""), template)


def first_address(settings: NewsSettings, address: str, last_id: str | None) -> str:
    """The address of a crawl's first page. In ascending order it starts after the highest id that was seen."""
    seen = int(last_id) if last_id and last_id.isascii() and last_id.isdigit() and len(last_id) < 19 else None
    low = settings.min_id
    if settings.order == "ascending" and seen is not None:
        low = max(seen, low) if low is not None else seen
    values: dict[str, str | int | None] = {
        "page": settings.first_page,
        "offset": 0,
        "cursor": "",
        "min_id": low if low is not None else 0,
        "max_id": settings.max_id if settings.max_id is not None else "",
    }
    return _filled(settings.list or address, values)


def next_address(settings: NewsSettings, url: str, ids: list[int], count: int, cursor: str) -> str | None:
    """The address of the next page, by the template; None if this was the last page, or nobody can say.

    `ids` and `count` are of the articles on this page, and `cursor` is the one that it names.
    """
    present = _values_in(settings.list, url)
    if present is None or not count:
        return None
    known: dict[str, str | int | None] = dict(present)
    moved = False
    if "page" in present:
        known["page"] = _number(present["page"], settings.first_page) + 1
        moved = True
    if "offset" in present:
        known["offset"] = _number(present["offset"], 0) + max(count, 1)
        moved = True
    if "cursor" in present:
        if not cursor or cursor == present["cursor"]:
            return None
        known["cursor"] = cursor
        moved = True
    return _filled(settings.list, known) if moved else _by_ids(settings, known, ids)


def _by_ids(settings: NewsSettings, values: dict[str, str | int | None], ids: list[int]) -> str | None:
    """Continues after the lowest or highest id on the page, if that is a step in the right direction."""
    name = "min_id" if settings.order == "ascending" else "max_id"
    if name not in values or not ids:
        return None
    before = str(values[name] or "")
    bound = max(ids) if name == "min_id" else min(ids)
    if before.isdigit() and (bound <= int(before) if name == "min_id" else bound >= int(before)):
        return None
    return _filled(settings.list, {**values, name: bound})


def _values_in(template: str, url: str) -> dict[str, str] | None:
    """The values that the placeholders of a template have in an address; None if it does not fit."""
    # Scheme and host do not matter: a site may have answered from another of its hosts.
    parts = _PLACEHOLDER.split(re.sub(r"^https?://[^/]+", "", template))
    if len(parts) == 1:
        return None
    expression = "".join(
        f"(?P<{part}>[^/?&#]*)" if position % 2 else re.escape(part) for position, part in enumerate(parts)
    )
    found = re.search(expression + "$", url)
    return {name: unquote(value) for name, value in found.groupdict().items()} if found else None


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else otherwise


def _value(values: Mapping[str, str | int | None], name: str) -> str | int:
    value = values.get(name)
    return "" if value is None else value
