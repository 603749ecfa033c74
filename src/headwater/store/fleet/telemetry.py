"""Readings of machines, and what they come to by the hour and by the day.

A reading is known by its machine and its time, so the same one again changes nothing. Hours are computed from all of
their readings, and days from all of their hours, in the transaction that brings a reading. So they are exact however
late or often a reading comes. Readings are deleted after a while; hours and days stay longer.

On PostgreSQL readings are kept in a partition for each month. `headwater_telemetry_month` makes one: only the owner of
a table may, and the role that the application connects as is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import Prepared, json_text, microseconds, portable

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MICROSECONDS = 1_000_000


class MachineReading(NamedTuple):
    """What a machine, or all machines of one entry together, did at one time."""

    miner_id: int
    at: datetime
    hashrate_th: float
    power_w: float | None = None
    temperature_c: float | None = None


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
_SUMS = tuple(f"{name}_{what}" for name in _MEASURED for what in ("count", "min", "sum", "max"))
_OF_READINGS = ", ".join(
    f"count({column}), min({column}), sum({column}), max({column})"
    for column in ("hashrate_th", "power_w", "temperature_c")
)
_OF_HOURS = ", ".join(f"sum({name}_count), min({name}_min), sum({name}_sum), max({name}_max)" for name in _MEASURED)
_REPLACED = ", ".join(f"{name} = excluded.{name}" for name in _SUMS)

_insert = Prepared(
    sqlite="""INSERT INTO miner_telemetry (tenant_id, miner_id, at, hashrate_th, power_w, temperature_c)
        VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (miner_id, at) DO NOTHING""",
    postgresql="""INSERT INTO miner_telemetry (tenant_id, miner_id, at, hashrate_th, power_w, temperature_c)
        SELECT ?, miner_id, at, hashrate_th, power_w, temperature_c FROM telemetry_batch
        ORDER BY miner_id, at ON CONFLICT (miner_id, at) DO NOTHING""",
)
_make_batch = Prepared(
    postgresql="""CREATE TEMPORARY TABLE IF NOT EXISTS telemetry_batch (miner_id bigint, at timestamptz,
        hashrate_th float8, power_w float8, temperature_c float8) ON COMMIT DELETE ROWS"""
)
_COPY = "COPY telemetry_batch (miner_id, at, hashrate_th, power_w, temperature_c) FROM STDIN"
_make_month = Prepared(postgresql="SELECT headwater_telemetry_month(?)")
_drop_months = Prepared(postgresql="SELECT headwater_forget_telemetry(?)")


def _rolled(table: str, unit: str, width: timedelta, source: str, column: str, figures: str) -> Prepared[Any]:
    """Computes hours or days again: `touched` are machines and the beginnings of what changed."""
    of_batch = f"SELECT DISTINCT miner_id, date_trunc('{unit}', at) AS start FROM telemetry_batch"
    of_list = """SELECT json_extract(value, '$[0]') AS miner_id, json_extract(value, '$[1]') AS start
        FROM json_each(:touched)"""

    def statement(touched: str, length: str) -> str:
        return f"""INSERT INTO {table} (tenant_id, miner_id, start, {", ".join(_SUMS)})
            SELECT :tenant_id, t.miner_id, t.start, {figures}
            FROM ({touched}) t JOIN {source} r
                ON r.miner_id = t.miner_id AND r.{column} >= t.start AND r.{column} < t.start + {length}
            GROUP BY t.miner_id, t.start
            ON CONFLICT (miner_id, start) DO UPDATE SET {_REPLACED}"""

    return Prepared(
        sqlite=statement(of_list, str(width // timedelta(microseconds=1))),
        postgresql=statement(of_batch, f"interval '1 {unit}'"),
    )


_roll_hours = _rolled("telemetry_hours", "hour", HOUR, "miner_telemetry", "at", _OF_READINGS)
_roll_days = _rolled("telemetry_days", "day", DAY, "telemetry_hours", "start", _OF_HOURS)
_hear = portable(
    """INSERT INTO telemetry_heard (tenant_id, miner_id, last_at, received_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (miner_id) DO UPDATE SET received_at = excluded.received_at,
        last_at = CASE WHEN excluded.last_at > telemetry_heard.last_at THEN excluded.last_at
            ELSE telemetry_heard.last_at END"""
)
_owned = portable(
    "SELECT id FROM user_miners WHERE tenant_id = ? AND user_id = ? AND id IN (?) ORDER BY id",
    postgresql=" FOR NO KEY UPDATE",
)
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
_changes = Prepared(sqlite="SELECT total_changes()")
_HOUR, _DAY = (width // timedelta(microseconds=1) for width in (HOUR, DAY))
_at = attrgetter("at")


def owned(conn: Connection, reader: Reader, miner_ids: Iterable[int]) -> set[int]:
    """Returns those of these machines that are the reader's. They stay so until the transaction ends.

    On PostgreSQL nobody else adds readings of them meanwhile: what an hour comes to would lack the other's readings.
    """
    return set(_owned.values(conn, reader.tenant_id, reader.user_id, sorted(set(miner_ids))))


def is_owned(conn: Connection, reader: Reader, miner_id: int) -> bool:
    return bool(_is_owned.value(conn, reader.tenant_id, reader.user_id, miner_id))


def save(conn: Connection, reader: Reader, readings: Sequence[MachineReading], now: datetime) -> int:
    """Stores readings of machines that `owned` has returned, and what they change by the hour and day.

    Returns how many were new.
    """
    if not readings:
        return 0
    tenant_id = reader.tenant_id
    if conn.dialect.name == "postgresql":
        new = _copy(conn, tenant_id, readings)
        _roll_hours.once(conn, tenant_id=tenant_id)
        _roll_days.once(conn, tenant_id=tenant_id)
    else:
        times = [microseconds(one.at) for one in readings]
        new = _insert_each(conn, tenant_id, readings, times)
        hours = {(one.miner_id, at - at % _HOUR) for one, at in zip(readings, times, strict=True)}
        days = {(miner_id, hour - hour % _DAY) for miner_id, hour in hours}
        _roll_hours.once(conn, tenant_id=tenant_id, touched=json_text(sorted(hours)))
        _roll_days.once(conn, tenant_id=tenant_id, touched=json_text(sorted(days)))
    # The latest of each machine is the last one that is put in.
    last = {one.miner_id: one.at for one in sorted(readings, key=_at)}
    _hear.many(conn, [(tenant_id, miner_id, at, now) for miner_id, at in sorted(last.items())])
    return new


def _copy(conn: Connection, tenant_id: int, readings: Sequence[MachineReading]) -> int:
    """COPY does not obey row level security, so it goes into a table of this connection, and INSERT does."""
    make_months(conn, min(one.at for one in readings), max(one.at for one in readings))
    _make_batch.once(conn)
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
    return _insert.once(conn, tenant_id)


def _cell(value: float | None) -> str:
    return r"\N" if value is None else repr(value)


def _insert_each(conn: Connection, tenant_id: int, readings: Sequence[MachineReading], times: Sequence[int]) -> int:
    before = _changes.value(conn)
    rows = zip(readings, times, strict=True)
    _insert.many(conn, [(tenant_id, miner_id, at, rate, power, heat) for (miner_id, _, rate, power, heat), at in rows])
    return int(_changes.value(conn) - before)


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
