"""A web page as a tree, parsed once for everything that reads it: its list, its article, its metadata."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from lxml import etree
from lxml.html import HtmlComment, HtmlElement

from headwater.errors import EmptyAnswer, ReadFailed, TooDeep
from headwater.model import Response
from headwater.sources.feeds.encoding import as_utf8, is_utf8, repaired_utf8
from headwater.sources.feeds.markup import joined

MAX_ELEMENTS = 200_000
_META_CHARSET = re.compile(rb"<meta[^<>]+?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
# Characters that XML does not allow, literally or as a reference. The extractor gives up on a page with one of them.
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r")
_NUMBERED_CONTROL = re.compile(
    rb"&#(?:0{0,9}(?:[0-8]|1[124-9]|2\d|3[01]|6553[45])(?!\d)"
    rb"|[xX]0{0,9}(?:[0-8bcefBCEF]|1[0-9a-fA-F]|[fF]{3}[efEF])(?![0-9a-fA-F]));?"
)
_count: Any = etree.XPath("count(//*)")
_SEARCHED = 16_384  # bytes
# lxml chooses a class in Python for every element that is touched. One class for all is chosen in C.
_ONE_CLASS = etree.ElementDefaultClassLookup(element=HtmlElement, comment=HtmlComment)


class NewsPage(NamedTuple):
    """`base` is where relative links start; `source` is what the page was parsed from, in UTF-8."""

    tree: HtmlElement
    url: str
    base: str
    source: bytes


def news_page(response: Response) -> NewsPage:
    """Parses a page. Raises a ReadFailed if there is none."""
    source = _decoded(response.body, response.headers.get("content-type"))
    if not source.strip():
        raise EmptyAnswer("The server sent an empty answer.")
    tree = _tree(source)
    declared = tree.find(".//base[@href]")
    base = joined(response.url, declared.get("href") if declared is not None else None) or response.url
    return NewsPage(tree, response.url, base if base.startswith(("http://", "https://")) else response.url, source)


def _decoded(body: bytes, content_type: str | None) -> bytes:
    """The bytes as UTF-8: by the header, then by what the page declares, then by the bytes themselves."""
    text = as_utf8(body, content_type)
    if not is_utf8(text) and (declared := _META_CHARSET.search(body[:_SEARCHED])):
        text = as_utf8(body, f"charset={declared[1].decode('ascii')}")
    return _without_controls(repaired_utf8(text))


def _without_controls(text: bytes) -> bytes:
    text = text.replace(b"\f", b" ").translate(None, _CONTROLS)
    if b"\xef\xbf" in text:
        text = text.replace(b"\xef\xbf\xbe", b"").replace(b"\xef\xbf\xbf", b"")
    return _NUMBERED_CONTROL.sub(b"", text) if b"&#" in text else text


def _tree(source: bytes) -> HtmlElement:
    # One parser per page: a hostile one leaves nothing behind for the next.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=False)
    parser.set_element_class_lookup(_ONE_CLASS)
    try:
        tree = etree.fromstring(source, parser)
    except etree.XMLSyntaxError as error:
        message = str(error.msg)
        if "depth" in message.lower() or "huge" in message.lower():
            raise TooDeep(f"The page is nested more deeply than a page needs: {message}.") from error
        raise ReadFailed("The answer is not a readable web page.") from error
    if tree is None:
        raise ReadFailed("The answer is not a readable web page.")
    if _count(tree) > MAX_ELEMENTS:
        raise TooDeep(f"The page has more than {MAX_ELEMENTS:,} elements.")
    return tree
