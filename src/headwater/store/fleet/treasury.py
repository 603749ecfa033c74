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


class TradeCorrection(NamedTuple):
    """A trade that was called off, and the one that counts instead. None: there was no such trade."""

    id: int
    trade_id: int
    replaced_by: int | None
    reason: str
    idempotency_key: str
    created_at: datetime


_OWN = "tenant_id = ? AND user_id = ?"
_SELECT = f"SELECT {columns(StoredTrade)} FROM treasury_trades WHERE {_OWN}"
COUNTS = """NOT EXISTS (SELECT 1 FROM trade_corrections c
        WHERE c.tenant_id = treasury_trades.tenant_id AND c.trade_id = treasury_trades.id)"""
_all = portable(f"{_SELECT} AND {COUNTS} ORDER BY traded_at, id", row=StoredTrade)
_CORRECTION = f"SELECT {columns(TradeCorrection)} FROM trade_corrections WHERE {_OWN}"
_corrections = portable(f"{_CORRECTION} AND id < ? ORDER BY id DESC LIMIT ?", row=TradeCorrection)
_correction_of = portable(f"{_CORRECTION} AND trade_id = ?", row=TradeCorrection)
_correction_by_key = portable(f"{_CORRECTION} AND idempotency_key = ?", row=TradeCorrection)
_correct = portable(
    insert_into("trade_corrections", ("tenant_id", "user_id", *TradeCorrection._fields[1:])) + " RETURNING id"
)
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
            OVER (ORDER BY traded_at, id) AS balance FROM treasury_trades WHERE {_OWN} AND {COUNTS}) AS held
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
    found = one(conn, reader, trade_id)
    assert found is not None
    return found


def one(conn: Connection, reader: Reader, trade_id: int) -> StoredTrade | None:
    """Returns a trade, whether it counts or was called off."""
    return _one.first(conn, reader.tenant_id, reader.user_id, trade_id)


def call_off(
    conn: Connection,
    reader: Reader,
    trade_id: int,
    replaced_by: int | None,
    reason: str,
    idempotency_key: str,
    now: datetime,
) -> TradeCorrection:
    """Notes that a trade does not count any more, and which one does instead."""
    done = TradeCorrection(0, trade_id, replaced_by, reason, idempotency_key, now)
    facts = {name: value for name, value in done._asdict().items() if name != "id"}
    return done._replace(id=_correct.value(conn, tenant_id=reader.tenant_id, user_id=reader.user_id, **facts))


def correction_of(conn: Connection, reader: Reader, trade_id: int) -> TradeCorrection | None:
    return _correction_of.first(conn, reader.tenant_id, reader.user_id, trade_id)


def correction_by_key(conn: Connection, reader: Reader, idempotency_key: str) -> TradeCorrection | None:
    return _correction_by_key.first(conn, reader.tenant_id, reader.user_id, idempotency_key)


def corrections(conn: Connection, reader: Reader, *, before: int | None, limit: int) -> list[TradeCorrection]:
    """Returns what was corrected, the newest first."""
    return _corrections.all(conn, reader.tenant_id, reader.user_id, 2**63 - 1 if before is None else before, limit)


def shortage(conn: Connection, reader: Reader) -> Shortage | None:
    """Returns when more is sold than is there. None: never."""
    return _shortage.first(conn, reader.tenant_id, reader.user_id)


def by_key(conn: Connection, reader: Reader, idempotency_key: str) -> StoredTrade | None:
    return _by_key.first(conn, reader.tenant_id, reader.user_id, idempotency_key)


def every(conn: Connection, reader: Reader) -> list[StoredTrade]:
    """Returns all trades of a reader that count, oldest first; of one moment, in the order of their entering."""
    return _all.all(conn, reader.tenant_id, reader.user_id)
