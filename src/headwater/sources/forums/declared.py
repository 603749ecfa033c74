"""Posts that a page declares to programs: as JSON-LD, or as the data from which a script draws the page.

They are used for the author and date of a post whose page shows neither. A declared post belongs to the post that
starts with the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from headwater.sources.json_values import Json
from headwater.sources.web_page import ForumPage
from headwater.text import plain

MAX_SCRIPTS = 20
MAX_SCRIPT = 3_000_000  # letters
MAX_NODES = 50_000
FEWEST_WORDS = 3
_TEXTS = ("text", "articleBody", "contentHtml", "content", "body", "message")
_DATES = ("datePublished", "dateCreated", "createdAt", "created_at")
_WORDS = re.compile(r"\w+")
_FIRST_WORDS = 8
_TAG = re.compile(r"\[/?[a-z]{1,10}(?:=[^\]]{0,200})?\]", re.IGNORECASE)


class Declared(NamedTuple):
    author: str
    date: str


def declared_posts(page: ForumPage) -> dict[str, Declared]:
    """Returns what is declared about posts, by the first words of each."""
    found: dict[str, Declared] = {}
    for script in page.root.css("script[type*='json']")[:MAX_SCRIPTS]:
        text = script.text(deep=True, strip=True)
        if len(text) <= MAX_SCRIPT:
            for node in _nodes(_parsed(text)):
                _add(found, node)
    return found


def first_words(text: str) -> str:
    """Returns the words by which a post is recognised; empty if it has too few."""
    words = _WORDS.findall(plain(_TAG.sub(" ", text[:2_000])).lower())[:_FIRST_WORDS]
    return " ".join(words) if len(words) >= FEWEST_WORDS else ""


def _add(found: dict[str, Declared], node: Json) -> None:
    date = next((value for name in _DATES if isinstance(value := node.get(name), str | int) and value), "")
    text = next((value for name in _TEXTS if isinstance(value := node.get(name), str) and value), "")
    key = first_words(text) if date else ""
    if key:
        found.setdefault(key, Declared(_name(node.get("author")), str(date)))


def _name(author: Any) -> str:
    if isinstance(author, list):
        author = author[0] if author else None
    if isinstance(author, dict):
        author = author.get("name")
    return author if isinstance(author, str) else ""


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _nodes(document: Any) -> Iterator[Json]:
    waiting = [document]
    for _ in range(MAX_NODES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting += [inner for inner in value.values() if isinstance(inner, dict | list)]
        elif isinstance(value, list):
            waiting += [inner for inner in value if isinstance(inner, dict | list)]
