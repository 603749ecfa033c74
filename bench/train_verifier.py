"""Finds the odds of `dedup/story_rules.py`: how probable it is that a post belongs to a story, and two stories are one.

    python bench/train_verifier.py [--sets FOLDER] [--also POSTS.jsonl] [--rounds 3]

It needs scikit-learn, which the product does not. The odds of short posts are found where a post has few terms, those
of long ones where it has many; one in between counts for both. Labelled posts are folded. Of each post two stories are
looked at, those that it most probably belongs to: it does if most of the story's posts have its label. Posts of
`spread`, and those of `--also`, span months and have no labels. They come in random order and in one window: a post
belongs to a story that is less than 30 days away. The odds that are found fold the posts of the next round, because
what is asked of a post depends on the stories that were made. Each set counts as much as the others, spread three
times. Odds are found on one half of the stories; the error of the probabilities (ECE) is measured on the other.
"""

from __future__ import annotations

import argparse
import os
import random
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

from headwater.dedup.evaluate import LabelledPost, read_labelled
from headwater.dedup.repeat_index import RepeatIndex
from headwater.dedup.stories import THRESHOLD, StoryIndex
from headwater.dedup.story_rules import LOGS, LONG_ODDS, MEETING_ODDS, ODDS, StoryRules

ROOT = Path(__file__).resolve().parents[1]
SETS = Path(os.environ.get("HEADWATER_TEST_DATA") or ROOT.parent / "shared" / "data") / "dedup"
LABELLED = ("uci", "og", "googlenews", "allsides")
WITHOUT_LABELS = 3.0  # how much posts without labels count
MONTH = 30 * 86400.0
BINS = 10
BRIDGE = StoryRules._field_defaults["bridge"]
FEW_TERMS, MANY_TERMS = (StoryRules._field_defaults[name] for name in ("few_terms", "many_terms"))
TERMS_AT = 3  # where the logarithm of a post's terms is
NEVER = (-99.0, 0.0, 0.0, 0.0, 0.0)

Odds = tuple[float, ...]


class Case(NamedTuple):
    """What is known of a post and a story, or of two stories, and whether they belong together."""

    logs: list[float]
    right: bool
    is_held_out: bool
    weight: float


class Both(NamedTuple):
    """The odds of posts of few terms and of many."""

    short: Odds
    long: Odds

    def of(self, logs: Sequence[float]) -> Odds:
        share = length(logs)
        return tuple(one + share * (other - one) for one, other in zip(self.short, self.long, strict=True))


