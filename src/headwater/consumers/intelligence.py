"""Makes the forecast again when the market's figures change."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection

from headwater.events.catalogue import FORECAST_REFRESHED, MARKET_UPDATED, ForecastFacts
from headwater.events.delivery import Consumer
from headwater.fleet.chain import latest_run
from headwater.fleet.forecast import MODEL, forecast
from headwater.store.fleet import forecasts, market
from headwater.store.log import outbox
from headwater.store.log.outbox import LoggedEvent

LOOKS_BACK = timedelta(days=2500)


def refresh_forecast(conn: Connection, events: list[LoggedEvent]) -> None:
    """Forecasts from all that is known now, once for the whole batch. The same figures give the same forecast."""
    newest = market.latest(conn)
    known = latest_run(market.days_since(conn, newest.day - LOOKS_BACK)) if newest else []
    days = forecast(known)
    if not days:
        return
    made_on, now = known[-1].day, events[-1].created_at
    version = forecasts.save(conn, made_on, days, MODEL, now)
    if version is not None:
        coin = MARKET_UPDATED.read(events[-1]).market
        facts = ForecastFacts(market=coin, made_on=made_on, version=version, model=MODEL, days=len(days))
        outbox.append(conn, [FORECAST_REFRESHED(facts, once=f"{coin}:{made_on}:{version}")], now)


CONSUMER = Consumer("intelligence", frozenset({MARKET_UPDATED.name}), refresh_forecast)
