"""What sites ask of programs (robots.txt), kept so that all processes ask once a day."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.driver import portable
from headwater.store.types import moment

_load = portable("SELECT origin, status, rules, fetched_at FROM robots WHERE origin = ?")
_save = portable(
    """INSERT INTO robots (origin, status, rules, fetched_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (origin) DO UPDATE SET status = excluded.status, rules = excluded.rules,
        fetched_at = excluded.fetched_at"""
)


class Rules(NamedTuple):
    """What the server at `origin` (scheme, host and port) answered; `text` is empty where it has no rules."""

    origin: str
    status: int
    text: str
    fetched_at: datetime


def load(conn: Connection, origin: str) -> Rules | None:
    rows = _load.all(conn, origin)
    return Rules(*rows[0])._replace(fetched_at=moment(rows[0][3])) if rows else None


def save(conn: Connection, rules: Rules) -> None:
    _save.once(conn, *rules)
