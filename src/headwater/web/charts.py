"""Bar charts: values become bars in the units of the drawing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH = 600
HEIGHT = 80


class Bar(NamedTuple):
    """A bar of a chart, in the units of the chart."""

    label: str
    value: float
    x: float
    y: float
    width: float
    height: float


def bars(values: Sequence[tuple[str, float]], width: int = WIDTH, height: int = HEIGHT, top: float = 0) -> list[Bar]:
    """Returns bars side by side. The tallest, or one of `top`, has the full height; any value above 0 can be seen."""
    most = max((value for _, value in values), default=0)
    most = max(most, top) or 1
    room = width / max(1, len(values))
    found = []
    for place, (label, value) in enumerate(values):
        tall = max(2.0, value / most * height) if value else 0.0
        found.append(Bar(label, value, round(place * room, 2), round(height - tall, 2), round(room * 0.8, 2), tall))
    return found
