"""What a page tells programs about its article: schema.org data in JSON-LD."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
from lxml.html import HtmlElement

MAX_SCRIPT = 1_000_000
MAX_NODES = 5_000
MAX_DEPTH = 20
_ARTICLES = ("article", "posting", "report", "newsarticle")


def articles_in(tree: HtmlElement) -> list[dict[str, Any]]:
    """The objects that describe an article, in the page's order."""
    found = []
    for script in tree.iter("script"):
        if "ld+json" in (script.get("type") or "").lower() and script.text:
            found += [node for node in _nodes(_parsed(script.text)) if _is_article(node)]
    return found


def strings(value: Any) -> list[str]:
    """What a property says that may be a text, an object with a name or an address, or a list of those."""
    match value:
        case str():
            return [value]
        case dict():
            return strings(value.get("name") or value.get("url") or value.get("@id"))
        case list():
            return [text for one in value[:50] for text in strings(one)]
    return []


def _is_article(node: dict[str, Any]) -> bool:
    return any(kind.lower().endswith(_ARTICLES) for kind in strings(node.get("@type")))


def _parsed(text: str) -> Any:
    text = text.strip()[:MAX_SCRIPT]
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        # Line breaks within a text are the commonest fault.
        return json.loads(text.rstrip(";"), strict=False)
    except (ValueError, RecursionError):
        return None


def _nodes(document: Any) -> Iterator[dict[str, Any]]:
    """Every object of a document, outer ones first, up to a limit."""
    waiting = [(document, 0)]
    for _ in range(MAX_NODES):
        if not waiting:
            return
        value, depth = waiting.pop(0)
        if isinstance(value, dict):
            yield value
            value = list(value.values())
        if isinstance(value, list) and depth < MAX_DEPTH:
            waiting += [(inner, depth + 1) for inner in value[:500] if isinstance(inner, dict | list)]
