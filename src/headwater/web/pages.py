"""The stream and the posts in it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from sqlalchemy import Connection
from starlette.responses import Response

from headwater.api.posts import Wanted, mark
from headwater.errors import NotFound
from headwater.http import cursors
from headwater.http.auth import Asking, WithParts
from headwater.http.edge import page_policy
from headwater.http.inputs import MAX_MARKED, AnyId, Id, PostState
from headwater.model import Reader
from headwater.store import images, sources
from headwater.store.posts import history, stream
from headwater.store.posts.stream import Filter, Story, StreamPosition, StreamPost
from headwater.store.sources import WatchedSource
from headwater.web import starter
from headwater.web.images import PostImages
from headwater.web.view import go, show
from headwater.wire import Parts

PAGE = 40

router = APIRouter()


class ShownPost(NamedTuple):
    """All that the stream page needs, read in one transaction."""

    stories: list[Story]
    folders: list[str]
    source: WatchedSource | None
    follows_nothing: bool


@router.get("/")
async def stream_page(
    request: Request,
    parts: WithParts,
    reader: Asking,
    wanted: Wanted,
    cursor: str | None = None,
) -> Response:
    found = await parts.db.read(_gather, reader, parts.now(), wanted, cursors.position(cursor))
    if found.follows_nothing:
        return show(request, "welcome.html", groups=starter.GROUPS, section="stream")
    more = len(found.stories) > PAGE
    return show(
        request,
        "stream.html",
        posts=[story.post for story in found.stories[:PAGE]],
        stories={story.post.id: story for story in found.stories if len(story.members) > 1},
        older=link(wanted, cursor=cursors.of_story(found.stories[PAGE - 1])) if more else None,
        wanted=wanted,
        link=link,
        folders=found.folders,
        source=found.source,
        is_newest=cursor is None,
        section="stream",
    )


def _gather(conn: Connection, reader: Reader, now: datetime, wanted: Filter, after: StreamPosition | None) -> ShownPost:
    stories = stream.page(conn, reader, wanted, after=after, limit=PAGE + 1)
    follows_nothing = not stories and not sources.watched_after(conn, reader, now, after=None, limit=1)
    source = sources.watched_one(conn, reader, wanted.source_id, now) if wanted.source_id else None
    return ShownPost(stories, stream.folders(conn, reader), source, follows_nothing)


def link(wanted: Filter, **changes: Any) -> str:
    """The address of the stream with these filters changed."""
    values = {**wanted._asdict(), **changes}
    values["q"] = values.pop("words")
    query = urlencode({name: "1" if value is True else value for name, value in values.items() if value})
    return f"/?{query}" if query else "/"


@router.get("/posts/{post_id}")
async def post_page(
    request: Request, parts: WithParts, reader: Asking, post_id: Id, pictures: bool = False
) -> Response:
    """A post in full. With `pictures`, the reader agreed that those that are not saved are loaded from elsewhere."""
    post = await _post(parts, reader, post_id)
    past = (await parts.db.read(history.versions, reader, post_id))[1:] if post.version > 1 else []
    shown = await _pictures(parts, post_id, remote=pictures)
    page = show(request, "post.html", post=post, past=past, pictures=shown, section="stream")
    if shown.remote:
        page.headers["Content-Security-Policy"] = page_policy(remote_images=True)
    return page


@router.get("/posts/{post_id}/content")
async def post_content(request: Request, parts: WithParts, reader: Asking, post_id: Id) -> Response:
    """The text of a post alone, for the stream to open in place."""
    post = await _post(parts, reader, post_id)
    return show(request, "content.html", post=post, pictures=await _pictures(parts, post_id))


async def _pictures(parts: Parts, post_id: int, *, remote: bool = False) -> PostImages:
    records = await parts.db.read(images.of_post, post_id)
    return PostImages(records, remote or parts.settings.remote_images == "show")


@router.post("/posts/mark")
async def mark_read(
    parts: WithParts,
    reader: Asking,
    ids: Annotated[list[AnyId], Form(max_length=MAX_MARKED)],
    next: Annotated[str, Form()] = "/",
) -> Response:
    await mark(parts, reader, ids, PostState(read=True))
    return go(next)


@router.post("/posts/{post_id}/mark")
async def mark_post(
    parts: WithParts,
    reader: Asking,
    post_id: Id,
    read: Annotated[bool | None, Form()] = None,
    starred: Annotated[bool | None, Form()] = None,
    next: Annotated[str, Form()] = "/",
) -> Response:
    await mark(parts, reader, [post_id], PostState(read=read, starred=starred))
    return go(next)


async def _post(parts: Parts, reader: Reader, post_id: int) -> StreamPost:
    post = await parts.db.read(stream.one_post, reader, post_id)
    if post is None:
        raise NotFound(f"There is no post {post_id}, or you do not follow its source any more.")
    return post
