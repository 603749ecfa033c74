"""Readings of machines, and what they come to by the hour and by the day.

A reading is known by its machine and its time, so the same one again changes nothing. One that is new is added to its
hour and its day in the same transaction. So these are what all readings come to, however late or often one comes.
Readings are deleted after a while; hours and days stay longer.

On PostgreSQL readings are kept in a partition for each month. `headwater_telemetry_month` makes one: only the owner of
a table may, and the role that the application connects as is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import Prepared, microseconds, portable

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MICROSECONDS = 1_000_000


class MachineReading(msgspec.Struct, forbid_unknown_fields=True):
    """What a machine, or all machines of one entry together, did at one time. It is read from JSON as it is here: a
    batch has ten thousand."""

    miner_id: Annotated[int, Meta(ge=1, le=2**53 - 1)]
    at: Annotated[datetime, Meta(tz=True)]
    hashrate_th: Annotated[float, Meta(ge=0, le=1e9)]
    power_w: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    temperature_c: Annotated[float, Meta(ge=-273.15, le=1000)] | None = None


class Bucket(NamedTuple):
    """The readings of a stretch of time. A figure is None where no reading has it."""

    start: datetime
    readings: int
    hashrate_min: float
    hashrate_avg: float
    hashrate_max: float
    power_min: float | None
    power_avg: float | None
    power_max: float | None
    temperature_min: float | None
    temperature_avg: float | None
    temperature_max: float | None


class LastHeard(NamedTuple):
    """When something was last heard of a machine: the time of its newest reading, and when one was received."""

    miner_id: int
    last_at: datetime
    received_at: datetime


_MEASURED = ("hashrate", "power", "temperature")
_COLUMNS = "miner_id, at, hashrate_th, power_w, temperature_c"
_SUMS = ", ".join(f"{name}_{what}" for name in _MEASURED for what in ("count", "min", "sum", "max"))
_OF_READINGS = ", ".join(
    f"count({column}), min({column}), sum({column}), max({column})"
    for column in ("hashrate_th", "power_w", "temperature_c")
)
# PostgreSQL refuses to divide a number that is so small that nothing is left of it.
_NOT_TINY = ", ".join(
    f"CASE WHEN abs({column}) < 1e-300 THEN 0 ELSE {column} END"
    for column in ("hashrate_th", "power_w", "temperature_c")
)


def _added(table: str) -> str:
    """Returns how what new readings come to is added to what is there. A figure is NULL while no reading has it."""
    return ", ".join(
        f"""{name}_count = {table}.{name}_count + excluded.{name}_count,
        {name}_min = CASE WHEN {table}.{name}_min <= excluded.{name}_min THEN {table}.{name}_min
            ELSE COALESCE(excluded.{name}_min, {table}.{name}_min) END,
        {name}_sum = COALESCE({table}.{name}_sum + excluded.{name}_sum, excluded.{name}_sum, {table}.{name}_sum),
        {name}_max = CASE WHEN {table}.{name}_max >= excluded.{name}_max THEN {table}.{name}_max
            ELSE COALESCE(excluded.{name}_max, {table}.{name}_max) END"""
        for name in _MEASURED
    )


def _add_to(table: str, start: str, readings: str) -> str:
    """Returns the statement that adds these readings to hours or days. `start` is when theirs begins."""
    return f"""INSERT INTO {table} (tenant_id, miner_id, start, {_SUMS})
        SELECT :tenant_id, miner_id, {start}, {_OF_READINGS} FROM {readings} WHERE true
        GROUP BY miner_id, {start} ORDER BY miner_id, {start}
        ON CONFLICT (miner_id, start) DO UPDATE SET {_added(table)}"""


# The batch is a table of this connection. On SQLite it has each reading once, and is emptied before it is used.
_make_batch = Prepared(
    sqlite=f"""CREATE TEMPORARY TABLE IF NOT EXISTS telemetry_batch ({_COLUMNS}, PRIMARY KEY (miner_id, at))
        WITHOUT ROWID""",
    postgresql="""CREATE TEMPORARY TABLE IF NOT EXISTS telemetry_batch (miner_id bigint, at timestamptz,
        hashrate_th float8, power_w float8, temperature_c float8) ON COMMIT DELETE ROWS""",
)
_empty_batch = Prepared(sqlite="DELETE FROM telemetry_batch")
_fill_batch = Prepared(sqlite=f"INSERT OR IGNORE INTO telemetry_batch ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)")
_COPY = f"COPY telemetry_batch ({_COLUMNS}) FROM STDIN"
_leave_known = Prepared(
    sqlite="""DELETE FROM telemetry_batch WHERE EXISTS (SELECT 1 FROM miner_telemetry r
        WHERE r.miner_id = telemetry_batch.miner_id AND r.at = telemetry_batch.at)"""
)
_insert = Prepared(
    sqlite=f"""INSERT INTO miner_telemetry (tenant_id, {_COLUMNS})
        SELECT :tenant_id, {_COLUMNS} FROM telemetry_batch ORDER BY miner_id, at""",
    postgresql=f"""WITH new AS (
            INSERT INTO miner_telemetry (tenant_id, {_COLUMNS})
            SELECT :tenant_id, miner_id, at, {_NOT_TINY} FROM telemetry_batch ORDER BY miner_id, at, ctid
            ON CONFLICT (miner_id, at) DO NOTHING RETURNING {_COLUMNS}),
        hours AS ({_add_to("telemetry_hours", "date_trunc('hour', at)", "new")}),
        days AS ({_add_to("telemetry_days", "date_trunc('day', at)", "new")})
        SELECT count(*) FROM new""",
)
_add_to_hours, _add_to_days = (
    Prepared(sqlite=_add_to(table, f"at - at % {width // timedelta(microseconds=1)}", "telemetry_batch"))
    for table, width in (("telemetry_hours", HOUR), ("telemetry_days", DAY))
)
_make_month = Prepared(postgresql="SELECT headwater_telemetry_month(?)")
_drop_months = Prepared(postgresql="SELECT headwater_forget_telemetry(?)")


_hear = portable(
    """INSERT INTO telemetry_heard (tenant_id, miner_id, last_at, received_at)
    SELECT :tenant_id, miner_id, max(at), :now FROM telemetry_batch WHERE true GROUP BY miner_id ORDER BY miner_id
    ON CONFLICT (miner_id) DO UPDATE SET received_at = excluded.received_at,
        last_at = CASE WHEN excluded.last_at > telemetry_heard.last_at THEN excluded.last_at
            ELSE telemetry_heard.last_at END"""
)
_owned = portable("SELECT id FROM user_miners WHERE tenant_id = ? AND user_id = ? AND id IN (?)")
_is_owned = portable("SELECT 1 FROM user_miners WHERE tenant_id = ? AND user_id = ? AND id = ?")
_heard = portable(
    """SELECT h.miner_id, h.last_at, h.received_at FROM telemetry_heard h
        JOIN user_miners m ON m.id = h.miner_id AND m.tenant_id = h.tenant_id
    WHERE m.tenant_id = ? AND m.user_id = ?""",
    row=LastHeard,
)

_OWN = """EXISTS (SELECT 1 FROM user_miners m WHERE m.id = :miner_id AND m.tenant_id = :tenant_id
        AND m.user_id = :user_id)"""
_RANGE = f"miner_id = :miner_id AND {_OWN} AND {{at}} >= :since AND {{at}} < :until"
_AVERAGED = ", ".join(f"min({c}), avg({c}), max({c})" for c in ("hashrate_th", "power_w", "temperature_c"))
_of_readings = Prepared(
    sqlite=f"""SELECT at - at % (:seconds * {MICROSECONDS}), count(*), {_AVERAGED} FROM miner_telemetry
        WHERE {_RANGE.format(at="at")} GROUP BY 1 ORDER BY 1 LIMIT :limit""",
    postgresql=f"""SELECT to_timestamp(floor(extract(epoch FROM at) / :seconds) * :seconds), count(*), {_AVERAGED}
        FROM miner_telemetry WHERE {_RANGE.format(at="at")} GROUP BY 1 ORDER BY 1 LIMIT :limit""",
    row=Bucket,
)
_KEPT = ", ".join(f"{name}_min, {name}_sum / NULLIF({name}_count, 0), {name}_max" for name in _MEASURED)
_of_hours, _of_days = (
    portable(
        f"""SELECT start, hashrate_count, {_KEPT} FROM {table}
        WHERE {_RANGE.format(at="start")} ORDER BY start LIMIT :limit""",
        row=Bucket,
    )
    for table in ("telemetry_hours", "telemetry_days")
)

_known = portable("SELECT miner_id FROM telemetry_heard")
_forget_readings = portable("DELETE FROM miner_telemetry WHERE miner_id = ? AND at < ?")
_forget_hours = portable("DELETE FROM telemetry_hours WHERE miner_id = ? AND start < ?")
_gone = portable(
    """SELECT h.miner_id FROM telemetry_heard h
    WHERE NOT EXISTS (SELECT 1 FROM user_miners m WHERE m.id = h.miner_id AND m.tenant_id = h.tenant_id)
    ORDER BY h.miner_id LIMIT 1"""
)
_forget_gone = [
    portable(
        f"""DELETE FROM {table} WHERE miner_id = :miner_id AND {column} IN
        (SELECT {column} FROM {table} WHERE miner_id = :miner_id ORDER BY {column} LIMIT :limit)"""
    )
    for table, column in (("miner_telemetry", "at"), ("telemetry_hours", "start"), ("telemetry_days", "start"))
]
_forget_heard = portable("DELETE FROM telemetry_heard WHERE miner_id = ?")
_at = attrgetter("at")


def owned(conn: Connection, reader: Reader, miner_ids: Iterable[int]) -> set[int]:
    """Returns those of these machines that are the reader's."""
    return set(_owned.values(conn, reader.tenant_id, reader.user_id, list(miner_ids)))


