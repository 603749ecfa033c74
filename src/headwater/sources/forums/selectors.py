"""The one-line language of profiles: CSS selectors, attributes and alternatives.

    time@datetime | .date      the attribute of the first `time`, or else the text of the first `.date`
    @data-id                   an attribute of the element itself

Patterns mark the part of an address or attribute that is an id: `{number}` is digits, `{id}` also letters and dashes,
and `*` is anything within one path segment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from headwater.errors import BadInput

_ATTRIBUTE = re.compile(r"(?P<css>.*?)@(?P<attribute>[\w:-]+)", re.DOTALL)
_PATTERN_PART = re.compile(r"\{number\}|\{id\}|\*")
_PATTERN_WORDS = {"{number}": r"(\d{1,20})", "{id}": r"([\w-]{1,100})", "*": r"[^/?#]*"}
_EMPTY_PAGE = LexborHTMLParser("")


class Selector(NamedTuple):
    """An element, by CSS (empty: the element itself), and the attribute of it that is wanted (None: its text)."""

    css: str
    attribute: str | None


@lru_cache(maxsize=2_000)
def alternatives(line: str) -> tuple[Selector, ...]:
    """The alternatives on a line, in order."""
    return tuple(_selector(part.strip()) for part in line.split(" | ") if part.strip())


def _selector(text: str) -> Selector:
    found = _ATTRIBUTE.fullmatch(text)
    return Selector(found["css"].strip(), found["attribute"]) if found else Selector(text, None)


def check_selectors(name: str, line: str) -> None:
    """Raises BadInput if an alternative is not a CSS selector."""
    for selector in alternatives(line):
        try:
            _EMPTY_PAGE.css_first(selector.css or "*")
        except SelectolaxError as error:
            raise BadInput(f"{name}: {selector.css!r} is not a CSS selector.") from error


def find_all(within: LexborNode, css: str) -> list[LexborNode]:
    """Each element that a CSS selector matches, once, in page order.

    The parser's own list repeats elements that several parts of the selector match, and an element that was taken out
    of the tree must not be touched again.
    """
    return list({found.mem_id: found for found in within.css(css)}.values()) if css else []


def find(within: LexborNode, line: str) -> LexborNode | None:
    """The element of the first alternative that matches."""
    for selector in alternatives(line):
        found = within.css_first(selector.css) if selector.css else within
        if found is not None:
            return found
    return None


def value(within: LexborNode, line: str) -> str:
    """The text or attribute of the first alternative that has one; empty if none has."""
    return next(values(within, line), "")


def values(within: LexborNode, line: str) -> Iterator[str]:
    """The text or attribute of each alternative that has one, with white space collapsed."""
    for selector in alternatives(line):
        found = within.css_first(selector.css) if selector.css else within
        if found is None:
            continue
        raw = found.attributes.get(selector.attribute) if selector.attribute else found.text(separator=" ")
        text = " ".join((raw or "").split())
        if text:
            yield text


@lru_cache(maxsize=500)
def _patterns(line: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_expression(part.strip()), re.IGNORECASE) for part in line.split(" | ") if part.strip())


def _expression(text: str) -> str:
    out, end = "", 0
    for part in _PATTERN_PART.finditer(text):
        out += re.escape(text[end : part.start()]) + _PATTERN_WORDS[part[0]]
        end = part.end()
    return out + re.escape(text[end:])


def id_in(text: str, pattern: str) -> str:
    """The id that a pattern finds in an address or attribute; empty if it finds none."""
    for expression in _patterns(pattern):
        found = expression.search(text)
        if found:
            return found[1]
    return ""


def check_pattern(name: str, line: str) -> None:
    """Raises BadInput if an alternative does not mark exactly one id."""
    for part in line.split(" | "):
        if len(re.findall(r"\{number\}|\{id\}", part)) != 1:
            raise BadInput(f"{name}: {part.strip()!r} has to contain {{number}} or {{id}} once.")
