"""The operator's page: what the fleet earns today and would earn if, coins, the forecast, and what needs a look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from math import floor, log10
from typing import Annotated, Literal, NamedTuple

from fastapi import Form, Query, Request
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from headwater.app.fleet import desk, signals, treasury
from headwater.app.fleet.desk import Desk, Point, WhatIf
from headwater.app.fleet.treasury import NewTrade, WantedCorrection
from headwater.app.shapes import checked
from headwater.fleet.forecast import PastRange
from headwater.http.auth import CurrentReader, needs
from headwater.http.routes import Id
from headwater.http.state import WithParts
from headwater.ids import uuid7
from headwater.web.view import go, page_router, show

WIDTH, HEIGHT = 880, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 12, 28
CURVE_WIDTH, CURVE_HEIGHT = 420, 240
MOST_ROWS = 500
MOST_SIGNALS = 8
MOST_CORRECTIONS = 20

router = page_router()
Empty = BeforeValidator(lambda given: None if given == "" else given)  # a field of the form that nobody filled in
Figure = Annotated[Annotated[float, Field(gt=0, le=1e30, allow_inf_nan=False)] | None, Empty, Query()]
PowerPrice = Annotated[Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] | None, Empty, Query()]


class Mark(NamedTuple):
    """A line across a chart with its label, or below it."""

    at: float
    label: str


class Dot(NamedTuple):
    x: float
    y: float
    label: str


class FanChart(NamedTuple):
    """The price of the last weeks and the range of the next, as paths of an SVG. Dots are days outside their range."""

    width: int
    height: int
    left: int
    line: str
    past: str
    fan: str
    ahead: str
    dots: list[Dot]
    across: list[Mark]
    below: list[Mark]
    held: int
    judged: int


class CurveChart(NamedTuple):
    width: int
    height: int
    left: int
    line: str
    zero: float
    now: Dot
    across: list[Mark]
    below: list[Mark]


@router.get("/fleet", dependencies=[needs("miners:read")])
async def fleet_page(
    request: Request,
    parts: WithParts,
    reader: CurrentReader,
    power: PowerPrice = None,
    price: Figure = None,
    difficulty: Figure = None,
) -> Response:
    """`power`, `price` and `difficulty` (in trillions) ask what if."""
    asked = WhatIf(_decimal(power), _decimal(price), _decimal(difficulty * 1e12 if difficulty is not None else None))
    today, supposed = await desk.open_desk(parts.db, parts.cache, reader, parts.now(), asked)
    named = await parts.db.read(signals.newest, reader, MOST_SIGNALS)
    corrected = await parts.db.read(treasury.corrections, reader, limit=MOST_CORRECTIONS)
    return show(
        request,
        "fleet.html",
        section="fleet",
        desk=today,
        supposed=supposed,
        asked=asked,
        rows=today.rows[:MOST_ROWS],
        fan=fan_chart(today),
        curve=curve_chart(desk.break_even_curve(today), today),
        named=named,
        corrected=corrected,
        new_key=uuid7,
        told=signals.told,
        why=signals.why,
        usd=usd,
        number=number,
    )


@router.post("/fleet/trades/{trade_id}/correction", dependencies=[needs("treasury:write")])
async def correct_trade(
    parts: WithParts,
    reader: CurrentReader,
    trade_id: Id,
    action: Annotated[Literal["correct", "cancel"], Form()],
    idempotency_key: Annotated[str, Form()],
    side: Annotated[str, Form()] = "",
    btc: Annotated[str, Form()] = "",
    usd: Annotated[str, Form()] = "",
    reason: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Corrects how many coins a trade was about and what for, or cancels it. Its time stays."""
    trade = checked(NewTrade, {"side": side, "btc": btc, "usd": usd}) if action == "correct" else None
    wanted = checked(WantedCorrection, {"trade": trade, "reason": reason})
    await parts.db.write(treasury.correct, reader, trade_id, wanted, idempotency_key, parts.now())
    return go("/fleet#trades")


def _decimal(given: float | None) -> Decimal | None:
    return None if given is None else Decimal(repr(given))


def usd(value: Decimal | float | None, digits: int = 2, *, signed: bool = False) -> str:
    """Formats money: -2.94, 84.20, 61,204.00; with a minus sign that lines up with digits."""
    if value is None:
        return "–"
    text = f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}"
    return text.replace("-", "\u2212")


