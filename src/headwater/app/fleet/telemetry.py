"""Readings of machines: taking them in, showing them, and watching over them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec
import structlog
from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app.shapes import Example, Time
from headwater.errors import BadInput, NotFound
from headwater.events.catalogue import MINER_OFFLINE, MINER_RECOVERED, MinerTrouble
from headwater.fleet import watch
from headwater.fleet.watch import Heard, Judgement
from headwater.model import Event, Reader
from headwater.store.fleet import telemetry
from headwater.store.fleet.telemetry import Bucket, MachineReading, WatchedMachine, WatchLook
from headwater.store.log import outbox

MOST_READINGS = 10_000
MOST_BUCKETS = 10_000
MOST_NAMED = 10
FORGOTTEN_AT_ONCE = 5_000
AHEAD = timedelta(minutes=5)  # by which a machine's clock may be fast
WIDTHS = {"5m": 300, "10m": 600, "1h": 3600, "1d": 86400}
LONGEST_OF_READINGS = timedelta(days=31)
log = structlog.get_logger()


class Taken(NamedTuple):
    """What came of a batch. `repeated` were known already; `too_old` are older than readings are kept."""

    received: int
    stored: int
    repeated: int
    too_old: int


def read_batch(body: bytes) -> list[MachineReading]:
    """Reads a batch. Raises BadInput, which names up to ten bad readings by their place."""
    try:
        found = _decode_all(body)
    except msgspec.ValidationError:
        return _read_one_by_one(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"This is not JSON: {error}.") from error
    _check_length(len(found.readings))
    return found.readings


class _Batch(msgspec.Struct, forbid_unknown_fields=True):
    readings: list[MachineReading]


class _RawBatch(msgspec.Struct, forbid_unknown_fields=True):
    readings: list[msgspec.Raw]


BATCH_SCHEMA = {
    "type": "object",
    "example": {"readings": [{"miner_id": 12, "at": "2026-01-07T09:30:00Z", "hashrate_th": 198.4, "power_w": 3512}]},
    "required": ["readings"],
    "additionalProperties": False,
    "properties": {
        "readings": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_READINGS,
            "items": {
                "type": "object",
                "required": ["miner_id", "at", "hashrate_th"],
                "additionalProperties": False,
                "properties": {
                    "miner_id": {"type": "integer", "minimum": 1, "description": "the machines"},
                    "at": {"type": "string", "format": "date-time", "description": "when it was measured"},
                    "hashrate_th": {"type": "number", "minimum": 0, "description": "TH/s of all of them"},
                    "power_w": {
                        "anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}],
                        "description": "watts of all of them",
                    },
                    "temperature_c": {
                        "anyOf": [{"type": "number", "minimum": -273.15}, {"type": "null"}],
                        "description": "degrees Celsius",
                    },
                },
            },
        }
    },
}
_decode_all = msgspec.json.Decoder(_Batch).decode
_decode_raw = msgspec.json.Decoder(_RawBatch).decode
_decode_one = msgspec.json.Decoder(MachineReading).decode


def _read_one_by_one(body: bytes) -> list[MachineReading]:
    try:
        raw = _decode_raw(body).readings
    except msgspec.MsgspecError as error:
        raise BadInput(f'Send an object such as {{"readings": [...]}}. {error}.') from error
    _check_length(len(raw))
    good, wrong = [], {}
    for place, one in enumerate(raw):
        try:
            good.append(_decode_one(one))
        except msgspec.MsgspecError as error:
            wrong[place] = str(error)
    _refuse(wrong)
    return good


def _check_length(count: int) -> None:
    if not 1 <= count <= MOST_READINGS:
        raise BadInput(f"A batch has 1 to {MOST_READINGS:,} readings, this one has {count:,}.")


def _refuse(wrong: dict[int, str]) -> None:
    """Raises BadInput if something is wrong: nothing of a batch with a bad reading is stored."""
    if wrong:
        named = [{"field": f"readings[{place}]", "message": why} for place, why in list(wrong.items())[:MOST_NAMED]]
        more = f" {len(wrong) - MOST_NAMED} more are wrong." if len(wrong) > MOST_NAMED else ""
        said = " ".join(f"{one['field']}: {one['message']}" for one in named)
        raise BadInput(f"{said}{more} Nothing was stored.", errors=named)


def take(conn: Connection, reader: Reader, batch: list[MachineReading], kept_for: timedelta, now: datetime) -> Taken:
    """Stores readings of the reader's machines. The same ones again, and late ones, do no harm."""
    wanted = {one.miner_id for one in batch}
    mine = telemetry.owned(conn, reader, wanted)
    if wanted != mine or max((one.at for one in batch), default=now) > now + AHEAD:
        _refuse({place: why for place, one in enumerate(batch) if (why := _problem(one, mine, now))})
    # A reading that was deleted would count again, so none may come that is as old.
    first = now - kept_for + timedelta(hours=1)
    readings = [one for one in batch if one.at >= first]
    stored = telemetry.save(conn, reader, readings, now)
    return Taken(len(batch), stored, len(readings) - stored, len(batch) - len(readings))


def _problem(one: MachineReading, mine: set[int], now: datetime) -> str | None:
    if one.miner_id not in mine:
        return f"You have no machine {one.miner_id}."
    if one.at > now + AHEAD:
        return f"{one.at.isoformat()} is in the future."
    return None


