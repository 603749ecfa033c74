"""`/api/deduplicate` and `/api/folding`: which posts are one story, why, and what to do if they are not."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field, Strict

from headwater.app import groups, stories
from headwater.app.groups import ConfigurationJson, DeduplicationType, FoldConfiguration, TaskJson
from headwater.app.shapes import PageJson, checked, shaped
from headwater.app.stories import Done, FoldingJson, GroupJson, Run, SourceFolding
from headwater.app.tellings import LeadsJson, MemberJson
from headwater.errors import BadConfiguration
from headwater.http import routes
from headwater.http.auth import CurrentReader
from headwater.http.routes import WHOLE, Cursor, Flag, Id, JsonId, Limit, MomentText, Share, api_router, route
from headwater.http.state import WithParts

MOST_POSTS = 10_000
DOCUMENTED_THRESHOLD = 0.85

router = api_router("stories")


TweetId = Annotated[str, Strict(), Field(pattern=r"^[0-9]{1,19}$")]


ForEverybody = Annotated[bool, Query(description="for everybody who uses this server; only those who run it may (403)")]


class Configuration(BaseModel):
    """How to fold. For null, the reader's choice applies (`/api/folding/runs`), otherwise the server's settings."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"similarity_threshold": 0.7}})

    similarity_threshold: Share | None = Field(
        default=None,
        description="fold only what scores at least this; if nobody chose: 0.85 with `tweet_ids`, 0 with `post_ids`",
    )
    enable_exact_duplicate: Flag | None = Field(default=None, description="fold exact repeats")
    enable_similar_content: Flag | None = Field(default=None, description="fold similar posts and stories")
    deduplication_method: Literal["auto", "manual", "hybrid"] | None = Field(
        default=None, description="auto folds; manual only says what it would fold; hybrid folds exact repeats alone"
    )
    use_embedding_model: Flag | None = Field(
        default=None, description="whether the meaning of words helps; it has to be installed on the server"
    )
    embedding_model: Literal["wordllama"] | None = Field(default=None, description="there is one: wordllama")
    batch_size: Annotated[int, Strict(), Field(ge=1, le=MOST_POSTS), WHOLE] | None = Field(
        default=None, description="how many posts are decided in one transaction"
    )

    def chosen(self) -> FoldConfiguration:
        return FoldConfiguration(**self.model_dump())


class WantedRun(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={"example": {"tweet_ids": ["4711", "4719"], "config": {"similarity_threshold": 0.85}}},
    )

    post_ids: list[JsonId | TweetId] = Field(
        alias="tweet_ids",
        min_length=1,
        max_length=MOST_POSTS,
        description="the posts: a number is an id here, a text is an id at X or, if no post has it, one here",
    )
    config: Configuration = Field(default=Configuration(), description="what this run may fold")


class Folding(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"level": "repeats", "threshold": 0.8}})

    level: Literal["off", "repeats", "stories"] = Field(
        default="stories", description="what is folded: nothing, repeats of a text, or all posts about one event"
    )
    threshold: Share = Field(default=0.0, description="fold only what scores at least this")


@router.post("/deduplicate/batch", **route("Fold these posts now", "stories:write", 400, 404, 409))
async def fold_posts(parts: WithParts, reader: CurrentReader, wanted: Annotated[dict[str, Any], Body()]) -> Run:
    """Posts that are already decided are skipped. A wrong configuration is a 400 that names the field. While another
    run decides about one of these posts, it is a 409. Ask for the result with the `task_id`."""
    batch = checked(WantedRun, wanted, BadConfiguration)
    own = await parts.db.read(groups.chosen_configuration, reader)
    config = batch.config.chosen().over(own).over(parts.fold_configuration)
    usual = DOCUMENTED_THRESHOLD if "tweet_ids" in wanted else 0.0
    run = await groups.run_task(
        parts.db,
        parts.folding_with(embeddings=config.use_embedding_model is True, field="config.use_embedding_model"),
        reader,
        batch.post_ids,
        config.options(usual)._replace(story_seconds=parts.settings.fold_run_seconds),
        parts.now,
        batch_size=config.batch_size or MOST_POSTS,
    )
    parts.new_events.send()
    return shaped(Run, run)


@router.get("/deduplicate/tasks/{task_id}", **route("Ask what came of a run", "posts:read", 400))
async def show_run(
    parts: WithParts, reader: CurrentReader, task_id: Annotated[str, Path(pattern=r"^[0-9a-f-]{36}$")]
) -> TaskJson:
    """Results are kept for 24 hours. `failed` comes with an error: the run was interrupted, or the database failed."""
    found = await parts.db.read(groups.task, reader, task_id, parts.now())
    return shaped(TaskJson, found, result=found.result)


@router.get("/deduplicate/leads", **route("Who is first how often, and by how much", "posts:read"))
async def list_leads(parts: WithParts, reader: CurrentReader) -> LeadsJson:
    """Over the newest 500 stories that several of your sources told. Dates of sources count if they can be believed."""
    return shaped(LeadsJson, await parts.db.read(stories.leads, reader))


