"""Removes what surrounds an article within its text: the repeated title, invitations, links to other articles.

It works on the blocks that the extractor found (paragraphs, headings, lists), and removes only what is short or nothing
but links. Losing a sentence of the article is worse than keeping a line too many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lxml.etree import _Element

SHORT = 250
_BOXES = ("p", "head", "item", "list", "row", "cell", "lb", "quote", "table", "div", "code")
_NEAR_THE_TOP = 6
_WORDS = re.compile(r"\w+")
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


class Block(NamedTuple):
    """A paragraph, heading, list or similar, and its text on one line."""

    element: _Element
    text: str


def block_of(element: _Element) -> Block:
    return Block(element, _text_of(element))


def trimmed(blocks: Sequence[Block], title: str) -> list[Block]:
    """The blocks of the article itself."""
    kept = [block for block in _after_title(blocks, title) if not _is_aside(block)]
    kept = _before_rights(kept)
    while kept and _is_tail(kept[-1]):
        kept.pop()
    # If nothing is left, it was the article after all.
    return kept or list(blocks)


def _text_of(element: _Element) -> str:
    """The text of an element, with a space between the boxes in it."""
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
    """What follows the title, if it is repeated near the top. What is above it belongs to the page."""
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
    """What is before the copyright line, if that is in the last third. Nothing of the article comes after it."""
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
