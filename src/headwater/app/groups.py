"""De-duplication as its contract has it: runs that are tasks, stories as groups, posts by their ids at X."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app import stories as folding
from headwater.app.posts import time_named
from headwater.app.shapes import Example, Time, example, shaped
from headwater.app.stories import FoldRun, Group, Run
from headwater.consumers.fold import FoldOptions, StoryFolding
from headwater.errors import BadInput, BeingDecided, HeadwaterError, NotFound, StoreUnavailable
from headwater.events.catalogue import STORY_RUN_FINISHED, RunFacts
from headwater.ids import uuid7
from headwater.model import Decision, Reader
from headwater.store import stories
from headwater.store.db import Database
from headwater.store.log import outbox
from headwater.store.people import audit
from headwater.store.stories import runs
from headwater.store.stories.runs import FoldRunRow

LEASE = timedelta(seconds=15)  # of a run whose process has ended
RENEW_SECONDS = 3.0
LARGEST_ID = 2**63 - 1  # that a database has
LOOKED_AT = 100
MOST_LOOKED_AT = 5000
DEDUPLICATION_TYPES = ("exact_duplicate", "similar_content")
DeduplicationType = Literal["exact_duplicate", "similar_content"]
_INTERRUPTED = "It was interrupted. What it had decided stays decided; ask again for the rest."


class FoldConfiguration(NamedTuple):
    """How to fold, as the server, a reader or a run has it. None: it says nothing about that."""

    similarity_threshold: float | None = None
    enable_exact_duplicate: bool | None = None
    enable_similar_content: bool | None = None
    deduplication_method: str | None = None
    use_embedding_model: bool | None = None
    embedding_model: str | None = None
    batch_size: int | None = None

    def over(self, other: FoldConfiguration) -> FoldConfiguration:
        """Returns this one, with what it does not say taken from the other."""
        said = {name: value for name, value in self._asdict().items() if value is not None}
        return other._replace(**said)

    def options(self, threshold: float = 0.0) -> FoldOptions:
        """Returns what may be folded. `threshold` counts if nobody has set one."""
        return FoldOptions(
            threshold=threshold if self.similarity_threshold is None else self.similarity_threshold,
            exact=self.enable_exact_duplicate is not False,
            similar=self.enable_similar_content is not False and self.deduplication_method != "hybrid",
            dry=self.deduplication_method == "manual",
        )


def chosen_configuration(conn: Connection, reader: Reader) -> FoldConfiguration:
    """Returns what a reader has chosen for the runs that they ask for."""
    return FoldConfiguration(**runs.configuration_of(conn, reader))


def choose_configuration(conn: Connection, reader: Reader, chosen: FoldConfiguration) -> None:
    runs.save_configuration(
        conn, reader, {name: value for name, value in chosen._asdict().items() if value is not None}
    )
    audit.record(conn, reader, "folding.choose", detail="of runs")


class GroupFilter(NamedTuple):
    """Which groups are wanted. `since` and `until` are about when a group was made."""

    type: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def accepts(self, group: Group) -> bool:
        made = group.created_at
        if made is None or (self.since and made < self.since) or (self.until and made >= self.until):
            return False
        return self.type in (None, group.deduplication_type)


class ListedGroup(NamedTuple):
    id: int
    group: Group


class GroupPage(NamedTuple):
    """Groups that were found. `looked_until` is the story after which the next page begins; None: there is no other."""

    groups: list[ListedGroup]
    looked_until: int | None


def wanted_groups(type: str | None, since: str | None, until: str | None) -> GroupFilter:
    return GroupFilter(type, time_named(since) if since else None, time_named(until) if until else None)


def page(
    conn: Connection,
    reader: Reader,
    wanted: GroupFilter,
    *,
    before: int | None,
    limit: int,
    look_at: int = MOST_LOOKED_AT,
) -> GroupPage:
    """Returns the next groups that the reader may see, the newest story first.

    If few are wanted of many, a page ends after `look_at` stories: it is shorter than `limit`, or even empty, and the
    next one goes on where it ended.
    """
    found: list[ListedGroup] = []
    for start in range(0, look_at, LOOKED_AT):
        some = min(LOOKED_AT, look_at - start)
        ids = stories.joined_before(conn, reader, before, some, since=wanted.since, until=wanted.until)
        for story_id in ids:
            group = _listed(conn, reader, wanted, story_id)
            if group and len(found) == limit:
                return GroupPage(found, before)
            if group:
                found.append(ListedGroup(story_id, group))
            before = story_id
        if len(ids) < some:
            return GroupPage(found, None)
    return GroupPage(found, before)


def _listed(conn: Connection, reader: Reader, wanted: GroupFilter, story_id: int) -> Group | None:
    try:
        group = folding.group(conn, reader, story_id)
    except NotFound:  # not as this reader folds it
        return None
    return group if group.parted is None and wanted.accepts(group) else None


def post_named(conn: Connection, tweet_id: str) -> int:
    """Returns the id of a post. A person names it by its id at X, or by its id here."""
    return named_posts(conn, [tweet_id])[tweet_id]


def named_posts(conn: Connection, tweet_ids: Sequence[str]) -> dict[str, int]:
    """Returns the ids of posts that are named by their ids at X, or by their ids here."""
    for one in tweet_ids:
        if not (one.isascii() and one.isdigit() and len(one) < 20):
            raise BadInput(f"{one[:40]} is not the id of a post: ids have up to 19 digits.")
    at_x = stories.posts_at_x(conn, tweet_ids)
    return {one: at_x.get(one, min(int(one), LARGEST_ID)) for one in tweet_ids}


def fold_now(
    db: Database,
    folder: StoryFolding,
    post_ids: Sequence[int] | None,
    how: FoldOptions,
    now: Callable[[], datetime],
    *,
    batch_size: int | None = None,
) -> list[Decision]:
    """Folds these posts of whomever, or all that are not decided yet. Returns the decisions."""
    decisions: list[Decision] = []
    size = batch_size or folding.ROUND
    for ids in folding.in_rounds(post_ids, size) if post_ids else _undecided(db, size):
        decisions += db.write_now(_fold, folder, ids, now(), how)
    return decisions


def _fold(
    conn: Connection, folder: StoryFolding, post_ids: Sequence[int], now: datetime, how: FoldOptions
) -> list[Decision]:
    decisions = folder.fold(conn, post_ids, now, how)
    if decisions and not how.dry:
        audit.record(conn, None, "story.fold", detail=f"{len(decisions)} posts")
    return decisions


def _undecided(db: Database, size: int) -> Iterator[Sequence[int]]:
    after = 0
    while ids := db.read_now(stories.undecided_after, after, size):
        yield ids
        after = ids[-1]


async def run_task(
    db: Database,
    folder: StoryFolding,
    reader: Reader,
    wanted: Sequence[int | str],
    how: FoldOptions,
    now: Callable[[], datetime],
    *,
    batch_size: int,
) -> FoldRun:
    """Folds posts as a task whose result is kept for a day. Raises BeingDecided while another task has some of them."""
    named = await db.read(named_posts, [one for one in wanted if isinstance(one, str)])
    ids = [named[one] if isinstance(one, str) else one for one in wanted]
    await db.read(folding.check_visible, reader, ids)
    task_id = uuid7()
    if taken := await db.write(_begin, reader, task_id, ids, now()):
        raise BeingDecided(
            "Another run decides about some of these posts. Try again in a moment.", post_ids=taken[:100]
        )
    renewing = asyncio.create_task(_renew(db, task_id, now))
    try:
        run = await folding.fold_posts(db, folder, reader, ids, how, now(), batch_size=batch_size)
    except HeadwaterError as error:
        await db.write(runs.finish, task_id, "failed", now(), error=error.detail)
        raise
    finally:
        renewing.cancel()
    run = run._replace(task_id=task_id)
    await db.write(_finish, reader, run, now())
    return run


def _begin(conn: Connection, reader: Reader, task_id: str, post_ids: Sequence[int], now: datetime) -> list[int]:
    taken = runs.begin(conn, reader, task_id, post_ids, now, LEASE)
    if not taken:
        audit.record(conn, reader, "story.fold", task_id, f"{len(post_ids)} posts")
    return taken


async def _renew(db: Database, task_id: str, now: Callable[[], datetime]) -> None:
    """Keeps the posts of a run until it is cancelled. If the process ends, they are free again after `LEASE`."""
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        with contextlib.suppress(StoreUnavailable):
            await db.write(runs.renew, task_id, now() + LEASE)


def _finish(conn: Connection, reader: Reader, run: FoldRun, now: datetime) -> None:
    """The result and the event that says so commit together."""
    runs.finish(conn, run.task_id, run.status, now, result=shaped(Run, run))
    facts = RunFacts.of(run, joined=len(run.joined))
    outbox.append(conn, [STORY_RUN_FINISHED(facts, once=run.task_id, reader=reader)], now)


def task(conn: Connection, reader: Reader, task_id: str, now: datetime) -> FoldRunRow:
    """Returns a run that this reader asked for within the last day."""
    found = runs.find(conn, reader, task_id)
    if found is None or found.started_at < now - runs.KEPT:
        raise NotFound(f"There is no run {task_id}. Results are kept for 24 hours.")
    if found.status == "running" and found.lease_until <= now:
        return found._replace(status="failed", error=_INTERRUPTED)
    return found


class ConfigurationJson(TypedDict):
    """How the runs fold that you ask for: your choices over those of the server."""

    similarity_threshold: Annotated[
        float | None,
        Example(0.7, "fold only what scores at least this; null: 0.85 with `tweet_ids`, 0 with `post_ids`"),
    ]
    enable_exact_duplicate: Annotated[bool, Example(True)]
    enable_similar_content: Annotated[bool, Example(True)]
    deduplication_method: Annotated[str, Example("auto", "auto, manual or hybrid")]
    use_embedding_model: Annotated[bool, Example(False)]
    embedding_model: Annotated[str, Example("wordllama")]
    batch_size: Annotated[int, Example(1000)]


class TaskJson(TypedDict):
    """A run, while it goes on and for 24 hours afterwards."""

    task_id: Annotated[str, Example("0199f1de-7a10-7c3e-9d0a-5f3a1c2b4d6e")]
    status: Annotated[
        Literal["running", "completed", "proposed", "failed"], Example("completed", "proposed: nothing was written")
    ]
    started_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    finished_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z")]
    error: Annotated[str | None, Example(None, "why it failed")]
    result: Annotated[Run | None, Example(example(Run), "what it decided; null unless it is over")]
