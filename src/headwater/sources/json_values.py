"""JSON from outside, read with care: a value of the wrong type is skipped, never converted."""

from __future__ import annotations

import json
from typing import Any

import orjson

from headwater.errors import EmptyAnswer, NotAFeed, ReadFailed, TooDeep
from headwater.text import printable

Json = dict[str, Any]
LARGEST_COUNT = 2**31 - 1


def document_in(body: bytes, sender: str) -> Any:
    """Returns the document that an API sent. Raises a ReadFailed if the answer is something else."""
    body = body.strip(b" \t\r\n\0")
    if not body:
        raise EmptyAnswer(f"{sender} sent an empty answer.")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return _read_leniently(body, sender, error)


def _read_leniently(body: bytes, sender: str, reason: orjson.JSONDecodeError) -> Any:
    """Returns a document that orjson refuses: a lone surrogate is no reason to lose a page of posts."""
    try:
        return json.loads(body)
    except RecursionError as error:
        raise TooDeep("The JSON document is nested too deeply.") from error
    except ValueError:
        raise _not_json(body, sender, reason) from reason


def _not_json(body: bytes, sender: str, reason: orjson.JSONDecodeError) -> ReadFailed:
    if b"<html" in body[:2000].lower():
        from headwater.sources.web_page import page_instead  # loads parsers of HTML, which JSON does not need

        return page_instead(body)
    return NotAFeed(f"The answer from {sender} looks like JSON but cannot be read: {reason}.")


def record(within: Json, *names: str) -> Json:
    """Returns the object at the end of a path; an empty one if there is none."""
    for name in names:
        inner = within.get(name)
        within = inner if isinstance(inner, dict) else {}
    return within


def records(value: Any) -> list[Json]:
    """Returns the objects in a list; none if the value is no list."""
    return [inner for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def text(within: Json, name: str) -> str:
    value = within.get(name)
    return value if isinstance(value, str) else ""


def count(within: Json, name: str, least: int = 0) -> int | None:
    """Returns an integer that fits into our tables; None if there is none."""
    value = within.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_COUNT:
        return None
    return value


def number(within: Json, name: str) -> int | None:
    """Returns a count, or an id that is a number, even if it is written as text."""
    value = within.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def one_line(text: str, most: int) -> str:
    """Returns plain text on one line. Names and titles in an API are not HTML, whatever they look like."""
    return " ".join(printable(text).split())[:most].strip()
