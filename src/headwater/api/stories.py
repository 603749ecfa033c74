"""`/api/deduplicate` and `/api/folding`: which posts are one story, why, and what to do if they are not."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headwater.app import stories
from headwater.app.shapes import shaped
from headwater.app.stories import Done, FoldingJson, GroupJson, Run, SourceFolding
from headwater.consumers.fold import FoldOptions
from headwater.errors import BadConfiguration
from headwater.http.auth import CurrentReader
from headwater.http.routes import AnyId, Id, JsonRoute
from headwater.http.state import WithParts

MOST_POSTS = 10_000
EMBEDDING_MODEL = "wordllama"

router = APIRouter(prefix="/api", tags=["stories"], route_class=JsonRoute)


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


class Folding(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"level": "repeats", "threshold": 0.8}})

    level: Literal["off", "repeats", "stories"] = "stories"
    threshold: float = Field(default=0.0, ge=0, le=1)


@router.post("/deduplicate/batch", summary="Fold these posts now")
async def fold_posts(parts: WithParts, reader: CurrentReader, wanted: Annotated[dict[str, Any], Body()]) -> Run:
    """Posts that were decided about already are skipped. A wrong configuration is a 400 that names the field."""
    batch = checked(wanted, embeddings=parts.settings.fold_embeddings)
    run = await stories.fold_posts(
        parts.db,
        parts.folding,
        reader,
        batch.post_ids,
        how_to_fold(batch.config),
        parts.now(),
        batch_size=batch.config.batch_size,
    )
    return shaped(Run, run)


@router.get("/deduplicate/groups/{group_id}", summary="Show a story, its members and why they are in it")
async def show_group(parts: WithParts, reader: CurrentReader, group_id: Id) -> GroupJson:
    return shaped(GroupJson, await parts.db.read(stories.group, reader, group_id))


@router.get("/deduplicate/posts/{post_id}", summary="Show the story that a post is in")
@router.get("/deduplicate/tweets/{post_id}", summary="Show the story that a post is in")
async def show_group_of_post(parts: WithParts, reader: CurrentReader, post_id: Id) -> GroupJson:
    return shaped(GroupJson, await parts.db.read(stories.group_of_post, reader, post_id))


@router.delete("/deduplicate/groups/{group_id}", summary="Undo a story: its posts are separate again and stay so")
async def undo_group(parts: WithParts, reader: CurrentReader, group_id: Id) -> Done:
    """A story that was undone already is a 409."""
    return {"success": True, "post_ids": await parts.db.write(stories.undo, reader, group_id, parts.now())}


@router.post("/deduplicate/posts/{post_id}/apart", summary="Say that a post is not the same as the rest of its story")
async def take_out(parts: WithParts, reader: CurrentReader, post_id: Id) -> Done:
    return {"success": True, "post_ids": await parts.db.write(stories.take_out, reader, post_id, parts.now())}


@router.get("/folding", summary="How the stream is folded for you")
async def show_folding(parts: WithParts, reader: CurrentReader) -> FoldingJson:
    return shaped(FoldingJson, await parts.db.read(stories.fold_settings, reader))


@router.put("/folding", summary="Choose how the stream is folded for you")
async def choose_folding(parts: WithParts, reader: CurrentReader, wanted: Folding) -> FoldingJson:
    return shaped(FoldingJson, await parts.db.write(stories.choose_folding, reader, wanted.level, wanted.threshold))


@router.put("/folding/sources/{source_id}", summary="Choose whether posts of a source are folded")
async def choose_source(
    parts: WithParts, reader: CurrentReader, source_id: Id, fold: Annotated[bool, Body(embed=True)]
) -> SourceFolding:
    await parts.db.write(stories.choose_source_folding, reader, source_id, fold=fold)
    return {"fold": fold}


def checked(wanted: dict[str, Any], *, embeddings: bool) -> Batch:
    """Reads a batch. Raises BadConfiguration, which names the first field that is wrong."""
    try:
        batch = Batch.model_validate(wanted)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(place) for place in first["loc"])
        raise BadConfiguration(f"{field}: {first['msg']}.", field=field) from None
    use = batch.config.use_embedding_model
    if use is not None and use != embeddings:
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
