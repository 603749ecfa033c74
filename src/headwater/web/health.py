"""The pages that show how Headwater is doing (with its dead letters) and how crawling goes, hour by hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from fastapi import Request
from starlette.responses import Response

from headwater import wire
from headwater.app import crawling, health, instance, log, pool, posts
from headwater.app.log import DeadLetterJson
from headwater.app.shapes import shaped
from headwater.events.health import Figure
from headwater.http import state
from headwater.http.auth import CurrentReader, caller_of, needs
from headwater.http.routes import Id
from headwater.http.state import WithLive, WithParts
from headwater.store.visits.metrics import HourMetrics
from headwater.web import formatting
from headwater.web.formatting import Bar, StateLabel, bars
from headwater.web.view import go, page_router, show

DEAD_LETTERS = 50
MINUTES = 60
HOURS = 48
PAST_DAYS = 14
REQUEST_MINUTES = 60
MINUTE = timedelta(minutes=1)
OUTCOMES = ("ok", "unchanged", "empty", "failed")

router = page_router()

_STATES = {
    "ok": StateLabel("OK", "good", "check"),
    "warning": StateLabel("Watch this", "busy", "alert"),
    "bad": StateLabel("Trouble", "bad", "alert"),
    "unknown": StateLabel("Not known", "quiet", "circle"),
}
_NAMES = {
    "store": "Problems of the database",
    "outbox_backlog": "Events not handled yet",
    "consumer_lag": "Oldest event waiting for",
    "dlq_count": "Events that failed",
    "dlq_share": "Share of events that failed",
    "freshness": "Since the last visit that worked",
    "write_to_visible_p95": "From write to visible (95th percentile)",
    "sources_failing": "Sources that fail",
    "sources_blocked": "Sources that block us",
    "sources_due": "Sources waiting for a visit",
    "oldest_event": "Oldest event that is kept",
    "partition_lag": "Oldest event waiting in the partition",
    "connector": "Debezium's connector",
    "slot_bytes": "Log that PostgreSQL keeps for its slots",
    "slot_read": "Readers of PostgreSQL's log for Kafka",
    "cache_hit_rate": "Pages that were in the cache",
    "answers_unchanged": "Answers of feeds that had not changed",
    "kafka_consumer_lag": "Oldest event waiting for any consumer",
    "forecast_freshness_sec": "Since the last forecast",
}


@router.get("/health", dependencies=[needs("health:read")])
async def health_page(request: Request, parts: WithParts, live: WithLive, reader: CurrentReader) -> Response:
    figures = await state.figures(parts, live)
    found = await parts.db.read(health.activity, reader, parts.now(), minutes=MINUTES, dead_letters=DEAD_LETTERS)
    lags = [figure for figure in figures if figure.name == "consumer_lag"]
    return show(
        request,
        "health.html",
        section="health",
        state=_STATES[health.overall(figures)],
        states=_STATES,
        figures=figures,
        name_of=name_of,
        amount=formatting.amount,
        events=bars([(f"{MINUTES - place} min ago", count) for place, count in enumerate(found.events)]),
        events_total=sum(found.events),
        visits=[(outcome, found.visits.get(outcome, 0)) for outcome in OUTCOMES],
        lags=[(figure, min(1.0, (figure.value or 0.0) / (figure.limit or 1.0))) for figure in lags],
        dead_letters=found.dead_letters,
        is_operator=caller_of(request).may("log:read"),
        chart=(formatting.CHART_WIDTH, formatting.CHART_HEIGHT),
    )


@router.get("/health/dead-letters/{letter_id}", dependencies=[needs("log:read")])
async def letter_page(request: Request, parts: WithParts, letter_id: Id) -> Response:
    letter = await parts.db.read(log.dead_letter, letter_id)
    return show(
        request, "dead_letter.html", letter=letter, data=shaped(DeadLetterJson, letter)["data"], section="health"
    )


@router.post("/health/dead-letters/replay", dependencies=[needs("log:write")])
async def replay_all(parts: WithParts) -> Response:
    await log.replay_dead_letters(parts.db, parts.consumers, parts.now)
    return go("/health#dead-letters")


@router.post("/health/dead-letters/{letter_id}/replay", dependencies=[needs("log:write")])
async def replay(parts: WithParts, letter_id: Id) -> Response:
    await parts.db.write(log.replay_dead_letter, parts.consumers, letter_id, parts.now())
    return go(f"/health/dead-letters/{letter_id}")


@router.post("/health/dead-letters/{letter_id}/skip", dependencies=[needs("log:write")])
async def skip(parts: WithParts, letter_id: Id) -> Response:
    await parts.db.write(log.skip_dead_letter, parts.consumers, letter_id, parts.now())
    return go(f"/health/dead-letters/{letter_id}")


def name_of(figure: Figure) -> str:
    name = _NAMES.get(figure.name, figure.name)
    return f"{name} {figure.consumer}" if figure.consumer else name


@router.get("/crawling", dependencies=[needs("health:read")])
async def crawling_page(request: Request, parts: WithParts, reader: CurrentReader) -> Response:
    now = parts.now()
    budget = wire.reddit_budget(parts.settings)
    found = await parts.db.read(
        crawling.progress, reader, now, budget, hours=HOURS, days=PAST_DAYS, requests_for=MINUTE * REQUEST_MINUTES
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
        chart=(formatting.CHART_WIDTH, formatting.CHART_HEIGHT),
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
        images=posts.image_words(found.statistics.images, downloading=parts.settings.images == "on"),
        items_read=crawling.items_read(found.statistics),
        tiers=tier_counts(hours[-1].tiers if hours else None),
        budget=budget,
        calls=by_minute(found.requests, now, budget.requests),
        calls_most=most,
        limit_at=round(formatting.CHART_HEIGHT * (1 - budget.requests / max(most, budget.requests, 1)), 2),
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
    minutes = [this - MINUTE * back for back in range(REQUEST_MINUTES - 1, -1, -1)]
    return bars([(f"{minute:%H:%M} UTC", calls.get(minute, 0)) for minute in minutes], top=limit)


def tier_counts(counts: dict[str, int] | None) -> list[tuple[str, int]]:
    """Returns how many sources are in each tier, the most visited first; those without one last."""
    return [(name, (counts or {}).get(name, 0)) for name in (*pool.TIER_NAMES, "none")]
