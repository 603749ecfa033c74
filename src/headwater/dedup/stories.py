"""Groups posts into stories, as they come: each joins the story that it is most like, or begins one.

A decision is made once and is never taken back by itself. Stories cannot grow into each other by chains, because a post
is compared with a story as a whole and not with its nearest post, and because a story takes posts only for the
window's time and only up to a number. Two stories become one only when several posts could be in either
(`take_meetings`). `story_rules.py` says what is asked, `story_terms.py` what is compared, `story_choice.py` how, and
`story_memory.py` what is kept.

Nothing here reads a clock: it is as late as the newest post says.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, islice
from typing import Any

from headwater.dedup.arrays import HashTable
from headwater.dedup.repeats import HOUR, WINDOW_HOURS, Posting, RepeatDecision
from headwater.dedup.story_choice import decide
from headwater.dedup.story_memory import FADES_PER_WINDOW, StoryMemory
from headwater.dedup.story_rules import LEAD, LONG_ODDS, MEETING_ODDS, ODDS, StoryRules, parts_of
from headwater.dedup.story_terms import StoryBatch, Terms
from headwater.errors import BadInput

# Makes for each text a row of small floats, all of one length, as `array` or numpy has them.
Embed = Callable[[Sequence[str]], Any]

THRESHOLD = 0.5
MOST_POSTS = 1000
FEWEST_STORIES = 1 << 12
MOST_STORIES = 1 << 20
BATCH = 1024
# Fewer terms, or posts, than this are not worth tidying up.
FEW = 1 << 16
# Instead of a story's number, or of a term's.
NONE = -1
SHOWN = 3
# Instead of the one source that all posts of a story are from.
SEVERAL = 0


class StoriesOfPosts:
    """The number of each remembered post's story, and its source. Posts are in the order in which they came."""

    def __init__(self) -> None:
        self._posts = HashTable()
        self._stories, self._sources = array("i"), array("q")

    def __len__(self) -> int:
        return len(self._stories) - self._stories.count(NONE)

    @property
    def rows(self) -> int:
        """How many posts there is a row for, forgotten ones as well."""
        return len(self._stories)

    def __contains__(self, post: int) -> bool:
        return self.get(post) is not None

    def get(self, post: int) -> int | None:
        return next(iter(self.of([post]).values()), None)

    def of(self, posts: Sequence[int]) -> dict[int, int]:
        """The stories of those posts that are remembered."""
        rows = self._posts.numbers_of(array("q", posts))
        return {
            post: story
            for post, row in zip(posts, rows, strict=True)
            if row != NONE and (story := self._stories[row]) != NONE
        }

    def put(self, posts: Sequence[int], stories: Sequence[int], sources: Sequence[int]) -> None:
        """Remembers posts that are not known, or were forgotten."""
        for row, story, source in zip(self._posts.number(array("q", posts)), stories, sources, strict=True):
            if row == len(self._stories):
                self._stories.append(story)
                self._sources.append(source)
            else:
                self._stories[row], self._sources[row] = story, source

    def forget(self, post: int) -> None:
        (row,) = self._posts.numbers_of(array("q", [post]))
        if row != NONE:
            self._stories[row] = NONE

    def first_of(self, pieces: Sequence[int]) -> int:
        """The post that came first of a story, which is of these pieces, or NONE. It looks at all posts."""
        rows = [self._stories.index(piece) for piece in pieces if piece in self._stories]
        return self._posts.key(min(rows)) if rows else NONE

    def source_of(self, pieces: Sequence[int]) -> int:
        """The source that all posts of a story of these pieces are from, or SEVERAL. It looks at all posts."""
        sources = {source for at, source in zip(self._stories, self._sources, strict=True) if at in pieces}
        return sources.pop() if len(sources) == 1 else SEVERAL

    def numbers(self) -> array[int]:
        """The story's number for each post, NONE for those that were forgotten."""
        return self._stories

    def keep(self, chosen: bytearray) -> None:
        """Forgets all posts but those that are chosen."""
        self._posts.keep(chosen)
        self._stories = array("i", compress(self._stories, chosen))
        self._sources = array("q", compress(self._sources, chosen))


