"""The pages about sources: what is followed, how it is doing, adding and removing."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NamedTuple

from fastapi import APIRouter, File, Form, Query, Request, UploadFile
from sqlalchemy import Connection
from starlette.responses import Response

from headwater.api import sources as api
from headwater.app import refresh as visits
from headwater.errors import AlreadyThere, BadInput
from headwater.follow import add as following
from headwater.http import cursors
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import AnyId, Id, Name, NewSource
from headwater.model import Reader
from headwater.store import sources
from headwater.store.posts import stream
from headwater.store.sources import WatchedSource
from headwater.web import formatting, starter
from headwater.web.view import go, show

PAGE = 200

router = APIRouter()


class Watching(NamedTuple):
    """All that the sources page needs, read in one transaction."""

    sources: list[WatchedSource]
    posts: dict[int, int]
    by_status: dict[str, int]
    folders: list[str]


@router.get("/sources")
async def sources_page(
    request: Request,
    parts: WithParts,
    reader: Asking,
    attention: bool = False,
    folder: Name | None = None,
    cursor: str | None = None,
) -> Response:
    after = cursors.id_in(cursor)
    return await _sources_page(request, parts, reader, after=after, attention=attention, folder=folder)


async def _sources_page(
    request: Request,
    parts: WithParts,
    reader: Reader,
    *,
    after: int | None = None,
    attention: bool = False,
    folder: str | None = None,
    wrong: BadInput | AlreadyThere | None = None,
    typed: str = "",
) -> Response:
    found = await parts.db.read(_gather, reader, parts.now(), after, attention, folder)
    more = len(found.sources) > PAGE
    return show(
        request,
        "sources.html",
        wrong.status if wrong else 200,
        sources=found.sources[:PAGE],
        counts=found.posts,
        total=sum(found.by_status.values()),
        troubled=sum(found.by_status.get(status, 0) for status in formatting.ATTENTION),
        folders=found.folders,
        attention=attention,
        folder=folder,
        next_cursor=cursors.of_id(found.sources[PAGE - 1].id) if more else None,
        wrong=wrong,
        typed=typed,
        section="sources",
    )


def _gather(
    conn: Connection, reader: Reader, now: datetime, after: int | None, attention: bool, folder: str | None
) -> Watching:
    statuses = formatting.ATTENTION if attention else None
    found = sources.watched_page(conn, reader, now, after=after, limit=PAGE + 1, folder=folder, statuses=statuses)
    posts = sources.post_counts(conn, [source.id for source in found])
    return Watching(found, posts, sources.followed_by_status(conn, reader), stream.folders(conn, reader))


@router.post("/sources")
async def add(
    request: Request,
    parts: WithParts,
    reader: Asking,
    address: Annotated[str, Form()] = "",
    folder: Annotated[Name | None, Form()] = None,
    kind: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/sources",
) -> Response:
    try:
        await api.follow(parts, reader, NewSource(address=address, folder=folder, kind=kind or None))
    except (BadInput, AlreadyThere) as error:
        return await _sources_page(request, parts, reader, wrong=error, typed=address)
    return go(next)


@router.get("/sources/rows")
async def rows(
    request: Request, parts: WithParts, reader: Asking, id: Annotated[list[AnyId], Query(max_length=100)]
) -> Response:
    """The rows of these sources alone, for a page that keeps itself up to date."""
    now = parts.now()
    found = await parts.db.read(sources.watched_some, reader, id, now)
    counts = await parts.db.read(sources.post_counts, id)
    return show(request, "rows.html", sources=found, counts=counts)


@router.post("/sources/refresh")
async def refresh_all(parts: WithParts, reader: Asking) -> Response:
    await visits.ask_all(parts, reader)
    return go("/sources")


@router.post("/sources/opml")
async def import_opml(
    request: Request, parts: WithParts, reader: Asking, document: Annotated[UploadFile, File()]
) -> Response:
    done = await api.follow_list(parts, reader, await document.read())
    return show(request, "imported.html", done=done, section="sources")


@router.post("/sources/starter")
async def add_starter_set(
    parts: WithParts, reader: Asking, groups: Annotated[list[str] | None, Form()] = None
) -> Response:
    await api.follow_all(parts, reader, starter.outlines(groups or []))
    return go("/")


@router.post("/sources/{source_id}/refresh")
async def refresh(
    parts: WithParts, reader: Asking, source_id: Id, next: Annotated[str, Form()] = "/sources"
) -> Response:
    await visits.ask(parts, reader, source_id, now=True)
    return go(next)


@router.post("/sources/{source_id}/unfollow")
async def unfollow(parts: WithParts, reader: Asking, source_id: Id) -> Response:
    await parts.db.write(following.unfollow, reader, source_id, parts.now())
    return go("/sources")
