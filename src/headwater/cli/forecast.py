"""`headwater market` and `headwater forecast`: past days, forecasts, and how good those were."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from headwater import wire
from headwater.app import market
from headwater.cli.session import Json, exit_if, json_line, opened, read_file, say, table
from headwater.fleet.evaluate import DifficultyResult, PriceResult
from headwater.model import MarketDay

market_app = typer.Typer(help="Daily figures of the Bitcoin market and chain.", no_args_is_help=True)
app = typer.Typer(help="Forecasts of price, difficulty and hashprice, with ranges.", no_args_is_help=True)

DailyFile = Annotated[
    Path, typer.Argument(help="CSV with one line per day: date, price_usd, difficulty, height_eod, blocks, fees_btc.")
]


@app.command("show")
def show_forecast(
    file: DailyFile,
    days: Annotated[int, typer.Option(min=1, max=30, help="How many days ahead.")] = 30,
    as_json: Json = False,
) -> None:
    """Forecast the days after the last day of a file. Four of five prices should lie within the range."""
    found = market.forecast_days(_read(file), days)
    if as_json:
        for day in found:
            json_line(day._asdict())
        return
    rows = [
        (day.day, f"{day.price_usd:,.0f}", _span(day.price_low, day.price_high, 0), f"{day.difficulty / 1e12:.2f}",
         _span(day.difficulty_low / 1e12, day.difficulty_high / 1e12, 2), f"{day.hashprice_usd_per_ph:.2f}",
         _span(day.hashprice_low, day.hashprice_high, 2), _percent(day.confidence))
        for day in found
    ]  # fmt: skip
    table("", ("day", "USD", "80 %", "T", "80 %", "USD/PH", "80 %", "held"), rows)
    say("USD: the coin's price. T: difficulty in trillions. USD/PH: what 1 PH/s earns in a day.")
    say("The price stays at today's: no method we tried does better. Held: how often the last 500 ranges were right.")


@app.command("evaluate")
def evaluate_forecast(
    file: DailyFile,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Evaluate forecasts from this day on.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Repeat every past forecast with what was known then, and compare it with what happened.

    Ends with exit code 1 if a goal is missed.
    """
    found = market.evaluate(_read(file), since.replace(tzinfo=UTC).date() if since else None)
    if as_json:
        for price in found.price:
            json_line({**price._asdict(), "reached": price.is_reached})
        for difficulty in found.difficulty:
            json_line({**difficulty._asdict(), "ratio": difficulty.ratio, "reached": difficulty.is_reached})
    else:
        _say_price(found.price)
        say("")
        _say_difficulty(found.difficulty)
    exit_if(not found.is_reached)


def _say_price(results: list[PriceResult]) -> None:
    rows = [
        (one.days_ahead, one.origins, _percent(one.coverage), "77 to 83 %", _percent(one.median_width), _verdict(one))
        for one in results
    ]
    columns = ("days ahead", "forecasts", "held", "goal", "half width", "")
    table("How often the 80 % range of the price held", columns, rows)


def _say_difficulty(results: list[DifficultyResult]) -> None:
    rows = [
        (f"{one.share:.0%}", one.epochs, f"{one.error:.2f}", f"{one.error_by_pace:.2f}",
         f"{one.error_of_no_change:.2f}", f"{one.ratio:.3f}", f"<= {one.goal}", _verdict(one))
        for one in results
    ]  # fmt: skip
    columns = ("epoch", "epochs", "this", "pace so far", "no change", "ratio", "goal", "")
    table("Mean error of the next difficulty, in percentage points", columns, rows)


def _read(file: Path) -> list[MarketDay]:
    return market.without_gaps(market.read_days(read_file(file), wire.utc_now()))


@market_app.command("import")
def import_market(
    file: Annotated[Path, typer.Argument(help="CSV or JSON with one entry per day, oldest first. See the docs.")],
    as_json: Json = False,
) -> None:
    """Store daily figures of the market and the chain. Importing a file again changes nothing.

    A day that differs from what is known gets a new version. A file with one bad line is refused as a whole.
    """
    days = market.read_days(read_file(file), wire.utc_now())
    with opened(or_new=True) as (parts, _):
        done = parts.db.write_now(market.import_days, days, file.name, parts.now())
    if as_json:
        json_line(done._asdict())
    else:
        span = f", from {done.first_day} to {done.last_day}" if done.days else ""
        say(f"{done.days} days read{span}. {done.changed} of them are new or corrected.")


@market_app.command("show")
def show_market(
    days: Annotated[int, typer.Option(min=1, max=3660, help="How many days.")] = 30, as_json: Json = False
) -> None:
    """Show the latest stored days."""
    with opened() as (parts, _):
        found = parts.db.read_now(market.known_days, days)
    if as_json:
        for day in found:
            json_line(day._asdict())
        return
    rows = [
        (day.day, _figure(day.price_usd, 1, 0), _figure(day.difficulty, 1e12, 2), day.height, day.blocks,
         f"{day.fees_btc:.2f}")
        for day in found
    ]  # fmt: skip
    table("", ("day", "USD", "T", "height", "blocks", "fees in BTC"), rows)
    if not found:
        say("There are no figures yet. Import a file with `headwater market import FILE`, or set HEADWATER_MARKET_URL.")


def _figure(value: float | None, unit: float, digits: int) -> str:
    return "" if value is None else f"{value / unit:,.{digits}f}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _span(low: float, high: float, digits: int) -> str:
    return f"{low:,.{digits}f} - {high:,.{digits}f}"


def _verdict(result: PriceResult | DifficultyResult) -> str:
    return "reached" if result.is_reached else "missed"