class StoryIndex:
    """The stories of a time window. Posts come in about the order of their time; a post without one comes now.

    `threshold` is how probable it has to be, above 0 and up to 1, that a post tells the same event. `embed` turns
    texts into vectors of their meaning, a row for each (`embeddings.py`): then it counts as well, but never alone. The
    odds are for whoever looks for better ones.
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
        odds: tuple[float, ...] = ODDS,
        long_odds: tuple[float, ...] = LONG_ODDS,
        meeting_odds: tuple[float, ...] = MEETING_ODDS,
    ) -> None:
        if not 0 < threshold <= 1:
            raise BadInput(f"threshold: {threshold} is not above 0 and up to 1")
        self._window = float(window_seconds)
        self._most_stories = 1 << (most_stories - 1).bit_length()
        self._embed = embed
        self._dimensions = len(embed([""])[0]) if embed else 0
        rules = StoryRules(
            float(threshold),
            self._window,
            most_posts=most_posts,
            odds=odds,
            long_odds=long_odds,
            meeting_odds=meeting_odds,
        )
        self._vocabulary = HashTable()
        self._memory = StoryMemory(rules, min(FEWEST_STORIES, self._most_stories), self._dimensions)
        self._story_of = StoriesOfPosts()
        self._apart: dict[int, set[int]] = {}
        self._pieces: dict[int, list[int]] = {}  # the stories that have become part of a story
        self._meetings: list[RepeatDecision] = []
        self._now = 0.0
        self._fades_at = 0.0
        self._tidy_terms_at = self._tidy_posts_at = FEW
        for portion in self._portions(posts):
            self._decide(portion)

    def __len__(self) -> int:
        """How many posts are remembered."""
        return len(self._story_of)

    def add(self, post: Posting) -> RepeatDecision | None:
        """Which story a post joins, or None if it begins one. A post that is known is not added again."""
        return self.add_many([post])[0]

    def add_many(self, posts: Iterable[Posting]) -> list[RepeatDecision | None]:
        decisions: list[RepeatDecision | None] = []
        for portion in self._portions(posts):
            decisions += self._decide(portion)
        return decisions

    def story(self, post: int) -> int | None:
        """The earliest post of the story that a post is in; None if it is not remembered."""
        number = self._number_of(post)
        return None if number == NONE else self._memory.leader(number)

    def take_meetings(self) -> list[RepeatDecision]:
        """Which stories have become one since this was asked last: the earliest post of each that moved, and of the one
        that it is part of now."""
        meetings, self._meetings = self._meetings, []
        return meetings

    def keep_apart(self, post: int, other: int) -> None:
        """Says that two posts do not tell of one event. It holds for posts that are added from now on."""
        for one, another in ((post, other), (other, post)):
            self._apart.setdefault(one, set()).add(another)
            if (number := self._number_of(one)) != NONE:
                self._memory.guard(number)

    def forget(self, post: Posting) -> None:
        """Takes a post out of its story: it was edited, deleted or undone. `post` is as it was added."""
        number = self._number_of(post.id)
        self._story_of.forget(post.id)
        if number == NONE:
            return
        terms = self._read([post])
        batch = self._batch([post], terms, [])
        self._fit(batch, terms)
        self._memory.unlearn(batch, number)
        pieces = [number, *self._pieces.get(number, ())]
        self._memory.is_from(number, self._story_of.source_of(pieces))
        if self._memory.leader(number) == post.id:
            # Rare enough to look at all posts. The first that came is the next to lead.
            self._memory.lead(number, self._story_of.first_of(pieces))

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

    def _decide(self, posts: Sequence[Posting]) -> list[RepeatDecision | None]:
        if posts[0].id in self._story_of:
            return [self._known(posts[0].id)]
        apart = self._apart.get(posts[0].id, set())
        barred = [self._memory.root(number) for number in self._story_of.of(list(apart)).values()]
        self._tidy(posts[0].created_at)
        terms = self._read(posts)
        batch = self._batch(posts, terms, barred, guarded=bool(apart))
        self._fit(batch, terms)
        decide(self._memory, batch)
        self._note_meetings(batch)
        self._story_of.put([post.id for post in posts], batch.stories, [post.source for post in posts])
        scores, leaders = batch.scores, batch.leaders
        return [
            _decision(post, leaders[place], scores[place], _shared(terms, batch, place)) if scores[place] else None
            for place, post in enumerate(posts)
        ]

    def _number_of(self, post: int) -> int:
        """The number of the story that a post is in, or NONE."""
        number = self._story_of.get(post)
        return NONE if number is None else self._memory.root(number)

    def _note_meetings(self, batch: StoryBatch) -> None:
        for place, score in enumerate(batch.met_scores):
            if score:
                moved = batch.moved_numbers[place]
                pieces = self._pieces.setdefault(self._memory.root(moved), [])
                pieces += [moved, *self._pieces.pop(moved, ())]
                self._meetings.append(_meeting(batch.moved[place], batch.kept[place], score))

    def _known(self, post: int) -> RepeatDecision | None:
        leader = self.story(post)
        return (
            None if leader in (None, post) else RepeatDecision(post, leader, "similar", 1.0, "is in this story already")
        )

    def _read(self, posts: Sequence[Posting]) -> Terms:
        terms = Terms(parts_of((post.title, post.text) for post in posts), self._vocabulary)
        self._memory.make_room_for_terms(len(self._vocabulary))
        return terms

    def _batch(self, posts: Sequence[Posting], terms: Terms, barred: list[int], *, guarded: bool = False) -> StoryBatch:
        times: list[float] = []
        for post in posts:
            self._now = max(self._now, post.created_at)
            times.append(post.created_at or self._now)
        ids, sources = [post.id for post in posts], [post.source for post in posts]
        return StoryBatch(terms, ids, times, barred, self._meanings(posts), sources, guarded)

    def _meanings(self, posts: Sequence[Posting]) -> array[float]:
        if self._embed is None:
            return array("f", [0.0])
        meanings = array("f")
        for row in self._embed([f"{post.title}\n{post.text[:LEAD]}" for post in posts]):
            meanings.frombytes(memoryview(row).cast("B"))
        return meanings

    def _fit(self, batch: StoryBatch, terms: Terms) -> None:
        """Makes room for a batch. What the window has left behind makes room first."""
        since = self._now - self._window
        while len(self._memory) < self._most_stories and not self._memory.fits(
            batch.size, terms.starts[batch.size], since
        ):
            self._memory.double()

    def _tidy(self, now: float) -> None:
        """Lets fade what was seen before, and forgets terms and posts that the window has left behind."""
        period = self._window / FADES_PER_WINDOW
        if now >= self._fades_at:
            times = 1 + int((now - self._fades_at) / period)
            self._memory.fade(times)
            self._fades_at += times * period
        if len(self._vocabulary) > self._tidy_terms_at:
            seen = self._memory.terms_seen()
            self._vocabulary.keep(seen)
            self._memory.keep_terms(seen)
            self._tidy_terms_at = max(FEW, 2 * len(self._vocabulary))
        if self._story_of.rows > self._tidy_posts_at:
            self._story_of.keep(self._memory.are_young(self._story_of.numbers(), self._now - self._window))
            self._pieces = {kept: pieces for kept, pieces in self._pieces.items() if self._memory.root(kept) != NONE}
            self._tidy_posts_at = max(FEW, 2 * self._story_of.rows)


def batched(posts: Iterable[Posting]) -> Iterator[list[Posting]]:
    rest = iter(posts)
    while some := list(islice(rest, BATCH)):
        yield some


def _shared(terms: Terms, batch: StoryBatch, place: int) -> str:
    """The words that a post shares with its story, the strongest first."""
    shown = [term for term in batch.shown[SHOWN * place : SHOWN * (place + 1)] if term != NONE]
    return ", ".join(terms.word(terms.starts[place] + term) for term in shown)


def _decision(post: Posting, leader: int, score: float, shared: str) -> RepeatDecision:
    score = round(score, 3)
    return RepeatDecision(post.id, leader, "similar", score, f"shares: {shared}; {score:.2f}")


def _meeting(moved: int, kept: int, score: float) -> RepeatDecision:
    score = round(score, 3)
    why = f"several posts could be in either of two stories; {score:.2f}"
    return RepeatDecision(moved, kept, "similar", score, why)
