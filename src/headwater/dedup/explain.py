"""Says about any two posts whether they are one text or tell of one event, and why."""

from __future__ import annotations

from typing import NamedTuple

from headwater.dedup.engine import Engine
from headwater.model import PostText

EVER = 10 * 365 * 24 * 3600.0


class Explanation(NamedTuple):
    """`relation` is exact, similar, story or none."""

    relation: str
    score: float
    why: str


def explained(one: PostText, other: PostText) -> Explanation:
    """As if these two were all there is, whenever they were published. The same, whichever comes first."""
    first, second = sorted((one, other), key=lambda post: (post.created_at, post.id))
    found = Engine(window_seconds=EVER).decide([first, second])[1]
    if found is None:
        return Explanation("none", 0.0, "They are neither the same text nor, by their words, about one event.")
    return Explanation(found.rule, found.score, found.why)
