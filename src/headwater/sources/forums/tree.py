"""The elements of a page, with what the search for posts asks of each: its letters, links, names and dates."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from headwater.sources.dates import named_day
from headwater.sources.forums.pages import OTHER_DATES

MAX_ELEMENTS = 40_000
MAX_CLASSES = 8
DAY_LETTERS = 40  # "Wednesday, 17 September 2025 at 10:15 am"

_DATED = re.compile(r"date|time|posted|\bago\b|when", re.IGNORECASE)
_NAMED = re.compile(r"author|user|nick|poster|member|byline|creator|handle", re.IGNORECASE)
PROFILE_LINK = re.compile(
    r"/(?:users?|members?|profiles?|u|author|people|~|@)[/=~@]|[?&](?:u|uid|user|member)=|/~|/@", re.IGNORECASE
)
TIME_TAGS = frozenset({"time", "relative-time", "time-ago", "faceplate-timeago"})
_UNREAD = frozenset(
    {"script", "style", "noscript", "template", "svg", "select", "option", "textarea", "head", "nav", "dialog"}
)
# Elements of their own that say in attributes whose a post is, and from when.
NAMED_BY = ("author", "author-name", "data-author", "data-author-name", "data-username")
DATED_BY = ("datetime", "created-timestamp", "data-created-at", "data-posted-at")
FRAME = frozenset({"html", "body", "main"})
_NOTICE = re.compile(r"cookie|consent|onetrust|gdpr|newsletter|paywall", re.IGNORECASE)


class Element(NamedTuple):
    node: LexborNode
    parent: int
    classes: tuple[str, ...]
    dated: bool
    named: bool


class Tree:
    """The elements of a page in order, and for each how many letters are in it, in links and altogether."""

    def __init__(self, root: LexborNode, *, with_noscript: bool = False) -> None:
        self.elements: list[Element] = []
        self.letters: list[int] = []
        self._read(root, _UNREAD - {"noscript"} if with_noscript else _UNREAD)
        self._sum_up()

    def _read(self, root: LexborNode, unread: frozenset[str]) -> None:
        positions: dict[int, int] = {}
        for node in root.traverse(include_text=True):
            parent = positions.get(node.parent.mem_id, -1) if node.parent is not None else -1
            if node.is_text_node:
                if parent >= 0:
                    text = (node.text_content or "").strip()
                    self.letters[parent] += len(text)
                    if _is_day(text) and not self.elements[parent].dated:
                        self.elements[parent] = self.elements[parent]._replace(dated=True)
                continue
            if not node.is_element_node or _is_unread(node, unread) or (parent < 0 and self.elements):
                continue
            if len(self.elements) == MAX_ELEMENTS:
                return
            positions[node.mem_id] = len(self.elements)
            self.elements.append(_element(node, parent))
            self.letters.append(0)

    def _sum_up(self) -> None:
        self.linked = [0] * len(self.elements)
        self.dates = [int(element.dated) for element in self.elements]
        self.names = [int(element.named) for element in self.elements]
        # How many elements before each one have a name or a date; the difference of two says what is between them.
        self.signatures = [0, *accumulate(int(element.named or element.dated) for element in self.elements)]
        for index in range(len(self.elements) - 1, 0, -1):
            parent = self.elements[index].parent
            if self.elements[index].node.tag == "a":
                self.linked[index] = self.letters[index]
            for count in (self.letters, self.linked, self.dates, self.names):
                count[parent] += count[index]

    def names_inside(self, index: int) -> int:
        """Returns how many elements inside of this one have a name."""
        return self.names[index] - int(self.elements[index].named)

    def is_signed(self, index: int) -> bool:
        """Whether a name or a date is in the element."""
        return bool(self.names[index] or self.dates[index])

    def end(self, index: int) -> int:
        """Returns the position after the last element inside this one."""
        end = index + 1
        while end < len(self.elements) and self.elements[end].parent >= index:
            end += 1
        return end


def _is_unread(node: LexborNode, tags: frozenset[str]) -> bool:
    """Whether an element has nothing that people wrote: what is not shown, menus, and boxes that ask for consent."""
    if node.tag in tags or node.tag in FRAME:
        return node.tag in tags
    attributes = node.attributes
    named = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"
    return bool(_NOTICE.search(named)) or attributes.get("role") in ("navigation", "dialog", "alertdialog")


def _is_day(text: str) -> bool:
    """Whether a text is a date and little else."""
    return 6 <= len(text) <= DAY_LETTERS and named_day(text) is not None and not OTHER_DATES.search(text)


def _element(node: LexborNode, parent: int) -> Element:
    attributes = node.attributes
    classes = tuple((attributes.get("class") or "").split()[:MAX_CLASSES])
    if attributes.get("itemprop") in ("text", "articleBody", "commentText"):
        classes += ("itemprop-text",)
    own = " ".join(classes)
    property = attributes.get("itemprop") or ""
    dated = (
        node.tag in TIME_TAGS
        or any(map(attributes.__contains__, DATED_BY))
        or property.startswith("date")
        or bool(_DATED.search(own))
    )
    named = (
        bool(_NAMED.search(own))
        or any(map(attributes.get, NAMED_BY))
        or (node.tag == "a" and bool(PROFILE_LINK.search(attributes.get("href") or "")))
    )
    return Element(node, parent, classes, dated, named)
