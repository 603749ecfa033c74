"""Folds repeats and stories after the crawl: one decision for each post, written together with its event.

Each process keeps an index in memory. Before it decides, it updates the index from the store: other processes may have
decided in the meantime, and its own last transaction may have failed. Only one process decides at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection

from headwater.events.catalogue import POST_CHANGED, POST_STORED, STORY_JOINED, STORY_PARTED, Joining, Parting
from headwater.events.delivery import Consumer
from headwater.model import Decision, PostText, Reader
from headwater.store import stories
from headwater.store.log import outbox
from headwater.store.log.outbox import LoggedEvent
from headwater.store.stories import partings, tellings
from headwater.store.stories.tellings import Telling

if TYPE_CHECKING:
    from headwater.dedup.engine import Engine, Found

EXPIRE_EVERY = timedelta(hours=1)
BATCH = 1000


class FoldOptions(NamedTuple):
    """What to fold: decisions with at least this score, exact repeats, similar posts. A dry run writes nothing.

    After `story_seconds` of looking for stories, only repeats are looked for. None: however long it takes.
    """

    threshold: float = 0.0
    exact: bool = True
    similar: bool = True
    dry: bool = False
    story_seconds: float | None = None

    def accepts(self, found: Found) -> bool:
        return found.score >= self.threshold and (self.exact if found.rule == "exact" else self.similar)


EVERYTHING = FoldOptions()


class StoryFolding:
    """Decides which posts are one story, for one process. `level` is stories, repeats or off.

    `arriving` says what is folded of the posts that arrive, `batch` of them in one transaction. If that is a dry run,
    nothing is folded until somebody asks for it.
    """

    def __init__(
        self,
        *,
        window: timedelta,
        level: str = "stories",
        embeddings: bool = False,
        arriving: FoldOptions = EVERYTHING,
        batch: int = BATCH,
    ) -> None:
        self._window = window
        self._arriving = arriving
        self._batch = batch
        self._level = level
        self._embeddings = embeddings
        self._engine: Engine | None = None
        self._seq = 0
        self._expired_at: datetime | None = None
        # From the last transaction, which may not have committed:
        self._provisional: dict[int, PostText] = {}
        self._met: list[Found] = []

    @property
    def trouble(self) -> str | None:
        """What went wrong in the last search for stories, if anything."""
        return self._engine.trouble if self._engine else None

    def prepare(self, conn: Connection, now: datetime) -> None:
        """Loads recent decisions into the index before there is anything to decide. Only reads."""
        if self._level != "off":
            self._current_index(conn, now)

    def fold(
        self, conn: Connection, post_ids: Sequence[int], now: datetime, options: FoldOptions = EVERYTHING
    ) -> list[Decision]:
        """Decides about those of these posts that have no decision yet, oldest first."""
        if self._level == "off":
            return []
        stories.lock_decisions(conn)
        return self._fold(conn, self._current_index(conn, now), post_ids, now, options)

    def consumer(self) -> Consumer:
        kinds = frozenset({POST_STORED.name, POST_CHANGED.name})
        return Consumer("fold", kinds, self._handle, batch=self._batch)

    def _handle(self, conn: Connection, events: list[LoggedEvent]) -> None:
        if self._level == "off" or self._arriving.dry:
            return
        now = events[-1].created_at
        read = [(event, POST_STORED.read(event).post_id) for event in events]
        stored, changed = (
            list(dict.fromkeys(post_id for event, post_id in read if event.kind == kind.name))
            for kind in (POST_STORED, POST_CHANGED)
        )
        stories.lock_decisions(conn)
        engine = self._current_index(conn, now)
        traces = {post_id: event.traceparent for event, post_id in read}
        self._fold(conn, engine, [*stored, *self._reopen(conn, engine, changed)], now, self._arriving, traces)

    def _reopen(self, conn: Connection, engine: Engine, post_ids: Sequence[int]) -> list[int]:
        """Drops the decisions about edited posts that stand alone: they may repeat another now. Returns these posts."""
        for post_id in post_ids:
            engine.forget_text(post_id)
        alone = stories.alone(conn, post_ids)
        stories.forget(conn, alone)
        return alone

    def _fold(
        self,
        conn: Connection,
        engine: Engine,
        post_ids: Sequence[int],
        now: datetime,
        options: FoldOptions,
        traces: Mapping[int, str | None] = {},
    ) -> list[Decision]:
        known = stories.decided(conn, post_ids)
        posts = stories.texts(conn, [post_id for post_id in post_ids if post_id not in known])
        self._provisional = {post.id: post for post in posts}
        decisions = self._decide(conn, engine, posts, options)
        if not options.dry:
            write_decisions(conn, decisions, posts, now, traces)
            met = [one for one in engine.meetings if options.accepts(one)]
            join_stories(conn, [*self._met, *met], now)
            self._met = met
        return decisions

    def _current_index(self, conn: Connection, now: datetime) -> Engine:
        """Returns the index, updated to exactly the decisions that are in the store."""
        if self._engine is None:
            from headwater.dedup.engine import Engine  # slow to import: only a process that folds should wait for it

            self._engine = Engine(
                window_seconds=self._window.total_seconds(),
                stories=self._level == "stories",
                embeddings=self._embeddings,
            )
            self._seq = stories.seq_before(conn, now - self._window)
            self._expired_at = now
        engine, uncommitted = self._engine, self._provisional
        while decided := stories.decided_after(conn, self._seq):
            new = [one.decision for one in decided if uncommitted.pop(one.decision.post_id, None) is None]
            leaders = [one.post_id for one in new if one.repeat_id == one.post_id]
            engine.know(stories.texts(conn, leaders), apart=stories.apart_from(conn, leaders))
            self._seq = decided[-1].seq
        for post in uncommitted.values():
            engine.forget(post)
        self._provisional = {}
        if self._expired_at and now - self._expired_at > EXPIRE_EVERY:
            engine.expire(now - self._window)
            self._expired_at = now
        return engine

    def _decide(self, conn: Connection, engine: Engine, posts: list[PostText], options: FoldOptions) -> list[Decision]:
        passed_on = {
            post.id: original
            for post in posts
            if post.reference and post.reference.kind in ("repost", "crosspost")
            if (original := stories.referenced(conn, post.id)) is not None
        }
        apart = stories.apart_from(conn, [post.id for post in posts])
        found = [
            one if one and options.accepts(one) else None
            for one in engine.decide(posts, apart=apart, passed_on=passed_on, story_seconds=options.story_seconds)
        ]
        met = {one.with_id for one in found if one}.union(*apart.values())
        places = {post_id: member.decision for post_id, member in stories.decided(conn, sorted(met)).items()}
        decisions = []
        for post, one in zip(posts, found, strict=True):
            decision = placed(post.id, one, places, apart.get(post.id, set()))
            places[post.id] = decision
            decisions.append(decision)
        return decisions


def placed(post_id: int, found: Found | None, places: dict[int, Decision], apart: Set[int] = frozenset()) -> Decision:
    """Returns the decision about a post: it joins the story of the post it matches, or begins a story. Pure.

    It does not join a story with a post that a person has separated from it.
    """
    leader = places.get(found.with_id) if found and found.with_id != post_id else None
    barred = {places[other].story_id for other in apart if other in places}
    if found is None or leader is None or leader.story_id in barred:
        return Decision(post_id, post_id, post_id, "first", 1.0, "")
    repeat_id = post_id if found.rule == "story" else leader.repeat_id
    return Decision(post_id, leader.story_id, repeat_id, found.rule, found.score, found.why)


def write_decisions(
    conn: Connection,
    decisions: Sequence[Decision],
    posts: Sequence[PostText],
    now: datetime,
    traces: Mapping[int, str | None] = {},
) -> None:
    """Writes decisions about these posts, what the posts that joined a story say, and their events.

    `traces` are those of the posts: what becomes of a post is part of the trace of its visit.
    """
    stories.save(conn, decisions, now)
    tellings.save(conn, _told(conn, decisions, posts))
    _publish_joined(conn, decisions, posts, now, traces)


def join_stories(conn: Connection, meetings: Sequence[Found], now: datetime) -> None:
    """Makes one of each two stories that turned out to be one, named by a post of each. Those that are one stay so."""
    for one in meetings:
        places = stories.decided(conn, [one.post_id, one.with_id])
        if len(places) < 2:
            continue
        mine, its = (place.decision.story_id for place in places.values())
        moved = stories.meet(conn, mine, its, one.score, one.why, now)
        if not moved:
            continue
        posts = stories.texts(conn, [decision.post_id for decision in moved])
        first = [post for post in posts if post.id == moved[0].post_id]
        tellings.save(conn, _told(conn, moved[:1], first, later={decision.post_id for decision in moved}))
        _publish_joined(conn, moved, posts, now, traces={})


def _told(
    conn: Connection, decisions: Sequence[Decision], posts: Sequence[PostText], later: Set[int] = frozenset()
) -> Iterator[Telling]:
    """Yields what the posts that joined a story say that its earlier tellings did not. `later` are in it as well."""
    from headwater.dedup import claims

    joined = {one.post_id: one for one in decisions if one.rule != "first"}
    earlier: dict[int, dict[int, claims.Said]] = {}
    for post in posts:
        if post.id not in joined:
            continue
        story_id, telling = joined[post.id].story_id, claims.said(post.title, post.text)
        if story_id not in earlier:
            mine = {one for one in joined if joined[one].story_id == story_id}
            before = [one for one in tellings.original(conn, story_id) if one.id not in mine | later]
            earlier[story_id] = {one.id: claims.said(one.title, one.text) for one in before}
        known, one = earlier[story_id], joined[post.id]
        if one.rule == "exact":
            yield Telling(post.id, [one.repeat_id], {}, [])
            continue
        echoes = claims.echoed(telling, known)
        against = [found._asdict() for found in claims.disagreements(telling, known)]
        yield Telling(post.id, echoes, {} if echoes else claims.news(telling, list(known.values()))._asdict(), against)
        if not echoes:
            known[post.id] = telling


def undo(conn: Connection, story_id: int, who: Reader | None, now: datetime) -> list[int]:
    """Undoes a story for everybody: its posts stand alone again. Returns these posts."""
    stories.lock_decisions(conn)
    left = stories.undo(conn, story_id, who, now)
    _publish_parted(conn, story_id, left, now)
    return left


def part(conn: Connection, post_id: int, who: Reader | None, now: datetime) -> list[int]:
    """Takes a post out of its story for everybody. Returns the posts that left, which include its repeats."""
    stories.lock_decisions(conn)
    place = stories.decided(conn, [post_id]).get(post_id)
    left = stories.separate(conn, post_id, who, now)
    if place:
        _publish_parted(conn, place.decision.story_id, left, now)
    return left


def undo_for_tenant(conn: Connection, story_id: int, post_id: int, who: Reader, now: datetime) -> list[int]:
    """Undoes the story of this post for the reader's tenant alone. Returns its posts."""
    stories.lock_decisions(conn)
    left = partings.undo(conn, who, post_id, now)
    _publish_parted(conn, story_id, left, now, who)
    return left


