"""Answers of programs, in JSON: read as they are meant, or a failure that says what came instead."""

from __future__ import annotations

import json
from typing import Any

import orjson

from headwater.errors import EmptyAnswer, NotAFeed, ReadFailed, TooDeep
from headwater.sources.feeds.walls import instead_of_a_feed


def document_in(body: bytes, who: str) -> Any:
    """What an answer says; `who` gave it."""
    body = body.strip(b" \t\r\n\0")
    if not body:
        raise EmptyAnswer(f"{who} answered, but with nothing.")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return _read_leniently(body, who, error)


def _read_leniently(body: bytes, who: str, reason: orjson.JSONDecodeError) -> Any:
    """orjson refuses half a character (a lone surrogate), which is no reason to lose a page of posts."""
    try:
        return json.loads(body)
    except RecursionError as error:
        raise TooDeep("The JSON document is nested too deeply.") from error
    except ValueError:
        raise _not_json(body, who, reason) from reason


def _not_json(body: bytes, who: str, reason: orjson.JSONDecodeError) -> ReadFailed:
    if b"<html" in body[:2000].lower():
        return instead_of_a_feed(body)
    return NotAFeed(f"{who}'s answer looks like JSON but cannot be read: {reason}.")
