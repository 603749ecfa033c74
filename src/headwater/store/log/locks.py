"""Locks in the store. They hold across all processes on one database and need no other server.

The row of a lock is never deleted: its token grows by one each time the lock is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection

from headwater.store.db import Database
from headwater.store.sql import portable

_take = portable(
    """INSERT INTO locks (name, owner, token, until) VALUES (?, ?, 1, ?)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = locks.token + 1, until = excluded.until
        WHERE locks.owner IS NULL OR locks.until <= ? RETURNING token"""
)
_is_held = portable("SELECT 1 FROM locks WHERE name = ? AND owner = ? AND until > ?")
_drop = portable("UPDATE locks SET owner = NULL, until = NULL WHERE name = ? AND owner = ?")
_admit = portable(
    """INSERT INTO locks (name, token) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE locks.token <= excluded.token"""
)


class StoreLocks:
    """The `Locks` of one database. The clocks of its processes must differ by less than a lease."""

    def __init__(self, db: Database, now: Callable[[], datetime]) -> None:
        self._db, self._now = db, now

    async def acquire(self, name: str, owner: str, lease: timedelta) -> int | None:
        now = self._now()
        return await self._db.write_grouped(take, name, owner, now + lease, now)

    async def is_held(self, name: str, owner: str) -> bool:
        return await self._db.read(is_held, name, owner, self._now())

    async def release(self, name: str, owner: str) -> bool:
        return await self._db.write_grouped(drop, name, owner)

    async def acquire_free(self, names: Sequence[str], owner: str, lease: timedelta) -> dict[str, int]:
        now = self._now()
        return await self._db.write_grouped(take_free, names, owner, now + lease, now)

    async def release_all(self, names: Sequence[str], owner: str) -> None:
        await self._db.write_grouped(drop_all, names, owner)

    async def close(self) -> None:
        """Nothing is open: the database is its owner's."""


def take(conn: Connection, name: str, owner: str, until: datetime, now: datetime) -> int | None:
    token: int | None = _take.value(conn, name, owner, until, now)
    return token


def take_free(conn: Connection, names: Sequence[str], owner: str, until: datetime, now: datetime) -> dict[str, int]:
    """Takes those of these locks that are free. In one order, so that two who do this cannot wait for each other."""
    tokens = {name: take(conn, name, owner, until, now) for name in sorted(names)}
    return {name: token for name, token in tokens.items() if token is not None}


def drop_all(conn: Connection, names: Sequence[str], owner: str) -> None:
    _drop.many(conn, [(name, owner) for name in sorted(names)])


def is_held(conn: Connection, name: str, owner: str, now: datetime) -> bool:
    return bool(_is_held.all(conn, name, owner, now))


def drop(conn: Connection, name: str, owner: str) -> bool:
    return _drop.once(conn, name, owner) > 0


def admit(conn: Connection, name: str, token: int) -> bool:
    """Returns whether the holder with this token may write: False once a holder with a newer token has written.

    Call it in the transaction of the write: until that ends, no newer holder is admitted. It also works for locks that
    are not in the store.
    """
    return _admit.once(conn, name, token) > 0
