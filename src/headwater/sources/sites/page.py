"""A web page as a tree, parsed once for all who look at it: its list, its article, what it says about itself."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from lxml import etree
from lxml.html import HtmlComment, HtmlElement

from headwater.errors import Blocked, EmptyAnswer, ReadFailed, TooDeep
from headwater.model import Response
from headwater.sources.feeds.encoding import as_utf8, repaired_utf8
from headwater.sources.feeds.markup import joined
from headwater.sources.feeds.walls import instead_of_a_feed

MAX_ELEMENTS = 200_000
_META_CHARSET = re.compile(rb"<meta[^<>]+?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
# What XML has no place for, as itself or by its number: the extractor gives up on a page that has one of them.
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\f\r")
_NUMBERED_CONTROL = re.compile(
    rb"&#(?:0{0,9}(?:[0-8]|1[124-9]|2\d|3[01]|6553[45])(?!\d)"
    rb"|[xX]0{0,9}(?:[0-8bcefBCEF]|1[0-9a-fA-F]|[fF]{3}[efEF])(?![0-9a-fA-F]));?"
)
_count: Any = etree.XPath("count(//*)")
_LOOKED_AT = 16_384
# lxml's own choice of class is made in Python for every element that is touched; one class for all is made in C.
_ONE_CLASS = etree.ElementDefaultClassLookup(element=HtmlElement, comment=HtmlComment)


class WebPage(NamedTuple):
    """`base` is where its links start from; `source` is what it was parsed from, in UTF-8."""

    tree: HtmlElement
    url: str
    base: str
    source: bytes


def page_of(response: Response) -> WebPage:
    """The page that an answer holds. Raises a ReadFailed where there is none."""
    source = characters(response.body, response.headers.get("content-type"))
    if not source.strip():
        raise EmptyAnswer("The server answered, but with nothing.")
    tree = _tree(source)
    declared = tree.find(".//base[@href]")
    base = joined(response.url, declared.get("href") if declared is not None else None) or response.url
    return WebPage(tree, response.url, base if base.startswith(("http://", "https://")) else response.url, source)


def characters(body: bytes, content_type: str | None) -> bytes:
    """The bytes as UTF-8: by what the answer says, then the page itself, then by the letters they make."""
    text = as_utf8(body, content_type)
    if not _is_utf8(text) and (declared := _META_CHARSET.search(body[:_LOOKED_AT])):
        text = as_utf8(body, f"charset={declared[1].decode('ascii')}")
    return _without_controls(repaired_utf8(text))


def _without_controls(text: bytes) -> bytes:
    text = text.replace(b"\f", b" ").translate(None, _CONTROLS)
    if b"\xef\xbf" in text:
        text = text.replace(b"\xef\xbf\xbe", b"").replace(b"\xef\xbf\xbf", b"")
    return _NUMBERED_CONTROL.sub(b"", text) if b"&#" in text else text


def wall_in(page: WebPage, wanted: str) -> Blocked | None:
    """What keeps programs out, if the page is that; to be asked only where nothing that was wanted is on it."""
    wall = instead_of_a_feed(page.source)
    return Blocked(wall.detail.replace("the feed", wanted)) if isinstance(wall, Blocked) else None


def _tree(source: bytes) -> HtmlElement:
    # One parser per page: a hostile one leaves nothing behind for the next.
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=False)
    parser.set_element_class_lookup(_ONE_CLASS)
    try:
        tree = etree.fromstring(source, parser)
    except etree.XMLSyntaxError as error:
        message = str(error.msg)
        if "depth" in message.lower() or "huge" in message.lower():
            raise TooDeep(f"The page is nested beyond what a page can need: {message}.") from error
        raise ReadFailed("The answer is not a web page that can be read.") from error
    if tree is None:
        raise ReadFailed("The answer is not a web page that can be read.")
    if _count(tree) > MAX_ELEMENTS:
        raise TooDeep(f"The page has more than {MAX_ELEMENTS:,} elements.")
    return tree


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
