"""Finds the odds of `dedup/story_rules.py`: how probable a story's merge is, by what is known when it is decided.

    python bench/train_verifier.py [--sets FOLDER] [--also POSTS.jsonl]

It needs scikit-learn, which the product does not. Labelled posts are folded with every merge that is like enough; a
merge is right if most of the story's posts have the post's label. Posts of `spread`, and those of `--also`, span months
and have no labels. They come in random order and in one window: a merge is right if the story is less than 30 days
away. Each set counts as much as the others. The odds are found on one half of the stories, and the error of the
probabilities (ECE) is measured on the other.
"""

from __future__ import annotations

import argparse
import os
import random
import zlib
from collections import defaultdict
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from headwater.dedup.evaluate import LabelledPost, read_labelled
from headwater.dedup.repeat_index import RepeatIndex
from headwater.dedup.stories import StoryIndex
from headwater.dedup.story_rules import ODDS

ROOT = Path(__file__).resolve().parents[1]
SETS = Path(os.environ.get("HEADWATER_TEST_DATA") or ROOT.parent / "shared" / "data") / "dedup"
LABELLED = ("uci", "og", "googlenews", "allsides")
EVERY_MERGE = 1e-9
MONTH = 30 * 86400.0
BINS = 10


class Merge(NamedTuple):
    logs: list[float]
    right: bool
    is_held_out: bool
    weight: float


class Watched(StoryIndex):
    """Remembers the last batch that was decided."""

    def _fit(self, batch: Any, terms: Any) -> None:
        super()._fit(batch, terms)
        self.last, self.terms = batch, terms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, default=SETS)
    parser.add_argument("--also", type=Path, action="append", default=[])
    options = parser.parse_args()
    sets = options.sets
    merges = [merge for name in LABELLED for merge in weighed(folded(name, read_labelled(sets / f"{name}.jsonl.xz")))]
    for path in (sets / "spread.jsonl.xz", *options.also):
        merges += weighed(folded("spread", spread(path)))
    learned = [merge for merge in merges if not merge.is_held_out]
    model = LogisticRegression(C=10, max_iter=1000)
    model.fit([one.logs for one in learned], [one.right for one in learned], [one.weight for one in learned])
    print("ODDS =", tuple(round(float(odds), 4) for odds in (model.intercept_[0], *model.coef_[0])))
    print("error on held-out merges:", round(calibration_error([one for one in merges if one.is_held_out], model), 3))


def folded(name: str, posts: list[LabelledPost]) -> Iterator[tuple[list[float], bool, bool]]:
    """Folds posts one by one. Yields of each merge what is known, whether it is right, and whether to hold it out."""
    index = Watched(threshold=EVERY_MERGE)
    members: dict[int, list[str]] = defaultdict(list)
    for post in posts:
        index.add(post.posting)
        batch, story = index.last, members[index.last.stories[0]]
        if batch.scores[0] > 0:
            right = _is_right(name, post.story, story)
            if right is not None:
                held_out = zlib.crc32(f"{name}{post.story}".encode()) % 2 == 1
                yield _logs(batch, index.terms.starts[1]), right, held_out
        story.append(post.story)


def _logs(batch: Any, terms: int) -> list[float]:
    """The logarithms that the odds are made of. That of the likeness follows from the probability by today's odds."""
    shared, posts, length = log(batch.shared[0]), log(batch.sizes[0]), log(terms)
    base, by_likeness, by_shared, by_posts, by_terms, by_both = ODDS
    odds = log(batch.scores[0] / max(1 - batch.scores[0], 1e-7))
    rest = base + by_shared * shared + by_posts * posts + by_terms * length + by_both * posts * shared
    return [(odds - rest) / by_likeness, shared, posts, length, posts * shared]


def _is_right(name: str, label: str, story: list[str]) -> bool | None:
    if name == "spread":
        return sorted(abs(float(label) - float(other)) for other in story)[len(story) // 2] <= MONTH
    same = story.count(label)
    return None if 2 * same == len(story) else 2 * same > len(story)


def weighed(merges: Iterator[tuple[list[float], bool, bool]]) -> list[Merge]:
    found = list(merges)
    return [Merge(*merge, weight=1000 / len(found)) for merge in found]


def spread(path: Path) -> list[LabelledPost]:
    """Posts without their times, in random order and each text once; the label is the time."""
    posts = read_labelled(path, labelled=False)
    random.Random(5).shuffle(posts)
    timeless = [LabelledPost(one._replace(created_at=0.0), str(one.created_at)) for one, _ in posts]
    repeats = RepeatIndex().add_many([post.posting for post in timeless])
    return [post for post, repeat in zip(timeless, repeats, strict=True) if repeat is None]


def calibration_error(merges: list[Merge], model: LogisticRegression) -> float:
    """How far, on average, the share of right merges is from what their probability says."""
    says = model.predict_proba([one.logs for one in merges])[:, 1]
    right, weights = np.array([one.right for one in merges]), np.array([one.weight for one in merges])
    error = 0.0
    for place in range(BINS):
        chosen = np.minimum((says * BINS).astype(int), BINS - 1) == place
        if chosen.any():
            error += abs(float((weights[chosen] * (says[chosen] - right[chosen])).sum()))
    return error / float(weights.sum())


if __name__ == "__main__":
    main()