@router.get("/deduplicate/groups", **route("List stories of several posts", "posts:read", 400))
async def list_groups(
    parts: WithParts,
    reader: CurrentReader,
    type: Annotated[
        DeduplicationType | None, Query(description="only groups of exact repeats, or only those of similar posts")
    ] = None,
    since: Annotated[
        MomentText | None, Query(max_length=50, description="only groups made at this time or later, ISO 8601")
    ] = None,
    until: Annotated[MomentText | None, Query(max_length=50, description="only groups made before this time")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> PageJson[GroupJson]:
    """Those with the newest representatives first. Undone stories are left out. If a filter matches few stories, a page
    may have fewer than `limit`, or none, and still a `next_cursor`."""
    wanted = groups.wanted_groups(type, since, until)
    found, looked_until = await parts.db.read(groups.page, reader, wanted, before=routes.id_in(cursor), limit=limit)
    next_cursor = None if looked_until is None else routes.cursor_of_id(looked_until)
    return {"items": [shaped(GroupJson, one.group) for one in found], "next_cursor": next_cursor}


@router.get(
    "/deduplicate/groups/{group_id}", **route("Show a story, its members and why they are in it", "posts:read", 400)
)
async def show_group(parts: WithParts, reader: CurrentReader, group_id: Id) -> GroupJson:
    """With the rule, score and reason of each member, and every decision about them. An undone story is shown as it
    was, with `undone`."""
    return shaped(GroupJson, await parts.db.read(stories.group, reader, group_id))


@router.get(
    "/deduplicate/groups/{group_id}/members", **route("List all members of a story, as they arrived", "posts:read", 400)
)
async def list_members(
    parts: WithParts, reader: CurrentReader, group_id: Id, cursor: Cursor = None, limit: Limit = 50
) -> PageJson[MemberJson]:
    """A story may have a thousand members. The group itself shows only the first ones."""
    after = routes.id_in(cursor) or 0
    found = await parts.db.read(stories.group, reader, group_id, after=after, limit=limit + 1)
    return routes.page_of(MemberJson, found.members, limit, routes.cursor_of_member)


@router.get("/deduplicate/posts/{post_id}", **route("Show the story that a post is in", "posts:read", 400))
async def show_group_of_post(parts: WithParts, reader: CurrentReader, post_id: Id) -> GroupJson:
    """If its story was undone, the answer is the story as it was, with `undone`. 404 if it was never in a story."""
    return shaped(GroupJson, await parts.db.read(stories.group_of_post, reader, post_id))


@router.get("/deduplicate/tweets/{tweet_id}", **route("Show the story that a post of X is in", "posts:read", 400))
async def show_group_of_tweet(
    parts: WithParts, reader: CurrentReader, tweet_id: Annotated[str, Path(pattern=r"^[0-9]{1,19}$")]
) -> GroupJson:
    """By its id at X; if no post has it, by its id here."""
    post_id = await parts.db.read(groups.post_named, tweet_id)
    return shaped(GroupJson, await parts.db.read(stories.group_of_post, reader, post_id))


@router.delete(
    "/deduplicate/groups/{group_id}",
    **route("Undo a story: its posts are separate again and stay so", "stories:write", 400, 403, 409),
)
async def undo_group(parts: WithParts, reader: CurrentReader, group_id: Id, everybody: ForEverybody = False) -> Done:
    """It is undone for your tenant. A story that is already undone is a 409."""
    left = await parts.db.write(stories.undo, reader, group_id, parts.now(), everybody=everybody)
    return {"success": True, "post_ids": left, "for_everybody": everybody}


@router.post(
    "/deduplicate/posts/{post_id}/apart",
    **route("Say that a post is not the same as the rest of its story", "stories:write", 400, 403, 409),
)
async def take_out(parts: WithParts, reader: CurrentReader, post_id: Id, everybody: ForEverybody = False) -> Done:
    """Its repeats leave with it. They are not folded again for your tenant. A story that is already undone is a 409."""
    left = await parts.db.write(stories.take_out, reader, post_id, parts.now(), everybody=everybody)
    return {"success": True, "post_ids": left, "for_everybody": everybody}


@router.get("/folding", **route("How the stream is folded for you", "posts:read"))
async def show_folding(parts: WithParts, reader: CurrentReader) -> FoldingJson:
    """What is folded into one entry: nothing, repeats of a text, or all posts about one event."""
    return shaped(FoldingJson, await parts.db.read(stories.fold_settings, reader))


@router.put("/folding", **route("Choose how the stream is folded for you", "posts:write"))
async def choose_folding(parts: WithParts, reader: CurrentReader, wanted: Folding) -> FoldingJson:
    """It applies to everything you read from now on. No post is changed."""
    return shaped(FoldingJson, await parts.db.write(stories.choose_folding, reader, wanted.level, wanted.threshold))


@router.get("/folding/runs", **route("How the runs fold that you ask for", "posts:read"))
async def show_configuration(parts: WithParts, reader: CurrentReader) -> ConfigurationJson:
    """Your choices, and the server's settings for the rest."""
    own = await parts.db.read(groups.chosen_configuration, reader)
    return shaped(ConfigurationJson, own.over(parts.fold_configuration))


@router.put("/folding/runs", **route("Choose how the runs fold that you ask for", "posts:write", 400))
async def choose_configuration(
    parts: WithParts, reader: CurrentReader, wanted: Annotated[dict[str, Any], Body()]
) -> ConfigurationJson:
    """It replaces your earlier choice. For fields that are null or left out, the server's settings apply. A wrong value
    is a 400 that names the field."""
    chosen = checked(Configuration, wanted, BadConfiguration).chosen()
    if chosen.use_embedding_model:
        parts.folding_with(embeddings=True, field="use_embedding_model")
    await parts.db.write(groups.choose_configuration, reader, chosen)
    return shaped(ConfigurationJson, chosen.over(parts.fold_configuration))


@router.put("/folding/sources/{source_id}", **route("Choose whether posts of a source are folded", "posts:write"))
async def choose_source(
    parts: WithParts,
    reader: CurrentReader,
    source_id: Id,
    fold: Annotated[Flag, Body(embed=True, description="true: fold them; false: show each", examples=[False])],
) -> SourceFolding:
    """It applies only to you, and to everything you read from now on."""
    await parts.db.write(stories.choose_source_folding, reader, source_id, fold=fold)
    return {"fold": fold}
