"""The stream, its posts, and its stories: what is folded together and why, taking it apart, and how much is folded."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Form, Request
from starlette.responses import Response

from headwater.app import posts, sources, stories
from headwater.app.fleet import signals
from headwater.app.tellings import told_by
from headwater.http import routes
from headwater.http.auth import CurrentReader, caller_of, needs
from headwater.http.edge import page_policy
from headwater.http.routes import MAX_MARKED, AnyId, Checkbox, Id, Next, StreamFilter
from headwater.http.state import WithParts
from headwater.store.posts.stream import Filter, Marks
from headwater.web.images import ShownImages
from headwater.web.view import go, page_router, show

PAGE = 40
RepliesUntil = Annotated[list[AnyId] | None, Form(max_length=MAX_MARKED)]

router = page_router()


@router.get("/", dependencies=[needs("posts:read")])
async def stream_page(
    request: Request, parts: WithParts, reader: CurrentReader, wanted: StreamFilter, cursor: str | None = None
) -> Response:
    after = routes.position(cursor)
    newest = await posts.stream_page(parts.db, parts.cache, reader, wanted, after=after, limit=PAGE + 1)
    may_see = caller_of(request).may(signals.SCOPE)
    found = await parts.db.read(posts.stream_view, reader, parts.now(), wanted, newest, signals=may_see)
    if found.follows_nothing:
        return show(request, "welcome.html", groups=sources.STARTER_GROUPS, section="stream")
    shown, more = routes.cut_page(found.stories, PAGE, routes.cursor_of_story)
    return show(
        request,
        "stream.html",
        stories=shown,
        older=link(wanted, cursor=more) if more else None,
        wanted=wanted,
        link=link,
        folders=found.folders,
        source=found.source,
        told=signals.told,
        why=signals.why,
        is_newest=cursor is None,
        section="stream",
    )


def link(wanted: Filter, **changes: Any) -> str:
    """Returns the address of the stream with these filters changed."""
    values = {**wanted._asdict(), **changes}
    values["q"] = values.pop("words")
    query = urlencode({name: "1" if value is True else value for name, value in values.items() if value})
    return f"/?{query}" if query else "/"


@router.get("/posts/{post_id}", dependencies=[needs("posts:read")])
async def post_page(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    post_id: Id,
    images: bool = False,
    cursor: str | None = None,
) -> Response:
    """Renders a post in full, with its replies. With `images`, the reader agreed to load images that are not saved from
    elsewhere."""
    after = routes.position(cursor)
    found = await parts.db.read(posts.view_with_thread, reader, post_id, after=after, limit=posts.REPLIES + 1)
    replies, more = routes.cut_page(found.thread.replies if found.thread else [], posts.REPLIES, routes.cursor_of_post)
    shown = ShownImages(found.images, images or parts.settings.remote_images == "show")
    page = show(
        request,
        "post.html",
        post=found.post,
        past=found.past,
        thinned=found.thinned,
        images=shown,
        thread=found.thread,
        replies=replies,
        more=f"/posts/{post_id}?cursor={more}" if more else None,
        is_first=cursor is None,
        section="stream",
    )
    if shown.remote:
        page.headers["Content-Security-Policy"] = page_policy(remote_images=True)
    return page


@router.get("/posts/{post_id}/content", dependencies=[needs("posts:read")])
async def post_content(request: Request, parts: WithParts, reader: CurrentReader, post_id: Id) -> Response:
    """Renders only the text of a post, for the stream to open in place."""
    found = await parts.db.read(posts.view, reader, post_id)
    shown = ShownImages(found.images, parts.settings.remote_images == "show")
    return show(request, "content.html", post=found.post, images=shown)


@router.post("/posts/mark", dependencies=[needs("posts:write")])
async def mark_read(
    parts: WithParts,
    reader: CurrentReader,
    ids: Annotated[list[AnyId], Form(max_length=MAX_MARKED)],
    as_of: Annotated[int | None, Form(ge=0)] = None,
    replies_until: RepliesUntil = None,
    next: Next = "/",
) -> Response:
    marks = Marks(read=True, as_of=as_of, replies_until=replies_until or ())
    await parts.db.write(posts.mark, reader, ids, parts.now(), marks)
    return go(next)


@router.post("/posts/{post_id}/mark", dependencies=[needs("posts:write")])
async def mark_post(
    parts: WithParts,
    reader: CurrentReader,
    post_id: Id,
    read: Annotated[bool | None, Form()] = None,
    starred: Annotated[bool | None, Form()] = None,
    as_of: Annotated[int | None, Form(ge=0)] = None,
    replies_until: RepliesUntil = None,
    next: Next = "/",
) -> Response:
    marks = Marks(read, starred, as_of, replies_until or ())
    await parts.db.write(posts.mark, reader, [post_id], parts.now(), marks)
    return go(next)


@router.get("/stories/{story_id}", dependencies=[needs("posts:read")])
async def story_page(
    request: Request, parts: WithParts, reader: CurrentReader, story_id: Id, cursor: str | None = None
) -> Response:
    after = routes.id_in(cursor) or 0
    story, offers_everybody = await parts.db.read(stories.view, reader, story_id, after=after, limit=PAGE + 1)
    members, more = routes.cut_page(story.members, PAGE, routes.cursor_of_member)
    return show(
        request,
        "story.html",
        story=story,
        members=members,
        told={one.post_id: one for one in told_by(members, story.told)},
        more=f"/stories/{story_id}?cursor={more}" if more else None,
        is_first=cursor is None,
        offers_everybody=offers_everybody,
        section="stream",
    )


@router.post("/stories/{story_id}/undo", dependencies=[needs("stories:write")])
async def undo_story(
    parts: WithParts, reader: CurrentReader, story_id: Id, everybody: Checkbox = False, next: Next = "/"
) -> Response:
    await parts.db.write(stories.undo, reader, story_id, parts.now(), everybody=everybody)
    return go(next)


@router.post("/posts/{post_id}/apart", dependencies=[needs("stories:write")])
async def take_out(parts: WithParts, reader: CurrentReader, post_id: Id, next: Next = "/") -> Response:
    await parts.db.write(stories.take_out, reader, post_id, parts.now())
    return go(next)


@router.get("/folding", dependencies=[needs("posts:read")])
async def folding_page(request: Request, parts: WithParts, reader: CurrentReader) -> Response:
    wanted = await parts.db.read(stories.fold_settings, reader)
    return show(request, "folding.html", wanted=wanted, level=parts.settings.fold, section="stream")


@router.post("/folding", dependencies=[needs("posts:write")])
async def choose_folding(
    parts: WithParts,
    reader: CurrentReader,
    level: Annotated[Literal["off", "repeats", "stories"], Form()],
    threshold: Annotated[float, Form(ge=0, le=1)] = 0.0,
) -> Response:
    await parts.db.write(stories.choose_folding, reader, level, threshold)
    return go("/folding")