def is_owned(conn: Connection, reader: Reader, miner_id: int) -> bool:
    return bool(_is_owned.value(conn, reader.tenant_id, reader.user_id, miner_id))


def save(conn: Connection, reader: Reader, readings: Sequence[MachineReading], now: datetime) -> int:
    """Stores readings of machines that `owned` has returned, and adds those that are new to their hours and days.

    Returns how many were new. That a machine was heard of is noted first, in the order of machines: on PostgreSQL, two
    who send readings of the same machines wait for each other there, and never each for the other.
    """
    if not readings:
        return 0
    tenant_id = reader.tenant_id
    _make_batch.once(conn)
    (_copy if conn.dialect.name == "postgresql" else _fill)(conn, readings)
    _hear.once(conn, tenant_id=tenant_id, now=now)
    if conn.dialect.name == "postgresql":
        return int(_insert.value(conn, tenant_id=tenant_id))
    _leave_known.once(conn)
    _add_to_hours.once(conn, tenant_id=tenant_id)
    _add_to_days.once(conn, tenant_id=tenant_id)
    return _insert.once(conn, tenant_id=tenant_id)


def _copy(conn: Connection, readings: Sequence[MachineReading]) -> None:
    """COPY does not obey row level security, so it goes into a table of this connection, and INSERT does."""
    times = list(map(_at, readings))
    make_months(conn, min(times), max(times))
    lines = "".join(
        f"{one.miner_id}\t{one.at.isoformat()}\t{one.hashrate_th!r}\t{_cell(one.power_w)}\t{_cell(one.temperature_c)}\n"
        for one in readings
    )
    cursor = conn.connection.cursor()
    try:
        with cursor.copy(_COPY) as copy:
            copy.write(lines)
    finally:
        cursor.close()


