"""Daily figures of the market and the chain, which everybody shares. A day that was corrected keeps its versions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import MarketDay
from headwater.store.sql import Prepared, columns, insert_into, portable


class DayVersion(NamedTuple):
    """What was said about a day. `superseded_at` is None for what holds now."""

    day: datetime
    version: int
    price_usd: float | None
    difficulty: float | None
    hashrate_th: float | None
    fees_btc: float
    height: int
    blocks: int
    origin: str
    stored_at: datetime
    superseded_at: datetime | None

    def as_day(self) -> MarketDay:
        return MarketDay(
            self.day.date(), self.price_usd, self.difficulty, self.height, self.blocks, self.fees_btc, self.hashrate_th
        )


_DAY = f"SELECT {columns(DayVersion)} FROM market_daily"
_lock = Prepared(postgresql="LOCK TABLE market_daily IN SHARE ROW EXCLUSIVE MODE")  # those who read do not wait
_current = portable(f"{_DAY} WHERE superseded_at IS NULL AND day >= ? ORDER BY day", row=DayVersion)
_latest = portable(
    f"""{_DAY} WHERE superseded_at IS NULL AND price_usd IS NOT NULL AND difficulty IS NOT NULL
    ORDER BY day DESC LIMIT 1""",
    row=DayVersion,
)
_changes = portable("SELECT count(*), max(stored_at), max(superseded_at) FROM market_daily")
_versions = portable(f"{_DAY} WHERE day = ? ORDER BY version", row=DayVersion)
_supersede = portable("UPDATE market_daily SET superseded_at = ? WHERE day = ? AND superseded_at IS NULL")
_insert = portable(insert_into("market_daily", DayVersion._fields))


def save_days(conn: Connection, days: Sequence[MarketDay], origin: str, now: datetime) -> list[MarketDay]:
    """Stores days that are new, and new versions of those that differ. Returns both.

    What a document does not know about a day does not delete what is known.
    """
    if not days:
        return []
    if conn.dialect.name == "postgresql":
        _lock.once(conn)
    known = {one.day.date(): one for one in _current.all(conn, midnight(days[0].day))}
    changed = []
    for day in days:
        before = known.get(day.day)
        merged = _over(day, before.as_day()) if before else day
        if before is None or merged != before.as_day():
            changed.append((merged, before.version + 1 if before else 1))
    _supersede.many(conn, [(now, midnight(day.day)) for day, version in changed if version > 1])
    _insert.many(conn, [_row(day, version, origin, now) for day, version in changed])
    return [day for day, _ in changed]


def _over(day: MarketDay, before: MarketDay) -> MarketDay:
    unknown = {name: getattr(before, name) for name, value in day._asdict().items() if value is None}
    return day._replace(**unknown)


def _row(day: MarketDay, version: int, origin: str, now: datetime) -> dict[str, object]:
    facts = {**day._asdict(), "day": midnight(day.day)}
    return {**facts, "version": version, "origin": origin, "stored_at": now, "superseded_at": None}


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def days_since(conn: Connection, first: date) -> list[MarketDay]:
    """Returns the days that are known since then, oldest first."""
    return [one.as_day() for one in _current.all(conn, midnight(first))]


def latest(conn: Connection) -> MarketDay | None:
    """Returns the last day whose price and difficulty are known."""
    found = _latest.first(conn)
    return found.as_day() if found else None


def version(conn: Connection) -> str:
    """Names all that is known now: it is another name after every day that is added or corrected."""
    [(count, stored_at, superseded_at)] = _changes.all(conn)
    return f"{count}.{stored_at}.{superseded_at}"


def versions(conn: Connection, day: date) -> list[DayVersion]:
    """Returns all that was said about a day, the first version first."""
    return _versions.all(conn, midnight(day))
