"""Decides about posts as they come: does one repeat another, and if not, does it tell of the same event as others?

Both indexes live in memory and are rebuilt from the store. Whatever they remember, they only name the post that a new
one belongs with: which story that post is in now is for the store to say.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import structlog

from headwater.dedup.repeat_index import RepeatIndex
from headwater.dedup.repeats import Posting, RepeatDecision
from headwater.dedup.stories import THRESHOLD, Embed, StoryIndex
from headwater.model import PostText

log = structlog.get_logger()

EVER = 10 * 365 * 24 * 3600.0
PORTION = 100  # posts between two looks at the clock
# How mail programs and forums mark an answer, in the languages that they mostly do it in.
_REPLY = re.compile(
    r"(?:.{1,60}•)?\s*(?:re|aw|sv|antw|res|rif|回复|回覆|答复)\s*(?:\[\d+\]|\(\d+\))?\s*[:：]", re.IGNORECASE
)
# How Discourse numbers the posts of a thread; the first is no reply.
_REPLY_LINK = re.compile(r"/t/[^/?#]+/\d+(?:/|[^#]*#post_)(?!1$)\d+$")
TOO_LONG = "Looking for stories took too long"


class Found(NamedTuple):
    """That a post belongs with an earlier one: as its repeat (exact, similar) or as part of its story (story)."""

    post_id: int
    with_id: int
    rule: str
    score: float
    why: str


class Engine:
    """`trouble` says what went wrong when stories were last looked for; repeats are found all the same. `meetings` are
    stories that turned out to be one, named by a post of each, when posts were last decided about."""

    def __init__(
        self, *, window_seconds: float, stories: bool = True, embeddings: bool = False, threshold: float = THRESHOLD
    ) -> None:
        self._repeats = RepeatIndex(window_seconds=window_seconds)
        self._stories = None
        if stories:
            self._stories = StoryIndex(window_seconds=window_seconds, threshold=threshold, embed=_embed(embeddings))
        self.trouble: str | None = None
        self.meetings: list[Found] = []

    def decide(
        self,
        posts: Sequence[PostText],
        *,
        apart: Mapping[int, set[int]] = {},
        passed_on: Mapping[int, int] = {},
        story_seconds: float | None = None,
    ) -> list[Found | None]:
        """For each post whom it belongs with, and remember it. `apart` are posts that a person has told apart from it,
        `passed_on` the post that it says it passes on. After `story_seconds`, only repeats are looked for."""
        self.trouble = None
        postings = [_posting(post, apart.get(post.id, set()), passed_on.get(post.id)) for post in posts]
        repeats = self._repeats.add_many(postings)
        found = [
            Found(repeat.post, repeat.leader, repeat.rule, repeat.score, repeat.why) if repeat else None
            for repeat in repeats
        ]
        rest = [place for place, one in enumerate(found) if one is None and not postings[place].is_reply]
        told_of = self._same_event([self._kept_apart(postings[place]) for place in rest], story_seconds)
        for place, told in zip(rest, told_of, strict=True):
            found[place] = told
        self.meetings = self._met()
        return found

    def know(self, posts: Sequence[PostText], *, apart: Mapping[int, set[int]] = {}) -> None:
        """Remember posts that were decided about: each of them begins its story or tells it in its own words."""
        postings = [_posting(post, apart.get(post.id, set()), None) for post in posts]
        self._repeats.add_many(postings)
        self._same_event([self._kept_apart(posting) for posting in postings if not posting.is_reply])
        self._met()  # the store knows of these

    def forget(self, post: PostText) -> None:
        self._repeats.forget(post.id)
        if self._stories is not None:
            self._stories.forget(_posting(post, set(), None))

    def forget_text(self, post_id: int) -> None:
        """Nothing repeats this post's text any more: it has another."""
        self._repeats.forget(post_id)

    def expire(self, before: datetime) -> None:
        self._repeats.expire(before.timestamp())

    def _kept_apart(self, posting: Posting) -> Posting:
        """A post that nearly repeats another and contradicts it tells of another event."""
        other = self._repeats.contradicted.get(posting.id)
        return posting if other is None else posting._replace(apart=posting.apart | {other})

    def _same_event(self, postings: list[Posting], seconds: float | None = None) -> list[Found | None]:
        if self._stories is None or not postings:
            return [None] * len(postings)
        looked_at = postings
        try:
            if seconds is None:
                told = self._stories.add_many(postings)
            else:
                told = self._within(seconds, self._stories, postings)
                looked_at = postings[: len(told)]
        except Exception as error:  # exact results stand, whatever happens here
            log.exception("stories.failed")
            self.trouble = f"{type(error).__name__}: {error}"
            return [None] * len(postings)
        left = len(postings) - len(looked_at)
        self.trouble = f"{TOO_LONG} ({seconds:g} s): {left} posts were not compared." if left else None
        found = [Found(one.post, one.leader, "story", one.score, one.why) if one else None for one in told]
        return found + [None] * left

    def _met(self) -> list[Found]:
        met = self._stories.take_meetings() if self._stories else []
        return [Found(one.post, one.leader, "story", one.score, one.why) for one in met]

    @staticmethod
    def _within(seconds: float, stories: StoryIndex, postings: list[Posting]) -> list[RepeatDecision | None]:
        """Returns the decisions about as many of these as can be made in this time."""
        until = time.monotonic() + seconds
        told: list[RepeatDecision | None] = []
        while len(told) < len(postings) and time.monotonic() < until:
            told += stories.add_many(postings[len(told) : len(told) + PORTION])
        return told


def _embed(wanted: bool) -> Embed | None:
    if not wanted:
        return None
    from headwater.dedup.embeddings import load  # it needs numpy, which comes with the extra of this name

    return load()


def _posting(post: PostText, apart: set[int], passed_on: int | None) -> Posting:
    return Posting(
        id=post.id,
        title=post.title,
        text=post.text,
        created_at=post.created_at.timestamp(),
        link=post.url or "",
        repost_of=passed_on,
        apart=frozenset(apart),
        source=post.source_id,
        is_reply=_is_reply(post),
    )


def _is_reply(post: PostText) -> bool:
    if post.reference is not None and post.reference.kind == "reply":
        return True
    return bool(_REPLY.match(post.title) or (post.url and _REPLY_LINK.search(post.url)))


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
