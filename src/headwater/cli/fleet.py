"""`headwater fleet`: machines, trades, and what they earn and cost."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from headwater.app.fleet import miners, portfolio, tables, treasury
from headwater.app.fleet.miners import MinerChange, MinerJson, MinerModelJson, NewMiner
from headwater.app.fleet.treasury import CorrectionJson, Method, NewTrade, SettledTradeJson, TradeJson, WantedCorrection
from headwater.app.shapes import Shape, checked, shaped
from headwater.cli.session import Json, json_line, json_lines, opened, say, show_list, table
from headwater.errors import BadInput

app = typer.Typer(help="Your machines and coins, and what they earn and cost.", no_args_is_help=True)
What = Literal["machines", "trades", "models"]
MinerId = Annotated[int, typer.Argument(help="Id of the machines; `fleet machines` shows it.", min=1)]
Model = Annotated[str | None, typer.Option(help="Their model, as `fleet models` lists it.")]
Quantity = Annotated[int | None, typer.Option(help="How many machines.")]
Text = Annotated[str | None, typer.Option()]
Number = Annotated[str | None, typer.Option(metavar="NUMBER")]
ALL = 10**6


@app.command("show")
def show(as_json: Json = False) -> None:
    """Show what machines earn and cost in a day, by site, and what your coins cost."""
    with opened() as (parts, reader):
        found = parts.db.read_now(portfolio.calculate_now, reader)
    if as_json:
        json_line(portfolio.as_json(found))
        return
    shown = found.portfolio
    rows = [_earned(one) for one in (*shown["by_site"], {**shown["machines"], "name": "all"})]
    table("A day", ("site", "machines", "TH/s", "W", "revenue USD", "power USD", "profit USD", "losing"), rows)
    say(f"{shown['btc_inventory']} BTC, {shown['avg_cost_basis_usd'] or '-'} USD a coin on average.")
    if found.missing:
        say(found.missing)


def _earned(one: Mapping[str, Any]) -> tuple[Any, ...]:
    usd = (one["revenue_usd_per_day"], one["power_usd_per_day"], one["profit_usd_per_day"])
    amounts = ("-" if value is None else f"{float(value):,.2f}" for value in usd)
    return (one["name"] or "-", one["quantity"], one["hashrate_th"], one["power_w"], *amounts, one["losing"])


@app.command("models")
def list_models(as_json: Json = False) -> None:
    """List the catalogue of models."""
    with opened() as (parts, _):
        found = parts.db.read_now(miners.models)
    show_list(found, as_json, MinerModelJson, ("model", "maker", "TH/s", "W", "released"), lambda one: (
        one.model_name, one.manufacturer, one.reference_hashrate_th, one.reference_power_w, one.release_date or "",
    ))  # fmt: skip


@app.command("machines")
def list_machines(as_json: Json = False) -> None:
    """List your machines."""
    with opened() as (parts, reader):
        found = parts.db.read_now(miners.page, reader, after=None, limit=ALL)
    if as_json:
        json_lines(MinerJson, found)
        return
    rows = [
        (one.id, one.model or one.name or "-", one.site or "-", one.quantity, one.actual_hashrate_th,
         one.actual_power_w, one.electricity_usd_per_kwh)
        for one in found
    ]  # fmt: skip
    table("", ("id", "model", "site", "machines", "TH/s", "W", "USD/kWh"), rows)


@app.command("add")
def add_machines(
    usd_per_kwh: Annotated[str, typer.Option(metavar="NUMBER", help="What a kilowatt-hour costs there.")],
    model: Model = None,
    quantity: Quantity = None,
    site: Text = None,
    name: Text = None,
    pool: Text = None,
    hashrate_th: Number = None,
    power_w: Number = None,
    purchase_usd: Number = None,
    as_json: Json = False,
) -> None:
    """Add machines of one model at one place. Hash rate and power are per machine. Default: the model's."""
    given = _given(model, quantity, site, name, pool, hashrate_th, power_w, usd_per_kwh, purchase_usd)
    wanted = _checked(NewMiner, given)
    with opened(or_new=True) as (parts, reader):
        added = parts.db.write_now(miners.add, reader, wanted, parts.now())
    if as_json:
        json_line(shaped(MinerJson, added))
    else:
        say(f"Added machines {added.id}: {added.quantity} of {added.model or added.name or 'no model'}.")


@app.command("change")
def change_machines(
    miner_id: MinerId,
    model: Model = None,
    quantity: Quantity = None,
    site: Text = None,
    name: Text = None,
    pool: Text = None,
    hashrate_th: Number = None,
    power_w: Number = None,
    usd_per_kwh: Number = None,
    purchase_usd: Number = None,
    as_json: Json = False,
) -> None:
    """Change machines. Only the given options change."""
    given = _given(model, quantity, site, name, pool, hashrate_th, power_w, usd_per_kwh, purchase_usd)
    wanted = _checked(MinerChange, given)
    with opened() as (parts, reader):
        changed = parts.db.write_now(miners.change, reader, miner_id, wanted, parts.now())
    if as_json:
        json_line(shaped(MinerJson, changed))
    else:
        say(f"Machines {miner_id} have revision {changed.revision}.")


@app.command("remove")
def remove_machines(miner_id: MinerId) -> None:
    """Remove machines."""
    with opened() as (parts, reader):
        parts.db.write_now(miners.remove, reader, miner_id, parts.now())
    say(f"Removed machines {miner_id}.")


