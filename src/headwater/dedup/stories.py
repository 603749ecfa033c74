"""Groups posts into stories, as they come: each joins the story that it is most like, or begins one.

A decision is made once and is never taken back by itself: stories do not merge and do not split. They cannot grow into
each other by chains, because a post is compared with a story as a whole and not with its nearest post, and because a
story takes posts only for the window's time and only up to a number. `stories_terms.py` says what is compared,
`stories_kernel.py` how, `stories_memory.py` what is kept.

Nothing here reads a clock: it is as late as the newest post says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headwater.dedup import stories_kernel as kernel
from headwater.dedup import stories_memory as memory
from headwater.dedup.index import HOUR, WINDOW_HOURS, Decision, Posting
from headwater.dedup.stories_kernel import NONE, SHOWN, Batch, Rules, Verdicts
from headwater.dedup.stories_terms import LEAD, LEAD_WEIGHT, TITLE_WEIGHT, Vocabulary
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
    """A post as its terms: each term's place with a word that stands for it, and how many are the title's."""

    post: Posting
    terms: dict[int, str]
    in_title: int


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
        self._vocabulary = Vocabulary()
        self._terms_known = 0
        self._embed = embed
        dimensions = embed([""]).shape[1] if embed else 0
        self._memory = memory.empty(min(FEWEST_STORIES, self._most_stories), dimensions)
        self._story_of: dict[int, int] = {}
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
        number = self._story_of.pop(post.id, None)
        if number is None or not self._has(number):
            return
        batch = self._batch([self._read(post)], ())
        self._fit(batch)
        weights = np.zeros(len(batch.places))
        kernel.weigh(self._memory, self._rules, batch.places, batch.weights, weights)
        kernel.unlearn(self._memory, self._rules, batch.places, weights, batch.meanings[0], number)
        if self._memory.stories["leader"][self._slot(number)] == post.id:
            # Rare enough to look at all posts. The first that came is the next to lead.
            others = (other for other, story in self._story_of.items() if story == number)
            self._memory.stories["leader"][self._slot(number)] = next(others, NONE)

    def _slot(self, number: int) -> int:
        return number % len(self._memory.stories)

    def _has(self, number: int) -> bool:
        return int(self._memory.stories["number"][self._slot(number)]) == number

    def _portions(self, posts: Iterable[Posting]) -> Iterator[list[Posting]]:
        """Posts in portions. One that is known, or kept apart from others, goes alone: it has to see where they are.

        A portion does not reach beyond the next fading, so that it does not matter how posts were handed over.
        """
        portion: dict[int, Posting] = {}
        for post in posts:
            for other in post.apart:
                self.keep_apart(post.id, other)
            alone = post.id in self._apart or post.id in portion or post.id in self._story_of
            if portion and (alone or len(portion) == BATCH or post.created_at >= self._fades_at):
                yield list(portion.values())
                portion = {}
            if alone:
                yield [post]
            else:
                portion[post.id] = post
        if portion:
            yield list(portion.values())

    def _decide(self, posts: Sequence[Posting]) -> list[Decision | None]:
        if posts[0].id in self._story_of:
            return [self._known(posts[0].id)]
        barred = [self._story_of[other] for other in self._apart.get(posts[0].id, ()) if other in self._story_of]
        self._tidy(posts[0].created_at)
        read = [self._read(post) for post in posts]
        batch = self._batch(read, barred)
        self._fit(batch)
        size = len(posts)
        verdicts = Verdicts(
            story=np.zeros(size, np.int32),
            leader=np.zeros(size, np.int64),
            score=np.zeros(size, np.float32),
            shown=np.full((size, SHOWN), NONE, np.int32),
        )
        kernel.decide(self._memory, self._rules, batch, verdicts)
        self._story_of.update(zip(batch.ids.tolist(), verdicts.story.tolist(), strict=True))
        found = zip(read, verdicts.leader.tolist(), verdicts.score.tolist(), verdicts.shown.tolist(), strict=True)
        return [_decision(read, leader, score, shown) if score else None for read, leader, score, shown in found]

    def _known(self, post: int) -> Decision | None:
        leader = self.story(post)
        return None if leader in (None, post) else Decision(post, leader, "similar", 1.0, "is in this story already")

    def _read(self, post: Posting) -> _Read:
        return _Read(post, *self._vocabulary.read(post.title, post.text))

    def _batch(self, read: Sequence[_Read], barred: Sequence[int]) -> Batch:
        starts = [0]
        places: list[int] = []
        weights: list[float] = []
        times: list[float] = []
        for post, terms, in_title in read:
            places += terms
            weights += [TITLE_WEIGHT] * in_title + [LEAD_WEIGHT] * (len(terms) - in_title)
            starts.append(len(places))
            self._now = max(self._now, post.created_at)
            times.append(post.created_at or self._now)
        return Batch(
            ids=np.array([one.post.id for one in read], np.int64),
            starts=np.array(starts, np.int64),
            places=np.array(places, np.int32),
            weights=np.array(weights, np.float32),
            times=np.array(times, np.float64),
            barred=np.array(barred, np.int32),
            meanings=self._meanings(read),
        )

    def _meanings(self, read: Sequence[_Read]) -> NDArray[np.float32]:
        if self._embed is None:
            return np.zeros((len(read), 0), np.float32)
        return self._embed([f"{one.post.title}\n{one.post.text[:LEAD]}" for one in read])

    def _fit(self, batch: Batch) -> None:
        """Makes room for a batch. What the window has left behind makes room first."""
        new_terms = self._vocabulary.evidence(self._terms_known)
        self._memory = memory.with_terms(self._memory, new_terms, self._terms_known)
        self._terms_known = len(self._vocabulary)
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
        if len(self._vocabulary) > self._tidy_terms_at:
            places = memory.terms_in_use(self._memory, self._terms_known)
            self._vocabulary.keep(places.tolist())
            self._memory = self._memory._replace(terms=self._memory.terms[places])
            self._terms_known = len(places)
            self._tidy_terms_at = max(FEW, 2 * len(places))
        if len(self._story_of) > self._tidy_posts_at:
            since = self._now - self._rules.window
            kept = {
                post: number for post, number in self._story_of.items() if memory.is_young(self._memory, number, since)
            }
            self._story_of = kept
            self._tidy_posts_at = max(FEW, 2 * len(kept))


def _decision(read: _Read, leader: int, score: float, shown: list[int]) -> Decision:
    words = list(read.terms.values())
    shared = ", ".join(words[index] for index in shown if index != NONE)
    score = round(score, 3)
    return Decision(read.post.id, leader, "similar", score, f"shares: {shared}; {score:.2f}")
