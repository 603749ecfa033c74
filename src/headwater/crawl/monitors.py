"""What can go wrong with crawling, noticed and said: alerts that are raised once and cleared once, each as an event."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.events import catalogue
from headwater.events.catalogue import AlertFacts
from headwater.store import accounts, alerts, outbox
from headwater.store.alerts import Alert, Changed

MOST_CALLS = 55  # a minute; Reddit allows 60
STALE_AFTER = timedelta(minutes=90)
API_CALLS = "api_calls"
STALE_SOURCES = "stale_sources"
WATCHED = (API_CALLS, STALE_SOURCES)


class Seen(NamedTuple):
    """What the monitors look at."""

    calls: int
    stale: int


def wrong_in(seen: Seen) -> dict[str, str]:
    """The alerts that are due, each with what to say about it. Pure."""
    found = {}
    if seen.calls >= MOST_CALLS:
        found[API_CALLS] = f"Communities were asked {seen.calls} times within a minute. Reddit allows 60."
    if seen.stale:
        sources = "1 source waits" if seen.stale == 1 else f"{seen.stale:,} sources wait"
        minutes = int(STALE_AFTER.total_seconds() // 60)
        found[STALE_SOURCES] = f"{sources} for a visit since {minutes} minutes or more. Does the crawl loop run?"
    return found


def watch(conn: Connection, now: datetime) -> Changed:
    """Look, and raise and clear alerts together with their events, which are the owner's."""
    seen = Seen(alerts.community_visits(conn, now), alerts.overdue(conn, now - STALE_AFTER))
    changed = alerts.keep(conn, WATCHED, wrong_in(seen), now)
    owner = accounts.owner(conn)
    if owner is not None:
        events = [catalogue.ALERT_RAISED(_facts(one), once=_once(one), reader=owner) for one in changed.raised]
        events += [catalogue.ALERT_CLEARED(_facts(one), once=_once(one), reader=owner) for one in changed.cleared]
        outbox.append(conn, events, now)
    return changed


def _facts(alert: Alert) -> AlertFacts:
    return AlertFacts(alert=alert.name, detail=alert.detail, raised_at=alert.raised_at)


def _once(alert: Alert) -> str:
    return f"{alert.name}:{alert.raised_at.isoformat()}"
