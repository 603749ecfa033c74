"""`/api/deduplicate`, `/api/folding`: which posts are one story, why, and what to do if they are not (C5, C8, C9)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app.shapes import MemberJson, Time, iso, member_json
from headwater.consumers import fold
from headwater.consumers.fold import FoldOptions
from headwater.errors import AlreadyUndone, BadConfiguration, NotFound
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import AnyId, Id
from headwater.ids import uuid7
from headwater.model import Decision, Reader
from headwater.store import stories
from headwater.store.posts import stream
from headwater.store.stories import folded
from headwater.store.stories.folded import FoldSettings, ShownMember

MOST_POSTS = 10_000
EMBEDDING_MODEL = "wordllama"

router = APIRouter(prefix="/api", tags=["stories"])


class Configuration(BaseModel):
    """What one run may fold."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"similarity_threshold": 0.7}})

    similarity_threshold: float = Field(default=0.0, ge=0, le=1, description="fold only what scores at least this")
    enable_exact_duplicate: bool = True
    enable_similar_content: bool = True
    deduplication_method: Literal["auto", "manual", "hybrid"] = Field(
        default="auto", description="auto folds; manual only says what it would fold; hybrid folds exact repeats alone"
    )
    use_embedding_model: bool | None = Field(
        default=None, description="what this server was started with (HEADWATER_FOLD_EMBEDDINGS) decides"
    )
    embedding_model: str | None = None
    batch_size: int = Field(default=1000, ge=1, le=MOST_POSTS)


class Batch(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    post_ids: list[AnyId] = Field(alias="tweet_ids", min_length=1, max_length=MOST_POSTS)
    config: Configuration = Configuration()


class DecisionJson(TypedDict):
    """Where a post belongs; rule `first`: it stands alone, or begins a story."""

    post_id: int
    story_id: int
    repeat_of: int | None
    rule: str
    score: float
    why: str


class Run(TypedDict):
    """A run, which is over when it is answered."""

    task_id: str
    status: Annotated[Literal["completed", "proposed"], Field(description="proposed: nothing was written")]
    decided: int
    already_decided: int
    joined: list[DecisionJson]


class PastJson(TypedDict):
    """A decision about a story."""

    at: Time
    action: Annotated[str, Field(description="joined, parted or undone")]
    post_id: int
    rule: str | None
    score: float | None
    why: str | None


class GroupJson(TypedDict):
    """A story: its members, the earliest first, and every decision about it."""

    group_id: int
    representative: int
    members: list[MemberJson]
    history: list[PastJson]


class Done(TypedDict):
    """What was taken apart."""

    success: bool
    post_ids: Annotated[list[int], Field(description="the posts that stand apart now")]


class FoldingJson(TypedDict):
    """How the stream is folded for you."""

    level: Annotated[str, Field(description="off, repeats or stories")]
    threshold: float


class Folding(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"level": "repeats", "threshold": 0.8}})

    level: Literal["off", "repeats", "stories"] = "stories"
    threshold: float = Field(default=0.0, ge=0, le=1)


@router.post("/deduplicate/batch", summary="Fold these posts now")
async def fold_posts(parts: WithParts, reader: Asking, wanted: Annotated[dict[str, Any], Body()]) -> Run:
    """Posts that were decided about already are skipped. A wrong configuration is a 400 that names the field."""
    batch = checked(wanted, embeddings=parts.settings.fold_embeddings)
    ids = list(dict.fromkeys(batch.post_ids))
    seen = {post.id for post in await parts.db.read(stream.posts_by_id, reader, ids)}
    if missing := [post_id for post_id in ids if post_id not in seen]:
        raise NotFound(f"There is no post {missing[0]}.", missing=missing[:100])
    how = how_to_fold(batch.config)
    decisions: list[Decision] = []
    for start in range(0, len(ids), batch.config.batch_size):
        part = ids[start : start + batch.config.batch_size]
        decisions += await parts.db.write(parts.folding.fold, part, parts.now(), how)
    return {
        "task_id": uuid7(),
        "status": "proposed" if how.dry else "completed",
        "decided": len(decisions),
        "already_decided": len(ids) - len(decisions),
        "joined": [decision_json(one) for one in decisions if one.rule != "first"],
    }


@router.get("/deduplicate/groups/{group_id}", summary="Show a story, its members and why they are in it")
async def show_group(parts: WithParts, reader: Asking, group_id: Id) -> GroupJson:
    return await parts.db.read(group_json, reader, group_id)


@router.get("/deduplicate/posts/{post_id}", summary="Show the story that a post is in")
@router.get("/deduplicate/tweets/{post_id}", summary="Show the story that a post is in")
async def show_group_of_post(parts: WithParts, reader: Asking, post_id: Id) -> GroupJson:
    def find(conn: Connection) -> GroupJson:
        place = stories.decided(conn, [post_id]).get(post_id)
        if place is None or stream.one_post(conn, reader, post_id) is None:
            raise NotFound(f"The post {post_id} is in no story.")
        return group_json(conn, reader, place.decision.story_id)

    return await parts.db.read(find)


