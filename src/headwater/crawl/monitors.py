"""Monitors of the crawl. An alert is raised once and cleared once, each time with an event."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.events import catalogue
from headwater.events.catalogue import AlertFacts
from headwater.events.health import FEWEST_ANSWERS, MIN_CACHE_HITS
from headwater.sources import KINDS
from headwater.store.log import outbox
from headwater.store.people import accounts
from headwater.store.sources import limits as budgets
from headwater.store.sources.limits import Budget
from headwater.store.visits import metrics
from headwater.store.visits.metrics import Alert, AlertChanges

API_CALLS = "api_calls"
CACHE_HITS = "cache_hits"
STALE_SOURCES = "stale_sources"
WATCHED = (API_CALLS, CACHE_HITS, STALE_SOURCES)
LATELY = timedelta(hours=1)


class AlertLimits(NamedTuple):
    """Thresholds: calls in one window, the share of unchanged answers, the time that a source waits."""

    calls: int = 55
    cache_hits: float = MIN_CACHE_HITS
    stale_after: timedelta = timedelta(minutes=90)


def too_many_calls(used: int, budget: Budget, limits: AlertLimits) -> str | None:
    """Returns what is wrong with the calls of one window; None if nothing is. Pure, as the next two are."""
    if used < limits.calls:
        return None
    return f"{used} requests to Reddit within {budget.window.total_seconds():g} seconds; {budget.requests} are allowed."


def too_few_hits(answers: int, unchanged: int, limits: AlertLimits) -> str | None:
    if answers < FEWEST_ANSWERS or unchanged >= answers * limits.cache_hits:
        return None
    share = f"{unchanged / answers:.0%} of what feeds answered within an hour was what we already had"
    return f"Only {share}; {limits.cache_hits:.0%} is usual. Do servers ignore our conditional requests?"


def too_long_waits(stale: int, limits: AlertLimits) -> str | None:
    if not stale:
        return None
    sources = "1 source has" if stale == 1 else f"{stale:,} sources have"
    minutes = int(limits.stale_after.total_seconds() // 60)
    return f"{sources} been waiting for a visit for {minutes} minutes or more. Is the crawl loop running?"


def watch_calls(conn: Connection, budget: Budget, limits: AlertLimits, now: datetime) -> AlertChanges:
    """Counts the calls, and raises or clears the alert together with its event, which belongs to the owner."""
    return _keep(conn, API_CALLS, too_many_calls(budgets.record_use(conn, budget, now), budget, limits), now)


def watch_cache(conn: Connection, limits: AlertLimits, now: datetime) -> AlertChanges:
    return _keep(conn, CACHE_HITS, too_few_hits(*recent_answers(conn, now), limits), now)


def recent_answers(conn: Connection, now: datetime) -> tuple[int, int]:
    """Returns how often feeds answered lately, and how often nothing had changed."""
    # Not of every kind: the votes of a community change all the time.
    kinds = [kind.name for kind in KINDS.values() if kind.is_often_unchanged]
    return metrics.answers(conn, kinds, now - LATELY)


def watch_crawler(conn: Connection, limits: AlertLimits, now: datetime) -> AlertChanges:
    return _keep(conn, STALE_SOURCES, too_long_waits(metrics.overdue(conn, now - limits.stale_after), limits), now)


def _keep(conn: Connection, name: str, wrong: str | None, now: datetime) -> AlertChanges:
    changed = metrics.update_alerts(conn, [name], {name: wrong} if wrong else {}, now)
    owner = accounts.owner(conn)
    if owner is not None:
        events = [catalogue.ALERT_RAISED(_facts(one), once=_once(one), reader=owner) for one in changed.raised]
        events += [catalogue.ALERT_CLEARED(_facts(one), once=_once(one), reader=owner) for one in changed.cleared]
        outbox.append(conn, events, now)
    return changed


def _facts(alert: Alert) -> AlertFacts:
    return AlertFacts.of(alert, alert=alert.name)


def _once(alert: Alert) -> str:
    return f"{alert.name}:{alert.raised_at.isoformat()}"
