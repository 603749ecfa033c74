"""JSON from clients, read strictly: what two programs could understand differently is refused (H49)."""

from __future__ import annotations

import json
import math
from typing import Any

from headwater.errors import BadDocument

MAX_DEPTH = 32
MAX_INTEGER = 2**63 - 1


def read(body: bytes) -> Any:
    """The value of a JSON document without duplicate keys, NaN, infinities, huge integers, lone surrogates or NUL."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except UnicodeDecodeError as error:
        raise BadDocument("The JSON is not valid UTF-8.") from error
    except RecursionError as error:
        raise BadDocument(f"The JSON is nested deeper than {MAX_DEPTH} levels.") from error
    except json.JSONDecodeError as error:
        raise BadDocument(f"This is not JSON: {error.msg} at character {error.pos}.") from error
    _check(value)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadDocument("A JSON object has the same key twice.")
    return found


def _refuse_constant(name: str) -> None:
    raise BadDocument(f"{name} is not a JSON number.")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadDocument("A number in the JSON is too large.")
    return number


def _bounded(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) > MAX_INTEGER:
        raise BadDocument("An integer in the JSON is too large.")
    return int(digits)


def _check(value: Any) -> None:
    waiting = [(value, 1)]
    while waiting:
        found, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise BadDocument(f"The JSON is nested deeper than {MAX_DEPTH} levels.")
        if isinstance(found, str):
            _check_text(found)
        elif isinstance(found, dict):
            waiting += [(key, depth) for key in found]
            waiting += [(part, depth + 1) for part in found.values()]
        elif isinstance(found, list):
            waiting += [(part, depth + 1) for part in found]


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BadDocument("A text in the JSON contains a NUL character.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadDocument("A text in the JSON contains half of a character (a lone surrogate).") from error
