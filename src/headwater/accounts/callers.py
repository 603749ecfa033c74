"""Whose token this is, remembered, so that most requests need no query.

What is remembered must end when a token is revoked, a role changes or a person is removed. Each of these raises a
number in the store, in the same transaction (`note_change`). A process compares that number with the one it knows: on
the next request if the change was made in this process, otherwise after at most `FRESH_SECONDS`. If the number has
grown, everything is forgotten.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import structlog
from sqlalchemy import Connection

from headwater.accounts.tokens import fingerprint
from headwater.errors import StoreUnavailable
from headwater.store.db import Database
from headwater.store.people import accounts, tokens
from headwater.store.people.accounts import Person
from headwater.store.people.tokens import Token

FRESH_SECONDS = 2.0
MOST_REMEMBERED = 10_000
USE_NOTED_EVERY = timedelta(minutes=10)

log = structlog.get_logger(__name__)


Found = TypeVar("Found", Token, Person)


def _only_person(conn: Connection, issuer: str, subject: str, _now: datetime) -> Person | None:
    found = accounts.by_identity(conn, issuer, subject)
    return found[0] if len(found) == 1 else None


class Callers:
    """Finds tokens by their secrets, API tokens by their ids, and people by who they are elsewhere."""

    def __init__(self, db: Database, now: Callable[[], datetime]) -> None:
        self._db, self._now = db, now
        self._known: dict[tuple[str, bytes | int | str], Any] = {}
        self._number = -1
        self._compared_at = float("-inf")
        self._forgotten = 0
        self._comparing = asyncio.Lock()

    def forget(self) -> None:
        """Compares with the store on the next request. May be called from any thread."""
        self._forgotten += 1
        self._compared_at = float("-inf")

    async def bearer(self, kind: str, secret: str) -> Token | None:
        """Returns the token of this kind that has this secret, unless it has expired."""
        token_hash = fingerprint(secret)
        return await self._find((kind, token_hash), tokens.bearer, kind, token_hash)

    async def client(self, token_id: int) -> Token | None:
        """Returns the API token with this id, unless it has expired."""
        return await self._find(("client", token_id), tokens.client, token_id)

    async def identity(self, issuer: str, subject: str) -> Person | None:
        """Returns who somebody of another issuer is here, unless they are several."""
        return await self._find(("identity", f"{issuer} {subject}"), _only_person, issuer, subject)

    async def _find(
        self, key: tuple[str, bytes | int | str], load: Callable[..., Found | None], *given: object
    ) -> Found | None:
        await self._compare()
        now = self._now()
        known: Found | None = self._known.get(key)
        ends_at = getattr(known, "expires_at", None)
        if known is None or (ends_at is not None and ends_at <= now):
            number = self._number
            known = await self._db.read(load, *given, now)
            if known is None:
                return None
            if number == self._number:  # otherwise it may have been revoked while it was read
                if len(self._known) >= MOST_REMEMBERED:
                    self._known.clear()
                self._known[key] = known
        if isinstance(known, Token):
            await self._note_use(key, known, now)
        return known

    async def _compare(self) -> None:
        if self._is_fresh():
            return
        async with self._comparing:  # nobody goes on with what they know while somebody finds out that it is wrong
            if self._is_fresh():
                return
            started, forgotten = time.monotonic(), self._forgotten
            number = await self._db.read(tokens.changes)
            if number != self._number:
                self._known.clear()
                self._number = number
            if forgotten == self._forgotten:
                self._compared_at = started

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._compared_at < FRESH_SECONDS

    async def _note_use(self, key: tuple[str, bytes | int | str], token: Token, now: datetime) -> None:
        if token.last_used_at is not None and now - token.last_used_at < USE_NOTED_EVERY:
            return
        if key in self._known:  # at once, so that neither requests beside this one nor all after a failure write too
            self._known[key] = token._replace(last_used_at=now)
        try:
            await self._db.write(tokens.note_use, token.id, now)
        except StoreUnavailable as error:  # whoever may read may read, even if nothing can be written
            log.warning("use of a token not noted", detail=error.detail)