@router.delete("/deduplicate/groups/{group_id}", summary="Undo a story: its posts stand alone and stay so")
async def undo_group(parts: WithParts, reader: Asking, group_id: Id) -> Done:
    """A story that was undone already is a 409."""
    return {"success": True, "post_ids": await parts.db.write(undo, reader, group_id, parts.now())}


@router.post("/deduplicate/posts/{post_id}/apart", summary="Say that a post is not the same as the rest of its story")
async def take_out(parts: WithParts, reader: Asking, post_id: Id) -> Done:
    return {"success": True, "post_ids": await parts.db.write(part, reader, post_id, parts.now())}


@router.get("/folding", summary="How the stream is folded for you")
async def show_folding(parts: WithParts, reader: Asking) -> FoldingJson:
    level, threshold = await parts.db.read(folded.settings_of, reader)
    return {"level": level, "threshold": threshold}


@router.put("/folding", summary="Choose how the stream is folded for you")
async def choose_folding(parts: WithParts, reader: Asking, wanted: Folding) -> FoldingJson:
    await parts.db.write(folded.save_settings, reader, FoldSettings(wanted.level, wanted.threshold))
    return await show_folding(parts, reader)


@router.put("/folding/sources/{source_id}", summary="Let posts of a source always stand alone, or not")
async def choose_source(
    parts: WithParts, reader: Asking, source_id: Id, fold: Annotated[bool, Body(embed=True)]
) -> dict[str, bool]:
    if not await parts.db.write(folded.set_folding, reader, source_id, fold=fold):
        raise NotFound(f"You do not follow a source {source_id}.")
    return {"fold": fold}


def checked(wanted: dict[str, Any], *, embeddings: bool) -> Batch:
    try:
        batch = Batch.model_validate(wanted)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(place) for place in first["loc"])
        raise BadConfiguration(f"{field}: {first['msg']}.", field=field) from None
    asked = batch.config.use_embedding_model
    if asked is not None and asked != embeddings:
        words = "with" if embeddings else "without"
        raise BadConfiguration(
            f"config.use_embedding_model: this server folds {words} one (HEADWATER_FOLD_EMBEDDINGS).",
            field="config.use_embedding_model",
        )
    if batch.config.embedding_model not in (None, EMBEDDING_MODEL):
        raise BadConfiguration(
            f"config.embedding_model: there is only {EMBEDDING_MODEL}.", field="config.embedding_model"
        )
    return batch


def how_to_fold(config: Configuration) -> FoldOptions:
    return FoldOptions(
        threshold=config.similarity_threshold,
        exact=config.enable_exact_duplicate,
        similar=config.enable_similar_content and config.deduplication_method != "hybrid",
        dry=config.deduplication_method == "manual",
    )


def group_of(conn: Connection, reader: Reader, story_id: int) -> list[ShownMember]:
    """What a reader may see of a story of at least two posts."""
    ids = [member.decision.post_id for member in stories.members(conn, story_id)]
    seen = folded.members(conn, reader, FoldSettings(), ids)
    members = max(seen.values(), key=len, default=[])
    if len(members) < 2:
        raise NotFound(f"There is no story {story_id}.")
    return members


def group_json(conn: Connection, reader: Reader, story_id: int) -> GroupJson:
    members = group_of(conn, reader, story_id)
    visible = {member.post_id for member in members}
    past = [one for one in stories.history(conn, story_id) if one.post_id in visible]
    return {
        "group_id": story_id,
        "representative": members[0].post_id,
        "members": [member_json(member) for member in members],
        "history": [
            {
                "at": iso(one.decided_at),
                "action": one.action,
                "post_id": one.post_id,
                "rule": one.rule,
                "score": one.score,
                "why": one.why,
            }
            for one in past
        ],
    }


def undo(conn: Connection, reader: Reader, story_id: int, now: datetime) -> list[int]:
    try:
        group_of(conn, reader, story_id)
    except NotFound:
        if stream.one_post(conn, reader, story_id) and stories.was_undone(conn, story_id):
            raise AlreadyUndone(f"The story {story_id} was undone already.") from None
        raise
    return fold.undo(conn, story_id, reader, now)


def part(conn: Connection, reader: Reader, post_id: int, now: datetime) -> list[int]:
    place = stories.decided(conn, [post_id]).get(post_id)
    if place is None or stream.one_post(conn, reader, post_id) is None:
        raise NotFound(f"The post {post_id} is in no story.")
    group_of(conn, reader, place.decision.story_id)
    return fold.part(conn, post_id, reader, now)


def decision_json(one: Decision) -> DecisionJson:
    return {
        "post_id": one.post_id,
        "story_id": one.story_id,
        "repeat_of": one.repeat_id if one.repeat_id != one.post_id else None,
        "rule": one.rule,
        "score": one.score,
        "why": one.why,
    }