def _cell(value: float | None) -> str:
    return r"\N" if value is None else repr(value)


def _fill(conn: Connection, readings: Sequence[MachineReading]) -> None:
    _empty_batch.once(conn)
    _fill_batch.many(
        conn,
        [(one.miner_id, microseconds(one.at), one.hashrate_th, one.power_w, one.temperature_c) for one in readings],
    )


def buckets(
    conn: Connection, reader: Reader, miner_id: int, since: datetime, until: datetime, seconds: int, limit: int
) -> list[Bucket]:
    """Returns the readings of a machine in buckets of so many seconds. Hours and days are those that are kept."""
    statement = {3600: _of_hours, 86400: _of_days}.get(seconds, _of_readings)
    return statement.all(
        conn,
        tenant_id=reader.tenant_id,
        user_id=reader.user_id,
        miner_id=miner_id,
        since=since,
        until=until,
        seconds=seconds,
        limit=limit,
    )


def heard(conn: Connection, reader: Reader) -> list[LastHeard]:
    """Returns when something was last heard of each machine that ever sent a reading."""
    return _heard.all(conn, reader.tenant_id, reader.user_id)


def make_months(conn: Connection, first: datetime, last: datetime) -> None:
    """Makes sure that there are partitions for these months. Only PostgreSQL has any."""
    month = first.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while conn.dialect.name == "postgresql" and month <= last:
        _make_month.value(conn, month)
        month = (month + timedelta(days=32)).replace(day=1)


