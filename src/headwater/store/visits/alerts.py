"""Alerts as they are kept: one row for each thing that can be wrong, raised until it is cleared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from headwater.store.sql import moment, portable
from headwater.store.tables import alerts

_raise = portable(
    """INSERT INTO alerts (name, detail, raised_at) VALUES (?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET detail = excluded.detail, raised_at = excluded.raised_at, cleared_at = NULL
    WHERE alerts.cleared_at IS NOT NULL RETURNING name"""
)
_say_again = portable("UPDATE alerts SET detail = ? WHERE name = ? AND cleared_at IS NULL")
_clear = portable(
    "UPDATE alerts SET cleared_at = ? WHERE name = ? AND cleared_at IS NULL RETURNING name, detail, raised_at"
)
_answers = portable(
    """SELECT count(*), COALESCE(SUM(CASE WHEN crawls.outcome = 'unchanged' THEN 1 ELSE 0 END), 0)
    FROM crawls JOIN sources ON sources.id = crawls.source_id
    WHERE crawls.started_at >= ? AND crawls.outcome <> 'failed' AND sources.kind IN (?) AND sources.created_at < ?"""
)
_overdue = portable("SELECT count(*) FROM sources WHERE active AND next_check_at <= ?")


class Alert(NamedTuple):
    """Something that is wrong, since `raised_at`; or was, until `cleared_at`."""

    name: str
    detail: str
    raised_at: datetime
    cleared_at: datetime | None


class AlertChanges(NamedTuple):
    raised: list[Alert]
    cleared: list[Alert]


def all_alerts(conn: Connection) -> list[Alert]:
    """Every alert there has been, each as it was the last time; the newest first."""
    columns = [alerts.c[name] for name in Alert._fields]
    return [Alert(*row) for row in conn.execute(select(*columns).order_by(alerts.c.raised_at.desc(), alerts.c.name))]


def update(conn: Connection, watched: Collection[str], wrong: Mapping[str, str], now: datetime) -> AlertChanges:
    """Raise what is wrong (its name and what to say), clear what is not; returns what changed, each once."""
    changed = AlertChanges([], [])
    for name in watched:
        if name not in wrong:
            cleared = _clear.all(conn, now, name)
            changed.cleared.extend(Alert(row[0], row[1], moment(row[2]), now) for row in cleared)
        elif _raise.all(conn, name, wrong[name], now):
            changed.raised.append(Alert(name, wrong[name], now, None))
        else:
            _say_again.once(conn, wrong[name], name)
    return changed


def answers(conn: Connection, kinds: Sequence[str], since: datetime) -> tuple[int, int]:
    """How often sources of these kinds answered since then, and how often with what we had. Those followed only since
    then do not count: of them we had nothing."""
    count, unchanged = _answers.all(conn, since, list(kinds), since)[0]
    return int(count), int(unchanged)


def overdue(conn: Connection, since: datetime) -> int:
    """Sources that have been waiting for a visit since this time."""
    return int(_overdue.all(conn, since)[0][0])