@app.command("trade")
def enter_trade(
    side: Annotated[Literal["buy", "mine", "sell"], typer.Argument(help="What happened.")],
    btc: Annotated[str, typer.Argument(help="How many coins.")],
    usd: Annotated[str, typer.Argument(help="What they cost or earned, including fees.")],
    at: Annotated[str | None, typer.Option(help="When, such as 2026-01-07T09:30:00Z. Default: now.")] = None,
    note: Text = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key. A second trade with the same key is not entered.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Enter a trade of coins."""
    given = {"side": side, "btc": btc, "usd": usd, "traded_at": at, "note": note}
    wanted = _checked(NewTrade, given)
    with opened(or_new=True) as (parts, reader):
        entered = parts.db.write_now(treasury.trade, reader, wanted, key or str(uuid.uuid4()), parts.now())
    if as_json:
        json_line(shaped(TradeJson, entered))
    else:
        say(f"Entered trade {entered.id}.")


TradeId = Annotated[int, typer.Argument(help="Id of the trade.", min=1)]
Reason = Annotated[str, typer.Option(help="Why, for the record.")]


@app.command("correct")
def correct_trade(
    trade_id: TradeId,
    side: Annotated[Literal["buy", "mine", "sell"], typer.Argument(help="What happened.")],
    btc: Annotated[str, typer.Argument(help="How many coins.")],
    usd: Annotated[str, typer.Argument(help="What they cost or earned, including fees.")],
    at: Annotated[str | None, typer.Option(help="When. Default: the time of the original trade.")] = None,
    note: Text = None,
    reason: Reason = "",
    key: Annotated[str | None, typer.Option(help="With the same key it is done once.")] = None,
    as_json: Json = False,
) -> None:
    """Replace a trade that was entered wrongly. It stays on record but no longer counts."""
    trade = _checked(NewTrade, {"side": side, "btc": btc, "usd": usd, "traded_at": at, "note": note})
    _correct(trade_id, WantedCorrection(trade=trade, reason=reason), key, as_json)


@app.command("cancel")
def cancel_trade(
    trade_id: TradeId,
    reason: Reason = "",
    key: Annotated[str | None, typer.Option(help="With the same key it is done once.")] = None,
    as_json: Json = False,
) -> None:
    """Cancel a trade that never happened. It stays on record but no longer counts."""
    _correct(trade_id, WantedCorrection(reason=reason), key, as_json)


def _correct(trade_id: int, wanted: WantedCorrection, key: str | None, as_json: bool) -> None:
    with opened() as (parts, reader):
        done = parts.db.write_now(treasury.correct, reader, trade_id, wanted, key or str(uuid.uuid4()), parts.now())
    if as_json:
        json_line(shaped(CorrectionJson, done))
    else:
        say(f"Trade {trade_id} no longer counts." + (f" Trade {done.instead.id} does." if done.instead else ""))


@app.command("trades")
def list_trades(
    method: Annotated[Method, typer.Option(help="Which coins a sale uses up.")] = "average", as_json: Json = False
) -> None:
    """List your trades, newest first, with the profit of each sale."""
    with opened() as (parts, reader):
        found = parts.db.read_now(treasury.every, reader, method)
    if as_json:
        json_lines(SettledTradeJson, found)
        return
    rows = [
        (one.id, f"{one.trade.traded_at:%Y-%m-%d %H:%M}", one.trade.side, one.trade.btc, one.trade.usd,
         f"{one.settled.realised_usd:,.2f}" if one.trade.side == "sell" else "", one.settled.btc)
        for one in found
    ]  # fmt: skip
    table("", ("id", "at", "side", "BTC", "USD", "realised USD", "BTC after"), rows)


@app.command("import")
def import_file(
    what: Annotated[What, typer.Argument(help="What the file contains.")],
    file: Annotated[Path, typer.Argument(help="A CSV file as `fleet export` writes it.")],
    as_json: Json = False,
) -> None:
    """Import a CSV file, completely or not at all. Entries that already exist stay as they are."""
    try:
        document = file.read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.") from error
    with opened(or_new=True) as (parts, reader):
        if what == "models":
            found = parts.db.write_now(tables.import_models, document)
        else:
            load = tables.import_machines if what == "machines" else tables.import_trades
            found = parts.db.write_now(load, reader, document, parts.now())
    if as_json:
        json_line(found._asdict())
    else:
        say(f"{found.added} added, {found.changed} changed, {found.unchanged} unchanged.")


@app.command("export")
def export(what: Annotated[Literal["machines", "trades"], typer.Argument(help="What to write.")]) -> None:
    """Write machines or trades as CSV."""
    with opened() as (parts, reader):
        write = tables.export_machines if what == "machines" else tables.export_trades
        sys.stdout.write("".join(parts.db.read_now(lambda conn, reader: list(write(conn, reader)), reader)))


def _given(
    model: str | None,
    quantity: int | None,
    site: str | None,
    name: str | None,
    pool: str | None,
    hashrate_th: str | None,
    power_w: str | None,
    usd_per_kwh: str | None,
    purchase_usd: str | None,
) -> dict[str, Any]:
    return {
        "model": model,
        "quantity": quantity,
        "site": site,
        "name": name,
        "pool": pool,
        "actual_hashrate_th": hashrate_th,
        "actual_power_w": power_w,
        "electricity_usd_per_kwh": usd_per_kwh,
        "purchase_usd": purchase_usd,
    }


def _checked(shape: type[Shape], given: Mapping[str, Any]) -> Shape:
    return checked(shape, {name: value for name, value in given.items() if value is not None})
