"""The stream and the posts in it."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from headwater.app import posts, sources
from headwater.http import cursors
from headwater.http.auth import CurrentReader
from headwater.http.edge import page_policy
from headwater.http.inputs import MAX_MARKED, AnyId, Id, StreamFilter
from headwater.http.state import WithParts
from headwater.store.posts.stream import Filter
from headwater.web.images import PostImages
from headwater.web.view import go, show

PAGE = 40

router = APIRouter()


@router.get("/")
async def stream_page(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    wanted: StreamFilter,
    cursor: str | None = None,
) -> Response:
    after = cursors.position(cursor)
    found = await parts.db.read(posts.stream_view, reader, parts.now(), wanted, after=after, limit=PAGE + 1)
    if found.follows_nothing:
        return show(request, "welcome.html", groups=sources.STARTER_GROUPS, section="stream")
    stories, more = cursors.cut(found.stories, PAGE, cursors.of_story)
    return show(
        request,
        "stream.html",
        posts=[story.post for story in stories],
        stories={story.post.id: story for story in stories if len(story.members) > 1},
        older=link(wanted, cursor=more) if more else None,
        wanted=wanted,
        link=link,
        folders=found.folders,
        source=found.source,
        is_newest=cursor is None,
        section="stream",
    )


def link(wanted: Filter, **changes: Any) -> str:
    """Returns the address of the stream with these filters changed."""
    values = {**wanted._asdict(), **changes}
    values["q"] = values.pop("words")
    query = urlencode({name: "1" if value is True else value for name, value in values.items() if value})
    return f"/?{query}" if query else "/"


@router.get("/posts/{post_id}")
async def post_page(
    request: Request, parts: WithParts, reader: CurrentReader, post_id: Id, pictures: bool = False
) -> Response:
    """A post in full. With `pictures`, the reader agreed that images that are not saved are loaded from elsewhere."""
    found = await parts.db.read(posts.view, reader, post_id)
    shown = PostImages(found.images, pictures or parts.settings.remote_images == "show")
    page = show(request, "post.html", post=found.post, past=found.past, images=shown, section="stream")
    if shown.remote:
        page.headers["Content-Security-Policy"] = page_policy(remote_images=True)
    return page


@router.get("/posts/{post_id}/content")
async def post_content(request: Request, parts: WithParts, reader: CurrentReader, post_id: Id) -> Response:
    """The text of a post alone, for the stream to open in place."""
    found = await parts.db.read(posts.view, reader, post_id)
    shown = PostImages(found.images, parts.settings.remote_images == "show")
    return show(request, "content.html", post=found.post, images=shown)


@router.post("/posts/mark")
async def mark_read(
    parts: WithParts,
    reader: CurrentReader,
    ids: Annotated[list[AnyId], Form(max_length=MAX_MARKED)],
    next: Annotated[str, Form()] = "/",
) -> Response:
    await parts.db.write(posts.mark, reader, ids, parts.now(), read=True)
    return go(next)


@router.post("/posts/{post_id}/mark")
async def mark_post(
    parts: WithParts,
    reader: CurrentReader,
    post_id: Id,
    read: Annotated[bool | None, Form()] = None,
    starred: Annotated[bool | None, Form()] = None,
    next: Annotated[str, Form()] = "/",
) -> Response:
    await parts.db.write(posts.mark, reader, [post_id], parts.now(), read=read, starred=starred)
    return go(next)
