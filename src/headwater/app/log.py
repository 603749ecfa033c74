"""The event log: dead letters are read, replayed and skipped; a part of the log is delivered again; old events go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.errors import AlreadyThere, BadInput, Forbidden, NotFound
from headwater.events import replay
from headwater.events.delivery import Consumer
from headwater.events.replay import Replayed
from headwater.model import Reader
from headwater.store.db import Database
from headwater.store.log import dead_letters, inbox, outbox
from headwater.store.log.dead_letters import DeadLetter
from headwater.store.log.outbox import Window
from headwater.store.people import deliveries

OPERATORS = frozenset({"owner"})


class ReplayCounts(NamedTuple):
    replayed: int
    failed: int


def is_operator(reader: Reader) -> bool:
    """Dead letters hold events of everybody, so only those who run the instance see them."""
    return reader.role in OPERATORS


def check_operator(reader: Reader) -> None:
    if not is_operator(reader):
        raise Forbidden("Dead letters are for those who run this Headwater.")


def list_dead_letters(
    conn: Connection, state: str = "dead", *, before: int | None = None, limit: int
) -> list[DeadLetter]:
    """Returns dead letters in this state, the newest first."""
    return dead_letters.page(conn, state, before=before, limit=limit)


def dead_letter(conn: Connection, letter_id: int) -> DeadLetter:
    found = dead_letters.find(conn, letter_id)
    if found is None:
        raise NotFound(f"There is no letter {letter_id}.")
    return found


def replay_dead_letter(conn: Connection, consumers: Sequence[Consumer], letter_id: int, now: datetime) -> DeadLetter:
    """Gives the event its effect, once. If it fails again, the letter stays dead and its error says why."""
    replay.replay_dead_letter(conn, consumers, letter_id, now)
    return dead_letter(conn, letter_id)


def skip_dead_letter(conn: Connection, consumers: Sequence[Consumer], letter_id: int, now: datetime) -> DeadLetter:
    """Settles a dead letter without an effect. What waits behind it goes on."""
    replay.skip_dead_letter(conn, consumers, letter_id, now)
    return dead_letter(conn, letter_id)


def chosen_dead_letters(
    conn: Connection, consumers: Sequence[Consumer], consumer: str | None = None, kind: str | None = None
) -> list[int]:
    """Returns the ids of all dead letters, or of those of a consumer or a kind, the oldest first."""
    if consumer is not None:
        replay.consumer_named(consumer, consumers)
    return replay.dead_letter_ids(conn, consumer, kind)


async def replay_dead_letters(
    db: Database,
    consumers: Sequence[Consumer],
    now: Callable[[], datetime],
    consumer: str | None = None,
    kind: str | None = None,
) -> ReplayCounts:
    """Replays all dead letters, or those of a consumer or a kind, each in a transaction of its own."""
    replayed = failed = 0
    for letter_id in await db.read(chosen_dead_letters, consumers, consumer, kind):
        try:
            error = await db.write(replay.replay_dead_letter, consumers, letter_id, now())
        except AlreadyThere:  # somebody else is replaying it
            continue
        replayed += error is None
        failed += error is not None
    return ReplayCounts(replayed, failed)


def try_dead_letter(conn: Connection, consumers: Sequence[Consumer], letter_id: int, now: datetime) -> str | None:
    """Replays a dead letter. Returns what went wrong, or None."""
    return replay.replay_dead_letter(conn, consumers, letter_id, now)


def replay_window(
    db: Database,
    consumers: Sequence[Consumer],
    window: Window,
    now: Callable[[], datetime],
    *,
    consumer: str | None = None,
    dry_run: bool = False,
    has_cursors: bool = True,
) -> list[Replayed]:
    """Delivers events of the window again to the consumers, or to one, in which they had no effect yet.

    A window without kinds means every kind that these consumers take.
    """
    chosen = [replay.consumer_named(consumer, consumers)] if consumer else list(consumers)
    known = frozenset[str]().union(*(one.kinds for one in chosen))
    if unknown := window.kinds - known:
        raise BadInput(
            f"None of these consumers takes {', '.join(sorted(unknown))}. They take: {', '.join(sorted(known))}."
        )
    window = window._replace(kinds=window.kinds or known)
    return [replay.replay_window(db, one, window, now, dry_run=dry_run, has_cursors=has_cursors) for one in chosen]


def rebuild_consumer(db: Database, consumers: Sequence[Consumer], name: str, now: Callable[[], datetime]) -> int:
    """Empties a consumer and lets it read the whole log again. Returns how many events it read."""
    consumer = replay.consumer_named(name, consumers)
    db.write_now(replay.rebuild, consumer, now())
    return sum(replay.catch_up(db, consumer, now))


async def forget_old(db: Database, now: datetime, kept_for: timedelta, *, has_cursors: bool) -> int:
    """Deletes events, and the record of their effects, that are older than the replay window and that nobody needs."""
    before = now - kept_for
    forgotten = 0
    while batch := await db.write(outbox.forget_before, before, followed=has_cursors):
        forgotten += batch
    await db.write(inbox.forget_before, before - timedelta(days=1))
    await db.write(dead_letters.forget_before, before)
    await db.write(deliveries.forget_before, before, now)
    return forgotten
