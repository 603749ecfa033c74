"""`/api/sources`, `/api/queue` and `/api/opml`: what is followed, and how it is doing."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field, Strict

from headwater.app import refresh, sources
from headwater.app.refresh import Refresh, RefreshAll, Scheduled, Task
from headwater.app.shapes import PageJson, iso_or_none, shaped
from headwater.app.sources import KIND_NAMES, ImportReport, Refused, SourceDetailJson, SourceJson, VisitJson
from headwater.http.auth import CurrentReader, needs
from headwater.http.routes import WHOLE, Flag, Id, JsonId, Name, WantedPage, api_router, one_of, route
from headwater.http.state import WithParts

OPML_TYPE = "text/x-opml"
_OPML = (
    '<opml version="2.0"><body><outline text="Example Journal" xmlUrl="https://example.org/feed.xml"/></body></opml>'
)

KindName = Annotated[str, one_of(*KIND_NAMES)]
Minutes = Annotated[int, Strict(), Field(ge=sources.SHORTEST_INTERVAL, le=sources.LONGEST_INTERVAL), WHOLE]

router = api_router("sources")


class NewSource(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"address": "https://example.org/", "folder": "Science"}})

    address: str = Field(description="the address of a feed, or of a site that has one")
    folder: Name | None = Field(default=None, description="the folder to put it in")
    title: Name | None = Field(default=None, description="your own name for it")
    kind: KindName | None = Field(
        default=None, description="how to read it, such as `forum` or `news`; null: that is found out"
    )
    settings: dict[str, Any] | None = Field(default=None, description="settings of its kind, such as max_pages")
    refresh_interval: Minutes | None = Field(
        default=None, description="how often you want it to be visited, in minutes; null: as usual"
    )


class Arrangement(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"folder": "Markets"}})

    folder: Name | None = Field(default=None, description="the folder to put it in; null for none")
    title: Name | None = Field(default=None, description="your own name for it; null for its own")
    refresh_interval: Minutes | None = Field(
        default=None, description="how often you want it to be visited, in minutes; null: as usual"
    )


class ScheduleFeed(BaseModel):
    model_config = ConfigDict(json_schema_extra={"example": {"feed_id": 12, "force_immediate": True}})

    feed_id: JsonId = Field(description="the source's id")
    force_immediate: Flag = Field(default=False, description="visit it now, whatever remains of its interval")


@router.get("/sources", **route("List what you follow", "sources:read"))
async def list_sources(parts: WithParts, reader: CurrentReader, page: WantedPage) -> PageJson[SourceJson]:
    """In the order they were added, each with its state and the time of its next check."""
    found = await parts.db.read(sources.page, reader, parts.now(), after=page.last_id, limit=page.limit)
    return page.of(SourceJson, found)


@router.post("/sources", status_code=202, **route("Follow a source", "sources:write", 409))
async def add_source(parts: WithParts, reader: CurrentReader, wanted: NewSource) -> SourceJson:
    """Answers at once. The feed is found and read in the background. Until then, `status` is `new`. Following it a
    second time is a 409, unless the source was retired: then it is visited again. An address with another name or
    password is another source."""
    chosen = wanted.model_dump()
    source = await parts.db.write(sources.follow_new, reader, now=parts.now(), **chosen, **parts.follow_terms)
    parts.wake()
    return shaped(SourceJson, source)


@router.post("/sources/refresh", status_code=202, **route("Visit everything you follow now", "sources:write"))
async def refresh_all(parts: WithParts, reader: CurrentReader) -> RefreshAll:
    """Each source is visited as soon as its host has a free slot."""
    asked = await refresh.request_all(parts.db, reader, parts.now)
    parts.wake()
    return {"asked": asked}


@router.get("/sources/{source_id}", **route("Show one source and its past visits", "sources:read"))
async def show_source(parts: WithParts, reader: CurrentReader, source_id: Id) -> SourceDetailJson:
    """With the number of its posts and its latest visits. `waits_for` says why a due source is not visited yet."""
    found = await parts.db.read(sources.detail, reader, source_id, parts.now())
    return shaped(
        SourceDetailJson,
        found.source,
        pushed_since=iso_or_none(found.pushed_since),
        posts=found.posts,
        **found.hits._asdict(),
        visits=[shaped(VisitJson, visit) for visit in found.visits],
    )


@router.patch(
    "/sources/{source_id}",
    **route("Rename a source, move it to a folder, or say how often to visit it", "sources:write"),
)
async def arrange_source(parts: WithParts, reader: CurrentReader, source_id: Id, wanted: Arrangement) -> SourceJson:
    """Only the given fields change. However short the interval, a source is not visited more often than it allows. A
    source with other followers is visited as often as they need it."""
    changes = wanted.model_dump(exclude_unset=True)
    changed = await parts.db.write(sources.arrange, reader, source_id, changes, parts.now(), usual=parts.usual_interval)
    parts.wake()
    return shaped(SourceJson, changed)


@router.delete("/sources/{source_id}", status_code=204, **route("Stop following a source", "sources:write"))
async def remove_source(parts: WithParts, reader: CurrentReader, source_id: Id) -> None:
    """If you follow it again, its posts and your marks are back."""
    await parts.db.write(sources.unfollow, reader, source_id, parts.now())


@router.post("/sources/{source_id}/refresh", status_code=202, **route("Visit a source now", "sources:write"))
async def refresh_source(parts: WithParts, reader: CurrentReader, source_id: Id) -> Refresh:
    """Answers at once. `already_running` means that it is being visited right now."""
    visit = await parts.db.write(refresh.request_visit, reader, source_id, parts.now(), at_once=True)
    parts.wake()
    return {"status": visit["status"]}


@router.post(
    "/queue/schedule-feed", status_code=202, **route("Schedule the next visit of a source", "sources:write", 404)
)
async def schedule_feed(parts: WithParts, reader: CurrentReader, wanted: ScheduleFeed) -> Scheduled:
    """`delay_seconds` is the rest of the interval since the last fetch. With `force_immediate` it is 0, and the visit
    goes before everything that waits. `GET /api/queue/tasks/{task_id}` has the result."""
    scheduled = await parts.db.write(
        refresh.request_visit, reader, wanted.feed_id, parts.now(), at_once=wanted.force_immediate
    )
    parts.wake()
    return scheduled


@router.get("/queue/tasks/{task_id}", **route("Show a visit that was asked for, and its result", "sources:read"))
async def show_task(
    parts: WithParts, reader: CurrentReader, task_id: Annotated[str, Path(max_length=80, description="its id")]
) -> Task:
    """`status` is PENDING until the visit begins, STARTED while it runs, and SUCCESS or FAILURE afterwards.
    Results are kept for 24 hours."""
    return await parts.db.read(refresh.task, reader, task_id, parts.now())


@router.get(
    "/opml",
    summary="Export what you follow as OPML",
    response_class=Response,
    responses={200: {"content": {OPML_TYPE: {"schema": {"type": "string"}, "example": _OPML}}}},
    dependencies=[needs("sources:read")],
)
async def export_opml(parts: WithParts, reader: CurrentReader) -> Response:
    """With your folders and names. Passwords of sources are left out."""
    exported = await parts.db.read(sources.export_opml, reader, parts.now())
    name = {"Content-Disposition": 'attachment; filename="headwater.opml"'}
    return Response(exported.document, headers=name, media_type=OPML_TYPE)


@router.post(
    "/opml",
    openapi_extra={
        "requestBody": {"required": True, "content": {OPML_TYPE: {"schema": {"type": "string"}, "example": _OPML}}}
    },
    **route("Follow everything an OPML document lists", "sources:write"),
)
async def import_opml(parts: WithParts, reader: CurrentReader, request: Request) -> ImportReport:
    """The body is the document itself. An unusable address is reported and does not stop the others."""
    document, most = await request.body(), parts.settings.max_sources
    done = await sources.import_opml(parts.db, reader, document, parts.now, parts.credential, most)
    parts.wake()
    refused: list[Refused] = [{"address": address, "reason": reason} for address, reason in done.refused.items()]
    return {"added": done.added, "already": done.already, "refused": refused}