class Watched(StoryIndex):
    """Remembers the last batch that was decided."""

    def _note_meetings(self, batch: Any) -> None:
        super()._note_meetings(batch)
        self.last = batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, default=SETS)
    parser.add_argument("--also", type=Path, action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sets = sets_in(options.sets, options.also)
    both = Both(ODDS, LONG_ODDS)
    joins, meetings = folded(sets, both)
    print("error on held-out stories:", round(error_on_held_out(joins, both), 3), flush=True)
    for _ in range(options.rounds):
        both = found_both([one for one in joins if not one.is_held_out])
        joins, meetings = folded(sets, both)
        print("ODDS =", both.short, "\nLONG_ODDS =", both.long)
        print("error on held-out stories:", round(error_on_held_out(joins, both), 3), flush=True)
    print("MEETING_ODDS =", found(meetings), "were", MEETING_ODDS)


def sets_in(folder: Path, also: Sequence[Path] = ()) -> dict[str, tuple[list[LabelledPost], float]]:
    """The sets to learn from, and how much each counts."""
    sets = {name: (read_labelled(folder / f"{name}.jsonl.xz"), 1.0) for name in LABELLED}
    return sets | {
        f"spread {path.name}": (spread(path), WITHOUT_LABELS) for path in (folder / "spread.jsonl.xz", *also)
    }


def error_on_held_out(joins: Sequence[Case], odds: Both) -> float:
    return calibration_error([one for one in joins if one.is_held_out], odds)


def folded(sets: dict[str, tuple[list[LabelledPost], float]], odds: Both) -> tuple[list[Case], list[Case]]:
    """Folds each set. Returns the posts that could join a story, and the stories that could become one."""
    joins: list[Case] = []
    meetings: list[Case] = []
    for name, (posts, counts) in sets.items():
        some: list[tuple[list[float], bool, bool]] = []
        pairs: list[tuple[list[float], bool, bool]] = []
        for kind, case in cases(name, posts, odds):
            (some if kind == "join" else pairs).append(case)
        joins += [Case(*one, weight=1000 * counts / len(some)) for one in some]
        meetings += [Case(*one, weight=1000 / len(pairs)) for one in pairs]
    return joins, meetings


def cases(name: str, posts: list[LabelledPost], odds: Both) -> Iterator[tuple[str, tuple[list[float], bool, bool]]]:
    """Folds posts one by one. Yields what is known, whether it is right, and whether to hold it out."""
    index = Watched(threshold=THRESHOLD, odds=odds.short, long_odds=odds.long, meeting_odds=NEVER)
    members: dict[int, list[str]] = defaultdict(list)
    bridges: Counter[tuple[int, int]] = Counter()
    seen: dict[tuple[int, int], tuple[int, ...]] = {}
    for post in posts:
        index.add(post.posting)
        batch = index.last
        held_out = zlib.crc32(f"{name}{post.story}".encode()) % 2 == 1
        logs = [list(batch.logs[place * LOGS : (place + 1) * LOGS]) for place in range(2)]
        for place, number in enumerate(batch.likely):
            right = number >= 0 and is_right(name, post.story, members[number])
            if number >= 0 and right is not None:
                yield "join", (logs[place], right, held_out)
        members[batch.stories[0]].append(post.story)
        if batch.scores[0] and batch.likely[1] >= 0 and (second := probability(logs[1], odds.of(logs[1]))) >= BRIDGE:
            pair = (min(batch.likely), max(batch.likely))
            bridges[pair] += second  # type: ignore[assignment]
            one, other = (members[number] for number in pair)
            sizes = sorted((len(one), len(other)))
            looked = (*(size.bit_length() for size in sizes), int(bridges[pair]).bit_length())
            if seen.get(pair) != looked:
                seen[pair] = looked
                known = [log(sizes[1]), log(sizes[0]), log(second / (1 - min(second, 0.9999))), log(bridges[pair])]
                yield "meeting", (known, are_one(name, one, other), held_out)


def probability(logs: Sequence[float], odds: Odds) -> float:
    return 1 / (1 + exp(-odds[0] - sum(each * value for each, value in zip(odds[1:], logs, strict=True))))


def length(logs: Sequence[float]) -> float:
    """0 for posts of few terms, 1 for those of many."""
    share: float = (exp(logs[TERMS_AT]) - FEW_TERMS) / (MANY_TERMS - FEW_TERMS)
    return min(max(share, 0.0), 1.0)


def is_right(name: str, label: str, story: list[str]) -> bool | None:
    if name.startswith("spread"):
        return sorted(abs(float(label) - float(other)) for other in story)[len(story) // 2] <= MONTH
    same = story.count(label)
    return None if 2 * same == len(story) else 2 * same > len(story)


def are_one(name: str, one: list[str], other: list[str]) -> bool:
    if name.startswith("spread"):
        middles = [sorted(map(float, story))[len(story) // 2] for story in (one, other)]
        return abs(middles[0] - middles[1]) <= MONTH
    return Counter(one).most_common(1)[0][0] == Counter(other).most_common(1)[0][0]


def spread(path: Path) -> list[LabelledPost]:
    """Posts without their times, in random order and each text once; the label is the time."""
    posts = read_labelled(path, labelled=False)
    random.Random(5).shuffle(posts)
    timeless = [LabelledPost(one._replace(created_at=0.0), str(one.created_at)) for one, _ in posts]
    repeats = RepeatIndex().add_many([post.posting for post in timeless])
    return [post for post, repeat in zip(timeless, repeats, strict=True) if repeat is None]


def found_both(cases: list[Case]) -> Both:
    short = [one._replace(weight=one.weight * (1 - length(one.logs))) for one in cases]
    long = [one._replace(weight=one.weight * length(one.logs)) for one in cases]
    return Both(found(short), found(long))


def found(cases: list[Case]) -> Odds:
    from sklearn.linear_model import LogisticRegression  # whoever only measures does not need it

    model = LogisticRegression(max_iter=1000)
    model.fit([one.logs for one in cases], [one.right for one in cases], [one.weight for one in cases])
    return tuple(round(float(odds), 4) for odds in (model.intercept_[0], *model.coef_[0]))


def calibration_error(cases: list[Case], odds: Both) -> float:
    """How far, on average, the share of right ones is from what their probability says."""
    off = [0.0] * BINS
    for one in cases:
        says = probability(one.logs, odds.of(one.logs))
        off[min(int(says * BINS), BINS - 1)] += one.weight * (says - one.right)
    return sum(map(abs, off)) / sum(one.weight for one in cases)


if __name__ == "__main__":
    main()
