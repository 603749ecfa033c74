"""`/api/stream` and `/api/posts`: what was published, what it said before, and what the reader did with it."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import orjson
from fastapi import Query, Request
from pydantic import BaseModel, ConfigDict, Field

from headwater.app import posts
from headwater.app.fleet.signals import SCOPE
from headwater.app.posts import ImageCountsJson, ImageJson, ImagesJson, Marked, PostJson, VersionJson, VersionsJson
from headwater.app.shapes import PageJson, shaped
from headwater.app.tellings import StoryJson
from headwater.http import routes
from headwater.http.auth import CurrentReader, caller_of
from headwater.http.routes import (
    MAX_ID,
    MAX_MARKED,
    Cursor,
    Flag,
    Id,
    JsonId,
    Limit,
    MomentText,
    StreamFilter,
    api_router,
    route,
)
from headwater.http.state import WithParts
from headwater.store.posts.stream import Marks

router = api_router("posts")
image_router = api_router("images")


class PostState(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"read": True}})

    read: Flag | None = Field(default=None, description="true: read; false: unread; null: as it is")
    starred: Flag | None = Field(default=None, description="true: starred; false: not; null: as it is")
    as_of: int | None = Field(
        default=None,
        ge=0,
        le=MAX_ID,
        strict=True,
        description="`as_of` of the story: what joined it later was not seen and stays unread",
    )

    replies_until: Annotated[list[JsonId], Field(max_length=MAX_MARKED)] = Field(
        default=[],
        description="`replies_until` of threads: these replies, and those that were stored before them, are read too",
    )

    def marks(self) -> Marks:
        return Marks(self.read, self.starred, self.as_of, self.replies_until)


class MarkedPosts(PostState):
    model_config = ConfigDict(json_schema_extra={"example": {"ids": [4711, 4712], "read": True}})

    ids: list[JsonId] = Field(max_length=MAX_MARKED, description="the posts")


@router.get("/stream", tags=["stream"], **route("Read the stream: stories, newest first", "posts:read", has_tag=True))
async def read_stream(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    wanted: StreamFilter,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> PageJson[StoryJson]:
    """Posts about one event are one entry, shown as the first to arrive of those you may see. Its place is that of the
    newest post that adds something. A post with replies is one entry too (`thread`)."""
    shape = partial(routes.page_of, StoryJson, limit=limit, cursor_of=routes.cursor_of_story)
    after = routes.position(cursor)
    if caller_of(request).may(SCOPE) and await parts.db.read(posts.owns_something, reader):
        found = await posts.stream_page(parts.db, parts.cache, reader, wanted, after=after, limit=limit + 1)
        body = orjson.dumps(shape(await parts.db.read(posts.with_signals, reader, found)))
    else:
        body = await posts.page_as_json(
            parts.db, parts.cache, posts.STREAM_JSON, shape, reader, wanted, after=after, limit=limit + 1
        )
    shown: PageJson[StoryJson] = routes.tagged(request, body)
    return shown


@router.get("/posts", **route("List posts, newest first", "posts:read", has_tag=True))
async def list_posts(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    wanted: StreamFilter,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> PageJson[PostJson]:
    """Each post on its own, whether it is folded into a story or not."""
    shape = partial(routes.page_of, PostJson, limit=limit, cursor_of=routes.cursor_of_post)
    after = routes.position(cursor)
    body = await posts.page_as_json(
        parts.db, parts.cache, posts.POSTS_JSON, shape, reader, wanted, after=after, limit=limit + 1
    )
    shown: PageJson[PostJson] = routes.tagged(request, body)
    return shown


@router.post("/posts/mark", **route("Mark many posts", "posts:write"))
async def mark_posts(parts: WithParts, reader: CurrentReader, wanted: MarkedPosts) -> Marked:
    """Sets `read` and/or `starred`. Posts you cannot see are not counted."""
    return {"marked": await parts.db.write(posts.mark, reader, wanted.ids, parts.now(), wanted.marks())}


@router.get("/posts/{post_id}", **route("Show one post", "posts:read"))
async def show_post(parts: WithParts, reader: CurrentReader, post_id: Id) -> PostJson:
    """With its text as safe HTML, and your marks."""
    return shaped(PostJson, await parts.db.read(posts.one, reader, post_id))


@router.get("/posts/{post_id}/replies", **route("List the replies of a thread, oldest first", "posts:read"))
async def list_replies(
    parts: WithParts, reader: CurrentReader, post_id: Id, cursor: Cursor = None, limit: Limit = 50
) -> PageJson[PostJson]:
    """The replies in this post's thread, whether it started the thread or is a reply. Empty if there are none."""
    after = routes.position(cursor)
    found = await parts.db.read(posts.replies, reader, post_id, after=after, limit=limit + 1)
    return routes.page_of(PostJson, found, limit, routes.cursor_of_post)


@router.patch("/posts/{post_id}", **route("Mark a post as read or starred", "posts:write"))
async def mark_post(parts: WithParts, reader: CurrentReader, post_id: Id, wanted: PostState) -> PostJson:
    """Only the given fields change."""
    return shaped(PostJson, await parts.db.write(posts.mark_one, reader, post_id, parts.now(), wanted.marks()))


@router.get("/posts/{post_id}/versions", **route("What a post said, now and before", "posts:read"))
async def list_versions(
    parts: WithParts,
    reader: CurrentReader,
    post_id: Id,
    at: Annotated[
        MomentText | None,
        Query(max_length=50, description="only the text of this time; a date alone is the end of that day, UTC"),
    ] = None,
) -> VersionsJson:
    """All its texts with the time each was current, newest first."""
    found = await parts.db.read(posts.versions, reader, post_id, at or None)
    shown = [shaped(VersionJson, one) for one in found.versions]
    return {"post_id": post_id, "revision": found.revision, "thinned": found.thinned, "versions": shown}


@image_router.get("/posts/{post_id}/images", **route("The images of a post", "posts:read"))
async def list_images(parts: WithParts, reader: CurrentReader, post_id: Id) -> ImagesJson:
    """With the address of each, whether it is saved and where, or why not."""
    found = await parts.db.read(posts.images_of, reader, post_id)
    return {"post_id": post_id, "images": [shaped(ImageJson, one) for one in found]}


@image_router.get("/images", **route("How many images are saved, wait or failed", "health:read"))
async def count_images(parts: WithParts, reader: CurrentReader) -> ImageCountsJson:
    """Counted over the sources you follow. `bytes` is the size of the files; each content counts once."""
    return await parts.db.read(posts.count_images_seen, reader)
