"""Access to X: the token for its API, and what is used of the month."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from sqlalchemy import Connection

from headwater.access import x as access
from headwater.access.x import METER, NO_TOKEN, SECRET, XState
from headwater.errors import KeyMissing, SourceFailure
from headwater.sources import x
from headwater.store import sources
from headwater.store.db import Database
from headwater.store.people import accounts
from headwater.store.sources import limits
from headwater.store.sources.limits import MonthlyAllowance


async def stored_token(db: Database, unseal: Callable[[bytes], str]) -> str:
    """Returns the token that a person has given. Raises KeyMissing if there is none, or if it cannot be decrypted."""
    sealed = await db.read(accounts.find_secret, SECRET)
    if sealed is None:
        raise KeyMissing(NO_TOKEN)
    try:
        return unseal(sealed)
    except SourceFailure as error:
        raise KeyMissing(
            "The token for X cannot be read with the present HEADWATER_SECRET_KEY. Give it again: `headwater x token`."
        ) from error


async def state(
    db: Database, token: Callable[[], Awaitable[str]], allowance: MonthlyAllowance, now: datetime
) -> XState:
    """Returns how X can be asked at the moment."""
    problem = ""
    try:
        await token()
    except KeyMissing as error:
        problem = error.detail
    used = await db.read(limits.used_this_month, METER, now)
    followed = len(await db.read(sources.visited_of_kind, x.KIND.name))
    return XState(problem, used, allowance, limits.month_ends(now), followed)


def check_token(typed: str) -> str:
    """Returns the token that a person typed, without what surrounds it. Raises BadInput if it cannot be one."""
    return access.token_from(typed)


def store_token(conn: Connection, sealed: bytes, now: datetime) -> int:
    """Stores an encrypted token. Returns how many sources waited for it and are due now."""
    return access.keep_token(conn, sealed, now)


def forget_token(conn: Connection) -> bool:
    """Deletes the stored token. Returns whether there was one."""
    return accounts.delete_secret(conn, SECRET)
