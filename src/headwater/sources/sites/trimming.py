"""Removes what surrounds an article within the text that was found for it.

Above it are the repeated title and the byline, below it notes, footnotes, biographies and links to other articles,
and invitations are everywhere. Trimming works on blocks (paragraphs, headings, lists), and removes only what is short,
is nothing but links, or follows a heading that ends an article. Losing a sentence of the article is worse than keeping
a line too many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lxml.etree import _Element

from headwater.sources.dates import named_day

_WORDS = re.compile(r"\w+")
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

_BYLINE = 100  # letters
_DATELINE = 50  # letters
_HEADING = 70  # letters
_MOST = 0.5
_NEARLY_ALL = 0.8
_SOME = 0.3
_BIOGRAPHY = 5  # paragraphs


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"\W*(?:{'|'.join(alternatives)})", re.IGNORECASE)


_BYLINES = _any(
    r"(?:written |posted |published |words |story )?by\b[\s:]",
    r"(?:last |first )?(?:published|updated|posted|modified)\b",
    r"\d+\s*min(?:ute)?s?\b.{0,12}$|(?:reading|read) time\b|tempo de leitura",
    r"back to (?:blog|all|news)\b|log in\b|sign up\b|skip to\b",
    r"on this page$|in this article:?$|(?:table of )?contents$",
)
_MORE = r"related|recommended|similar|popular|latest|recent|trending|top|more|other|featured"
_OTHERS = r"articles?|stor(?:y|ies)|posts?|news|content|reading|topics?|coverage|links?|blogs?|resources?|insights?"
_NOTES_AT_END = r"sources?|references?|footnotes?|endnotes?|citations?|bibliography|works cited|literature cited"
# Headings after which nothing of an article comes.
_ENDS = _any(
    r"about (?:the|this) (?:author|writer|contributor)s?\b",
    rf"(?:{_MORE}) (?:{_OTHERS})\b.{{0,30}}$",
    r"more from\b|you (?:may|might|could) (?:also|be interested)|if you (?:liked|enjoyed) this|read next\b",
    r"keep reading|up next|further reading|what to read next|(?:articles?|stories) you (?:may|might)",
    r"discover more|explore more",
    r"most (?:read|popular|viewed)|filed under|leave a (?:comment|reply)|(?:post|add|write) a comment|comments?\W*$",
    r"join the (?:conversation|discussion)|was this (?:article |page |post )?helpful|how was this",
    r"thanks for (?:reading|visiting|learning)",
    rf"(?:article )?(?:{_NOTES_AT_END})\W*$",
    r"相关(?:文章|阅读|新闻)|推荐阅读|関連記事|artikel zum thema|à lire aussi|te puede interesar",
)
# Headings that may also be in the middle of one.
_MAY_END = _any(
    r"(?:related|other|more|recommended) (?:products?|guides?)|more (?:on|about|in)\b|read (?:more|also)\b",
    r"tags?\W*$|categor(?:y|ies)\W*$|[\w ]{0,20}newsletters?\W*$|subscribe\b|sign up\b|get in touch|contact us",
    r"written by\W*$|contributors?\W*$|author\W*$|about us\W*$|share (?:on|with)\b|share this(?: \w+)?\W*$",
)
# Headings of notes that can be as long as the article.
_SOURCES = re.compile(rf"\W*(?:{_NOTES_AT_END})\W*", re.IGNORECASE)
# How a line starts that is about the article or its site, if it is the last one.
_NOTES = _any(
    r"follow\b.{0,80}\b(?:twitter|facebook|instagram|on x\b|@\w+|coverage)",
    r"(?:additional )?(?:reporting|writing|editing) by\b|associated press writers?\b|more ap\b",
    r"(?:written|reviewed|edited) by\s*[:：]",
    r"(?:sources?|via|citation|tags?|listen|download|itunes|photos?(?: credits?)?|image(?: credits?)?)\s*[:：]",
    r"(?:have|got) a (?:news )?tip\b|(?:e-?mail|write to|contact|reach)\b.{0,60}@",
    r"(?:first |last |originally )?(?:published|updated)\b.{0,60}$",
    r"this (?:article|story|post) (?:also )?(?:appeared|was (?:first|originally|written|updated|produced))",
    r"editor['’]?s?['’]? note\b|post comment|\d+ comments?|if you (?:enjoyed|liked|found) this|thank(?:s| you)\W*$",
    r"thanks for (?:visiting|reading)|get .{0,60}\b(?:delivered|inbox)\b|(?:receive|get) the latest\b",
    r"(?:our|your) (?:standards|privacy)|the .{0,30}trust principles|an error (?:has )?occurred|sorry!?$",
    r"if you (?:buy|purchase) something|as an amazon associate|\[[^\]]{0,40}\]$|↩",
)
_INTRODUCES = re.compile(
    r"(?:,[^,.]{1,60},)? (?:is|was|has|writes|covers|works|worked|serves|served|holds|joined|co-?founded|lives|teaches"
    r"|leads|specializes)\b"
)


class Block(NamedTuple):
    """A paragraph, heading, list or similar, and its text on one line."""

    element: _Element
    text: str


def block_of(element: _Element) -> Block:
    return Block(element, _text_of(element))


def trimmed(blocks: Sequence[Block], title: str, author: str | None = None) -> list[Block]:
    """Returns the blocks of the article itself."""
    kept = _before_end(_after_byline(_after_title(blocks, title)))
    kept = _before_rights([block for block in kept if not _is_aside(block)])
    kept = _without_tail(_before_biography(_without_tail(kept, author), author), author)
    # If nothing is left, it was the article after all.
    return kept or list(blocks)


def _without_tail(blocks: list[Block], author: str | None) -> list[Block]:
    end = len(blocks)
    while end and _is_tail(blocks[end - 1], author):
        end -= 1
    return blocks[:end]


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


def _after_byline(blocks: list[Block]) -> list[Block]:
    """Returns what follows the lines at the top that say who wrote the article, when, and how long it is."""
    start = 0
    for position, (element, text) in enumerate(blocks[:_NEAR_THE_TOP]):
        if element.tag not in ("p", "head", "item") or len(text) > _BYLINE:
            break
        if _BYLINES.match(text) or (len(text) < _DATELINE and named_day(text)):
            start = position + 1
    return blocks[start:]


def _before_end(blocks: list[Block]) -> list[Block]:
    """Returns what is before a heading that ends an article, such as “About the author” or “References”.

    Most of the text has to be before it, or the heading is part of something else.
    """
    whole = sum(len(block.text) for block in blocks)
    before = 0
    for position, block in enumerate(blocks):
        if _is_heading(block) and _ends(block, before / max(1, whole)):
            return blocks[:position]
        before += len(block.text)
    return blocks


def _is_heading(block: Block) -> bool:
    """Whether a block is a heading, or a line that is written like one."""
    element, text = block
    if len(text) > _HEADING:
        return False
    return element.tag == "head" or (element.tag in ("p", "item") and (not text.endswith(".") or text.endswith("...")))


def _ends(heading: Block, share: float) -> bool:
    """Whether an article ends at a heading. `share` is how much of the text is before it."""
    if share > _MOST and _ENDS.match(heading.text):
        return True
    if share > _NEARLY_ALL and _MAY_END.match(heading.text):
        return True
    return share > _SOME and heading.element.tag == "head" and _SOURCES.fullmatch(heading.text) is not None


def _is_tail(block: Block, author: str | None) -> bool:
    """Whether a block cannot end an article: a heading with nothing below it, a list of links, a note about itself."""
    element, text = block
    if element.tag == "head":
        return True
    if element.tag == "list":
        items = element.findall("item")
        return bool(items) and all(_is_only_a_link(block_of(item)) or _is_teaser(item) for item in items)
    if element.tag not in ("p", "item", "quote") or len(text) > 3 * SHORT:
        return False
    return (len(text) <= 2 * SHORT and _NOTES.match(text) is not None) or _is_about(author, text)


def _is_teaser(item: _Element) -> bool:
    """Whether an item is a linked headline with a line of its own below it."""
    first = next((part for part in item.iter("ref", *_BOXES) if part is not item and _text_of(part)), None)
    if first is None or first.tag != "ref" or (item.text or "").strip():
        return False
    below = [part for part in item.iterchildren(_BOXES) if part.tag != "lb" and _text_of(part)]
    return bool(below) and not _SENTENCE.search(_text_of(first)) and len(_text_of(item)) <= SHORT


def _before_biography(blocks: list[Block], author: str | None) -> list[Block]:
    """Returns what is before a paragraph that introduces the author, if all that follows is about the same person."""
    names = {name for name in (author or "").replace(",", " ").split() if len(name) > 2}
    for position in range(max(1, len(blocks) - _BIOGRAPHY), len(blocks)):
        rest = blocks[position:]
        if (
            _is_about(author, rest[0].text)
            and all(block.element.tag in ("p", "item") for block in rest)
            and all(names.intersection(_WORDS.findall(block.text)) for block in rest)
            and 3 * sum(len(block.text) for block in rest) < sum(len(block.text) for block in blocks)
        ):
            return blocks[:position]
    return blocks


def _is_about(author: str | None, text: str) -> bool:
    """Whether a paragraph introduces the author."""
    for name in (author or "").split(", "):
        if name and text.startswith(name) and _INTRODUCES.match(text, len(name)):
            return True
    return False


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())
