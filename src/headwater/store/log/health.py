"""The state of the log and its consumers in numbers. Counts stop at a cap and use an index, so they stay cheap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.store.log import replication
from headwater.store.log.replication import LogKeeper
from headwater.store.sql import Prepared, moment, moment_or_none, portable

CAP = 10_000
BACKLOG_CAP = 1000  # in each partition: more than enough to call it bad
LOOK_BACK = 5000  # events of the outbox among which those that Kafka has not brought are looked for
_GOOD = "('ok', 'unchanged', 'empty')"


class _EventTime(NamedTuple):
    id: int
    created_at: datetime


_unhandled = Prepared(
    sqlite="""SELECT c.consumer, c.partition,
        (SELECT count(*) FROM (SELECT 1 FROM event_outbox o WHERE o.id > c.id LIMIT ?)),
        (SELECT o.created_at FROM event_outbox o WHERE o.id > c.id ORDER BY o.id LIMIT 1)
        FROM consumer_cursors c""",
    # Comparing and ordering by the whole key makes PostgreSQL use the index of the partition.
    postgresql="""SELECT c.consumer, c.partition,
        (SELECT count(*) FROM (SELECT 1 FROM event_outbox o WHERE o.partition = c.partition
            AND (o.partition, o.xid, o.id) > (c.partition, c.xid, c.id)
            ORDER BY o.partition, o.xid, o.id LIMIT ?) AS unhandled),
        (SELECT o.created_at FROM event_outbox o WHERE o.partition = c.partition
            AND (o.partition, o.xid, o.id) > (c.partition, c.xid, c.id) ORDER BY o.partition, o.xid, o.id LIMIT 1)
        FROM consumer_cursors c""",
)
# Kafka knows how far its consumers are, but not what has not reached it. The inbox knows what had its effect. A scalar
# subquery looks up one id after the other; otherwise PostgreSQL may read all that the consumer ever handled.
_without_effect = portable(
    """SELECT partition, count(*), min(created_at) FROM (
        SELECT o.partition, o.created_at FROM (
            SELECT event_id, kind, partition, created_at FROM event_outbox ORDER BY id DESC LIMIT :look_back) AS o
        WHERE o.kind IN (:kinds)
            AND (SELECT 1 FROM consumer_inbox i WHERE i.consumer = :consumer AND i.event_id = o.event_id) IS NULL
            AND (SELECT 1 FROM event_dlq d WHERE d.consumer = :consumer AND d.event_id = o.event_id) IS NULL
        ) AS waiting GROUP BY partition ORDER BY partition"""
)
_count_all = portable("SELECT count(*) FROM (SELECT 1 FROM event_outbox LIMIT ?) AS newest")
_first = portable("SELECT id, created_at FROM event_outbox ORDER BY id LIMIT 1", row=_EventTime)
_last = portable("SELECT id, created_at FROM event_outbox ORDER BY id DESC LIMIT 1", row=_EventTime)
_count_dead_letters = portable(
    """SELECT consumer, count(*)
    FROM (SELECT consumer FROM event_dlq WHERE state = ? ORDER BY id DESC LIMIT ?) AS newest GROUP BY consumer"""
)
_last_post = portable("SELECT fetched_at FROM posts ORDER BY id DESC LIMIT 1")
_last_visit = portable(
    f"""SELECT started_at FROM (SELECT id, started_at, outcome FROM crawls ORDER BY id DESC LIMIT ?) AS newest
    WHERE outcome IN {_GOOD} ORDER BY id DESC LIMIT 1"""
)
_event_times = portable(
    "SELECT created_at FROM (SELECT id, created_at FROM event_outbox ORDER BY id DESC LIMIT ?) AS newest"
    " WHERE created_at >= ?"
)
_visits = portable(
    """SELECT outcome, count(*) FROM (SELECT outcome, started_at FROM crawls ORDER BY id DESC LIMIT ?) AS newest
    WHERE started_at >= ? GROUP BY outcome"""
)

_COUNTED = "SELECT count(*) FROM (SELECT 1 FROM {} LIMIT ?) AS waiting"
_queues = {
    "webhooks": portable(_COUNTED.format("webhook_deliveries WHERE state = 'waiting'")),
    "images": portable(_COUNTED.format("images WHERE state = 'waiting'")),
    "retries": portable(_COUNTED.format("event_dlq WHERE state IN ('retrying', 'waiting')")),
}


class PartitionBacklog(NamedTuple):
    partition: int
    events: int
    oldest_at: datetime | None


class Backlog(NamedTuple):
    """What a consumer has not reached: how many events, up to the cap, and since when the oldest of them waits.

    `partitions` are those in which something waits.
    """

    consumer: str
    events: int
    oldest_at: datetime | None
    partitions: tuple[PartitionBacklog, ...] = ()


class LogHealth(NamedTuple):
    """`events` is about how many are stored. A time is None if there is nothing to take it from.

    `slot_read` says whether somebody reads the write-ahead log for Kafka at this moment.
    """

    backlogs: list[Backlog]
    events: int
    oldest_event_at: datetime | None
    dead: dict[str, int]
    waiting: dict[str, int]
    last_post_at: datetime | None
    last_visit_at: datetime | None
    slots: list[LogKeeper]
    slot_read: bool = True


def examine(conn: Connection, consumers: Sequence[str], on_kafka: Mapping[str, Set[str]] | None = None) -> LogHealth:
    """Examines the log. `on_kafka` are consumers that follow Kafka instead of the table, with the kinds they take."""
    first, last = _first.first(conn), _last.first(conn)
    slots = replication.keepers(conn) if conn.dialect.name == "postgresql" else []
    return LogHealth(
        backlogs=[
            *(_backlogs(conn, consumers) if consumers else ()),
            *(_backlog_on_kafka(conn, name, kinds) for name, kinds in (on_kafka or {}).items()),
        ],
        events=last.id - first.id + 1 if first and last else 0,
        oldest_event_at=first.created_at if first else None,
        dead=dict(_count_dead_letters.all(conn, "dead", CAP)),
        waiting=dict(_count_dead_letters.all(conn, "waiting", CAP)),
        last_post_at=moment_or_none(_last_post.value(conn)),
        last_visit_at=moment_or_none(_last_visit.value(conn, CAP)),
        slots=slots,
        slot_read=any(slot.ours and slot.active for slot in slots) or not on_kafka,
    )


def events_by_minute(conn: Connection, now: datetime, minutes: int) -> list[int]:
    """Returns how many events there were in each of the last minutes, the newest last, of the last CAP events."""
    since = now - timedelta(minutes=minutes)
    counts = [0] * minutes
    for created_at in _event_times.values(conn, CAP, since):
        place = int((moment(created_at) - since).total_seconds() // 60)
        counts[min(place, minutes - 1)] += 1
    return counts


def visits_by_outcome(conn: Connection, since: datetime) -> dict[str, int]:
    """Returns how many visits had each outcome, of the last CAP visits."""
    return dict(_visits.all(conn, CAP, since))


def _backlogs(conn: Connection, consumers: Sequence[str]) -> list[Backlog]:
    found: dict[str, list[PartitionBacklog]] = {}
    for consumer, partition, events, oldest_at in _unhandled.all(conn, BACKLOG_CAP):
        found.setdefault(consumer, []).append(PartitionBacklog(partition, events, moment_or_none(oldest_at)))
    return [_backlog(conn, name, found.get(name)) for name in consumers]


def _backlog_on_kafka(conn: Connection, name: str, kinds: Set[str]) -> Backlog:
    rows = _without_effect.all(conn, consumer=name, kinds=sorted(kinds), look_back=LOOK_BACK)
    return _backlog(conn, name, [PartitionBacklog(*row)._replace(oldest_at=moment_or_none(row[2])) for row in rows])


def _backlog(conn: Connection, name: str, partitions: list[PartitionBacklog] | None) -> Backlog:
    if partitions is None:  # it has not begun, so everything waits for it
        first = _first.first(conn)
        return Backlog(name, _count_all.value(conn, BACKLOG_CAP), first.created_at if first else None)
    behind = tuple(one for one in partitions if one.events)
    waits = [one.oldest_at for one in behind if one.oldest_at is not None]
    return Backlog(name, sum(one.events for one in behind), min(waits, default=None), behind)


def queue_depths(conn: Connection) -> dict[str, int]:
    """Returns how much waits in each queue of the store, up to the cap."""
    return {name: query.value(conn, CAP) for name, query in _queues.items()}
