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
from headwater.errors import AlreadyCorrected, BadInput, KeyReused, NotEnoughCoins, NotFound
from headwater.events.catalogue import TRADE_CORRECTED, TRADED, CorrectionFacts, TradeEvent
from headwater.fleet.inventory import Method as Method
from headwater.fleet.inventory import Settled, Trade, settle
from headwater.model import Reader
from headwater.store.fleet import treasury
from headwater.store.fleet.treasury import SATOSHIS, StoredTrade, TradeCorrection, TradeFacts
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


class WantedCorrection(BaseModel):
    """What should have been entered instead of a trade."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "trade": {"side": "buy", "btc": "0.025", "usd": "1735.04", "traded_at": "2026-01-07T09:30:00Z"},
                "reason": "a place too many",
            }
        },
    )

    trade: NewTrade | None = Field(
        default=None,
        description="the trade as it was; without `traded_at`, at the same time as before; null: there was none",
    )
    reason: Words = Field(default="", description="why, for whoever reads the record")


class Corrected(NamedTuple):
    """A trade that was called off, the correction, and the trade that counts instead, if there is one."""

    trade: StoredTrade
    correction: TradeCorrection
    instead: StoredTrade | None

    @property
    def id(self) -> int:
        return self.correction.id


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
    if any(one.side == "sell" for one in fresh):
        _refuse_shortage(conn, reader)
    outbox.append(
        conn, [TRADED(TradeEvent.of(one, trade_id=one.id), once=str(one.id), reader=reader) for one in fresh], now
    )
    if fresh:
        audit.record(conn, reader, "trade.enter", fresh[0].id if len(fresh) == 1 else None, f"{len(fresh)} trades")
    return Entered(trades, len(fresh))


def _refuse_shortage(conn: Connection, reader: Reader) -> None:
    if short := treasury.shortage(conn, reader):
        missing = plain(Decimal(-short.satoshis) / SATOSHIS)
        raise NotEnoughCoins(
            f"{missing} BTC would be missing at {short.traded_at:%Y-%m-%d %H:%M} UTC. Nothing was entered."
        )


def correct(
    conn: Connection, reader: Reader, trade_id: int, wanted: WantedCorrection, idempotency_key: str, now: datetime
) -> Corrected:
    """Calls a trade off, and enters what should have been entered instead, if anything.

    Nothing is overwritten: the trade stays on record with what replaced it and why. The same key with the same
    correction returns what came of it. Raises AlreadyCorrected for a trade that was called off before, and
    NotEnoughCoins if more would be sold than there is at any time.
    """
    treasury.lock(conn, reader)
    key = _checked_key(idempotency_key)
    before = treasury.one(conn, reader, trade_id)
    if before is None:
        raise NotFound(f"You have no trade {trade_id}.")
    if done := treasury.correction_by_key(conn, reader, key):
        return _same_correction(conn, reader, before, wanted, done)
    if treasury.by_key(conn, reader, key):
        raise KeyReused("The key was used for a trade. Take a new key.")
    if done := treasury.correction_of(conn, reader, trade_id):
        instead = f" by trade {done.replaced_by}: correct that one" if done.replaced_by else ""
        raise AlreadyCorrected(f"Trade {trade_id} was called off before{instead}.")
    facts = _facts_instead(before, wanted, now)
    instead_of = treasury.add(conn, reader, facts, key, now) if facts else None
    replaced_by = instead_of.id if instead_of else None
    correction = treasury.call_off(conn, reader, trade_id, replaced_by, wanted.reason, key, now)
    _refuse_shortage(conn, reader)
    published = CorrectionFacts(trade_id=trade_id, replaced_by=replaced_by, reason=wanted.reason)
    outbox.append(conn, [TRADE_CORRECTED(published, once=str(correction.id), reader=reader)], now)
    audit.record(conn, reader, "trade.correct" if instead_of else "trade.cancel", trade_id, wanted.reason)
    return Corrected(before, correction, instead_of)


def _facts_instead(before: StoredTrade, wanted: WantedCorrection, now: datetime) -> TradeFacts | None:
    if wanted.trade is None:
        return None
    facts = _facts(wanted.trade, _checked_time(wanted.trade.traded_at or before.traded_at, now))
    if facts == before.facts:
        raise BadInput("This is the trade as it was entered: there is nothing to correct.")
    return facts


def _same_correction(
    conn: Connection, reader: Reader, before: StoredTrade, wanted: WantedCorrection, done: TradeCorrection
) -> Corrected:
    instead = treasury.one(conn, reader, done.replaced_by) if done.replaced_by else None
    is_same = (
        done.trade_id == before.id
        and done.reason == wanted.reason
        and (instead.facts if instead else None) == _facts_instead(before, wanted, done.created_at)
    )
    if not is_same:
        raise KeyReused(f"The key was used for the correction of trade {done.trade_id}. Take a new key.")
    return Corrected(before, done, instead)


def corrections(conn: Connection, reader: Reader, *, before: int | None = None, limit: int) -> list[Corrected]:
    """Returns what was corrected, the newest first."""
    found = treasury.corrections(conn, reader, before=before, limit=limit)
    return [
        Corrected(trade, done, treasury.one(conn, reader, done.replaced_by) if done.replaced_by else None)
        for done in found
        if (trade := treasury.one(conn, reader, done.trade_id))
    ]


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


class CorrectionJson(TypedDict):
    """A trade that does not count any more, and the one that counts instead."""

    id: Annotated[int, Example(4, of="correction.id")]
    trade: TradeJson
    instead: Annotated[TradeJson | None, Example(None, "null: there was no such trade")]
    reason: Annotated[str, Example("entered twice", of="correction.reason")]
    created_at: Annotated[Time, Example("2026-01-08T10:00:00Z", of="correction.created_at")]


def _made(one: ListedTrade) -> str | None:
    return plain(one.settled.realised_usd) if one.trade.side == "sell" else None


class TradesJson(TypedDict):
    """Your trades, the newest first."""

    method: Annotated[str, Example("fifo", "which coins a sale takes: fifo, lifo, hifo or average")]
    items: list[SettledTradeJson]
    next_cursor: Annotated[str | None, Example(None)]
