"""`/api/checkpoints` and `/api/crawl/statistics`: how far the crawls of lists got, and what they brought."""

from __future__ import annotations

from fastapi import APIRouter

from headwater.app import refresh
from headwater.app.shapes.checkpoints import (
    CheckpointJson,
    CheckpointsJson,
    StatisticsJson,
    checkpoint_json,
    statistics_json,
)
from headwater.crawl.checkpoint import Checkpoint
from headwater.errors import NotFound
from headwater.http.auth import Asking, WithParts
from headwater.http.inputs import Id
from headwater.model import Reader
from headwater.store.visits import checkpoints, statistics
from headwater.store.visits.checkpoints import CheckpointRow
from headwater.wire import Parts

router = APIRouter(prefix="/api", tags=["crawling"])


@router.get("/checkpoints", summary="How far the crawls of lists got")
async def list_checkpoints(parts: WithParts, reader: Asking) -> CheckpointsJson:
    found = await parts.db.read(checkpoints.followed, reader)
    return {"items": [checkpoint_json(row) for row in found]}


@router.get("/checkpoints/{source_id}", summary="How far the crawl of one list got")
async def show_checkpoint(parts: WithParts, reader: Asking, source_id: Id) -> CheckpointJson:
    return checkpoint_json(await _checkpoint(parts, reader, source_id))


@router.delete("/checkpoints/{source_id}", status_code=204, summary="Forget how far the crawl of a list got")
async def clear_checkpoint(parts: WithParts, reader: Asking, source_id: Id) -> None:
    """The next crawl looks through the whole list again. What is stored is not fetched again."""
    row = await _checkpoint(parts, reader, source_id)
    await parts.db.write(Checkpoint(row).clear)


async def _checkpoint(parts: Parts, reader: Reader, source_id: int) -> CheckpointRow:
    await refresh.watched(parts, reader, source_id)
    row = await parts.db.read(checkpoints.of_source, source_id)
    if row is None:
        raise NotFound(f"The source {source_id} has no checkpoint: no list of it was crawled.")
    return row


@router.get("/crawl/statistics", summary="What the lists you follow have brought")
async def show_statistics(parts: WithParts, reader: Asking) -> StatisticsJson:
    """Threads, articles and pictures, those that worked out and those that failed, board by board."""
    return statistics_json(await parts.db.read(statistics.gather, reader))
