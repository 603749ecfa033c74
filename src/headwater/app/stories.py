"""Stories: which posts are one, why, taking them apart, folding by hand, and how the stream is folded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.accounts.scopes import may
from headwater.app.shapes import Example, Time, example, shaped
from headwater.app.tellings import (
    EXAMPLE_REPEAT,
    EXAMPLE_WHY,
    FirstJson,
    FirstTold,
    LeadRow,
    MemberJson,
    NewsJson,
    StoryJson,
    appearances,
    first_told,
    repeat_of_member,
    told_by,
)
from headwater.consumers import fold
from headwater.consumers.fold import FoldOptions, StoryFolding
from headwater.dedup import first
from headwater.errors import AlreadyUndone, BadInput, Forbidden, NotFound
from headwater.ids import uuid7
from headwater.model import Decision, PostText, Reader
from headwater.store import stories
from headwater.store.db import Database
from headwater.store.people import accounts, audit
from headwater.store.posts import stream
from headwater.store.posts.stream import Filter, Story
from headwater.store.stories import PastDecision, StoryMember, folded, partings, tellings
from headwater.store.stories.folded import FoldSettings, ShownMember
from headwater.store.stories.partings import PartedStory
from headwater.store.stories.tellings import TellingNews

ROUND = 1000
EXPORTED_AT_ONCE = 500
MEMBERS = 50  # of a story that are shown at once
FIRST_AMONG = 200  # members of a story of which one was first
MOST_LEADS = 500  # stories over which sources are compared


class Group(NamedTuple):
    """A story as a reader sees it: its members as they arrived, a page of them, and every decision about these."""

    story_id: int
    members: list[ShownMember]
    history: list[PastDecision]
    at_x: Mapping[int, str] = {}  # the ids that its posts have at X
    parted: PartedStory | None = None  # it was undone, and this is how it was
    tellings: int = 0  # how many members it has
    told: Mapping[int, TellingNews] = {}  # what members say that earlier ones did not
    first: FirstTold | None = None  # who told it first

    @property
    def deduplication_type(self) -> str:
        """As the contract of de-duplication names it: all members but the first say so."""
        rules = {member.rule for member in self.members if member.rule != "first"}
        return "exact_duplicate" if rules <= {"exact"} else "similar_content"

    @property
    def similarity_score(self) -> float | None:
        """The lowest score of a similar group; an exact one has none."""
        scores = [member.score for member in self.members if member.rule not in ("first", "exact")]
        return min(scores, default=None)

    @property
    def tweet_ids(self) -> list[str]:
        return [self.at_x.get(member.post_id, str(member.post_id)) for member in self.members]

    @property
    def created_at(self) -> datetime | None:
        """When the first post joined."""
        return min((one.decided_at for one in self.history if one.action == "joined"), default=None)


class StoryView(NamedTuple):
    """A story, and whether the reader is offered to undo it for everybody."""

    story: Group
    offers_everybody: bool


class FoldRun(NamedTuple):
    """What a run decided. `joined` are the posts that became part of a story; `proposed`: nothing was written."""

    task_id: str
    status: Literal["completed", "proposed"]
    decided: int
    already_decided: int
    joined: list[Decision]
    degraded: str | None = None  # why only exact repeats were found for some of the posts


class Explained(NamedTuple):
    """Whether two posts are one story, by rule and score, and what was decided about them."""

    facts: dict[str, Any]
    in_one_story: bool
    told_apart: bool


def group(conn: Connection, reader: Reader, story_id: int, *, after: int = 0, limit: int = MEMBERS) -> Group:
    """Returns a story of at least two posts that the reader may see; one that was undone as it was."""
    post_id = folded.story_named(conn, reader, story_id)
    if post_id is None and (moved_to := stories.moved_to(conn, story_id)) is not None:
        post_id = folded.story_named(conn, reader, moved_to)
    if post_id is not None:
        return _group(conn, reader, post_id, after, limit)
    return _undone(conn, reader, partings.last_of_story(conn, reader, story_id), f"There is no story {story_id}.")


def group_of_post(conn: Connection, reader: Reader, post_id: int) -> Group:
    """Returns the story that a post is in, or the one that it was in until that was undone."""
    if _is_folded(conn, reader, post_id):
        return _group(conn, reader, post_id)
    return _undone(conn, reader, _parted_of_post(conn, reader, post_id), f"The post {post_id} is in no story.")


def group_named(conn: Connection, reader: Reader, some_id: int) -> Group:
    """Returns a story by its own id, or by the id of any post in it."""
    post_id = some_id if _is_folded(conn, reader, some_id) else folded.story_named(conn, reader, some_id)
    if post_id is not None:
        return _group(conn, reader, post_id)
    parted = partings.last_of_story(conn, reader, some_id) or _parted_of_post(conn, reader, some_id)
    return _undone(conn, reader, parted, f"There is no story {some_id}, and no post {some_id} in one.")


class Leads(NamedTuple):
    """How many stories were looked at, and how their sources do."""

    stories: int
    sources: list[LeadRow]


def leads(conn: Connection, reader: Reader, most: int = MOST_LEADS) -> Leads:
    """Returns how often each source was first, and by how much, over the newest stories that the reader may see."""
    names: dict[int, str] = {}
    seen = []
    for story_id in stories.joined_before(conn, reader, None, most):
        post_id = folded.story_named(conn, reader, story_id)
        if post_id is not None:
            members = folded.arrived(conn, reader, post_id, limit=FIRST_AMONG)
            names.update((one.source_id, one.source) for one in members)
            seen.append(appearances(conn, [one.post_id for one in members]))
    rows = [
        LeadRow(
            one.source_id,
            names[one.source_id],
            one.stories,
            one.first,
            one.median_lead.total_seconds() if one.median_lead is not None else None,
        )
        for one in first.leads(seen)
    ]
    return Leads(len(seen), rows)


def may_undo_for_everybody(reader: Reader) -> bool:
    """Whether a reader runs the instance and may decide what all tenants see."""
    return may(reader, "admin")


def view(conn: Connection, reader: Reader, story_id: int, *, after: int = 0, limit: int = MEMBERS) -> StoryView:
    story = group(conn, reader, story_id, after=after, limit=limit)
    return StoryView(story, may_undo_for_everybody(reader) and accounts.has_guests(conn))


def undo(conn: Connection, reader: Reader, story_id: int, now: datetime, *, everybody: bool = False) -> list[int]:
    """Takes a story apart for good, for the reader's tenant or for everybody. Returns those of its posts that the
    reader may see."""
    return _undo(conn, reader, group(conn, reader, story_id), now, everybody=everybody)


def undo_named(conn: Connection, reader: Reader, some_id: int, now: datetime, *, everybody: bool = False) -> list[int]:
    """Undoes a story by its own id, or by the id of any post in it."""
    return _undo(conn, reader, group_named(conn, reader, some_id), now, everybody=everybody)


def take_out(conn: Connection, reader: Reader, post_id: int, now: datetime, *, everybody: bool = False) -> list[int]:
    """Takes a post out of its story. Returns the posts that left it, which include its repeats."""
    _check_may(reader, everybody=everybody)
    story = _live(group_of_post(conn, reader, post_id), f"The post {post_id} was taken out of its story already.")
    if everybody:
        left = fold.part(conn, post_id, reader, now)
    else:
        left = fold.part_for_tenant(conn, story.story_id, post_id, reader, now)
    audit.record(conn, reader, "story.part", post_id, "for everybody" if everybody else "")
    return stream.visible(conn, reader, left)


def _undo(conn: Connection, reader: Reader, story: Group, now: datetime, *, everybody: bool) -> list[int]:
    _check_may(reader, everybody=everybody)
    _live(story, f"The story {story.story_id} was undone already.")
    first = story.members[0].post_id
    if everybody:
        left = fold.undo(conn, stories.decided(conn, [first])[first].decision.story_id, reader, now)
    else:
        left = fold.undo_for_tenant(conn, story.story_id, first, reader, now)
    audit.record(conn, reader, "story.undo", story.story_id, "for everybody" if everybody else "")
    return stream.visible(conn, reader, left)


def _check_may(reader: Reader, *, everybody: bool) -> None:
    if everybody and not may_undo_for_everybody(reader):
        raise Forbidden(
            "Only those who run this Headwater can undo a story for everybody. You can undo it for your tenant."
        )


def _live(story: Group, why_not: str) -> Group:
    if story.parted is not None:
        raise AlreadyUndone(why_not)
    return story


async def fold_posts(
    db: Database,
    folder: StoryFolding,
    reader: Reader,
    post_ids: Sequence[int],
    how: FoldOptions,
    now: datetime,
    *,
    batch_size: int = ROUND,
) -> FoldRun:
    """Folds posts that the reader may see. Those that were decided about already are skipped.

    What a dry run decides is not stored, so a second batch could not see the first: it is one batch.
    """
    ids = list(dict.fromkeys(post_ids))
    batch_size = max(batch_size, len(ids)) if how.dry else batch_size
    await db.read(check_visible, reader, ids)
    decisions: list[Decision] = []
    degraded = None
    until = time.monotonic() + (how.story_seconds or 0.0)
    for part in in_rounds(ids, batch_size):
        left = how._replace(story_seconds=max(0.0, until - time.monotonic()))
        decisions += await db.write(folder.fold, part, now, how if how.story_seconds is None else left)
        degraded = degraded or folder.trouble
    return FoldRun(
        uuid7(),
        "proposed" if how.dry else "completed",
        len(decisions),
        len(ids) - len(decisions),
        [one for one in decisions if one.rule != "first"],
        degraded,
    )


def check_visible(conn: Connection, reader: Reader, post_ids: Sequence[int]) -> None:
    """Raises NotFound if the reader may not see one of these posts."""
    seen = {post.id for post in stream.posts_by_id(conn, reader, list(post_ids))}
    if missing := [post_id for post_id in post_ids if post_id not in seen]:
        raise NotFound(f"There is no post {missing[0]}.", missing=missing[:100])


def fold_settings(conn: Connection, reader: Reader) -> FoldSettings:
    """Returns how the stream is folded for a reader."""
    return folded.settings_of(conn, reader)


def choose_folding(conn: Connection, reader: Reader, level: str, threshold: float) -> FoldSettings:
    folded.save_settings(conn, reader, FoldSettings(level, threshold))
    audit.record(conn, reader, "folding.choose", detail=f"{level}, {threshold}")
    return folded.settings_of(conn, reader)


def choose_source_folding(conn: Connection, reader: Reader, source_id: int, *, fold: bool) -> None:
    """Chooses whether posts of a source are folded for a reader."""
    if not folded.set_folding(conn, reader, source_id, fold=fold):
        raise NotFound(f"You do not follow a source {source_id}.")
    audit.record(conn, reader, "source.change", source_id, "folded" if fold else "not folded")


def explain(conn: Connection, reader: Reader, one: int, other: int) -> Explained:
    """Says whether two posts are the same text or tell of one event, and why.

    Of posts in one story it says what was decided, of others what would be if these two were all there is.
    """
    from headwater.dedup.engine import explained

    check_visible(conn, reader, [one, other])
    found = {post.id: post for post in stories.texts(conn, [one, other])}
    places = stories.decided(conn, [one, other])
    apart = other in stories.apart_from(conn, [one]).get(one, set())
    together = one in places and other in places and places[one].decision.story_id == places[other].decision.story_id
    if together and not partings.on_one_side(conn, reader, one, other):
        together, apart = False, True
    facts = explained(_text(found, one), _text(found, other))._asdict()
    if together:
        facts = _as_decided(places[one], places[other])
    return Explained(facts, together, apart)


def _as_decided(one: StoryMember, other: StoryMember) -> dict[str, Any]:
    """Returns what was decided when the later of two posts joined the story of the other, as it was stored."""
    later = max(one, other, key=lambda member: (member.decision.rule != "first", member.seq)).decision
    return {"relation": later.rule, "score": later.score, "why": later.why}


def evaluate(file: Path, level: str, shuffle: int | None = None) -> dict[str, Any]:
    """Folds labelled posts as in production and compares the groups with the labels."""
    from headwater.dedup.evaluate import evaluate as measure

    if level not in ("repeats", "stories"):
        raise BadInput(f"--level {level}: choose repeats or stories.")
    if not file.is_file():
        raise BadInput(f"There is no file {file}.")
    return measure(file, level, shuffle=shuffle)


def _is_folded(conn: Connection, reader: Reader, post_id: int) -> bool:
    return len(folded.arrived(conn, reader, post_id, limit=2)) > 1


def _group(conn: Connection, reader: Reader, post_id: int, after: int = 0, limit: int = MEMBERS) -> Group:
    members = folded.arrived(conn, reader, post_id, after=after, limit=limit)
    if not members:
        raise NotFound("The story has no more posts.")
    found = _with_record(conn, reader, Group(members[0].story_id, members, []))
    ids = [member.post_id for member in members]
    return found._replace(
        tellings=folded.count_tellings(conn, reader, post_id),
        told=tellings.news(conn, ids),
        first=_first(conn, reader, post_id),
    )


def _first(conn: Connection, reader: Reader, post_id: int) -> FirstTold | None:
    """Returns who told a story first. Of a large one, those are looked at that arrived first."""
    return first_told(conn, folded.arrived(conn, reader, post_id, limit=FIRST_AMONG))


def _undone(conn: Connection, reader: Reader, parted: PartedStory | None, why_not: str) -> Group:
    """Returns a story that was undone, as it was; raises if the reader may see fewer than two of its posts."""
    members = folded.as_it_was(conn, reader, parted.decisions) if parted else []
    if parted is None or len(members) < 2:
        raise NotFound(why_not)
    first = first_told(conn, members[:FIRST_AMONG])
    shown = Group(parted.story_id, members[:MEMBERS], [], parted=parted, tellings=len(members), first=first)
    return _with_record(conn, reader, shown)


def _with_record(conn: Connection, reader: Reader, story: Group) -> Group:
    ids = {member.post_id for member in story.members}
    history = [one for one in partings.history(conn, reader, story.story_id) if one.post_id in ids]
    return story._replace(history=history, at_x=stories.ids_at_x(conn, sorted(ids)))


def _parted_of_post(conn: Connection, reader: Reader, post_id: int) -> PartedStory | None:
    """Returns the story that a post was in until a person parted them, for its tenant or for everybody."""
    if stream.one_post(conn, reader, post_id) is None:
        return None
    place = stories.decided(conn, [post_id]).get(post_id)
    of_post = partings.last_of_post(conn, reader, post_id)
    return of_post or (partings.last_of_story(conn, reader, place.decision.story_id) if place else None)


def in_rounds(ids: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def _text(found: dict[int, PostText], post_id: int) -> PostText:
    if post_id not in found:
        raise NotFound(f"There is no post {post_id}.")
    return found[post_id]


def export(conn: Connection, reader: Reader) -> Iterator[StoryJson]:
    """Returns every story with all its members, each post that is in none as one of its own, the newest first."""
    after = None
    while found := stream.page(conn, reader, Filter(), after=after, limit=EXPORTED_AT_ONCE):
        yield from (shaped(StoryJson, _with_all_members(conn, reader, one)) for one in found)
        after = found[-1].at


def _with_all_members(conn: Connection, reader: Reader, story: Story) -> Story:
    if story.tellings <= len(story.members):
        return story
    return story._replace(members=folded.arrived(conn, reader, story.post.id, limit=folded.EVERYTHING))


class DecisionJson(TypedDict):
    """Where a post belongs; rule `first`: it is alone, or begins a story."""

    post_id: Annotated[int, Example(4719)]
    story_id: Annotated[int, Example(4711)]
    repeat_of: Annotated[int | None, Example(4711, of=repeat_of_member)]
    rule: Annotated[str, Example("exact")]
    score: Annotated[float, Example(1.0)]
    why: Annotated[str, Example(EXAMPLE_WHY)]


class Run(TypedDict):
    """A run, which is over when it is answered."""

    task_id: Annotated[str, Example("0199f1de-7a10-7c3e-9d0a-5f3a1c2b4d6e")]
    status: Annotated[Literal["completed", "proposed"], Example("completed", "proposed: nothing was written")]
    decided: Annotated[int, Example(2)]
    already_decided: Annotated[int, Example(0)]
    degraded: Annotated[
        str | None, Example(None, "why some posts were compared for exact repeats alone; null: none was")
    ]
    joined: list[DecisionJson]


class PastJson(TypedDict):
    """A decision about a story."""

    at: Annotated[Time, Example("2026-01-07T09:30:02Z", of="decided_at")]
    action: Annotated[str, Example("joined", "joined, met (two stories became one), parted or undone")]
    post_id: Annotated[int, Example(4719)]
    rule: Annotated[str | None, Example("exact")]
    score: Annotated[float | None, Example(1.0)]
    why: Annotated[str | None, Example(EXAMPLE_WHY)]


class UndoneJson(TypedDict):
    """Who took a story apart, and when."""

    at: Annotated[Time, Example("2026-01-07T10:02:00Z")]
    by: Annotated[str | None, Example("owner", "null: somebody who runs this Headwater")]
    for_everybody: Annotated[bool, Example(False, "false: for your group of readers")]
    action: Annotated[str, Example("undone", "undone, or parted: a post was taken out of a story of two")]


class GroupJson(TypedDict):
    """A story: its members as they arrived, and every decision about it. `tweet_ids` are ids at X; posts from
    elsewhere have their ids here."""

    group_id: Annotated[int, Example(4711, of="story_id")]
    representative: Annotated[int, Example(4711, of=lambda story: story.members[0].post_id)]
    representative_tweet_id: Annotated[str, Example("4711", of=lambda story: story.tweet_ids[0])]
    deduplication_type: Annotated[str, Example("exact_duplicate", "exact_duplicate or similar_content")]
    similarity_score: Annotated[float | None, Example(None, "the lowest score of a similar group; null: it is exact")]
    tweet_ids: Annotated[list[str], Example(["4711", "4719"])]
    created_at: Annotated[Time | None, Example("2026-01-07T09:30:02Z", "when the first post joined")]
    members: Annotated[
        list[MemberJson], Example([example(MemberJson), EXAMPLE_REPEAT], f"the first {MEMBERS} that arrived")
    ]
    tellings: Annotated[int, Example(2, f"how many members there are, up to {folded.MOST_COUNTED:,}")]
    news: Annotated[
        list[NewsJson],
        Example(
            [example(NewsJson)],
            "what members say that earlier ones did not",
            of=lambda story: told_by([one for one in story.members if one.post_id in story.told], story.told),
        ),
    ]
    first: Annotated[FirstJson | None, Example(example(FirstJson), "who told it first")]
    history: list[PastJson]
    undone: Annotated[
        UndoneJson | None, Example(None, "it was taken apart, and this is how it was; null: it stands", of="parted")
    ]


class Done(TypedDict):
    """What was taken apart."""

    success: Annotated[bool, Example(True)]
    post_ids: Annotated[list[int], Example([4711, 4719], "the posts that are separate now")]
    for_everybody: Annotated[bool, Example(False, "false: for your group of readers alone")]


class FoldingJson(TypedDict):
    """How the stream is folded for you."""

    level: Annotated[str, Example("stories", "off, repeats or stories")]
    threshold: Annotated[float, Example(0.0)]


class SourceFolding(TypedDict):
    """Whether posts of a source are folded for you."""

    fold: Annotated[bool, Example(True)]