def number(value: Decimal | float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", "\u2212")


def fan_chart(found: Desk) -> FanChart | None:
    """Returns how the forecast is drawn; None if there is none."""
    forecast = found.forecast
    prices = [(one.day, one.price_usd) for one in found.prices if one.price_usd is not None]
    if forecast is None or not forecast.days or not prices:
        return None
    first, last = prices[0][0], forecast.days[-1].day
    past = [one for one in forecast.past if one.day >= first]
    seen = [price for _, price in prices]
    low = min([*seen, *(one.price_low for one in forecast.days), *(one.low for one in past)])
    high = max([*seen, *(one.price_high for one in forecast.days), *(one.high for one in past)])
    x, y = _scales(first, last, low, high)
    known = prices[-1]
    fan = [(known[0], known[1]), *((one.day, one.price_high) for one in forecast.days)]
    back = [(one.day, one.price_low) for one in reversed(forecast.days)]
    return FanChart(
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        line=_path([(x(day), y(price)) for day, price in prices]),
        past=_area([(x(one.day), y(one.high)) for one in past], [(x(one.day), y(one.low)) for one in past]),
        fan=_path([(x(day), y(price)) for day, price in [*fan, *back]]) + "Z",
        ahead=_path([(x(known[0]), y(known[1])), (x(last), y(forecast.days[-1].price_usd))]),
        dots=[Dot(x(one.day), y(one.price_usd), _missed(one)) for one in past if not one.held],
        across=[Mark(y(value), f"{value / 1000:g}k" if value >= 1000 else f"{value:g}") for value in _steps(low, high)],
        below=[Mark(x(day), f"{day:%-d %b}") for day in _days(first, last)],
        held=sum(one.held for one in past),
        judged=len(past),
    )


def _missed(one: PastRange) -> str:
    return f"{one.day}: {one.price_usd:,.0f}, outside {one.low:,.0f} to {one.high:,.0f}"


def _scales(
    first: date, last: date, low: float, high: float
) -> tuple[Callable[[date], float], Callable[[float], float]]:
    days, span = max((last - first).days, 1), (high - low) or 1.0
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(day: date) -> float:
        return round(LEFT + inner_width * (day - first).days / days, 1)

    def y(price: float) -> float:
        return round(TOP + inner_height * (high - price) / span, 1)

    return x, y


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) if points else ""


def _area(above: Sequence[tuple[float, float]], below: Sequence[tuple[float, float]]) -> str:
    return _path([*above, *reversed(below)]) + "Z" if above else ""


def _steps(low: float, high: float) -> list[float]:
    """Returns three to seven round values between these."""
    span = (high - low) or 1.0
    size = 10 ** floor(log10(span))
    step = next(size * part for part in (0.2, 0.5, 1.0, 2.0) if span / (size * part) <= 7)
    first = floor(low / step) + 1
    return [round(step * place, 10) for place in range(first, floor(high / step) + 1)]


def _days(first: date, last: date) -> list[date]:
    """Returns the mondays of every second week."""
    every = [date.fromordinal(day) for day in range(first.toordinal(), last.toordinal() + 1)]
    return [day for day in every if day.weekday() == 0][1::2]


def curve_chart(points: list[Point], found: Desk) -> CurveChart | None:
    """Returns how the fleet's profit is drawn against the price of the coin."""
    if not points or not found.rows or found.network is None:
        return None
    prices, profits = [float(one.price_usd) for one in points], [float(one.profit_usd) for one in points]
    now = float(found.network.price_usd)
    profit = float(sum((row.day.profit_usd for row in found.rows if not row.loses), Decimal(0)))
    top, inner_width, inner_height = max([*profits, 1.0]), CURVE_WIDTH - LEFT - RIGHT, CURVE_HEIGHT - TOP - BOTTOM

    def x(price: float) -> float:
        return round(LEFT + inner_width * (price - prices[0]) / ((prices[-1] - prices[0]) or 1.0), 1)

    def y(value: float) -> float:
        return round(TOP + inner_height * (top - value) / top, 1)

    return CurveChart(
        width=CURVE_WIDTH,
        height=CURVE_HEIGHT,
        left=LEFT,
        line=_path([(x(price), y(value)) for price, value in zip(prices, profits, strict=True)]),
        zero=y(0.0),
        now=Dot(x(now), y(profit), f"today: {now:,.0f} USD a coin, {profit:,.2f} USD a day"),
        across=[Mark(y(value), f"{value:,.0f}") for value in _steps(0.0, top)],
        below=[Mark(x(price), f"{price / 1000:g}k") for price in _steps(prices[0], prices[-1])][::2],
    )
