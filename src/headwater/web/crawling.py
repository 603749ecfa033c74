"""The page that shows how crawling goes: posts, visits and latency by the hour, outcomes, and tiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from fastapi import APIRouter, Request
from starlette.responses import Response

from headwater import wire
from headwater.follow.tiers import TIERS
from headwater.http.auth import Asking, WithParts
from headwater.store.sources import limits, listings
from headwater.store.visits import alerts, metrics, statistics
from headwater.store.visits.metrics import HOUR, OUTCOMES, HourMetrics, hour_of
from headwater.web.health import CHART_HEIGHT, CHART_WIDTH, Bar, amount, bars
from headwater.web.view import show
from headwater.wire import reddit_budget

HOURS = 48
DAYS = 14
MINUTES = 60
MINUTE = timedelta(minutes=1)

router = APIRouter()


@router.get("/crawling")
async def crawling_page(request: Request, parts: WithParts, reader: Asking) -> Response:
    now = parts.now()
    found = await parts.db.read(metrics.recent, now, HOURS)
    raised = [one for one in await parts.db.read(alerts.all_alerts) if one.cleared_at is None]
    budget = reddit_budget(parts.settings)
    calls = await parts.db.read(limits.use_since, budget, now - MINUTE * MINUTES)
    brought = await parts.db.read(statistics.gather, reader)
    visits = sum(one.visits for one in found)
    seconds = sum(one.seconds for one in found)
    return show(
        request,
        "crawling.html",
        section="crawling",
        hours=HOURS,
        alerts=raised,
        chart=(CHART_WIDTH, CHART_HEIGHT),
        amount=amount,
        counted=found[-1] if found else None,
        x=await wire.x_state(parts),
        posts=by_hour(found, now, lambda one: one.posts_new),
        posts_total=sum(one.posts_new for one in found),
        visits=by_hour(found, now, lambda one: one.visits),
        visits_total=visits,
        latency=by_hour(found, now, lambda one: round(one.average_seconds or 0.0, 3)),
        latency_average=seconds / visits if visits else None,
        outcomes=[(outcome, sum(getattr(one, f"visits_{outcome}") for one in found)) for outcome in OUTCOMES],
        brought=brought,
        tiers=tier_counts(found[-1].tiers if found else None),
        budget=budget,
        calls=by_minute(calls, now, budget.requests),
        calls_most=(most := max(calls.values(), default=0)),
        limit_at=round(CHART_HEIGHT * (1 - budget.requests / max(most, budget.requests, 1)), 2),
        warmth=await parts.db.read(listings.coverage, now),
        past_days=await parts.db.read(metrics.recent_days, now, DAYS),
    )


def by_hour(found: Sequence[HourMetrics], now: datetime, value: Callable[[HourMetrics], float]) -> list[Bar]:
    """A bar for each of the last hours, the newest last. An hour that was not counted has none."""
    known = {one.hour: value(one) for one in found}
    hours = [hour_of(now) - HOUR * back for back in range(HOURS - 1, -1, -1)]
    return bars([(f"{hour:%d %b %H:%M} UTC", known.get(hour, 0)) for hour in hours])


def by_minute(calls: Mapping[datetime, int], now: datetime, limit: int) -> list[Bar]:
    """A bar for each of the last minutes, the newest last; one as high as the limit has the full height."""
    this = now.replace(second=0, microsecond=0)
    minutes = [this - MINUTE * back for back in range(MINUTES - 1, -1, -1)]
    return bars([(f"{minute:%H:%M} UTC", calls.get(minute, 0)) for minute in minutes], top=limit)


def tier_counts(counts: dict[str, int] | None) -> list[tuple[str, int]]:
    """How many sources are in each tier, the most visited first; those without one last."""
    names = [*(tier.name for tier in TIERS), "none"]
    return [(name, (counts or {}).get(name, 0)) for name in names]
