"""The elements of a page, in their order, with how much each of them says: what guessing goes by."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import NamedTuple

from selectolax.lexbor import LexborNode

MAX_ELEMENTS = 40_000
MAX_CLASSES = 8
_DATED = re.compile(r"date|time|posted|\bago\b|when", re.IGNORECASE)
_NAMED = re.compile(r"author|user|nick|poster|member|byline|creator|handle", re.IGNORECASE)
_PROFILE = re.compile(
    r"/(?:users?|members?|profiles?|u|author|people|~|@)[/=~@]|[?&](?:u|uid|user|member)=|/~|/@", re.IGNORECASE
)
_UNREAD = frozenset(
    {"script", "style", "noscript", "template", "svg", "select", "option", "textarea", "head", "button"}
)


class Element(NamedTuple):
    node: LexborNode
    parent: int
    classes: tuple[str, ...]
    dated: bool
    named: bool


class Tree:
    """The elements of a page in their order, with how many letters each says, within links and altogether."""

    def __init__(self, root: LexborNode) -> None:
        self.elements: list[Element] = []
        self.letters: list[int] = []
        self._read(root)
        self._sum_up()

    def _read(self, root: LexborNode) -> None:
        places: dict[int, int] = {}
        for node in root.traverse(include_text=True):
            parent = places.get(node.parent.mem_id, -1) if node.parent is not None else -1
            if node.is_text_node:
                if parent >= 0:
                    self.letters[parent] += len((node.text_content or "").strip())
                continue
            if not node.is_element_node or node.tag in _UNREAD or (parent < 0 and self.elements):
                continue
            if len(self.elements) == MAX_ELEMENTS:
                return
            places[node.mem_id] = len(self.elements)
            self.elements.append(_element(node, parent))
            self.letters.append(0)

    def _sum_up(self) -> None:
        self.linked = [0] * len(self.elements)
        self.dates = [int(element.dated) for element in self.elements]
        self.names = [int(element.named) for element in self.elements]
        # How many elements before each have a name or a date: what stands between two of them is a difference.
        self.marks = [0, *accumulate(int(element.named or element.dated) for element in self.elements)]
        for index in range(len(self.elements) - 1, 0, -1):
            parent = self.elements[index].parent
            if self.elements[index].node.tag == "a":
                self.linked[index] = self.letters[index]
            for count in (self.letters, self.linked, self.dates, self.names):
                count[parent] += count[index]


def _element(node: LexborNode, parent: int) -> Element:
    attributes = node.attributes
    classes = tuple((attributes.get("class") or "").split()[:MAX_CLASSES])
    if attributes.get("itemprop") in ("text", "articleBody", "commentText"):
        classes += ("itemprop-text",)
    own = " ".join(classes)
    dated = node.tag == "time" or "datetime" in attributes or bool(_DATED.search(own))
    named = bool(_NAMED.search(own)) or (node.tag == "a" and bool(_PROFILE.search(attributes.get("href") or "")))
    return Element(node, parent, classes, dated, named)
