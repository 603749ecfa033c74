"""`index.PlainIndex` in compiled code and compact arrays: tens of thousands of posts a second, a million in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headwater.dedup.compiled import IS_COMPILED
from headwater.dedup.index import COUNTERS, HOUR, WINDOW_HOURS, Decision, Posting, repost, same_link
from headwater.dedup.kernels import BY_LINK, CUT, GONE, TORN, known_words, room_for_words
from headwater.dedup.lookup import (
    BYTES,
    CELLS,
    LEADER,
    LEADERS,
    LEADS,
    MOST_CANDIDATES,
    MOST_KEYS,
    RUNS,
    Answers,
    Batch,
    Room,
    State,
    Tables,
    decide_all,
    gather,
    rehash,
)
from headwater.dedup.normal import Trimmed, trimmed_post
from headwater.dedup.repeats import LEAST_OVERLAP, MOST_RUNS, NUMBERED, Difference, verdict
from headwater.dedup.spelling import classes

if not IS_COMPILED:
    raise ImportError("numba is not installed; index.PlainIndex does the same without it")

_MOST_POSTS = 1024
_MOST_CHARACTERS = 1_000_000
_FULLEST = 0.7
# A character becomes at most four bytes and a space.
_BYTES_PER_CHARACTER = 5
_CLASSES = classes()
_KNOWN, _KNOWN_KINDS = known_words()
_64_BITS = (1 << 64) - 1


class FastIndex:
    """An index over a time window; see `index.RepeatIndex`. Not for several threads at once."""

    def __init__(self, *, window_seconds: float = WINDOW_HOURS * HOUR, threshold: float = LEAST_OVERLAP) -> None:
        self._tables = Tables(_CLASSES, _KNOWN, _KNOWN_KINDS, float(window_seconds), float(threshold))
        # Few posts have labels: a row of their own would cost more.
        self._labels: dict[int, tuple[str, ...]] = {}
        self._gone = 0
        self._state = State(
            leaders=np.zeros(1, LEADER),
            text=np.zeros(1, np.uint8),
            runs=np.zeros(MOST_RUNS, np.uint64),
            cells=np.zeros(1 << 16, np.uint64),
            seen=np.zeros(COUNTERS, np.uint32),
            used=np.zeros(4, np.int64),
        )
        self._room = self._new_room(1)

    def __len__(self) -> int:
        return int(self._state.used[LEADERS]) - self._gone

    def add(self, post: Posting) -> Decision | None:
        return self.add_many([post])[0]

    def add_many(self, posts: Sequence[Posting]) -> list[Decision | None]:
        decisions: list[Decision | None] = []
        for batch in _batches(posts):
            decisions += self._add_batch(batch)
        return decisions

    def forget(self, post: int) -> None:
        """Compares with this post no more: it was edited, deleted, or undone. Unknown posts are nothing to forget."""
        leaders = self._state.leaders[: self._state.used[LEADERS]]
        self._drop(leaders["post"] == post)

    def expire(self, before: float) -> None:
        """Forgets the leaders that are older than `before`."""
        leaders = self._state.leaders[: self._state.used[LEADERS]]
        self._drop(leaders["created_at"] < before)

    def _drop(self, chosen: Any) -> None:
        leaders = self._state.leaders[: self._state.used[LEADERS]]
        leaders["flags"][chosen] |= GONE
        self._gone = int(np.count_nonzero(leaders["flags"] & GONE))
        if self._gone * 2 > len(leaders):
            self._compact()

    def _compact(self) -> None:
        """Gives back the space of leaders that are gone."""
        state = self._state
        leaders = state.leaders[: state.used[LEADERS]]
        kept = np.flatnonzero(leaders["flags"] & GONE == 0)
        renumbered = np.full(len(leaders), -1, np.int64)
        renumbered[kept] = np.arange(len(kept))
        gather(state, kept)
        self._labels = {
            int(renumbered[number]): labels for number, labels in self._labels.items() if renumbered[number] >= 0
        }
        self._gone = 0
        self._rehash(renumbered, len(state.cells))

    def _rehash(self, renumbered: Any, cells: int) -> None:
        table = np.zeros(cells, np.uint64)
        self._state.used[CELLS] = rehash(self._state.cells, renumbered, table)
        self._state = self._state._replace(cells=table)

    def _add_batch(self, posts: Sequence[Posting]) -> list[Decision | None]:
        decisions: list[Decision | None] = [None if post.repost_of is None else repost(post) for post in posts]
        asked = [at for at, post in enumerate(posts) if post.repost_of is None]
        if not asked:
            return decisions
        chosen = [posts[at] for at in asked]
        trimmed = [trimmed_post(post.title, post.text) for post in chosen]
        batch = _batch(chosen, trimmed)
        self._make_room(batch)
        answers = Answers(
            np.empty(len(chosen), np.int64), np.zeros((len(chosen), 5), np.int64), np.zeros(len(chosen), np.float64)
        )
        number = int(self._state.used[LEADERS])
        decide_all(self._state, self._tables, batch, self._room, answers)
        for row, leader in enumerate(answers.leaders.tolist()):
            if leader >= 0:
                counts, overlap = answers.counts[row].tolist(), float(answers.overlaps[row])
                decisions[asked[row]] = self._decision(chosen[row], trimmed[row], leader, counts, overlap)
            elif leader == LEADS:
                if trimmed[row].labels:
                    self._labels[number] = trimmed[row].labels
                number += 1
        return decisions

    def _decision(self, post: Posting, text: Trimmed, number: int, counts: list[int], overlap: float) -> Decision:
        leader = self._state.leaders[number]
        if leader["flags"] & BY_LINK:
            return same_link(post, int(leader["post"]))
        slips, light, rest, cut, words = counts
        labels = frozenset(text.labels).symmetric_difference(self._labels.get(number, ()))
        other_audience = _mentions(text) != int(leader["mentions"])
        found = Difference(slips, light, rest, bool(cut), overlap)
        return Decision(post.id, int(leader["post"]), *verdict(found, words, labels, other_audience))

    def _make_room(self, batch: Batch) -> None:
        """Makes every array large enough for a batch, whatever is in it."""
        state, posts, characters = self._state, len(batch.ids), len(batch.codes)
        used = state.used
        grown = (
            _grow(state.leaders, int(used[LEADERS]) + posts),
            _grow(state.text, int(used[BYTES]) + characters * _BYTES_PER_CHARACTER + 8),
            _grow(state.runs, (int(used[RUNS]) + posts + 1) * MOST_RUNS),
        )
        cells = len(state.cells)
        while (used[CELLS] + posts * MOST_KEYS) > cells * _FULLEST:
            cells *= 2
        if cells > len(state.cells):
            self._rehash(np.arange(used[LEADERS]), cells)
        longest = int((batch.bounds[:, 3] - batch.bounds[:, 0]).max()) + 1
        if any(grown) or longest > len(self._room.words.starts):
            self._room = self._new_room(max(longest, len(self._room.words.starts)))

    def _new_room(self, longest: int) -> Room:
        return Room(
            words=room_for_words(self._state.text, longest),
            others=room_for_words(self._state.text, NUMBERED),
            runs=np.zeros(MOST_RUNS, np.uint64),
            keys=np.zeros(MOST_KEYS, np.uint64),
            rarity=np.zeros(MOST_KEYS, np.uint32),
            numbers=np.zeros(MOST_CANDIDATES, np.int64),
            shared=np.zeros(MOST_CANDIDATES, np.int64),
        )


def _grow(array: Any, size: int) -> bool:
    """Makes an array larger in place, by more than is needed now. Returns whether it had to."""
    if size <= len(array):
        return False
    array.resize(max(size, len(array) * 5 // 4), refcheck=False)
    return True


def _batches(posts: Sequence[Posting]) -> Iterator[Sequence[Posting]]:
    """The posts in batches that are small in every way: many articles take more room than many headlines."""
    first = characters = 0
    for at, post in enumerate(posts):
        characters += len(post.title) + len(post.text)
        if at + 1 - first == _MOST_POSTS or characters > _MOST_CHARACTERS:
            yield posts[first : at + 1]
            first, characters = at + 1, 0
    if first < len(posts):
        yield posts[first:]


def _batch(posts: Sequence[Posting], trimmed: Sequence[Trimmed]) -> Batch:
    parts = [part for text in trimmed for part in text[:3]]
    ends = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts))).reshape(-1, 3)
    bounds = np.zeros((len(posts), 4), np.int64)
    bounds[:, 1:] = ends
    bounds[1:, 0] = ends[:-1, 2]
    apart = [leader for post in posts for leader in post.apart]
    apart_bounds = np.zeros(len(posts) + 1, np.int64)
    if apart:
        apart_bounds[1:] = np.cumsum([len(post.apart) for post in posts])
    return Batch(
        codes=np.frombuffer("".join(parts).encode("utf-32-le", "surrogatepass"), np.uint32),
        bounds=bounds,
        ids=np.array([post.id for post in posts], np.int64),
        created_at=np.array([post.created_at for post in posts], np.float64),
        mentions=np.array([_mentions(text) for text in trimmed], np.uint64),
        links=np.array([hash(post.link) & _64_BITS if post.link else 0 for post in posts], np.uint64),
        flags=np.array([CUT * text.cut | TORN * text.torn for text in trimmed], np.uint8),
        apart=np.array(apart, np.int64),
        apart_bounds=apart_bounds,
    )


def _mentions(text: Trimmed) -> int:
    """Whom a text speaks to, as a number; 0: to nobody."""
    return (hash(text.mentions) & _64_BITS) or 1 if text.mentions else 0
