"""The page that shows how crawling goes: posts, visits and latency by the hour, outcomes, and tiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from headwater import wire
from headwater.app import crawling, instance, pool
from headwater.http.auth import CurrentReader
from headwater.http.state import WithParts
from headwater.store.visits.metrics import HourMetrics
from headwater.web import charts, formatting
from headwater.web.charts import Bar, bars
from headwater.web.view import show

HOURS = 48
DAYS = 14
MINUTES = 60
MINUTE = timedelta(minutes=1)

router = APIRouter()


@router.get("/crawling")
async def crawling_page(request: Request, parts: WithParts, reader: CurrentReader) -> Response:
    now = parts.now()
    budget = wire.reddit_budget(parts.settings)
    found = await parts.db.read(
        crawling.progress, reader, now, budget, hours=HOURS, days=DAYS, requests_for=MINUTE * MINUTES
    )
    hours = found.hours
    visits = sum(one.visits for one in hours)
    seconds = sum(one.seconds for one in hours)
    most = max(found.requests.values(), default=0)
    return show(
        request,
        "crawling.html",
        section="crawling",
        hours=HOURS,
        alerts=found.alerts,
        chart=(charts.WIDTH, charts.HEIGHT),
        amount=formatting.amount,
        counted=hours[-1] if hours else None,
        x=await instance.x_state(parts.db, partial(wire.x_token, parts), wire.x_allowance(parts.settings), now),
        posts=by_hour(hours, now, lambda one: one.posts_new),
        posts_total=sum(one.posts_new for one in hours),
        visits=by_hour(hours, now, lambda one: one.visits),
        visits_total=visits,
        latency=by_hour(hours, now, lambda one: round(one.average_seconds or 0.0, 3)),
        latency_average=seconds / visits if visits else None,
        outcomes=[(outcome, sum(getattr(one, f"visits_{outcome}") for one in hours)) for outcome in crawling.OUTCOMES],
        brought=found.statistics,
        items_read=crawling.items_read(found.statistics),
        tiers=tier_counts(hours[-1].tiers if hours else None),
        budget=budget,
        calls=by_minute(found.requests, now, budget.requests),
        calls_most=most,
        limit_at=round(charts.HEIGHT * (1 - budget.requests / max(most, budget.requests, 1)), 2),
        warmth=found.warmth,
        past_days=found.days,
    )


def by_hour(found: Sequence[HourMetrics], now: datetime, value: Callable[[HourMetrics], float]) -> list[Bar]:
    """Returns a bar for each of the last hours, the newest last. An hour that was not counted has none."""
    known = {one.hour: value(one) for one in found}
    hours = [crawling.hour_of(now) - crawling.HOUR * back for back in range(HOURS - 1, -1, -1)]
    return bars([(f"{hour:%d %b %H:%M} UTC", known.get(hour, 0)) for hour in hours])


def by_minute(calls: Mapping[datetime, int], now: datetime, limit: int) -> list[Bar]:
    """Returns a bar for each of the last minutes, the newest last. One that reaches the limit has the full height."""
    this = now.replace(second=0, microsecond=0)
    minutes = [this - MINUTE * back for back in range(MINUTES - 1, -1, -1)]
    return bars([(f"{minute:%H:%M} UTC", calls.get(minute, 0)) for minute in minutes], top=limit)


def tier_counts(counts: dict[str, int] | None) -> list[tuple[str, int]]:
    """Returns how many sources are in each tier, the most visited first; those without one last."""
    return [(name, (counts or {}).get(name, 0)) for name in (*pool.TIER_NAMES, "none")]