def part_for_tenant(conn: Connection, story_id: int, post_id: int, who: Reader, now: datetime) -> list[int]:
    """Takes a post out of its story for the reader's tenant alone. Returns the posts that left."""
    stories.lock_decisions(conn)
    left = partings.separate(conn, who, post_id, now)
    _publish_parted(conn, story_id, left, now, who)
    return left


def _publish_joined(
    conn: Connection,
    decisions: Sequence[Decision],
    posts: Sequence[PostText],
    now: datetime,
    traces: Mapping[int, str | None],
) -> None:
    sources = {post.id: post.source_id for post in posts}
    joined = [
        STORY_JOINED(_joining(one, sources[one.post_id]), once=_once(one, now))._replace(
            traceparent=traces.get(one.post_id)
        )
        for one in decisions
        if one.rule != "first"
    ]
    outbox.append(conn, joined, now)


def _joining(one: Decision, source_id: int) -> Joining:
    return Joining(
        story_id=one.story_id,
        post_id=one.post_id,
        source_id=source_id,
        repeat_of=one.repeat_id if one.repeat_id != one.post_id else None,
        rule=one.rule,
        score=one.score,
        why=one.why,
    )


def _once(one: Decision, now: datetime) -> str:
    return f"{one.story_id}:{one.post_id}:{now.isoformat()}"


def _publish_parted(
    conn: Connection, story_id: int, left: list[int], now: datetime, whose: Reader | None = None
) -> None:
    """Publishes who left a story; for whose tenant, if it is not for everybody."""
    if left:
        parting = Parting(story_id=story_id, post_ids=left)
        tenant = f"{whose.tenant_id}:" if whose else ""
        once = f"{tenant}{story_id}:{left[0]}:{now.isoformat()}"
        outbox.append(conn, [STORY_PARTED(parting, once=once, reader=whose)], now)
