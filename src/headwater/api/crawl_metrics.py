"""`/api/crawl/metrics`: how crawling went, hour by hour (A8)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from typing_extensions import TypedDict

from headwater.app.shapes import Time, iso
from headwater.http.auth import Asking, WithParts
from headwater.store.visits import metrics
from headwater.store.visits.metrics import HourMetrics

MOST_HOURS = 31 * 24

router = APIRouter(prefix="/api/crawl", tags=["crawling"])

Hours = Annotated[int, Query(ge=1, le=MOST_HOURS, description="how many hours back, the present one included")]


class HourJson(TypedDict):
    """The visits that began within one hour. The last three are as they were then; null: Headwater did not run."""

    hour: Time
    crawls_successful: Annotated[int, Field(description="visits that found posts, or nothing new")]
    crawls_empty: int
    crawls_failed: int
    cache_hit_rate: Annotated[
        float | None, Field(description="share of answers that were what was there already, 0 to 1; null: no answer")
    ]
    avg_latency_seconds: Annotated[float | None, Field(description="how long a visit took; null: there was none")]
    posts_new: int
    posts_updated: int
    posts_duplicate: int
    valid_posts_24h: Annotated[int | None, Field(description="posts of the 24 hours before")]
    sources_total: Annotated[int | None, Field(description="sources that are visited")]
    tiers: Annotated[dict[str, int] | None, Field(description="how many sources are in each tier, and in none")]


class HoursJson(TypedDict):
    """Hours in which Headwater counted, the oldest first."""

    items: list[HourJson]


_HOUR: dict[str, Any] = {
    "hour": "2026-01-07T09:00:00Z",
    "crawls_successful": 310,
    "crawls_empty": 2,
    "crawls_failed": 5,
    "cache_hit_rate": 0.81,
    "avg_latency_seconds": 0.34,
    "posts_new": 128,
    "posts_updated": 9,
    "posts_duplicate": 2210,
    "valid_posts_24h": 2904,
    "sources_total": 200,
    "tiers": {"high": 29, "medium": 73, "low": 98},
}
EXAMPLES = {"HoursJson": {"items": [_HOUR]}}


@router.get("/metrics", summary="How crawling went, hour by hour")
async def list_hours(parts: WithParts, reader: Asking, hours: Hours = 48) -> HoursJson:
    """Counted every five minutes; the present hour is not over."""
    found = await parts.db.read(metrics.recent, parts.now(), hours)
    return {"items": [hour_json(one) for one in found]}


def hour_json(one: HourMetrics) -> HourJson:
    return {
        "hour": iso(one.hour),
        "crawls_successful": one.visits_ok + one.visits_unchanged,
        "crawls_empty": one.visits_empty,
        "crawls_failed": one.visits_failed,
        "cache_hit_rate": one.cache_hit_rate,
        "avg_latency_seconds": one.average_seconds,
        "posts_new": one.posts_new,
        "posts_updated": one.posts_updated,
        "posts_duplicate": one.posts_duplicate,
        "valid_posts_24h": one.valid_posts_24h,
        "sources_total": one.sources_total,
        "tiers": one.tiers,
    }
