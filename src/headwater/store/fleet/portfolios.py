"""What users' machines and coins come to, as it was last calculated, and for whom it has to be calculated again.

`wanted` grows with every event that changes a portfolio, and `calculated` is the value of `wanted` that the figures
take in. A portfolio is stale while they differ. So a process that dies while it calculates loses nothing, and whatever
comes while somebody calculates makes the portfolio stale again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection

from headwater.model import Reader
from headwater.store.sql import columns, json_text, json_value, portable


class Owner(NamedTuple):
    """Whose portfolio it is."""

    tenant_id: int
    user_id: int


class Changes(NamedTuple):
    """How many changes there were, and when the first of them was."""

    number: int
    since: datetime


class Holding(NamedTuple):
    """Machines as a portfolio counts them. Hash rate and power are those of one machine."""

    quantity: int
    actual_hashrate_th: Decimal
    actual_power_w: Decimal
    electricity_usd_per_kwh: Decimal
    site: str
    model: str


class PortfolioState(NamedTuple):
    """Which changes the figures take in (`calculated`), and which there are (`wanted`)."""

    wanted: int
    calculated: int
    stale_since: datetime | None
    last_updated: datetime | None


class Saved(NamedTuple):
    """The figures that have a column of their own, beside all of them."""

    btc_inventory: Decimal
    avg_cost_basis_usd: Decimal | None
    monthly_opex_usd: Decimal
    figures: Mapping[str, Any]


_OWN = "tenant_id = ? AND user_id = ?"
_mark = portable(
    """INSERT INTO user_portfolios (tenant_id, user_id, wanted, stale_since)
    SELECT u.tenant_id, u.id, ?, ? FROM users u WHERE u.tenant_id = ? AND u.id = ?
    ON CONFLICT (tenant_id, user_id) DO UPDATE SET wanted = user_portfolios.wanted + excluded.wanted,
        stale_since = COALESCE(user_portfolios.stale_since, excluded.stale_since)"""
)
_mark_all = portable(
    "UPDATE user_portfolios SET wanted = wanted + 1, stale_since = COALESCE(stale_since, ?) WHERE wanted > 0"
)
_stale = portable(
    f"SELECT {columns(Owner)} FROM user_portfolios WHERE calculated < wanted ORDER BY stale_since LIMIT ?",
    row=Owner,
)
_state = portable(f"SELECT {columns(PortfolioState)} FROM user_portfolios WHERE {_OWN}", row=PortfolioState)
_figures = portable(f"SELECT figures FROM user_portfolios WHERE {_OWN}")
_holdings = portable(
    f"""SELECT quantity, actual_hashrate_th, actual_power_w, electricity_usd_per_kwh, site, miner_model_id, name
    FROM user_miners WHERE {_OWN}"""
)
_model_names = portable("SELECT id, model_name FROM miner_models")
_save = portable(
    f"""UPDATE user_portfolios SET {", ".join(f"{name} = :{name}" for name in Saved._fields)},
        calculated = :wanted, last_updated = :now, stale_since = CASE WHEN wanted > :wanted THEN :now END
    WHERE tenant_id = :tenant_id AND user_id = :user_id AND calculated < :wanted"""
)


def mark_stale(conn: Connection, changes: Mapping[Owner, Changes]) -> None:
    """Says that portfolios have to be calculated again. Changes of somebody who is gone are left out."""
    _mark.many(conn, [(*changes[owner], owner.tenant_id, owner.user_id) for owner in sorted(changes)])


def mark_all_stale(conn: Connection, since: datetime) -> None:
    """Says that all portfolios have to be calculated again, because the market changed."""
    _mark_all.once(conn, since)


def stale(conn: Connection, limit: int) -> list[Owner]:
    """Returns whose portfolios have to be calculated again, those that wait longest first."""
    return _stale.all(conn, limit)


def state(conn: Connection, reader: Reader) -> PortfolioState | None:
    """Returns how far a portfolio is. None: nothing has ever changed it."""
    return _state.first(conn, reader.tenant_id, reader.user_id)


def figures(conn: Connection, reader: Reader) -> dict[str, Any] | None:
    """Returns all figures as they were last calculated."""
    found = _figures.value(conn, reader.tenant_id, reader.user_id)
    return None if found is None else json_value(found)


def holdings(conn: Connection, reader: Reader) -> list[Holding]:
    """Returns all machines of a reader."""
    names = dict(_model_names.all(conn))  # a join would look the name up for every row
    make = partial(tuple.__new__, Holding)  # a fleet may have ten thousand
    return [
        make((quantity, Decimal(hashrate), Decimal(power), Decimal(price), site, names.get(model, name)))
        for quantity, hashrate, power, price, site, model, name in _holdings.all(conn, reader.tenant_id, reader.user_id)
    ]


def save(conn: Connection, reader: Reader, saved: Saved, wanted: int, now: datetime) -> bool:
    """Stores figures that take in the changes up to `wanted`. Returns False if as many are taken in already."""
    values = {**saved._asdict(), "figures": json_text(saved.figures)}
    whose = {"tenant_id": reader.tenant_id, "user_id": reader.user_id}
    return _save.once(conn, **values, **whose, wanted=wanted, now=now) > 0
