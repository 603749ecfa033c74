"""Finds the earlier post that a new one repeats, among those of a time window, at a cost that does not grow with it.

A post that repeats nothing becomes a leader: others may repeat it. Only leaders are kept and compared with, so groups
cannot grow into each other by chains. A leader is found by keys: its whole text, its first words, its rarest pairs of
neighbouring words (of an article: some of its word runs). Each key remembers its latest few leaders, and only the few
leaders that share most keys with a post are compared with it.

This is the index as it is meant, in plain Python. `fast.py` is the same for the C compiler; `repeat_index` chooses.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from headwater.dedup.normal import Normal, normal_post
from headwater.dedup.repeats import (
    LEAST_OVERLAP,
    LIGHT,
    LONG,
    compact,
    difference,
    fingerprint,
    is_foldable,
    mixed,
    sample,
    score,
    size,
    verdict,
)

HOUR = 3600
WINDOW_HOURS = 72
LEAD = 4
MOST_PAIRS = 8
MOST_RUN_KEYS = 16
LEADERS_PER_KEY = 16
MOST_COMPARED = 16
# How often pairs were seen is counted in a table of this size, without telling apart those that share a cell.
COUNTERS = 1 << 22
# As many are decided about at once.
MOST_POSTS = 1024
MOST_CHARACTERS = 1_000_000


class Posting(NamedTuple):
    """A post as the index sees it. `id` is ours; `text` is plain; `created_at` is in Unix seconds (0: unknown).

    `repost_of` is the post that this one says it passes on; `link` the address of what it is about. `apart` are leaders
    that a person has said it does not repeat.
    """

    id: int
    title: str = ""
    text: str = ""
    created_at: float = 0.0
    link: str = ""
    repost_of: int | None = None
    apart: frozenset[int] = frozenset()


class Decision(NamedTuple):
    """That `post` repeats `leader`: by which rule (exact, similar), how much so (0 to 1), and why, in words."""

    post: int
    leader: int
    rule: str
    score: float
    why: str


class RepeatIndex(Protocol):
    """What both indexes can do. `add` and `add_many` decide and remember; None: it repeats nothing."""

    def add(self, post: Posting) -> Decision | None: ...
    def add_many(self, posts: Sequence[Posting]) -> list[Decision | None]: ...
    def forget(self, post: int) -> None: ...
    def expire(self, before: float) -> None: ...
    def __len__(self) -> int: ...


def repeat_index(
    *, window_seconds: float = WINDOW_HOURS * HOUR, threshold: float = LEAST_OVERLAP, posts: Iterable[Posting] = ()
) -> RepeatIndex:
    """The fastest index that this installation can run, filled with `posts`, oldest first."""
    from headwater.dedup.fast import IS_COMPILED, FastIndex

    new_index: Callable[..., RepeatIndex] = FastIndex if IS_COMPILED else PlainIndex
    index = new_index(window_seconds=window_seconds, threshold=threshold)
    batch: list[Posting] = []
    for post in posts:
        batch.append(post)
        if len(batch) == 4096:
            index.add_many(batch)
            batch = []
    index.add_many(batch)
    return index


def in_batches(posts: Sequence[Posting]) -> Iterator[Sequence[Posting]]:
    """The posts in batches that are small in every way: many articles take more room than many headlines."""
    first = characters = 0
    for at, post in enumerate(posts):
        characters += len(post.title) + len(post.text)
        if at + 1 - first == MOST_POSTS or characters > MOST_CHARACTERS:
            yield posts[first : at + 1]
            first, characters = at + 1, 0
    if first < len(posts):
        yield posts[first:]


class _Leader(NamedTuple):
    post: int
    number: int
    created_at: float
    text: Normal


class PlainIndex:
    """The index in plain Python: some thousand posts a second."""

    def __init__(self, *, window_seconds: float = WINDOW_HOURS * HOUR, threshold: float = LEAST_OVERLAP) -> None:
        self._window = window_seconds
        self._threshold = threshold
        self._leaders: dict[int, _Leader] = {}
        self._by_key: dict[int, deque[int]] = {}
        self._seen = array("I", bytes(4 * COUNTERS))
        self._number = 0

    def __len__(self) -> int:
        return len(self._leaders)

    def add(self, post: Posting) -> Decision | None:
        if post.repost_of is not None:
            return repost(post)
        text = normal_post(post.title, post.text)
        keys = self._keys(text, post.link)
        if not keys:
            return None
        decision = self._decide(post, text, keys)
        if decision is None:
            self._lead(post, text, keys)
        return decision

    def add_many(self, posts: Sequence[Posting]) -> list[Decision | None]:
        return [self.add(post) for post in posts]

    def forget(self, post: int) -> None:
        """Compares with this post no more: it was edited, deleted, or undone. Unknown posts are nothing to forget."""
        for number in [number for number, leader in self._leaders.items() if leader.post == post]:
            del self._leaders[number]

    def expire(self, before: float) -> None:
        """Forgets the leaders that are older than `before`."""
        kept = {number: leader for number, leader in self._leaders.items() if leader.created_at >= before}
        if len(kept) < len(self._leaders):
            self._leaders = kept
            self._by_key = {
                key: alive
                for key, numbers in self._by_key.items()
                if (alive := deque((number for number in numbers if number in kept), LEADERS_PER_KEY))
            }

    def _keys(self, text: Normal, link: str) -> list[int]:
        """What a text is found by; the first key is the whole text's."""
        whole = fingerprint(compact(text.core))
        if not is_foldable(text):
            return [mixed([whole, fingerprint(link)])] if link and text.core else []
        words = text.words
        heavy = [fingerprint(word) for word in words if word not in LIGHT]
        keys = [whole, mixed(heavy[:LEAD])]
        if size(words) >= LONG:
            return keys + sample(words)[:MOST_RUN_KEYS]
        pairs = [mixed(pair) for pair in pairwise(heavy)]
        for pair in pairs:
            self._seen[pair % COUNTERS] += 1
        return keys + sorted(set(pairs), key=lambda pair: (self._seen[pair % COUNTERS], pair))[:MOST_PAIRS]

    def _decide(self, post: Posting, text: Normal, keys: list[int]) -> Decision | None:
        best: Decision | None = None
        highest = -1.0
        for number in self._candidates(keys):
            leader = self._leaders[number]
            if abs(leader.created_at - post.created_at) > self._window or leader.post in post.apart:
                continue
            if len(keys) == 1:
                return same_link(post, leader.post)
            found = difference(text, leader.text)
            if found is None:
                continue
            words = min(len(text.words), len(leader.text.words))
            likeness = score(found, words)
            if likeness >= self._threshold and likeness > highest:
                highest = likeness
                labels = frozenset(text.labels) ^ frozenset(leader.text.labels)
                other_audience = text.mentions != leader.text.mentions
                best = Decision(post.id, leader.post, *verdict(found, words, labels, other_audience))
        return best

    def _candidates(self, keys: list[int]) -> list[int]:
        """The leaders that share most keys, the earlier first among equals."""
        shared = Counter(number for key in keys for number in self._by_key.get(key, ()) if number in self._leaders)
        return sorted(shared, key=lambda number: (-shared[number], number))[:MOST_COMPARED]

    def _lead(self, post: Posting, text: Normal, keys: list[int]) -> None:
        self._leaders[self._number] = _Leader(post.id, self._number, post.created_at, text)
        for key in keys:
            self._by_key.setdefault(key, deque(maxlen=LEADERS_PER_KEY)).append(self._number)
        self._number += 1


def repost(post: Posting) -> Decision:
    """A post that says itself whom it repeats."""
    assert post.repost_of is not None
    return Decision(post.id, post.repost_of, "exact", 1.0, "passes the other on")


def same_link(post: Posting, leader: int) -> Decision:
    """Two posts with the same few words, which would say nothing, about the same thing."""
    return Decision(post.id, leader, "exact", 1.0, "same words and same link")
