"""How well an engine does on labelled posts: run as in production, its groups are compared with the labels."""

from __future__ import annotations

import lzma
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from headwater.dedup.repeat_index import RepeatIndex
from headwater.dedup.repeats import Posting, RepeatDecision
from headwater.dedup.stories import StoryIndex
from headwater.errors import BadInput

BATCH = 1000


class Decider(Protocol):
    """Anything that decides: for each post, whom it joins, or None where it stands alone so far."""

    def add_many(self, posts: Sequence[Posting], /) -> Sequence[RepeatDecision | None]: ...


class LabelledPost(NamedTuple):
    posting: Posting
    story: str


class _Post(msgspec.Struct, kw_only=True):
    id: str | int
    story: str | int = ""
    source: str = ""
    title: str = ""
    text: str = ""
    created_at: float = 0.0
    url: str = ""


class _LabelledPost(_Post, kw_only=True):
    story: str | int


def evaluate(path: Path, level: str = "repeats", *, shuffle: int | None = None) -> dict[str, float]:
    """Runs the engine of a level (repeats or stories) over a file of labelled posts.

    With a seed to `shuffle` by, they come in random order and without their times: what a file's order gives away is
    then no help.
    """
    posts = read_labelled(path)
    if shuffle is not None:
        posts = shuffled(posts, shuffle)
    return measured(posts, engine_for(level))


def engine_for(level: str) -> Decider:
    if level == "repeats":
        return RepeatIndex()
    if level == "stories":
        return StoryIndex()
    raise BadInput(f"There is no level {level}: choose repeats or stories.")


def measured(posts: Sequence[LabelledPost], engine: Decider) -> dict[str, float]:
    started = time.process_time()
    groups = grouped([post.posting for post in posts], engine)
    seconds = time.process_time() - started
    return agreement(groups, [post.story for post in posts]) | {
        "posts": len(posts),
        "groups": len(set(groups)),
        "posts_per_s": round(len(posts) / max(seconds, 1e-9)),
        "peak_mb": round(peak_memory_mb(), 1),
    }


def read_labelled(path: Path, *, labelled: bool = True) -> list[LabelledPost]:
    """The posts of a JSONL file (.xz: compressed) in the order of their time; without times, in the file's order."""
    decoder = msgspec.json.Decoder(_LabelledPost if labelled else _Post)
    posts = []
    sources: dict[str, int] = {"": 0}
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as lines:
            for number, line in enumerate(lines):
                if line.strip():
                    read = decoder.decode(line)
                    source = sources.setdefault(read.source, len(sources))
                    posting = Posting(number, read.title, read.text, read.created_at, read.url, source=source)
                    posts.append(LabelledPost(posting, str(read.story)))
    except (msgspec.MsgspecError, lzma.LZMAError, EOFError) as error:
        raise BadInput(f"{path} is not a file of labelled posts: line {len(posts) + 1}: {error}") from error
    return sorted(posts, key=lambda post: post.posting.created_at)


def shuffled(posts: Sequence[LabelledPost], seed: int) -> list[LabelledPost]:
    timeless = [post._replace(posting=post.posting._replace(created_at=0.0)) for post in posts]
    random.Random(seed).shuffle(timeless)
    return timeless


def grouped(posts: Sequence[Posting], engine: Decider) -> list[int]:
    """For each post, the id of the post whose group it is in. Stories that met are one group."""
    leader_of: dict[int, int] = {}
    met: dict[int, int] = {}
    for start in range(0, len(posts), BATCH):
        batch = posts[start : start + BATCH]
        for post, decision in zip(batch, engine.add_many(batch), strict=True):
            leader = post.id if decision is None else decision.leader
            leader_of[post.id] = leader_of.get(leader, leader)
        for meeting in engine.take_meetings() if isinstance(engine, StoryIndex) else ():
            moved, kept = (_last(met, leader_of[post]) for post in (meeting.post, meeting.leader))
            if moved != kept:
                met[moved] = kept
    return [_last(met, leader_of[post.id]) for post in posts]


def _last(met: dict[int, int], leader: int) -> int:
    while leader in met:
        leader = met[leader]
    return leader


def agreement(groups: Sequence[int], stories: Sequence[str]) -> dict[str, float]:
    """How well groups match stories: by pairs of posts, and by what each post finds in its group (B-cubed)."""
    together = Counter(zip(groups, stories, strict=True))
    by_group, by_story = Counter(groups), Counter(stories)
    right = _pairs(together.values())
    precision = right / (_pairs(by_group.values()) or 1)
    recall = right / (_pairs(by_story.values()) or 1)
    posts = len(groups) or 1
    b3_precision = sum(count * count / by_group[group] for (group, _), count in together.items()) / posts
    b3_recall = sum(count * count / by_story[story] for (_, story), count in together.items()) / posts
    return {
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "f1": round(_f1(precision, recall), 4),
        "b3_f1": round(_f1(b3_precision, b3_recall), 4),
        "largest": max(by_group.values(), default=0),
    }


def peak_memory_mb() -> float:
    """The most memory that this process has used so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike getrusage, this does not count what the process was before it became this program.
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _pairs(counts: Iterable[int]) -> int:
    return sum(comb(count, 2) for count in counts)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
