"""Warm-up: the best of each community of the pool, cached for a day, before its own visits have brought much (A5).

It is a cache and nothing else. No post is stored, no watermark, schedule or average moves, and no event tells of it; so
what a visit finds and stores later is the same with it and without it. It holds no lease, for it writes nothing that a
visit writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog

from headwater.crawl.visit.shared import Access
from headwater.errors import SourceFailure
from headwater.fetch.statuses import judge
from headwater.model import Post, Source, SourceState
from headwater.parse.pool import Parsers
from headwater.sources import reddit
from headwater.store.db import Database
from headwater.store.sources import listings
from headwater.store.sources.listings import Listing

EVERY = timedelta(hours=2)
log = structlog.get_logger()


class Plan(NamedTuple):
    """What is asked for, how many communities at once, and how long an answer is good."""

    sort: str
    time_filter: str
    limit: int
    batch: int
    kept: timedelta


class Warmed(NamedTuple):
    """What came of one community. The watermark never moves: this says so to whoever reads the report."""

    source: str
    source_id: int
    cached: int
    error: str | None = None
    watermark_updated: bool = False


class WarmUpTools(NamedTuple):
    db: Database
    way: Access
    readers: Parsers
    now: Callable[[], datetime]


async def warm_up(
    tools: WarmUpTools,
    plan: Plan,
    communities: Sequence[Source] | None = None,
    *,
    patient: bool = False,
    on_warmed: Callable[[Warmed], None] = lambda _: None,
) -> int:
    """Cache the listings of these communities, or of those of the pool that have an old one; returns how many it were.

    Without patience it takes only what visits leave of the budget and ends where there is nothing left: the oldest
    listing is the first the next time.
    """
    if communities is None:
        communities = await tools.db.read(listings.to_warm, tools.now() - EVERY)
    cached = 0
    for start in range(0, len(communities), plan.batch):
        batch = communities[start : start + plan.batch]
        turns = [one for one in batch if await _has_turn(tools.way, patient)]
        found = await asyncio.gather(*(_listing(tools, plan, one) for one in turns))
        await tools.db.write(listings.keep, [one for one in found if isinstance(one, Listing)])
        for community, one in zip(turns, found, strict=True):
            on_warmed(_warmed(community, one))
        cached += sum(isinstance(one, Listing) for one in found)
        if len(turns) < len(batch):
            break
    return cached


async def _has_turn(way: Access, patient: bool) -> bool:
    if not patient:
        return await way.turn() is None
    await way.wait()
    return True


async def _listing(tools: WarmUpTools, plan: Plan, community: Source) -> Listing | SourceFailure:
    wanted = {"sort": plan.sort, "time_filter": plan.time_filter, "limit": plan.limit}
    source = community._replace(settings=wanted)
    try:
        response = await tools.way.fetch(reddit.first(source, SourceState()))
        judge(response)
        page = await tools.readers.read(source, SourceState(), response)
    except SourceFailure as error:
        log.warning("warm_up.failed", source=community.address, code=error.code, error=error.detail)
        return error
    now = tools.now()
    return Listing(community.id, now, now + plan.kept, [entry(post) for post in page.posts[: plan.limit]])


def entry(post: Post) -> dict[str, Any]:
    """A post as a cached listing has it. Pure."""
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
