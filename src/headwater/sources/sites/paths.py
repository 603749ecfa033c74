"""Paths into a JSON document, as people write them in settings: `data.items[*].url`.

Names, `[0]`, `[-1]` and `[*]`, no more: there is nothing in them that could compute, loop or reach out of the document.
"""

from __future__ import annotations

import re
from typing import Any

from headwater.errors import BadSetting

MAX_FOUND = 10_000
_STEP = re.compile(r"\.?([\w@$-]+)|\[(\*|-?\d{1,4})\]")


def steps_of(path: str) -> list[str | int]:
    """The steps of a path; raises BadSetting where it is none."""
    steps: list[str | int] = []
    end = 0
    for found in _STEP.finditer(path):
        if found.start() != end:
            break
        name, place = found.groups()
        steps.append(name if name is not None else place if place == "*" else int(place))
        end = found.end()
    if end != len(path) or not steps:
        raise BadSetting(
            f"{path[:100]!r} is not a path into JSON. Write names with dots, [0] or [*]: data.items[*].url."
        )
    return steps


def found_at(document: Any, path: str) -> list[Any]:
    """Every value that the path leads to."""
    values = [document]
    for step in steps_of(path):
        values = [inner for value in values for inner in _step(value, step)][:MAX_FOUND]
    return values


def text_at(document: Any, path: str) -> str:
    """The first text or number that the path leads to, as text; empty where there is none."""
    for value in found_at(document, path) if path else ():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
    return ""


def _step(value: Any, step: str | int) -> list[Any]:
    if isinstance(value, list):
        if step == "*":
            return value
        if isinstance(step, int) and -len(value) <= step < len(value):
            return [value[step]]
    if isinstance(value, dict) and isinstance(step, str):
        if step == "*":
            return list(value.values())
        if step in value:
            return [value[step]]
    return []
