"""Where on a page something stands, in one line of text: CSS selectors, attributes, alternatives.

    time@datetime | .date      the attribute of the first `time`, or else the text of the first `.date`
    @data-id                   an attribute of the element itself

Patterns name the part of an address or attribute that is an id: `{number}` is digits, `{id}` also letters and dashes,
`*` is anything within one step of a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from headwater.errors import BadInput

_ATTRIBUTE = re.compile(r"(?P<selector>.*?)@(?P<attribute>[\w:-]+)", re.DOTALL)
_PATTERN_PART = re.compile(r"\{number\}|\{id\}|\*")
_PATTERN_WORDS = {"{number}": r"(\d{1,20})", "{id}": r"([\w-]{1,100})", "*": r"[^/?#]*"}
_NO_PAGE = LexborHTMLParser("")


class Place(NamedTuple):
    selector: str
    attribute: str | None


@lru_cache(maxsize=2_000)
def places(text: str) -> tuple[Place, ...]:
    """The alternatives that a line names, in their order."""
    return tuple(_place(part.strip()) for part in text.split(" | ") if part.strip())


def _place(text: str) -> Place:
    found = _ATTRIBUTE.fullmatch(text)
    return Place(found["selector"].strip(), found["attribute"]) if found else Place(text, None)


def check_places(name: str, text: str) -> None:
    """Raise BadInput where one of the selectors is none."""
    for place in places(text):
        try:
            _NO_PAGE.css_first(place.selector or "*")
        except SelectolaxError as error:
            raise BadInput(f"{name}: {place.selector!r} is not a CSS selector.") from error


def every(within: LexborNode, selector: str) -> list[LexborNode]:
    """Each element that a selector finds, once, in the order of the page: the parser's own list repeats those that
    several of its parts find, and whoever takes one out of the tree must not touch it again."""
    return list({found.mem_id: found for found in within.css(selector)}.values()) if selector else []


def node(within: LexborNode, text: str) -> LexborNode | None:
    for place in places(text):
        found = within.css_first(place.selector) if place.selector else within
        if found is not None:
            return found
    return None


def value(within: LexborNode, text: str) -> str:
    """The text or attribute at a place, on one line; empty where there is none."""
    return next(values(within, text), "")


def values(within: LexborNode, text: str) -> Iterator[str]:
    """The same for each alternative that says something."""
    for place in places(text):
        found = within.css_first(place.selector) if place.selector else within
        if found is None:
            continue
        raw = found.attributes.get(place.attribute) if place.attribute else found.text(separator=" ")
        line = " ".join((raw or "").split())
        if line:
            yield line


@lru_cache(maxsize=500)
def _patterns(text: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_expression(part.strip()), re.IGNORECASE) for part in text.split(" | ") if part.strip())


def _expression(text: str) -> str:
    out, end = "", 0
    for part in _PATTERN_PART.finditer(text):
        out += re.escape(text[end : part.start()]) + _PATTERN_WORDS[part[0]]
        end = part.end()
    return out + re.escape(text[end:])


def id_in(text: str, pattern: str) -> str:
    """The id that a pattern finds in an address or attribute; empty where it finds none."""
    for expression in _patterns(pattern):
        found = expression.search(text)
        if found:
            return found[1]
    return ""


def check_pattern(name: str, text: str) -> None:
    for part in text.split(" | "):
        if len(re.findall(r"\{number\}|\{id\}", part)) != 1:
            raise BadInput(f"{name}: {part.strip()!r} has to contain {{number}} or {{id}} once.")
