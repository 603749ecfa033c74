"""`/api/miners`, `/api/miner-models`, `/api/treasury` and `/analytics/main`: machines, coins and their figures."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query

from headwater.app.fleet import miners, portfolio, treasury
from headwater.app.fleet.miners import MinerChange, MinerJson, MinerModelJson, MinerModelsJson, NewMiner
from headwater.app.fleet.portfolio import AnalyticsJson
from headwater.app.fleet.treasury import (
    CorrectionJson,
    Method,
    NewTrade,
    SettledTradeJson,
    TradeJson,
    TradesJson,
    WantedCorrection,
)
from headwater.app.shapes import PageJson, shaped
from headwater.http.auth import CurrentReader, needs
from headwater.http.problems import refusals
from headwater.http.routes import Id, WantedPage, api_router
from headwater.http.state import WithParts

router = api_router("fleet", prefix="")

_KEY: dict[str, Any] = {"minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"}
IdempotencyKey = Annotated[
    str,
    Header(alias="Idempotency-Key", description="a text that is new for each trade; required", json_schema_extra=_KEY),
]


@router.get("/api/miner-models", summary="List the models of machines", dependencies=[needs("miners:read")])
async def list_models(parts: WithParts) -> MinerModelsJson:
    """The catalogue that everybody shares, by maker and name."""
    return {"items": [shaped(MinerModelJson, one) for one in await parts.db.read(miners.models)]}


@router.get("/api/miners", summary="List your machines", dependencies=[needs("miners:read")])
async def list_miners(parts: WithParts, reader: CurrentReader, page: WantedPage) -> PageJson[MinerJson]:
    """In the order they were added."""
    return page.of(MinerJson, await parts.db.read(miners.page, reader, after=page.last_id, limit=page.limit))


@router.post("/api/miners", status_code=201, summary="Add machines", dependencies=[needs("miners:write")])
async def add_miner(parts: WithParts, reader: CurrentReader, wanted: NewMiner) -> MinerJson:
    """Machines of one model at one place are one entry. Fields you leave out come from the model."""
    return shaped(MinerJson, await parts.db.write_grouped(miners.add, reader, wanted, parts.now()))


@router.get("/api/miners/{miner_id}", summary="Show machines", dependencies=[needs("miners:read")])
async def show_miner(parts: WithParts, reader: CurrentReader, miner_id: Id) -> MinerJson:
    """With their revision, which you can send with a change."""
    return shaped(MinerJson, await parts.db.read(miners.find, reader, miner_id))


@router.patch(
    "/api/miners/{miner_id}",
    summary="Change machines",
    responses=refusals(409),
    dependencies=[needs("miners:write")],
)
async def change_miner(parts: WithParts, reader: CurrentReader, miner_id: Id, wanted: MinerChange) -> MinerJson:
    """Only the given fields change. If a field is changed twice, the later change wins. If you send a `revision` and
    somebody changed the machines since, it is a 409 and nothing changes."""
    return shaped(MinerJson, await parts.db.write_grouped(miners.change, reader, miner_id, wanted, parts.now()))


@router.delete(
    "/api/miners/{miner_id}", status_code=204, summary="Remove machines", dependencies=[needs("miners:write")]
)
async def remove_miner(parts: WithParts, reader: CurrentReader, miner_id: Id) -> None:
    """Past earnings and costs stay as they are."""
    await parts.db.write_grouped(miners.remove, reader, miner_id, parts.now())


@router.post(
    "/api/treasury/trade", status_code=201, summary="Enter a trade of coins", dependencies=[needs("treasury:write")]
)
async def enter_trade(
    parts: WithParts, reader: CurrentReader, wanted: NewTrade, idempotency_key: IdempotencyKey = ""
) -> TradeJson:
    """If you do not know whether it arrived, send it again with the same `Idempotency-Key`: it is entered once, and the
    answer is the same. The same key with another trade is a 422. So is selling more coins than you had at that time."""
    entered = await parts.db.write(treasury.trade, reader, wanted, idempotency_key, parts.now())
    return shaped(TradeJson, entered)


@router.get("/api/treasury/trades", summary="List your trades", dependencies=[needs("treasury:read")])
async def list_trades(
    parts: WithParts,
    reader: CurrentReader,
    page: WantedPage,
    method: Annotated[Method, Query(description="which coins a sale takes")] = "average",
) -> TradesJson:
    """Newest first, each with its profit and the coins you had after it."""
    found = await parts.db.read(treasury.page, reader, method, before=page.last_id, limit=page.limit)
    return {"method": method, **page.of(SettledTradeJson, found)}


@router.post(
    "/api/treasury/trades/{trade_id}/correction",
    status_code=201,
    summary="Correct or cancel a trade",
    responses=refusals(404, 409),
    dependencies=[needs("treasury:write")],
)
async def correct_trade(
    parts: WithParts,
    reader: CurrentReader,
    trade_id: Id,
    wanted: WantedCorrection,
    idempotency_key: IdempotencyKey = "",
) -> CorrectionJson:
    """The trade no longer counts, and the `trade` you send counts instead. Without `trade` it is cancelled. Nothing is
    deleted: both stay on record. It is a 409 if the trade was already corrected, and a 422 if you would have sold more
    coins than you had at any time. If you send it again with the same `Idempotency-Key`, it is done once."""
    done = await parts.db.write(treasury.correct, reader, trade_id, wanted, idempotency_key, parts.now())
    return shaped(CorrectionJson, done)


@router.get("/api/treasury/corrections", summary="List corrected trades", dependencies=[needs("treasury:read")])
async def list_corrections(parts: WithParts, reader: CurrentReader, page: WantedPage) -> PageJson[CorrectionJson]:
    """Newest first, each with the trade as it was entered and what counts instead."""
    found = await parts.db.read(treasury.corrections, reader, before=page.last_id, limit=page.limit)
    return page.of(CorrectionJson, found)


@router.get("/analytics/main", summary="What your machines and coins come to", dependencies=[needs("treasury:read")])
async def show_portfolio(parts: WithParts, reader: CurrentReader) -> AnalyticsJson:
    """The latest figures. Every change to machines, trades or the market starts a new calculation, which takes a
    moment. Until then `is_current` is false. Without market figures there is no revenue, and `missing` says so."""
    return portfolio.as_json(await portfolio.main(parts.db, parts.cache, reader))
