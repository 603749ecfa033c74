"""The text of an article: found in its page by trafilatura, trimmed, and written as clean HTML with its structure.

trafilatura is loaded with the first article: a reading process that reads none does not pay for it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from html import escape, unescape
from typing import Any, NamedTuple

from lxml import etree
from lxml.etree import _Element
from lxml.html import HtmlElement

from headwater.model import Image
from headwater.sources.sites.about import About
from headwater.sources.sites.page import WebPage
from headwater.sources.sites.pictures import pictures_of
from headwater.sources.sites.trimming import Block, block_of, trimmed
from headwater.text import clean_html

_UNREAD = ("style", "svg", "template", "iframe", "object", "noscript", "canvas", "link", "meta", "select")
_INLINE = {"#b": "b", "#i": "i", "#u": "u", "#sub": "sub", "#sup": "sup", "#t": "code"}
_BLOCKS = {"p": "p", "quote": "blockquote", "table": "table", "row": "tr", "cell": "td", "item": "li", "del": "del"}
_LISTS = {"ol": "ol", "dl": "ul", "ul": "ul"}
_WORDS = re.compile(r"\w+")
_PARAGRAPH_END = re.compile(r"\s*\n\s*|<(?:/p|br\s*/?)>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# A text that the page tells programs may stand for the one that was found where it has all of it and this much more.
_LONGER = 1.5
_ENOUGH_SHARED = 0.8
# An article shorter than this that is less than this part of its page may be the wrong part.
_LITTLE = 1_500
_SHARE_OF_PAGE = 0.1


class Article(NamedTuple):
    html: str
    text: str
    pictures: tuple[Image, ...]


def article_in(page: WebPage, said: About) -> Article:
    """The article of a page; its text is empty where none was found. The page's tree is used up."""
    pictures = pictures_of(page, said.picture)
    blocks = trimmed(_found(page), said.title)
    text = "\n".join(block.text for block in blocks)
    told = _paragraphs(said.body)
    if _tells_more(told, text) or (len(blocks) < 2 < len(told) and _tells_more(told, text, 0.9)):
        return Article("".join(f"<p>{escape(part)}</p>\n" for part in told), "\n".join(told), pictures)
    html = "".join(_written(blocks))
    return Article(clean_html(html, page.base), text, pictures)


def _found(page: WebPage) -> list[Block]:
    """The blocks of the text. The quick way nearly always finds it; where little came of much, look thoroughly."""
    _drop_unread(page.tree)
    blocks = _extracted(page.tree, fast=True, favor_recall=True)
    length = sum(len(block.text) for block in blocks)
    if length < _LITTLE and length < _SHARE_OF_PAGE * len(page.tree.text_content()):
        return _extracted(page.tree, fast=False, favor_recall=False) or blocks
    return blocks


def _extracted(tree: HtmlElement, *, fast: bool, favor_recall: bool) -> list[Block]:
    from trafilatura import bare_extraction

    # It tells its log about every page that it finds little in; we say that ourselves.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    document: Any = bare_extraction(
        tree,
        fast=fast,
        favor_recall=favor_recall,
        include_comments=False,
        include_formatting=True,
        include_links=True,
        output_format="html",
    )
    return [block_of(element) for element in _top(document.body)] if document is not None else []


def _drop_unread(tree: HtmlElement) -> None:
    """Take out what no reader sees; trafilatura copies the tree several times over."""
    etree.strip_elements(tree, *_UNREAD, with_tail=False)
    for script in list(tree.iter("script")):
        if "ld+json" not in (script.get("type") or ""):
            script.drop_tree()


def _top(body: _Element) -> Iterator[_Element]:
    """The blocks of a text, out of the boxes they may stand in."""
    for child in body:
        if child.tag in ("body", "div", "main", "article", "section"):
            if (child.text or "").strip():
                yield _loose(child)
            else:
                yield from _top(child)
        else:
            yield child


def _loose(box: _Element) -> _Element:
    box.tag = "p"
    return box


def _tells_more(told: list[str], text: str, times: float = _LONGER) -> bool:
    """Whether the text for programs has what was found, and clearly more, or the same with its paragraphs."""
    whole = "\n".join(told)
    if len(whole) < max(times * len(text), 500):
        return False
    words = set(_WORDS.findall(text.lower()))
    return len(words & set(_WORDS.findall(whole.lower()))) >= _ENOUGH_SHARED * len(words)


def _paragraphs(body: str) -> list[str]:
    parts = (_TAG.sub(" ", part) for part in _PARAGRAPH_END.split(unescape(body)))
    return [line for part in parts if (line := " ".join(unescape(part).split()))]


def _written(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _element(block.element)
        yield "\n"


def _element(element: _Element) -> Iterator[str]:
    """An element of the extractor's own vocabulary as HTML."""
    opening, closing = _tags(element)
    yield opening
    yield escape(element.text or "", quote=False)
    for child in element:
        yield from _element(child)
        yield escape(child.tail or "", quote=False)
    yield closing


def _tags(element: _Element) -> tuple[str, str]:
    rend = element.get("rend") or ""
    match element.tag:
        case "ref":
            return f'<a href="{escape(element.get("target") or "")}">', "</a>"
        case "lb":
            return "<br>", ""
        case "head":
            name = rend if rend in ("h2", "h3", "h4", "h5", "h6") else "h2"
        case "list":
            name = _LISTS.get(rend, "ul")
        case "hi":
            name = _INLINE.get(rend, "")
        case "code":
            name = "pre" if "\n" in "".join(map(str, element.itertext())) else "code"
        case str(tag):
            name = _BLOCKS.get(tag, "")
        case _:
            name = ""
    return (f"<{name}>", f"</{name}>") if name else ("", "")
