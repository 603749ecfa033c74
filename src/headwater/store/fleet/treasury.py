"""Trades: coins that came or went. They are added and never changed."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import columns, insert_into, portable

SATOSHIS = 100_000_000


class TradeFacts(NamedTuple):
    """What a user says about a trade. `usd` is what the coins cost or brought, fees included."""

    side: str
    satoshis: int
    usd: Decimal
    traded_at: datetime
    note: str


class StoredTrade(NamedTuple):
    id: int
    side: str
    satoshis: int
    usd: Decimal
    traded_at: datetime
    note: str
    idempotency_key: str
    created_at: datetime

    @property
    def btc(self) -> Decimal:
        return Decimal(self.satoshis) / SATOSHIS

    @property
    def facts(self) -> TradeFacts:
        return TradeFacts(self.side, self.satoshis, self.usd, self.traded_at, self.note)


class Shortage(NamedTuple):
    """The first moment at which more is sold than is there. `satoshis` is what would be there: less than none."""

    traded_at: datetime
    satoshis: int


_OWN = "tenant_id = ? AND user_id = ?"
_SELECT = f"SELECT {columns(StoredTrade)} FROM treasury_trades WHERE {_OWN}"
_all = portable(f"{_SELECT} ORDER BY traded_at, id", row=StoredTrade)
_by_key = portable(f"{_SELECT} AND idempotency_key = ?", row=StoredTrade)
_one = portable(f"{_SELECT} AND id = ?", row=StoredTrade)
_insert = portable(
    insert_into("treasury_trades", ("tenant_id", "user_id", *TradeFacts._fields, "idempotency_key", "created_at"))
    + " RETURNING id"
)
_lock = portable(
    """INSERT INTO user_portfolios (tenant_id, user_id) VALUES (?, ?)
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET wanted = user_portfolios.wanted"""
)
_shortage = portable(
    f"""SELECT traded_at, balance FROM (
        SELECT id, traded_at, SUM(CASE side WHEN 'sell' THEN -satoshis ELSE satoshis END)
            OVER (ORDER BY traded_at, id) AS balance FROM treasury_trades WHERE {_OWN}) AS held
    WHERE balance < 0 ORDER BY traded_at, id LIMIT 1""",
    row=Shortage,
)


def lock(conn: Connection, reader: Reader) -> None:
    """Lets one transaction at a time trade for a reader, until it ends."""
    _lock.once(conn, reader.tenant_id, reader.user_id)


def add(conn: Connection, reader: Reader, facts: TradeFacts, idempotency_key: str, now: datetime) -> StoredTrade:
    """Adds a trade."""
    trade_id = _insert.value(
        conn,
        tenant_id=reader.tenant_id,
        user_id=reader.user_id,
        **facts._asdict(),
        idempotency_key=idempotency_key,
        created_at=now,
    )
    found = _one.first(conn, reader.tenant_id, reader.user_id, trade_id)
    assert found is not None
    return found


def shortage(conn: Connection, reader: Reader) -> Shortage | None:
    """Returns when more is sold than is there. None: never."""
    return _shortage.first(conn, reader.tenant_id, reader.user_id)


def by_key(conn: Connection, reader: Reader, idempotency_key: str) -> StoredTrade | None:
    return _by_key.first(conn, reader.tenant_id, reader.user_id, idempotency_key)


def every(conn: Connection, reader: Reader) -> list[StoredTrade]:
    """Returns all trades of a reader, oldest first; of one moment, in the order in which they were entered."""
    return _all.all(conn, reader.tenant_id, reader.user_id)
