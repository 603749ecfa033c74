"""The text and images of an article. trafilatura finds the text; it is trimmed and written as clean HTML.

Trimming removes what surrounds an article within its text: the repeated title, invitations, links to other articles. It
works on the blocks that trafilatura found (paragraphs, headings, lists), and removes only what is short or nothing but
links. Losing a sentence of the article is worse than keeping a line too many.

trafilatura is imported with the first article, so a parser process that reads no articles does not pay for it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape, unescape
from typing import Any, NamedTuple

from lxml import etree
from lxml.etree import _Element
from lxml.html import HtmlElement

from headwater.model import Image
from headwater.sources.sites.metadata import Metadata
from headwater.sources.web_page import NewsPage
from headwater.text import clean_html, plain
from headwater.urls import identity, safe_link

MAX_IMAGES = 30
MAX_ALT = 500
SMALLEST = 120  # pixels
_IMAGE_SOURCES = ("data-src", "data-original", "data-lazy-src", "data-srcset", "srcset", "src")
_DECORATION = re.compile(
    r"(?:^|[/_.-])(?:logo|icon|avatar|gravatar|sprite|spacer|blank|pixel|badge|emoji|button|placeholder)s?(?:[/_.-]|\d|$)|\.svg(?:\?|$)",
    re.IGNORECASE,
)
_NOT_TEXT = ("aside", "nav", "footer", "header", "form")
_UNREAD = ("style", "svg", "template", "iframe", "object", "noscript", "canvas", "link", "meta", "select")
_INLINE = {"#b": "b", "#i": "i", "#u": "u", "#sub": "sub", "#sup": "sup", "#t": "code"}
_BLOCKS = {"p": "p", "quote": "blockquote", "table": "table", "row": "tr", "cell": "td", "item": "li", "del": "del"}
_LISTS = {"ol": "ol", "dl": "ul", "ul": "ul"}
_WORDS = re.compile(r"\w+")
_PARAGRAPH_END = re.compile(r"\s*\n\s*|<(?:/p|br\s*/?)>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# The text that the page provides for programs is used if it has all of the text that was found, and this much more.
_LONGER = 1.5
_ENOUGH_SHARED = 0.8
# If an article is shorter than this, and less than this share of its page, it may be the wrong part.
_LITTLE = 1_500
_SHARE_OF_PAGE = 0.1
SHORT = 250
_BOXES = ("p", "head", "item", "list", "row", "cell", "lb", "quote", "table", "div", "code")
_NEAR_THE_TOP = 6
_SENTENCE = re.compile(r"[.。!！?？][\"'”’」]?$")
_ADDRESS = re.compile(r"\s*https?://\S+\s*")
# How lines start that invite the reader to something else, and whole lines that are not part of an article.
_BEGINNINGS = (
    r"click here (?:to|for)",
    r"(?:please )?sign up (?:for|to|here|now)",
    r"subscribe (?:to|now|for|here)",
    r"(?:follow|like|join) (?:us|me|him|her|them|@\w+|\w+ \w+ on)\b",
    r"(?:you can )?(?:e-?mail|contact|reach) (?:the |this )?(?:writer|author|reporter)",
    r"(?:also |you (?:may|might) also |more )?(?:read|see|watch|like|on)(?: more| also| next| this)?\s*[:：|]",
    r"(?:this|the) (?:story|article|post) (?:was originally|has been|originally) (?:published|sent)",
    r"want (?:more|to (?:read|use|know|keep))\b",
    r"did you find this|was this (?:article|page) helpful|like this story\?|tell us what you think|have a news tip",
    r"by submitting your e-?mail|download (?:the|our) .{0,30}\bapp\b|get (?:the|our) .{0,40}(?:newsletter|app|inbox)",
    r"编辑[:：]|责编|责任编辑|来源[:：]|原标题|更多阅读|相关阅读|延伸阅读|推荐阅读|点击(?:进入|查看|阅读)|扫一扫|关注我们|版权(?:声明|所有)",
    r"\(?leggi anche|lee también|leia (?:também|mais)|(?:à )?lire aussi|lesen sie auch|mehr zum thema|lees ook",
    r"関連記事|あわせて読みたい",
)
_LEADS = r"related|recommended|up next|more from|don['’]t miss|see more|read more|see also|also on|most read|popular"
_LED_TO = r"articles?|stories|posts?|news|content|reading|topics?|searches|companies|coverage|links"
_LINES = (
    r"share|tweet|print|save|comments?|tags?|advertisement|advertising disclosure|back to top|table of contents",
    r"thank you for your feedback!?|order reprints|print article|your browser does not support .*|loading\.*",
    r"(?:listen|play) .{0,20}(?:audio|article)|\d+ min(?:ute)?s?\.? read.*|\d+ comments?",
)
_INVITES = re.compile(
    rf"\s*(?:{'|'.join(_BEGINNINGS)}|(?:{_LEADS})(?: (?:{_LED_TO}))?\s*(?:[:：|]|$)|(?:{'|'.join(_LINES)})\s*$)",
    re.IGNORECASE,
)
_RIGHTS = re.compile(
    r"^\W*(?:©|\(c\)\s*(?:19|20)\d\d|copyright\b)|all rights reserved\.?\W*$|^this copy is for your personal",
    re.IGNORECASE,
)


class Article(NamedTuple):
    html: str
    text: str
    images: tuple[Image, ...]


def article_in(page: NewsPage, metadata: Metadata) -> Article:
    """Returns the article on a page; its text is empty if none was found. Changes the page's tree."""
    images = _images(page, metadata.image)
    blocks = trimmed(_text_blocks(page), metadata.title)
    text = "\n".join(block.text for block in blocks)
    body = _paragraphs(metadata.body)
    if _says_more(body, text) or (len(blocks) < 2 < len(body) and _says_more(body, text, 0.9)):
        return Article("".join(f"<p>{escape(part)}</p>\n" for part in body), "\n".join(body), images)
    html = "".join(_html(blocks))
    return Article(clean_html(html, page.base), text, images)


