"""`/api/sources`, `/api/queue` and `/api/opml`: what is followed, and how it is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from fastapi import APIRouter, Request, Response
from typing_extensions import TypedDict

from headwater.app import refresh
from headwater.app.shapes import PageJson, SourceDetailJson, SourceJson, iso_or_none, source_json, visit_json
from headwater.errors import AlreadyThere, BadInput, NotFound
from headwater.follow import add as following
from headwater.follow import opml
from headwater.follow.add import Imported
from headwater.follow.opml import Outline
from headwater.http import cursors
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import Arrangement, Cursor, Id, Limit, NewSource, ScheduleFeed
from headwater.model import Reader
from headwater.store import sources
from headwater.store.sources import hubs
from headwater.wire import Parts

PAST_VISITS = 30
OPML_TYPE = "text/x-opml"
_AT_ONCE = 200

router = APIRouter(prefix="/api", tags=["sources"])


class Refresh(TypedDict):
    status: Literal["queued", "already_running"]


class RefreshAll(TypedDict):
    asked: int


class Scheduled(TypedDict):
    task_id: str
    status: Literal["queued", "already_running"]
    delay_seconds: int


class Refused(TypedDict):
    address: str
    reason: str


class ImportReport(TypedDict):
    added: int
    already: int
    refused: list[Refused]


@router.get("/sources", summary="List what you follow")
async def list_sources(
    parts: WithParts, reader: Asking, cursor: Cursor = None, limit: Limit = 50
) -> PageJson[SourceJson]:
    after = cursors.id_in(cursor)
    found = await parts.db.read(sources.watched_after, reader, parts.now(), after=after, limit=limit + 1)
    more = cursors.of_id(found[limit - 1].id) if len(found) > limit else None
    return {"items": [source_json(source) for source in found[:limit]], "next_cursor": more}


@router.post("/sources", status_code=202, summary="Follow a source")
async def add_source(parts: WithParts, reader: Asking, wanted: NewSource) -> SourceJson:
    """Answers at once; the feed is found and read behind it, until when `status` is `new`. A second time is a 409."""
    return source_json(await follow(parts, reader, wanted))


async def follow(parts: Parts, reader: Reader, wanted: NewSource) -> sources.WatchedSource:
    added = await parts.db.write(
        following.follow,
        reader,
        wanted.address,
        parts.now(),
        folder=wanted.folder,
        title=wanted.title,
        seal=parts.seal,
        kind=wanted.kind,
        settings=wanted.settings,
    )
    if not added.new_subscription and not added.changed:
        raise AlreadyThere("You follow this address already.", source_id=added.source_id)
    parts.wake()
    return await refresh.watched(parts, reader, added.source_id)


@router.post("/sources/refresh", status_code=202, summary="Visit everything you follow now")
async def refresh_all(parts: WithParts, reader: Asking) -> RefreshAll:
    """Each source is visited as soon as its host's turn comes."""
    return {"asked": await refresh.ask_all(parts, reader)}


@router.get("/sources/{source_id}", summary="Show one source and its past visits")
async def show_source(parts: WithParts, reader: Asking, source_id: Id) -> SourceDetailJson:
    source = await refresh.watched(parts, reader, source_id)
    past = await parts.db.read(sources.past_visits, source_id, PAST_VISITS)
    posts = await parts.db.read(sources.count_posts, source_id)
    pushed = iso_or_none(await parts.db.read(hubs.active_since, source_id, parts.now()))
    seen = [visit_json(visit) for visit in past]
    return {**source_json(source), "pushed_since": pushed, "posts": posts, "visits": seen}


@router.patch("/sources/{source_id}", summary="Rename a source or move it to a folder")
async def arrange_source(parts: WithParts, reader: Asking, source_id: Id, wanted: Arrangement) -> SourceJson:
    """Only the fields that are given change."""
    given = wanted.model_dump(exclude_unset=True)
    if not given:
        raise BadInput("Nothing to change: give folder, title or both.")
    if not await parts.db.write(lambda conn: sources.arrange(conn, reader, source_id, **given)):
        raise NotFound(f"You do not follow a source {source_id}.")
    return source_json(await refresh.watched(parts, reader, source_id))


@router.delete("/sources/{source_id}", status_code=204, summary="Stop following a source")
async def remove_source(parts: WithParts, reader: Asking, source_id: Id) -> None:
    """Its posts, and what you did with them, are there again when you follow it again."""
    await parts.db.write(following.unfollow, reader, source_id, parts.now())


@router.post("/sources/{source_id}/refresh", status_code=202, summary="Visit a source now")
async def refresh_source(parts: WithParts, reader: Asking, source_id: Id) -> Refresh:
    asked = await refresh.ask(parts, reader, source_id, now=True)
    return {"status": "already_running" if asked.status == "already_running" else "queued"}


@router.post("/queue/schedule-feed", status_code=202, summary="Schedule a source's next visit")
async def schedule_feed(parts: WithParts, reader: Asking, wanted: ScheduleFeed) -> Scheduled:
    """`delay_seconds` is what remains of the interval since the last fetch; 0 with `force_immediate`."""
    asked = await refresh.ask(parts, reader, wanted.feed_id, now=wanted.force_immediate)
    status: Literal["queued", "already_running"] = "queued" if asked.status == "queued" else "already_running"
    return {"task_id": asked.task_id, "status": status, "delay_seconds": asked.delay_seconds}


@router.get(
    "/opml",
    summary="Export what you follow as OPML",
    response_class=Response,
    responses={200: {"content": {OPML_TYPE: {"schema": {"type": "string"}}}}},
)
async def export_opml(parts: WithParts, reader: Asking) -> Response:
    watched = await parts.db.read(sources.watched, reader, parts.now())
    name = {"Content-Disposition": 'attachment; filename="headwater.opml"'}
    return Response(await asyncio.to_thread(opml.write, watched), headers=name, media_type=OPML_TYPE)


@router.post(
    "/opml",
    summary="Follow everything an OPML document lists",
    openapi_extra={"requestBody": {"required": True, "content": {OPML_TYPE: {"schema": {"type": "string"}}}}},
)
async def import_opml(parts: WithParts, reader: Asking, request: Request) -> ImportReport:
    """The body is the document itself. An address that cannot be used is reported and does not stop the others."""
    done = await follow_list(parts, reader, await request.body())
    refused: list[Refused] = [{"address": address, "reason": reason} for address, reason in done.refused.items()]
    return {"added": done.added, "already": done.already, "refused": refused}


async def follow_list(parts: Parts, reader: Reader, document: bytes) -> Imported:
    """Follow what an OPML document lists."""
    return await follow_all(parts, reader, await asyncio.to_thread(opml.read, document))


async def follow_all(parts: Parts, reader: Reader, outlines: Sequence[Outline]) -> Imported:
    """In several transactions, so that the crawl can write in between."""
    added = already = 0
    refused: dict[str, str] = {}
    for start in range(0, len(outlines), _AT_ONCE):
        part = outlines[start : start + _AT_ONCE]
        done = await parts.db.write(following.follow_all, reader, part, parts.now(), parts.seal)
        added += done.added
        already += done.already
        refused.update(done.refused)
    parts.wake()
    return Imported(added, already, refused)
