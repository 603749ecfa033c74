"""Trades of coins: entering them, once each, and what each of them made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from typing_extensions import TypedDict

from headwater.app.fleet.amounts import Btc, Usd, Words, plain
from headwater.app.shapes import Example, Time
from headwater.errors import BadInput, KeyReused, NotEnoughCoins
from headwater.events.catalogue import TRADED, TradeEvent
from headwater.fleet.inventory import Method as Method
from headwater.fleet.inventory import Settled, Trade, settle
from headwater.model import Reader
from headwater.store.fleet import treasury
from headwater.store.fleet.treasury import SATOSHIS, StoredTrade, TradeFacts
from headwater.store.log import outbox
from headwater.store.people import audit

FIRST_BLOCK = datetime(2009, 1, 3, tzinfo=UTC)
LONGEST_KEY = 200


class NewTrade(BaseModel):
    """Coins that came or went."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"side": "buy", "btc": "0.25", "usd": "17350.40", "traded_at": "2026-01-07T09:30:00Z"}
        },
    )

    side: Literal["buy", "mine", "sell"] = Field(description="whether they were bought, mined or sold")
    btc: Btc = Field(description="how many coins, to eight places")
    usd: Usd = Field(
        description="what they cost or brought altogether, fees included; of mined coins, what they were worth then"
    )
    traded_at: AwareDatetime | None = Field(default=None, description="when, with a time zone; null: now")
    note: Words = Field(default="", description="anything you want to remember about it")


class Entered(NamedTuple):
    """Trades as they are stored, and how many of them were not there before."""

    trades: list[StoredTrade]
    added: int


class ListedTrade(NamedTuple):
    """A trade, what it realised, and what was there after it."""

    trade: StoredTrade
    settled: Settled

    @property
    def id(self) -> int:
        return self.trade.id


def trade(conn: Connection, reader: Reader, wanted: NewTrade, idempotency_key: str, now: datetime) -> StoredTrade:
    """Enters a trade. The same key with the same trade returns the one that was entered, and enters no other.

    Raises KeyReused for the same key with another trade, and NotEnoughCoins if more would be sold than there is, now or
    at the time of any later sale.
    """
    return enter(conn, reader, [(wanted, idempotency_key)], now).trades[0]


def enter(conn: Connection, reader: Reader, wanted: Sequence[tuple[NewTrade, str]], now: datetime) -> Entered:
    """Enters trades, each with its key, all or none."""
    treasury.lock(conn, reader)
    trades: list[StoredTrade] = []
    fresh: list[StoredTrade] = []
    for one, idempotency_key in wanted:
        key, traded_at = _checked_key(idempotency_key), _checked_time(one.traded_at or now, now)
        if before := treasury.by_key(conn, reader, key):
            trades.append(_same(before, one))
            continue
        trades.append(treasury.add(conn, reader, _facts(one, traded_at), key, now))
        fresh.append(trades[-1])
    if any(one.side == "sell" for one in fresh) and (short := treasury.shortage(conn, reader)):
        missing = plain(Decimal(-short.satoshis) / SATOSHIS)
        raise NotEnoughCoins(
            f"{missing} BTC would be missing at {short.traded_at:%Y-%m-%d %H:%M} UTC. Nothing was entered."
        )
    outbox.append(conn, [TRADED(_event(one), once=str(one.id), reader=reader) for one in fresh], now)
    if fresh:
        audit.record(conn, reader, "trade.enter", fresh[0].id if len(fresh) == 1 else None, f"{len(fresh)} trades")
    return Entered(trades, len(fresh))


def page(
    conn: Connection, reader: Reader, method: Method, *, before: int | None = None, limit: int
) -> list[ListedTrade]:
    """Returns trades, the newest first, with what each made if lots are taken by this method. `before` is an id."""
    found = every(conn, reader, method)
    place = next(
        (place + 1 for place, one in enumerate(found) if one.id == before), 0 if before is None else len(found)
    )
    return found[place : place + limit]


def every(conn: Connection, reader: Reader, method: Method) -> list[ListedTrade]:
    """Returns all trades, the newest first."""
    stored = treasury.every(conn, reader)
    settled = settle([as_trade(one) for one in stored], method).settled
    return [ListedTrade(one, after) for one, after in zip(stored, settled, strict=True)][::-1]


def as_trade(stored: StoredTrade) -> Trade:
    return Trade(stored.side, stored.btc, stored.usd, stored.traded_at, str(stored.id))  # type: ignore[arg-type]


def _checked_key(given: str) -> str:
    key = given.strip()
    if not key or len(key) > LONGEST_KEY or not key.isprintable():
        raise BadInput(
            f"Idempotency-Key: send a text of 1 to {LONGEST_KEY} characters that is new for each trade, such as a UUID."
            " With the same key the trade is entered once, however often you send it."
        )
    return key


def _checked_time(at: datetime, now: datetime) -> datetime:
    if at > now:
        raise BadInput("traded_at: a trade cannot be in the future.")
    if at < FIRST_BLOCK:
        raise BadInput("traded_at: there were no coins before 2009-01-03.")
    return at


def _facts(wanted: NewTrade, traded_at: datetime) -> TradeFacts:
    return TradeFacts(wanted.side, int(wanted.btc * SATOSHIS), wanted.usd, traded_at.astimezone(UTC), wanted.note)


def _same(before: StoredTrade, wanted: NewTrade) -> StoredTrade:
    # A trade that was sent without a time got that of its entering.
    if _facts(wanted, wanted.traded_at or before.created_at) != before.facts:
        raise KeyReused(f"The key was used for the trade {before.id}, which is another one. Take a new key.")
    return before


def _event(entered: StoredTrade) -> TradeEvent:
    return TradeEvent(
        trade_id=entered.id,
        side=entered.side,
        btc=entered.btc,
        usd=entered.usd,
        traded_at=entered.traded_at,
    )


class TradeJson(TypedDict):
    """Coins that came or went. Decimal numbers are texts, and exact."""

    id: Annotated[int, Example(31)]
    side: Annotated[str, Example("buy", "buy, mine or sell")]
    btc: Annotated[str, Example("0.25", of=lambda one: plain(one.btc))]
    usd: Annotated[str, Example("17350.4", "what they cost or brought, fees included", of=lambda one: plain(one.usd))]
    traded_at: Annotated[Time, Example("2026-01-07T09:30:00Z")]
    note: Annotated[str, Example("")]
    idempotency_key: Annotated[str, Example("5f3a1c2b-4d6e-4f70-9a8b-1c2d3e4f5a6b")]
    created_at: Annotated[Time, Example("2026-01-07T09:30:01Z")]


class SettledTradeJson(TypedDict):
    """A trade, what it made, and what was there after it."""

    trade: TradeJson
    realised_usd: Annotated[
        str | None,
        Example(None, "what a sale brought minus what its coins had cost; null: not a sale", of=lambda one: _made(one)),
    ]
    btc_after: Annotated[str, Example("1.25", "coins there after it", of=lambda one: plain(one.settled.btc))]
    cost_after_usd: Annotated[
        str, Example("72110.9", "what those had cost", of=lambda one: plain(one.settled.cost_usd))
    ]


def _made(one: ListedTrade) -> str | None:
    return plain(one.settled.realised_usd) if one.trade.side == "sell" else None


class TradesJson(TypedDict):
    """Your trades, the newest first."""

    method: Annotated[str, Example("fifo", "which coins a sale takes: fifo, lifo, hifo or average")]
    items: list[SettledTradeJson]
    next_cursor: Annotated[str | None, Example(None)]
