"""Warm-up: caches the best posts of each community in the pool for a day, until its own visits have brought more.

This is only a cache. It stores no post and writes no event, and no watermark, schedule or average moves. So later
visits find and store the same with it or without it. It needs no lease, because it writes nothing that a visit writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog
from sqlalchemy import Connection

from headwater.access.budget import Access
from headwater.errors import SourceFailure
from headwater.fetch.statuses import judge
from headwater.model import Post, Source, SourceState
from headwater.parse.pool import Parsers
from headwater.sources import KINDS
from headwater.store.db import Database
from headwater.store.sources import pool
from headwater.store.sources.pool import Listing, ListingCoverage

EVERY = timedelta(hours=2)
LISTING: dict[str, Any] = {"sort": "top", "time_filter": "month", "limit": 100}
_WITH_LISTINGS = [kind.name for kind in KINDS.values() if kind.has_listings]
log = structlog.get_logger()


class WarmUpPlan(NamedTuple):
    """Which listing to cache, how many communities make one batch, and how long a listing is kept."""

    sort: str
    time_filter: str
    limit: int
    batch: int
    kept: timedelta


class Warmed(NamedTuple):
    """The result for one community. `watermark_updated` is always False: it says so in the report."""

    source: str
    source_id: int
    cached: int
    error: str | None = None
    watermark_updated: bool = False


class WarmUpTools(NamedTuple):
    db: Database
    access: Access
    parsers: Parsers
    now: Callable[[], datetime]


async def warm_up(
    tools: WarmUpTools,
    plan: WarmUpPlan,
    communities: Sequence[Source] | None = None,
    *,
    patient: bool = False,
    force_refresh: bool = False,
    on_warmed: Callable[[Warmed], None] = lambda _: None,
) -> int:
    """Caches the listings of these communities, or of those in the pool whose listing is old. Returns how many.

    With `force_refresh` it caches those of the whole pool, however young they are, and is patient. Unless `patient`,
    it takes only the requests that visits leave in the budget: it stops when there are none, or when
    a visit waits for one. The next run begins with the oldest listing.
    """
    patient = patient or force_refresh
    if communities is None:
        old = tools.now() if force_refresh else tools.now() - EVERY
        communities = await tools.db.read(pool.due_for_warm_up, _WITH_LISTINGS, old)
    cached = 0
    for start in range(0, len(communities), plan.batch):
        if not patient and await _must_yield(tools):
            break
        batch = communities[start : start + plan.batch]
        found = await asyncio.gather(*(_admitted(tools, plan, one, patient) for one in batch))
        await tools.db.write(pool.save_listings, [one for one in found if isinstance(one, Listing)])
        for community, one in zip(batch, found, strict=True):
            if one is not None:
                on_warmed(_warmed(community, one))
        cached += sum(isinstance(one, Listing) for one in found)
        if None in found:
            break
    return cached


async def _must_yield(tools: WarmUpTools) -> bool:
    waiting = await tools.db.read(pool.visits_waiting, _WITH_LISTINGS, tools.now())
    if waiting:
        log.info("warm_up.yields", visits_waiting=waiting)
    return waiting > 0


async def _take_request(access: Access, patient: bool) -> bool:
    if not patient:
        return await access.try_acquire() is None
    await access.acquire()
    return True


async def _admitted(
    tools: WarmUpTools, plan: WarmUpPlan, community: Source, patient: bool
) -> Listing | SourceFailure | None:
    """Returns None if no request is left for it. Holds a slot from start to end, as a visit does."""
    async with tools.access.concurrency:
        if not await _take_request(tools.access, patient):
            return None
        return await _listing(tools, plan, community)


async def _listing(tools: WarmUpTools, plan: WarmUpPlan, community: Source) -> Listing | SourceFailure:
    wanted = {"sort": plan.sort, "time_filter": plan.time_filter, "limit": plan.limit}
    source = community._replace(settings=wanted)
    try:
        response = await tools.access.fetch(KINDS[source.kind].first(source, SourceState()))
        judge(response)
        page = await tools.parsers.read(source, SourceState(), response)
    except SourceFailure as error:
        log.warning("warm_up.failed", source=community.address, code=error.code, error=error.detail)
        return error
    now = tools.now()
    return Listing(community.id, now, now + plan.kept, [entry(post) for post in page.posts[: plan.limit]])


def warmth(conn: Connection, now: datetime) -> ListingCoverage:
    return pool.listing_coverage(conn, _WITH_LISTINGS, now)


def entry(post: Post) -> dict[str, Any]:
    """Returns a post as a cached listing has it. Pure."""
    return {
        "source_post_id": post.source_post_id,
        "title": post.title,
        "url": post.url,
        "author": post.author,
        "created_at": post.created_at.isoformat(),
        "score": post.score,
        "num_comments": post.num_comments,
    }


def _warmed(community: Source, found: Listing | SourceFailure) -> Warmed:
    if isinstance(found, SourceFailure):
        return Warmed(community.address, community.id, 0, found.detail)
    return Warmed(community.address, community.id, len(found.posts))