def forget_before(conn: Connection, readings: datetime, hours: datetime) -> int:
    """Deletes old readings and hours. Returns how many rows were deleted.

    On PostgreSQL a month of readings goes at once, when all of it is old.
    """
    if conn.dialect.name == "postgresql":
        _drop_months.value(conn, readings)
    return sum(
        _forget_readings.once(conn, miner_id, readings) + _forget_hours.once(conn, miner_id, hours)
        for miner_id in _known.values(conn)
    )


def forget_gone(conn: Connection, limit: int) -> int | None:
    """Deletes some of the readings of a machine that is gone, and what they came to, so many rows at most of each kind.

    Returns how many; None: there is no such machine. That it was heard of is deleted last, when nothing else is left.
    """
    miner_id = _gone.value(conn)
    if miner_id is None:
        return None
    deleted = sum(statement.once(conn, miner_id=miner_id, limit=limit) for statement in _forget_gone)
    if not deleted:
        _forget_heard.once(conn, miner_id)
    return deleted


class WatchedMachine(NamedTuple):
    """A machine that has sent readings: what is expected of it, what was heard, and what the watch made of that."""

    tenant_id: int
    user_id: int
    miner_id: int
    name: str
    site: str
    quantity: int
    actual_hashrate_th: Decimal
    last_at: datetime
    received_at: datetime
    state: str
    since: datetime | None
    doubts: int
    hashrate_th: float | None


class WatchLook(NamedTuple):
    """When the watch last looked, and since when it has looked without a pause."""

    looked_at: datetime
    watching_since: datetime


_WATCHED = """SELECT m.tenant_id, m.user_id, m.id, m.name, m.site, m.quantity, m.actual_hashrate_th, h.last_at,
        h.received_at, h.state, h.since, h.doubts,
        (SELECT avg(r.hashrate_th) FROM miner_telemetry r
            WHERE r.miner_id = h.miner_id AND r.at > h.last_at - {window} AND r.at <= h.last_at)
    FROM telemetry_heard h JOIN user_miners m ON m.id = h.miner_id AND m.tenant_id = h.tenant_id"""
_watched = Prepared(
    sqlite=_WATCHED.format(window=30 * 60 * MICROSECONDS),
    postgresql=_WATCHED.format(window="interval '30 minutes'"),
    row=WatchedMachine,
)
_watched_of = Prepared(
    sqlite=_WATCHED.format(window=30 * 60 * MICROSECONDS) + " WHERE m.tenant_id = ? AND m.user_id = ?",
    postgresql=_WATCHED.format(window="interval '30 minutes'") + " WHERE m.tenant_id = ? AND m.user_id = ?",
    row=WatchedMachine,
)
_judge = portable("UPDATE telemetry_heard SET state = ?, since = ?, doubts = ? WHERE miner_id = ?")
_LOOK = "SELECT looked_at, watching_since FROM telemetry_looks WHERE id = 1"
_look = portable(_LOOK, row=WatchLook)
_take_look = portable(_LOOK, postgresql=" FOR UPDATE", row=WatchLook)
_save_look = portable(
    """INSERT INTO telemetry_looks (id, looked_at, watching_since) VALUES (1, ?, ?) ON CONFLICT (id)
    DO UPDATE SET looked_at = excluded.looked_at, watching_since = excluded.watching_since"""
)


def watched(conn: Connection) -> list[WatchedMachine]:
    """Returns every machine that has ever sent a reading, of everybody."""
    return _watched.all(conn)


def watched_of(conn: Connection, reader: Reader) -> list[WatchedMachine]:
    """Returns the reader's machines that have ever sent a reading."""
    return _watched_of.all(conn, reader.tenant_id, reader.user_id)


def judge(conn: Connection, miner_id: int, state: str, since: datetime | None, doubts: int) -> None:
    _judge.once(conn, state, since, doubts, miner_id)


def last_look(conn: Connection) -> WatchLook | None:
    return _look.first(conn)


def take_look(conn: Connection) -> WatchLook | None:
    """Returns the last look. Others who want to look wait until the transaction ends."""
    return _take_look.first(conn)


def save_look(conn: Connection, look: WatchLook) -> None:
    _save_look.once(conn, look.looked_at, look.watching_since)
