"""The paragraphs of a page, for an article that is in several boxes, where an extractor finds only one of them.

A paragraph is a `p` with more than a line of text that is not made of links, outside of menus, sidebars and comments.
The smallest element that has nearly all of them contains the article.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lxml import etree
from lxml.etree import _Element
from lxml.html import HtmlElement

from headwater.sources.sites.trimming import Block, block_of

SHORTEST = 80  # letters
MOST_LINKED = 0.4
NEARLY_ALL = 0.85
MUCH_LARGER = 2
LEAST_SHARE = 0.4
ENOUGH = 500  # letters
_OUTSIDE_TAGS = frozenset({"a", "aside", "nav", "footer", "form", "header", "dialog"})
_OUTSIDE = re.compile(
    r"(?:^|[\s_-])(?:comments?|respond|disqus|related|recommend(?:ed|ations?)?|sidebar|footer|menu|nav|newsletter|subscribe|promo"
    r"|cookies?|consent|modal|popup|teasers?|sponsored|ads?|advert(?:isement)?|bio|author-?box|share|social|paywall)(?:[\s_-]|$)",
    re.IGNORECASE,
)
HEADINGS = ("h2", "h3", "h4", "h5", "h6")
_BLOCKS = {"p": "p", "blockquote": "quote", "pre": "code", **dict.fromkeys(HEADINGS, "head")}
_INLINE = {"a": "ref", "b": "hi", "strong": "hi", "i": "hi", "em": "hi", "br": "lb", "code": "code"}
_RENDERED = {"b": "#b", "strong": "#b", "i": "#i", "em": "#i"}


class Prose(NamedTuple):
    """The paragraphs of a page, and how many letters they have."""

    paragraphs: list[HtmlElement]
    letters: int


def prose_of(tree: HtmlElement) -> Prose:
    outside: dict[HtmlElement, bool] = {}
    found = []
    for node in tree.iter("p"):
        length = len(" ".join(node.text_content().split()))
        if length < SHORTEST or _is_outside(node, outside):
            continue
        if sum(len(link.text_content()) for link in node.iter("a")) < MOST_LINKED * length:
            found.append((node, length))
    headed = next((box for head in tree.iter("h1") for box in head.iterancestors("article")), None)
    return _of_one_article(found, headed)


def _of_one_article(found: list[tuple[HtmlElement, int]], headed: HtmlElement | None) -> Prose:
    """Returns the paragraphs of the `article` with the headline, or of one that is much larger than the others.

    The others are teasers. Without such an article, all paragraphs are returned.
    """
    letters: dict[HtmlElement | None, int] = {}
    if headed is not None:
        own = [(node, length) for node, length in found if headed in node.iterancestors("article")]
        if sum(length for _, length in own) >= ENOUGH:
            return Prose([node for node, _ in own], sum(length for _, length in own))
    homes = [next(node.iterancestors("article"), None) for node, _ in found]
    for home, (_, length) in zip(homes, found, strict=True):
        letters[home] = letters.get(home, 0) + length
    largest = sorted(letters.values(), reverse=True)[:2]
    if len(largest) == 2 and largest[0] >= max(MUCH_LARGER * largest[1], LEAST_SHARE * sum(letters.values())):
        main = max(letters, key=letters.__getitem__)
        return Prose([node for home, (node, _) in zip(homes, found, strict=True) if home is main], largest[0])
    return Prose([node for node, _ in found], sum(letters.values()))


def _is_outside(node: HtmlElement, named: dict[HtmlElement, bool]) -> bool:
    """Whether an element is in a box that is not part of an article. `named` remembers which boxes are called so."""
    for box in (node, *node.iterancestors()):
        if box.tag in _OUTSIDE_TAGS:
            return True
        if box.tag in ("main", "article"):
            return next(box.iterancestors(*_OUTSIDE_TAGS), None) is not None
        if box not in named:
            named[box] = _OUTSIDE.search(f"{box.get('class') or ''} {box.get('id') or ''}") is not None
        if named[box] and box.tag not in ("body", "html"):
            return True
    return False


def blocks_of(prose: Prose) -> list[Block]:
    """Returns the paragraphs, headings and lists of the article, as the extractor would write them."""
    box = _box(prose)
    if box is None:
        return []
    outside: dict[HtmlElement, bool] = {}
    blocks = []
    for node in box.iter(*_BLOCKS, "ul", "ol"):
        if node is not box and _is_outermost(node, box) and not _is_outside(node, outside):
            blocks.append(
                block_of(_list(node) if node.tag in ("ul", "ol") else _converted(node, _BLOCKS[str(node.tag)]))
            )
    return [block for block in blocks if block.text]


def _is_outermost(node: HtmlElement, box: HtmlElement) -> bool:
    """Whether an element is not inside another block of the same box."""
    for outer in node.iterancestors():
        if outer is box:
            return True
        if outer.tag in _BLOCKS or outer.tag in ("ul", "ol"):
            return False
    return True


def _box(prose: Prose) -> HtmlElement | None:
    """Returns the smallest element with nearly all of the paragraphs."""
    weights: dict[HtmlElement, int] = {}
    for node in prose.paragraphs:
        length = len(node.text_content())
        for box in node.iterancestors():
            weights[box] = weights.get(box, 0) + length
    most = max(weights.values(), default=0)
    boxes = [box for box, weight in weights.items() if weight >= NEARLY_ALL * most]
    return min(boxes, key=lambda box: weights[box], default=None)


def _list(node: HtmlElement) -> _Element:
    found = etree.Element("list", rend=str(node.tag))
    found.extend(_converted(item, "item") for item in node.iter("li"))
    return found


def _converted(node: HtmlElement, tag: str) -> _Element:
    """Returns a block in the extractor's vocabulary, with its links and emphasis."""
    found = etree.Element(tag, rend=str(node.tag)) if tag == "head" else etree.Element(tag)
    found.text = node.text
    last: _Element | None = None
    for child in node.iterdescendants():
        name = _INLINE.get(str(child.tag))
        if name and next(child.iterancestors(*_INLINE, node.tag), node) is node:
            last = etree.SubElement(found, name)
            last.text = child.text_content()
            last.tail = child.tail
            if child.tag == "a":
                last.set("target", child.get("href") or "")
            elif child.tag in _RENDERED:
                last.set("rend", _RENDERED[str(child.tag)])
        elif not name and next(child.iterancestors(*_INLINE, node.tag), node) is node:
            text = (child.text or "") + (child.tail or "")
            if last is None:
                found.text = (found.text or "") + text
            else:
                last.tail = (last.tail or "") + text
    return found
