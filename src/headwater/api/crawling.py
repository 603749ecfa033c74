"""`/api/crawl` and `/api/checkpoints`: how crawling goes, and how far the crawls of lists got."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from headwater.app import crawling
from headwater.app.crawling import CheckpointJson, CheckpointsJson, HourJson, HoursJson, StatisticsJson
from headwater.app.shapes import shaped
from headwater.http.auth import CurrentReader
from headwater.http.inputs import Id
from headwater.http.json_route import JsonRoute
from headwater.http.state import WithParts

MOST_HOURS = 31 * 24

router = APIRouter(prefix="/api", tags=["crawling"], route_class=JsonRoute)

Hours = Annotated[int, Query(ge=1, le=MOST_HOURS, description="how many hours back, the present one included")]


@router.get("/crawl/metrics", summary="How crawling went, hour by hour")
async def list_hours(parts: WithParts, reader: CurrentReader, hours: Hours = 48) -> HoursJson:
    """Counted every minute; the present hour is not over."""
    found = await parts.db.read(crawling.by_hour, parts.now(), hours)
    return {"items": [shaped(HourJson, one) for one in found]}


@router.get("/checkpoints", summary="How far the crawls of lists got")
async def list_checkpoints(parts: WithParts, reader: CurrentReader) -> CheckpointsJson:
    found = await parts.db.read(crawling.every_checkpoint, reader)
    return {"items": [shaped(CheckpointJson, one) for one in found]}


@router.get("/checkpoints/{source_id}", summary="How far the crawl of one list got")
async def show_checkpoint(parts: WithParts, reader: CurrentReader, source_id: Id) -> CheckpointJson:
    return shaped(CheckpointJson, await parts.db.read(crawling.checkpoint, reader, source_id, parts.now()))


@router.delete("/checkpoints/{source_id}", status_code=204, summary="Forget how far the crawl of a list got")
async def clear_checkpoint(parts: WithParts, reader: CurrentReader, source_id: Id) -> None:
    """The next crawl looks through the whole list again. What is stored is not fetched again."""
    await parts.db.write(crawling.clear_checkpoint, reader, source_id, parts.now())


@router.get("/crawl/statistics", summary="What the lists you follow have brought")
async def show_statistics(parts: WithParts, reader: CurrentReader) -> StatisticsJson:
    """Threads, articles and images, those that were read and those that failed, board by board."""
    return shaped(StatisticsJson, await parts.db.read(crawling.statistics, reader))
