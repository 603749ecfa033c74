"""`/api/posts` and `/api/stream`: what was published, and what the reader did with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from typing_extensions import TypedDict

from headwater.app.shapes import PageJson, PostJson, StoryJson, post_json, story_json
from headwater.errors import BadInput, NotFound
from headwater.http import cursors
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import MAX_ID, Cursor, Id, Limit, MarkedPosts, Name, PostState
from headwater.model import Reader
from headwater.store.posts import stream
from headwater.store.posts.stream import Filter
from headwater.wire import Parts

router = APIRouter(prefix="/api", tags=["posts"])


def wanted_of(
    source_id: Annotated[int | None, Query(ge=1, le=MAX_ID, description="only those of this source")] = None,
    folder: Annotated[Name | None, Query(description="only those of sources in this folder")] = None,
    unread: Annotated[bool, Query(description="only what you have not read")] = False,
    starred: Annotated[bool, Query(description="only what you starred")] = False,
    words: Annotated[
        str | None,
        Query(
            alias="q",
            max_length=500,
            description="only what has all these words, last stored first; `mine*` matches mines",
        ),
    ] = None,
) -> Filter:
    return Filter(source_id, folder, unread, starred, words.strip() or None if words else None)


Wanted = Annotated[Filter, Depends(wanted_of)]


class Marked(TypedDict):
    marked: int


@router.get("/stream", summary="Read the stream: stories, newest first", tags=["stream"])
async def read_stream(
    parts: WithParts, reader: Asking, wanted: Wanted, cursor: Cursor = None, limit: Limit = 50
) -> PageJson[StoryJson]:
    after = cursors.position(cursor)
    found = await parts.db.read(stream.page, reader, wanted, after=after, limit=limit + 1)
    more = cursors.of_story(found[limit - 1]) if len(found) > limit else None
    return {"items": [story_json(story) for story in found[:limit]], "next_cursor": more}


@router.get("/posts", summary="List posts, newest first")
async def list_posts(
    parts: WithParts, reader: Asking, wanted: Wanted, cursor: Cursor = None, limit: Limit = 50
) -> PageJson[PostJson]:
    after = cursors.position(cursor)
    found = await parts.db.read(stream.posts_page, reader, wanted, after=after, limit=limit + 1)
    more = cursors.of_post(found[limit - 1]) if len(found) > limit else None
    return {"items": [post_json(post) for post in found[:limit]], "next_cursor": more}


@router.post("/posts/mark", summary="Mark many posts")
async def mark_posts(parts: WithParts, reader: Asking, wanted: MarkedPosts) -> Marked:
    """Sets `read` and/or `starred`. Ids that you cannot see are left out of the count."""
    return {"marked": await mark(parts, reader, wanted.ids, wanted)}


@router.get("/posts/{post_id}", summary="Show one post")
async def show_post(parts: WithParts, reader: Asking, post_id: Id) -> PostJson:
    post = await parts.db.read(stream.one_post, reader, post_id)
    if post is None:
        raise NotFound(f"There is no post {post_id}.")
    return post_json(post)


@router.patch("/posts/{post_id}", summary="Mark a post as read or starred")
async def mark_post(parts: WithParts, reader: Asking, post_id: Id, wanted: PostState) -> PostJson:
    await mark(parts, reader, [post_id], wanted)
    return await show_post(parts, reader, post_id)


async def mark(parts: Parts, reader: Reader, ids: Sequence[int], wanted: PostState) -> int:
    state = wanted.given()
    if not state:
        raise BadInput("Nothing to change: give read, starred or both.")
    return await parts.db.write(lambda conn: stream.mark_posts(conn, reader, ids, parts.now(), **state))
