"""Machines, trades and models as CSV, out and in. A file is taken as a whole or not at all.

What is exported can be imported again and changes nothing: machines are known by their id, trades by their idempotency
key. Text that a spreadsheet would take for a formula is exported with an apostrophe before it, and imported without.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from pydantic import BaseModel, Field
from sqlalchemy import Connection

from headwater.app.fleet import miners, treasury
from headwater.app.fleet.amounts import Hashrate, Power, Words, plain
from headwater.app.fleet.miners import MinerChange, NewMiner
from headwater.app.fleet.treasury import NewTrade
from headwater.app.shapes import checked, iso
from headwater.errors import BadDocument, HeadwaterError
from headwater.model import Reader
from headwater.store.fleet.miners import Miner, ModelFacts, save_models
from headwater.store.fleet.treasury import StoredTrade
from headwater.store.people import audit

MOST_LINES = 100_000
AT_ONCE = 1000
MACHINES = (
    *("id", "model", "name", "site", "pool", "quantity", "actual_hashrate_th", "actual_power_w"),
    *("electricity_usd_per_kwh", "purchase_usd"),
)
TRADES = ("side", "btc", "usd", "traded_at", "note", "idempotency_key")
MODELS = ("model_name", "manufacturer", "reference_hashrate_th", "reference_power_w", "release_date")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_TEXTS = frozenset({"model", "name", "site", "pool", "note", "idempotency_key", "model_name", "manufacturer"})


class ImportedRows(NamedTuple):
    """What came of a file."""

    added: int
    changed: int
    unchanged: int


class ListedModel(BaseModel, extra="forbid"):
    """A model as a file lists it."""

    model_name: Words = Field(min_length=1)
    manufacturer: Words = Field(min_length=1)
    reference_hashrate_th: Hashrate
    reference_power_w: Power
    release_date: str | None = Field(default=None, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")


def export_machines(conn: Connection, reader: Reader) -> Iterator[str]:
    """Yields the lines of a CSV file with all machines of a reader."""

    def every() -> Iterator[Mapping[str, Any]]:
        after = 0
        while found := miners.page(conn, reader, after=after, limit=AT_ONCE):
            yield from map(_machine_cells, found)
            after = found[-1].id

    return _lines(MACHINES, every())


def export_trades(conn: Connection, reader: Reader) -> Iterator[str]:
    """Yields the lines of a CSV file with all trades of a reader, oldest first."""
    found = treasury.every(conn, reader, "average")
    return _lines(TRADES, (_trade_cells(one.trade) for one in reversed(found)))


def import_machines(conn: Connection, reader: Reader, document: bytes, now: datetime) -> ImportedRows:
    """Adds machines, and changes those that are named by their id."""
    outcome: Counter[str] = Counter()
    for line, row in _rows(document, MACHINES, needed=("electricity_usd_per_kwh",)):
        with _said(line):
            miner_id = row.pop("id", None)
            if "quantity" in row:
                row["quantity"] = _whole(row["quantity"])
            if miner_id is None:
                miners.add(conn, reader, checked(NewMiner, row), now)
                outcome["added"] += 1
                continue
            before = miners.find(conn, reader, _whole(miner_id))
            after = miners.change(conn, reader, before.id, checked(MinerChange, row), now)
            outcome["unchanged" if after == before else "changed"] += 1
    return ImportedRows(outcome["added"], outcome["changed"], outcome["unchanged"])


def import_trades(conn: Connection, reader: Reader, document: bytes, now: datetime) -> ImportedRows:
    """Enters trades, each once: one without a key gets one that is made of what it says."""
    seen: Counter[str] = Counter()
    wanted = []
    for line, row in _rows(document, TRADES, needed=("side", "btc", "usd", "traded_at")):
        with _said(line):
            key = row.pop("idempotency_key", None)
            trade = checked(NewTrade, row)
            if key is None:
                digest = sha256(trade.model_dump_json().encode()).hexdigest()[:32]
                seen[digest] += 1
                key = f"csv:{digest}:{seen[digest]}"
            wanted.append((trade, key))
    entered = treasury.enter(conn, reader, wanted, now)
    return ImportedRows(entered.added, 0, len(wanted) - entered.added)


def import_models(conn: Connection, document: bytes) -> ImportedRows:
    """Adds models to the catalogue, which everybody shares, and corrects those that are there."""
    found = []
    for line, row in _rows(document, MODELS, needed=MODELS[:4]):
        with _said(line):
            found.append(ModelFacts(**checked(ListedModel, row).model_dump()))
    before = len(miners.models(conn))
    save_models(conn, found)
    audit.record(conn, None, "miner.models", detail=f"{len(found)} models")
    added = len(miners.models(conn)) - before
    return ImportedRows(added, len(found) - added, 0)


def _machine_cells(miner: Miner) -> dict[str, Any]:
    cells = {name: getattr(miner, name) for name in MACHINES}
    amounts = ("actual_hashrate_th", "actual_power_w", "electricity_usd_per_kwh", "purchase_usd")
    return {**cells, **{name: plain(cells[name]) for name in amounts}}


def _trade_cells(trade: StoredTrade) -> dict[str, Any]:
    cells = {name: getattr(trade, name) for name in TRADES}
    return {**cells, "btc": plain(trade.btc), "usd": plain(trade.usd), "traded_at": iso(trade.traded_at)}


def _lines(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    written = io.StringIO()
    writer = csv.DictWriter(written, list(columns), lineterminator="\r\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _harmless(value) if name in _TEXTS else value for name, value in row.items()})
        yield written.getvalue()
        written.seek(0)
        written.truncate()
    yield written.getvalue()


def _harmless(text: str | None) -> str | None:
    """Returns text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text and text.startswith(("'", *_FORMULA)) else text


def _meant(cell: str) -> str:
    """Returns what `_harmless` was made of."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(("'", *_FORMULA)) else cell


def _rows(document: bytes, columns: tuple[str, ...], needed: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the lines of a file with their numbers. Empty cells are left out."""
    try:
        rows = csv.DictReader(io.StringIO(document.decode("utf-8-sig")), strict=True)
        names = list(rows.fieldnames or ())
        if missing := [name for name in needed if name not in names]:
            raise BadDocument(f"The first line has to name the columns. It lacks {', '.join(missing)}.")
        if unknown := [name for name in names if name not in columns]:
            raise BadDocument(f"There is no column {unknown[0][:50]!r}. There are: {', '.join(columns)}.")
        for row in rows:
            if rows.line_num > MOST_LINES:
                raise BadDocument(f"The file has more than {MOST_LINES:,} lines.")
            if None in row or None in row.values():
                raise BadDocument(f"Line {rows.line_num} does not have as many cells as the first line.")
            yield rows.line_num, {name: _meant(cell) if name in _TEXTS else cell for name, cell in row.items() if cell}
    except UnicodeDecodeError as error:
        raise BadDocument("The file is not UTF-8 text.") from error
    except csv.Error as error:
        raise BadDocument(f"The file is not CSV: {error}.") from error


def _whole(cell: str) -> int:
    if not cell.isascii() or not cell.isdigit() or len(cell) > 18:
        raise BadDocument(f"{cell[:50]!r} is not a whole number.")
    return int(cell)


@contextmanager
def _said(line: int) -> Iterator[None]:
    """Says in which line something is wrong."""
    try:
        yield
    except HeadwaterError as error:
        raise BadDocument(f"Line {line}: {error.detail} Nothing was imported.") from error
