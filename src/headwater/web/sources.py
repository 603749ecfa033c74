"""The pages about sources: what is followed, how each is doing, adding and removing."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import File, Form, Query, Request, UploadFile
from starlette.responses import Response

from headwater.app import crawling, refresh, sources
from headwater.errors import AlreadyThere, BadInput
from headwater.http import routes
from headwater.http.auth import CurrentReader, needs
from headwater.http.routes import AnyId, Id, Name, Next, Text, Texts, Word
from headwater.http.state import WithParts
from headwater.model import Reader
from headwater.web import formatting
from headwater.web.formatting import bars
from headwater.web.view import go, page_router, show

PAGE = 200
DAYS = 30
SPARK_HEIGHT = 24
BEST = 10  # posts of a cached listing that are shown

router = page_router()


@router.get("/sources", dependencies=[needs("sources:read")])
async def sources_page(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    attention: bool = False,
    folder: Name | None = None,
    cursor: str | None = None,
) -> Response:
    after = routes.id_in(cursor)
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
    found = await parts.db.read(
        sources.overview, reader, parts.now(), after=after, limit=PAGE + 1, folder=folder, attention=attention
    )
    shown, more = routes.cut_page(found.sources, PAGE, routes.cursor_of_row)
    return show(
        request,
        "sources.html",
        wrong.status if wrong else 200,
        found=found._replace(sources=shown),
        attention=attention,
        folder=folder,
        next_cursor=more,
        wrong=wrong,
        typed=typed,
        section="sources",
    )


@router.post("/sources", dependencies=[needs("sources:write")])
async def add(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    address: Text = "",
    folder: Annotated[Name | None, Form()] = None,
    kind: Word = "",
    next: Next = "/sources",
) -> Response:
    try:
        chosen: dict[str, Any] = {"folder": folder, "kind": kind or None}
        await parts.db.write(sources.follow_new, reader, address, parts.now(), **chosen, **parts.follow_terms)
    except (BadInput, AlreadyThere) as error:
        return await _sources_page(request, parts, reader, wrong=error, typed=address)
    parts.wake()
    return go(next)


@router.get("/sources/rows", dependencies=[needs("sources:read")])
async def rows(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    id: Annotated[list[AnyId] | None, Query(max_length=100)] = None,
    attention: bool = False,
) -> Response:
    """Renders only the rows of these sources and the summary, for a page that keeps itself up to date."""
    found = await parts.db.read(sources.some, reader, id or [], parts.now())
    return show(request, "rows.html", found=found, attention=attention)


@router.post("/sources/refresh", dependencies=[needs("sources:write")])
async def refresh_all(parts: WithParts, reader: CurrentReader) -> Response:
    await refresh.request_all(parts.db, reader, parts.now)
    parts.wake()
    return go("/sources")


@router.post("/sources/opml", dependencies=[needs("sources:write")])
async def import_opml(
    request: Request, parts: WithParts, reader: CurrentReader, document: Annotated[UploadFile, File()]
) -> Response:
    content, most = await document.read(), parts.settings.max_sources
    done = await sources.import_opml(parts.db, reader, content, parts.now, parts.credential, most)
    parts.wake()
    return show(request, "imported.html", done=done, section="sources")


@router.post("/sources/starter", dependencies=[needs("sources:write")])
async def add_starter_set(parts: WithParts, reader: CurrentReader, groups: Texts = None) -> Response:
    most = parts.settings.max_sources
    await sources.follow_starter_set(parts.db, reader, groups or [], parts.now, parts.credential, most)
    parts.wake()
    return go("/")


@router.get("/sources/{source_id}", dependencies=[needs("sources:read")])
async def source_page(request: Request, parts: WithParts, reader: CurrentReader, source_id: Id) -> Response:
    now = parts.now()
    found = await parts.db.read(sources.detail, reader, source_id, now)
    published = await parts.db.read(sources.publishing, source_id, now, DAYS)
    return show(
        request,
        "source.html",
        source=found.source,
        visits=found.visits,
        hits=found.hits,
        posts=found.posts,
        pushed_since=found.pushed_since,
        tier=published.tier,
        spark=bars([(f"{day:%d %b}", count) for day, count in published.days], height=SPARK_HEIGHT),
        spark_total=sum(count for _, count in published.days),
        days=DAYS,
        chart=(formatting.CHART_WIDTH, SPARK_HEIGHT),
        listing=published.listing,
        best=published.listing.posts[:BEST] if published.listing else [],
        progress=published.checkpoint,
        intervals=formatting.intervals(found.source.refresh_interval),
        section="sources",
    )


@router.post("/sources/{source_id}/refresh", dependencies=[needs("sources:write")])
async def refresh_one(parts: WithParts, reader: CurrentReader, source_id: Id, next: Next = "/sources") -> Response:
    await parts.db.write(refresh.request_visit, reader, source_id, parts.now(), at_once=True)
    parts.wake()
    return go(next)


@router.post("/sources/{source_id}/interval", dependencies=[needs("sources:write")])
async def choose_interval(parts: WithParts, reader: CurrentReader, source_id: Id, minutes: Word = "") -> Response:
    if (minutes and not minutes.isascii()) or (minutes and not minutes.isdigit()):
        raise BadInput("An interval is a number of minutes.")
    wanted = int(minutes) if minutes else None
    await parts.db.write(sources.choose_interval, reader, source_id, wanted, parts.usual_interval, parts.now())
    parts.wake()
    return go(f"/sources/{source_id}")


@router.post("/sources/{source_id}/unfollow", dependencies=[needs("sources:write")])
async def unfollow(parts: WithParts, reader: CurrentReader, source_id: Id) -> Response:
    await parts.db.write(sources.unfollow, reader, source_id, parts.now())
    return go("/sources")


@router.post("/sources/{source_id}/checkpoint/clear", dependencies=[needs("sources:write")])
async def clear_checkpoint(parts: WithParts, reader: CurrentReader, source_id: Id) -> Response:
    await parts.db.write(crawling.clear_checkpoint, reader, source_id, parts.now())
    return go(f"/sources/{source_id}")