def series(
    conn: Connection, reader: Reader, miner_id: int, since: datetime, until: datetime, width: str
) -> list[Bucket]:
    """Returns the readings of a machine in buckets of this width."""
    if not telemetry.is_owned(conn, reader, miner_id):
        raise NotFound(f"You have no machine {miner_id}.")
    seconds = WIDTHS[width]
    if until <= since:
        raise BadInput("`until` has to be after `since`.")
    if seconds < WIDTHS["1h"] and until - since > LONGEST_OF_READINGS:
        raise BadInput(f"Ask for at most {LONGEST_OF_READINGS.days} days in buckets of {width}, or for wider buckets.")
    if (until - since).total_seconds() / seconds > MOST_BUCKETS:
        raise BadInput(f"That is more than {MOST_BUCKETS:,} buckets. Ask for less time, or for wider buckets.")
    return telemetry.buckets(conn, reader, miner_id, since, until, seconds, MOST_BUCKETS)


class Looked(NamedTuple):
    """What a look of the watch came to. `skipped` says why it could not judge."""

    machines: int
    offline: int
    recovered: int
    skipped: str = ""


def look(conn: Connection, now: datetime) -> Looked:
    """Looks after all machines that send readings, and publishes which went offline or recovered."""
    before = telemetry.take_look(conn)
    if before and timedelta(0) <= now - before.looked_at < watch.SOON:
        return Looked(0, 0, 0, "Somebody looked just now.")
    paused = watch.is_pause(before.looked_at if before else None, now)
    since = before.watching_since if before and not paused else now
    telemetry.save_look(conn, WatchLook(now, since))
    machines = telemetry.watched(conn)
    if paused:
        why = f"Nobody looked since {before.looked_at.isoformat()}." if before else "This is the first look."
        if before and machines:
            log.warning("machines.not_watched", why=why)
        return Looked(len(machines), 0, 0, why)
    events = [event for one in machines if (event := _judge(conn, one, since, now))]
    outbox.append(conn, events, now)
    offline = sum(event.kind == MINER_OFFLINE.name for event in events)
    return Looked(len(machines), offline, len(events) - offline)


def _judge(conn: Connection, one: WatchedMachine, watching_since: datetime, now: datetime) -> Event | None:
    """Stores what is thought of a machine. Returns the event if that has changed."""
    expected = float(one.actual_hashrate_th) * one.quantity
    before = Judgement(one.state, one.doubts)  # type: ignore[arg-type]
    saw = watch.seen(Heard(one.received_at, one.hashrate_th, expected), before.state, watching_since, now)
    after = watch.judged(before, saw)
    if after == before:
        return None
    changed = after.state != before.state
    telemetry.judge(conn, one.miner_id, after.state, now if changed else one.since, after.doubts)
    if not changed or "ok" not in (before.state, after.state):
        return None
    trouble = MinerTrouble.of(one, state=after.state, expected_th=expected, last_heard_at=one.received_at)
    kind = MINER_RECOVERED if after.state == "ok" else MINER_OFFLINE
    owner = Reader(one.tenant_id, one.user_id, "", "member")
    return kind(trouble, once=f"{one.miner_id}:{now.isoformat()}", reader=owner)


def forget_old(conn: Connection, readings_for: timedelta, hours_for: timedelta, now: datetime) -> int:
    """Deletes what is old, and makes the partitions of the months to come."""
    telemetry.make_months(conn, now, now + timedelta(days=62))
    hours_for = max(hours_for, readings_for + timedelta(days=1))  # hours stay longer than their readings
    return telemetry.forget_before(conn, now - readings_for, now - hours_for)


def forget_gone(conn: Connection) -> int | None:
    """Deletes some of what is left of a machine that is gone. Returns how many rows; None: nothing is left of any."""
    return telemetry.forget_gone(conn, FORGOTTEN_AT_ONCE)


class TakenJson(TypedDict):
    """What came of a batch of readings."""

    received: Annotated[int, Example(1000)]
    stored: Annotated[int, Example(990, "how many were new")]
    repeated: Annotated[int, Example(8, "how many were known already")]
    too_old: Annotated[int, Example(2, "how many are older than readings are kept, and were left out")]


class BucketJson(TypedDict):
    """The readings of a stretch of time."""

    start: Annotated[Time, Example("2026-01-07T09:00:00Z")]
    readings: Annotated[int, Example(6)]
    hashrate_min: Annotated[float, Example(196.2, "TH/s")]
    hashrate_avg: Annotated[float, Example(199.1)]
    hashrate_max: Annotated[float, Example(201.7)]
    power_min: Annotated[float | None, Example(3480.0, "watts; null: not measured")]
    power_avg: Annotated[float | None, Example(3501.5)]
    power_max: Annotated[float | None, Example(3533.0)]
    temperature_min: Annotated[float | None, Example(61.0, "degrees Celsius; null: not measured")]
    temperature_avg: Annotated[float | None, Example(63.5)]
    temperature_max: Annotated[float | None, Example(66.0)]


class SeriesJson(TypedDict):
    """The readings of a machine over time, in buckets."""

    miner_id: Annotated[int, Example(12)]
    bucket: Annotated[str, Example("1h")]
    buckets: list[BucketJson]
