"""Groups posts into stories, as they come: each joins the story that it is most like, or begins one.

A decision is made once and is never taken back by itself: stories do not merge and do not split. They cannot grow into
each other by chains, because a post is compared with a story as a whole and not with its nearest post, and because a
story takes posts only for the window's time and only up to a number. `stories_texts.py` and `stories_terms.py` say
what is compared, `stories_kernel.py` how; `stories_notes.py`, `stories_memory.py` and `stories_posts.py` what is kept.

Nothing here reads a clock: it is as late as the newest post says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwater.dedup import stories_memory as memory
from headwater.dedup.index import HOUR, WINDOW_HOURS, Decision, Posting
from headwater.dedup.stories_kernel import Batch, Verdicts, decide
from headwater.dedup.stories_notes import NONE, SHOWN, Rules, unlearn, weigh
from headwater.dedup.stories_posts import StoriesOfPosts
from headwater.dedup.stories_terms import Reading, Terms, read_posts, room_for_terms, tables
from headwater.dedup.stories_texts import LEAD, Texts, texts_of, word_at
from headwater.errors import BadInput

Embed = Callable[[Sequence[str]], NDArray[np.float32]]

THRESHOLD = 0.5
MOST_POSTS = 1000
FEWEST_STORIES = 1 << 12
MOST_STORIES = 1 << 20
BATCH = 1024
# Fewer terms, or posts, than this are not worth tidying up.
FEW = 1 << 16


class _Read(NamedTuple):
    """Posts as their terms, and as the texts in which those stood."""

    posts: Sequence[Posting]
    texts: Texts
    terms: Terms


class StoryIndex:
    """The stories of a time window. Posts come in about the order of their time; a post without one comes now.

    `threshold` is the score, above 0 and up to 1, that a post needs to join. 0.5 is what measured best. `embed` turns
    texts into vectors of their meaning, a row for each (`embeddings.py`): then it counts as well, but never alone.
    """

    def __init__(
        self,
        *,
        window_seconds: float = WINDOW_HOURS * HOUR,
        threshold: float = THRESHOLD,
        most_posts: int = MOST_POSTS,
        most_stories: int = MOST_STORIES,
        embed: Embed | None = None,
        posts: Iterable[Posting] = (),
    ) -> None:
        if not 0 < threshold <= 1:
            raise BadInput(f"threshold: {threshold} is not above 0 and up to 1")
        self._rules = Rules(float(threshold), float(window_seconds), most_posts=most_posts)
        self._most_stories = 1 << (most_stories - 1).bit_length()
        self._embed = embed
        dimensions = embed([""]).shape[1] if embed else 0
        self._memory = memory.empty(min(FEWEST_STORIES, self._most_stories), dimensions)
        self._story_of = StoriesOfPosts()
        self._apart: dict[int, set[int]] = {}
        self._now = 0.0
        self._fades_at = 0.0
        self._tidy_terms_at = self._tidy_posts_at = FEW
        for portion in self._portions(posts):
            self._decide(portion)

    def __len__(self) -> int:
        """How many posts are remembered."""
        return len(self._story_of)

    def add(self, post: Posting) -> Decision | None:
        """Which story a post joins, or None if it begins one. A post that is known is not added again."""
        return self.add_many([post])[0]

    def add_many(self, posts: Iterable[Posting]) -> list[Decision | None]:
        decisions: list[Decision | None] = []
        for portion in self._portions(posts):
            decisions += self._decide(portion)
        return decisions

    def story(self, post: int) -> int | None:
        """The earliest post of the story that a post is in; None if it is not remembered."""
        number = self._story_of.get(post)
        return (
            int(self._memory.stories["leader"][self._slot(number)])
            if number is not None and self._has(number)
            else None
        )

    def keep_apart(self, post: int, other: int) -> None:
        """Says that two posts do not tell of one event. It holds for posts that are added from now on."""
        self._apart.setdefault(post, set()).add(other)
        self._apart.setdefault(other, set()).add(post)

    def forget(self, post: Posting) -> None:
        """Takes a post out of its story: it was edited, deleted or undone. `post` is as it was added."""
        number = self._story_of.get(post.id)
        self._story_of.forget(post.id)
        if number is None or not self._has(number):
            return
        batch = self._batch(self._read([post]), ())
        self._fit(batch)
        weights = np.zeros(len(batch.places))
        weigh(self._memory, self._rules, batch.places, batch.weights, weights)
        unlearn(self._memory, self._rules, batch.places, weights, batch.meanings[0], number)
        if self._memory.stories["leader"][self._slot(number)] == post.id:
            # Rare enough to look at all posts. The first that came is the next to lead.
            self._memory.stories["leader"][self._slot(number)] = self._story_of.first_of(number)

    def _slot(self, number: int) -> int:
        return number % len(self._memory.stories)

    def _has(self, number: int) -> bool:
        return int(self._memory.stories["number"][self._slot(number)]) == number

    def _portions(self, posts: Iterable[Posting]) -> Iterator[list[Posting]]:
        """Posts in portions. One that is known, or kept apart from others, goes alone: it has to see where they are.

        A portion does not reach beyond the next fading, so that it does not matter how posts were handed over.
        """
        for some in batched(posts):
            known = set(self._story_of.of([post.id for post in some]))
            portion: list[Posting] = []
            for post in some:
                for other in post.apart:
                    self.keep_apart(post.id, other)
                alone = post.id in self._apart or post.id in known
                if portion and (alone or post.created_at >= self._fades_at):
                    yield portion
                    portion = []
                known.add(post.id)
                if alone:
                    yield [post]
                else:
                    portion.append(post)
            if portion:
                yield portion

    def _decide(self, posts: Sequence[Posting]) -> list[Decision | None]:
        if posts[0].id in self._story_of:
            return [self._known(posts[0].id)]
        barred = list(self._story_of.of(list(self._apart.get(posts[0].id, ()))).values())
        self._tidy(posts[0].created_at)
        read = self._read(posts)
        batch = self._batch(read, barred)
        self._fit(batch)
        size = len(posts)
        verdicts = Verdicts(
            story=np.zeros(size, np.int32),
            leader=np.zeros(size, np.int64),
            score=np.zeros(size, np.float32),
            shown=np.full((size, SHOWN), NONE, np.int32),
        )
        decide(self._memory, self._rules, batch, verdicts)
        self._story_of.put(batch.ids, verdicts.story)
        decisions: list[Decision | None] = [None] * size
        for place in np.flatnonzero(verdicts.score).tolist():
            decisions[place] = _decision(read, verdicts, place)
        return decisions

    def _known(self, post: int) -> Decision | None:
        leader = self.story(post)
        return None if leader in (None, post) else Decision(post, leader, "similar", 1.0, "is in this story already")

    def _read(self, posts: Sequence[Posting]) -> _Read:
        texts = texts_of((post.title, post.text) for post in posts)
        terms = room_for_terms(texts)
        known = memory.with_room_for_terms(self._memory.vocabulary, len(terms.places))
        self._memory = self._memory._replace(vocabulary=known)
        read_posts(Reading(texts.codes, tables(), known, terms), texts.bounds)
        return _Read(posts, texts, terms)

    def _batch(self, read: _Read, barred: Sequence[int]) -> Batch:
        times: list[float] = []
        for post in read.posts:
            self._now = max(self._now, post.created_at)
            times.append(post.created_at or self._now)
        return Batch(
            ids=np.array([post.id for post in read.posts], np.int64),
            starts=read.terms.starts,
            places=read.terms.places[: read.terms.starts[-1]],
            weights=read.terms.weights,
            times=np.array(times, np.float64),
            barred=np.array(barred, np.int32),
            meanings=self._meanings(read.posts),
        )

    def _meanings(self, posts: Sequence[Posting]) -> NDArray[np.float32]:
        if self._embed is None:
            return np.zeros((len(posts), 0), np.float32)
        return self._embed([f"{post.title}\n{post.text[:LEAD]}" for post in posts])

    def _fit(self, batch: Batch) -> None:
        """Makes room for a batch. What the window has left behind makes room first."""
        since = self._now - self._rules.window
        while len(self._memory.stories) < self._most_stories and not memory.fits(
            self._memory, len(batch.times), len(batch.places), since
        ):
            self._memory = memory.doubled(self._memory)

    def _tidy(self, now: float) -> None:
        """Lets fade what was seen before, and forgets terms and posts that the window has left behind."""
        period = self._rules.window / memory.FADES_PER_WINDOW
        if now >= self._fades_at:
            times = 1 + int((now - self._fades_at) / period)
            memory.fade(self._memory, times)
            self._fades_at += times * period
        if self._memory.vocabulary.size[0] > self._tidy_terms_at:
            kept = memory.without_unseen_terms(self._memory.vocabulary)
            self._memory = self._memory._replace(vocabulary=kept)
            self._tidy_terms_at = max(FEW, 2 * len(kept.terms))
        if self._story_of.room_taken > self._tidy_posts_at:
            since = self._now - self._rules.window
            self._story_of.keep(memory.are_young(self._memory, self._story_of.numbers(), since))
            self._tidy_posts_at = max(FEW, 2 * self._story_of.room_taken)


def batched(posts: Iterable[Posting]) -> Iterator[list[Posting]]:
    rest = iter(posts)
    while some := list(islice(rest, BATCH)):
        yield some


def _decision(read: _Read, verdicts: Verdicts, place: int) -> Decision:
    first, begins, ends = read.terms.starts[place], read.terms.begins, read.terms.ends
    shown = [first + index for index in verdicts.shown[place] if index != NONE]
    shared = ", ".join(word_at(read.texts, begins[at], ends[at]) for at in shown)
    score = round(float(verdicts.score[place]), 3)
    leader = int(verdicts.leader[place])
    return Decision(read.posts[place].id, leader, "similar", score, f"shares: {shared}; {score:.2f}")
