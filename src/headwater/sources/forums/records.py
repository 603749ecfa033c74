"""JSON documents of forums, read with care: values of the wrong type are passed over, never converted."""

from __future__ import annotations

from typing import Any

from headwater.errors import NotAFeed, ReadFailed
from headwater.sources.feeds.json import parsed_json

Record = dict[str, Any]
_LARGEST = 2**31 - 1


def document_of(body: bytes) -> Record:
    try:
        document = parsed_json(body)
    except NotAFeed as error:
        raise ReadFailed("The forum's answer looks like JSON but cannot be read.") from error
    if not isinstance(document, dict):
        raise ReadFailed("The forum answered with JSON that is neither a list nor a thread.")
    return document


def record(within: Record, *names: str) -> Record:
    """The record at the end of a path; an empty one where there is none."""
    for name in names:
        inner = within.get(name)
        within = inner if isinstance(inner, dict) else {}
    return within


def records(within: Record, name: str) -> list[Record]:
    found = within.get(name)
    return [inner for inner in found if isinstance(inner, dict)] if isinstance(found, list) else []


def text(within: Record, name: str) -> str:
    found = within.get(name)
    return found if isinstance(found, str) else ""


def number(within: Record, name: str) -> int | None:
    """A count, or an id that is a number, also where it is written as text."""
    found = within.get(name)
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 20:
        found = int(found)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**63 else None


def count(within: Record, name: str) -> int | None:
    found = number(within, name)
    return found if found is None else min(found, _LARGEST)
