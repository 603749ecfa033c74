"""`/api/intelligence`: forecasts for the coming days."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from headwater.app import market
from headwater.app.market import HORIZON_DAYS, ForecastJson
from headwater.app.shapes import shaped
from headwater.http.auth import needs
from headwater.http.problems import refusals
from headwater.http.routes import api_router
from headwater.http.state import WithParts

router = api_router("market")


@router.get(
    "/intelligence/forecast",
    summary="Ask what is expected of price, difficulty and hashprice",
    responses=refusals(404),
    dependencies=[needs("market:read")],
)
async def show_forecast(
    parts: WithParts,
    days: Annotated[int, Query(ge=1, le=HORIZON_DAYS, description="how many days ahead")] = HORIZON_DAYS,
) -> ForecastJson:
    """The price stays that of the last known day, because no method we tried does better. The forecast says how far off
    it may be. `past` has the ranges of the last weeks and whether they held. Without market figures it is a 404."""
    found = await market.cached_forecast(parts.db, parts.cache, parts.now())
    return shaped(ForecastJson, found.value._replace(days=found.value.days[:days]), cache_hit=found.is_hit)