def _text_blocks(page: NewsPage) -> list[Block]:
    """Returns the blocks of the text.

    The fast way nearly always finds them; if it found little on a long page, look again.
    """
    _drop_unread(page.tree)
    blocks = _extracted(page.tree, fast=True, favor_recall=True)
    length = sum(len(block.text) for block in blocks)
    if length < _LITTLE and length < _SHARE_OF_PAGE * len(page.tree.text_content()):
        return _extracted(page.tree, fast=False, favor_recall=False) or blocks
    return blocks


def _extracted(tree: HtmlElement, *, fast: bool, favor_recall: bool) -> list[Block]:
    from trafilatura import bare_extraction

    # It logs every page on which it finds little; we report that ourselves.
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
    """Removes what no reader sees, because trafilatura copies the tree several times."""
    etree.strip_elements(tree, *_UNREAD, with_tail=False)
    for script in list(tree.iter("script")):
        if "ld+json" not in (script.get("type") or ""):
            script.drop_tree()


def _top(body: _Element) -> Iterator[_Element]:
    """Yields the blocks of a text, without the boxes around them."""
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


def _says_more(body: list[str], text: str, times: float = _LONGER) -> bool:
    """Whether the text for programs has all of the text that was found, and is so many times as long."""
    whole = "\n".join(body)
    if len(whole) < max(times * len(text), 500):
        return False
    words = set(_WORDS.findall(text.lower()))
    return len(words & set(_WORDS.findall(whole.lower()))) >= _ENOUGH_SHARED * len(words)


def _paragraphs(body: str) -> list[str]:
    parts = (_TAG.sub(" ", part) for part in _PARAGRAPH_END.split(unescape(body)))
    return [line for part in parts if (line := " ".join(unescape(part).split()))]


