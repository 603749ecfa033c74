"""A sheet of merges and near misses for a person to judge, and what the judged sheet says of folding.

A near miss is a pair that would be one story at a lower threshold. Both are drawn at random, by a seed. Whoever judges
a sheet writes right, topic or wrong behind each "verdict:": the same event (or text), the same topic but another event,
or neither.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headwater.dedup.engine import Engine, Found
from headwater.dedup.repeats import HOUR, WINDOW_HOURS
from headwater.errors import BadInput
from headwater.model import PostText

# Pairs between this score and the threshold are near misses.
NEAR = 0.1
BATCH = 1000
EXCERPT = 240
VERDICTS = ("right", "topic", "wrong")
_HEAD = re.compile(r"^## (merge|near miss) \d+ · (\w+) (\d\.\d+)")
_VERDICT = re.compile(r"^verdict:\s*(\S*)")


class Pair(NamedTuple):
    """A post and the one that it was, or nearly was, folded with."""

    kind: str
    post: PostText
    other: PostText
    found: Found


class Tally(NamedTuple):
    """Of some judged pairs: how many there are and were right, of one topic, and wrong; and what their scores say."""

    pairs: str
    number: int
    right: int
    topic: int
    wrong: int
    score: float | None


class Judged(NamedTuple):
    kind: str
    rule: str
    score: float
    verdict: str


def drawn(posts: Sequence[PostText], count: int, seed: int, window_seconds: float = WINDOW_HOURS * HOUR) -> list[Pair]:
    """Folds posts and draws so many merges by story, and as many near misses."""
    by_id = {post.id: post for post in posts}
    merges = _folded(Engine(window_seconds=window_seconds), posts)
    lower = _folded(Engine(window_seconds=window_seconds, threshold=NEAR), posts)
    chance = random.Random(seed)
    pairs = []
    for kind, found in (
        ("merge", [one for one in merges.values() if one.rule == "story"]),
        ("near miss", [one for post, one in lower.items() if post not in merges and one.rule == "story"]),
    ):
        for one in chance.sample(found, min(count, len(found))):
            pairs.append(Pair(kind, by_id[one.post_id], by_id[one.with_id], one))
    return pairs


def _folded(engine: Engine, posts: Sequence[PostText]) -> dict[int, Found]:
    found = (one for at in range(0, len(posts), BATCH) for one in engine.decide(posts[at : at + BATCH]) if one)
    return {one.post_id: one for one in found}


def sheet(pairs: Iterable[Pair]) -> str:
    lines = ["Write right, topic or wrong behind each verdict.", ""]
    for number, pair in enumerate(pairs, 1):
        lines += [
            f"## {pair.kind} {number} · {pair.found.rule} {pair.found.score:.3f} · {pair.found.why}",
            "verdict: ",
            *(_shown(name, post) for name, post in (("A", pair.other), ("B", pair.post))),
            "",
        ]
    return "\n".join(lines)


def _shown(name: str, post: PostText) -> str:
    return f"{name} ({post.source_id}, {post.created_at:%Y-%m-%d %H:%M}): {excerpt(post)}"


def excerpt(post: PostText) -> str:
    """Returns the title and the beginning of the text on one line."""
    return " ".join(f"{post.title} | {post.text}".split())[:EXCERPT]


def read_sheet(text: str) -> list[Judged]:
    """Returns the pairs of a sheet that have a verdict."""
    judged: list[Judged] = []
    head: re.Match[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        head = _HEAD.match(line) or head
        if head and (verdict := _VERDICT.match(line)) and verdict[1]:
            if verdict[1] not in VERDICTS:
                raise BadInput(f"Line {number}: {verdict[1]} is not a verdict. Write right, topic or wrong.")
            judged.append(Judged(head[1], head[2], float(head[3]), verdict[1]))
    if not judged:
        raise BadInput("No pair of this sheet has a verdict. Write right, topic or wrong behind each.")
    return judged


def report(judged: Sequence[Judged]) -> list[Tally]:
    """Returns what was judged of merges, of near misses, and of merges by score."""
    rows = []
    for name, some in (
        ("merges", [one for one in judged if one.kind == "merge"]),
        ("near misses", [one for one in judged if one.kind == "near miss"]),
        *((f"merges of {low:.1f} to {low + 0.1:.1f}", _scored(judged, low)) for low in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)),
    ):
        said = Counter(one.verdict for one in some)
        promised = round(sum(one.score for one in some) / len(some), 2) if some else None
        rows.append(Tally(name, len(some), said["right"], said["topic"], said["wrong"], promised))
    return rows


def _scored(judged: Sequence[Judged], low: float) -> list[Judged]:
    return [one for one in judged if one.kind == "merge" and low <= one.score < low + 0.1 + (low == 0.9)]