def _html(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _element(block.element)
        yield "\n"


def _element(element: _Element) -> Iterator[str]:
    """Yields an element in the extractor's own vocabulary, as HTML."""
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


def _images(page: NewsPage, named: str | None) -> tuple[Image, ...]:
    """Returns each image once: first the one that the metadata names, then those in the text, in page order."""
    found: dict[str, Image] = {}
    if named:
        found[identity(named)] = Image(named)
    for image in _in_text(_text_box(page.tree), page.base):
        known = found.setdefault(identity(image.url), image)
        if not known.alt and image.alt:
            found[identity(image.url)] = image
        if len(found) == MAX_IMAGES:
            break
    return tuple(found.values())


def _text_box(tree: HtmlElement) -> HtmlElement | None:
    """Returns the element that contains the article: the one whose own paragraphs have the most text."""
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
        if _is_small(node) or next(node.iterancestors(*_NOT_TEXT), None) is not None:
            continue
        link = next((link for name in _IMAGE_SOURCES if (link := _link(node.get(name), base))), None)
        if link and not _DECORATION.search(link):
            yield Image(link, plain(node.get("alt") or "")[:MAX_ALT])


def _link(value: str | None, base: str) -> str | None:
    """Returns the first address in a `src` or `srcset`.

    Images that load later often have a placeholder as their `src`.
    """
    first = (value or "").strip().partition(" ")[0].rstrip(",")
    link = safe_link(first, base) if first and not first.startswith("data:") else None
    return link if link and link.startswith(("http://", "https://")) else None


def _is_small(node: HtmlElement) -> bool:
    sizes = [size.removesuffix("px") for name in ("width", "height") if (size := (node.get(name) or "").strip())]
    return any(size.isascii() and size.isdigit() and int(size[:6]) < SMALLEST for size in sizes)


class Block(NamedTuple):
    """A paragraph, heading, list or similar, and its text on one line."""

    element: _Element
    text: str


def block_of(element: _Element) -> Block:
    return Block(element, _text_of(element))


def trimmed(blocks: Sequence[Block], title: str) -> list[Block]:
    """Returns the blocks of the article itself."""
    kept = [block for block in _after_title(blocks, title) if not _is_aside(block)]
    kept = _before_rights(kept)
    while kept and _is_tail(kept[-1]):
        kept.pop()
    # If nothing is left, it was the article after all.
    return kept or list(blocks)


def _text_of(element: _Element) -> str:
    """Returns the text of an element, with a space between the boxes in it."""
    if not len(element):
        return " ".join((element.text or "").split())
    if next(element.iterdescendants(_BOXES), None) is None:
        return " ".join("".join(map(str, element.itertext())).split())
    return " ".join("".join(_pieces(element)).split())


def _pieces(element: _Element) -> Iterator[str]:
    apart = " " if element.tag in _BOXES else ""
    yield apart
    yield element.text or ""
    for child in element:
        yield from _pieces(child)
        yield child.tail or ""
    yield apart


def _after_title(blocks: Sequence[Block], title: str) -> list[Block]:
    """Returns what follows the title, if it is repeated near the top. What is above it belongs to the page."""
    wanted = _words(title)
    above = 0
    for position, block in enumerate(blocks[:_NEAR_THE_TOP] if wanted else ()):
        if len(block.text) < 2 * len(title) + SHORT and _words(block.text) == wanted:
            return list(blocks[position + 1 :])
        above += len(block.text)
        if above > SHORT:
            break
    return list(blocks)


def _is_aside(block: Block) -> bool:
    element, text = block
    if element.tag not in ("p", "head", "item") or len(text) > SHORT:
        return False
    return bool(_INVITES.match(text) or _ADDRESS.fullmatch(text)) or (element.tag == "p" and _is_only_a_link(block))


def _is_only_a_link(block: Block) -> bool:
    """A line that is only a link leads elsewhere. A whole sentence that is a link may still say something."""
    linked = sum(len(_text_of(link)) for link in block.element.iter("ref"))
    return linked > 0 and linked >= 0.9 * len(block.text) and not _SENTENCE.search(block.text)


def _before_rights(blocks: list[Block]) -> list[Block]:
    """Returns what is before the copyright line, if that is in the last third.

    Nothing of the article comes after it.
    """
    for position in range(len(blocks) * 2 // 3, len(blocks)):
        text = blocks[position].text
        if len(text) <= SHORT * 2 and _RIGHTS.search(text):
            return blocks[:position]
    return blocks


def _is_tail(block: Block) -> bool:
    """Whether a block cannot end an article: a heading with nothing below it, or a list of links."""
    if block.element.tag == "head":
        return True
    if block.element.tag == "list":
        items = block.element.findall("item")
        return bool(items) and all(_is_only_a_link(block_of(item)) for item in items)
    return False


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())
