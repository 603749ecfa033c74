"""`headwater fleet`: machines and trades in the terminal, and as CSV that comes back as it went."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headwater import wire
from headwater.app.fleet import miners, tables, treasury
from headwater.app.fleet.miners import NewMiner
from headwater.app.fleet.treasury import NewTrade
from headwater.errors import BadDocument
from headwater.model import Reader
from headwater.wire import Parts
from support import forked
from support.posts import NOON


@pytest.fixture
def reader(parts: Parts) -> Reader:
    return wire.prepare_store(parts)


def exported(parts: Parts, reader: Reader, what: Any) -> str:
    return parts.db.read_now(lambda conn, reader: "".join(what(conn, reader)), reader)


def fill(parts: Parts, reader: Reader) -> None:
    for site in ("Hall 1", '=HYPERLINK("https://evil.example")', "@SUM(1)", "-1+1", "+1", "'quoted", "plain"):
        new = NewMiner.model_validate({"model": "Antminer S21", "site": site, "electricity_usd_per_kwh": "0.055"})
        parts.db.write_now(miners.add, reader, new, NOON)
    for number, note in enumerate(("=1+1", "fine")):
        new_trade = NewTrade.model_validate({"side": "buy", "btc": "0.12345678", "usd": "7.1", "note": note})
        parts.db.write_now(treasury.trade, reader, new_trade, f"key {number}", NOON)


def test_no_cell_of_an_export_is_a_formula(parts: Parts, reader: Reader) -> None:  # H61
    fill(parts, reader)
    for what in (tables.export_machines, tables.export_trades):
        rows = list(csv.reader(io.StringIO(exported(parts, reader, what))))
        cells = [cell for row in rows for cell in row if cell]
        assert len(cells) >= 18
        assert not [cell for cell in cells if cell[0] in "=+-@\t\r"]


def test_what_is_exported_comes_back_and_changes_nothing(parts: Parts, reader: Reader) -> None:
    fill(parts, reader)
    machines, trades = (exported(parts, reader, one) for one in (tables.export_machines, tables.export_trades))
    assert parts.db.write_now(tables.import_machines, reader, machines.encode(), NOON) == (0, 0, 7)
    assert parts.db.write_now(tables.import_trades, reader, trades.encode(), NOON) == (0, 0, 2)
    assert exported(parts, reader, tables.export_machines) == machines
    assert exported(parts, reader, tables.export_trades) == trades
    without_ids = "\r\n".join(line.partition(",")[2] for line in machines.splitlines())
    assert parts.db.write_now(tables.import_machines, reader, without_ids.encode(), NOON) == (7, 0, 0)
    sites = [one.site for one in parts.db.read_now(miners.page, reader, after=None, limit=50)]
    assert sites[:7] == sites[7:]


def test_the_same_file_of_trades_is_entered_once(parts: Parts, reader: Reader) -> None:
    """Sales may stand before what they sell, and two trades may be alike."""
    document = (
        b"side,btc,usd,traded_at\nsell,0.5,40000,2024-05-01T00:00:00Z\n"
        b"buy,0.25,10000,2024-04-01T00:00:00Z\nbuy,0.25,10000,2024-04-01T00:00:00Z\n"
    )
    assert parts.db.write_now(tables.import_trades, reader, document, NOON) == (3, 0, 0)
    assert parts.db.write_now(tables.import_trades, reader, document, NOON) == (0, 0, 3)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "lacks electricity_usd_per_kwh"),
        (b"electricity_usd_per_kwh,tenant_id\n0.1,1\n", "'tenant_id'"),
        (b"model,electricity_usd_per_kwh\nAntminer S21,0.05\nAntminer S21,-1\n", "Line 3: electricity_usd_per_kwh"),
        (b"model,electricity_usd_per_kwh\nAntminer S21,0.05\nNo such model,1\n", "Line 3: The catalogue has no model"),
        (b"id,electricity_usd_per_kwh\n,0.05\n", "Line 2: actual_hashrate_th"),
        (b"id,electricity_usd_per_kwh\n999,0.05\n", "Line 2: You have no machines 999"),
        (b"id,electricity_usd_per_kwh\n1e9,0.05\n", "Line 2: '1e9'"),
        (b"model,electricity_usd_per_kwh\nAntminer S21\n", "Line 2 does not have as many cells"),
        (b"model,electricity_usd_per_kwh\nAntminer S21,0.05,6\n", "Line 2 does not have as many cells"),
        (b"\xff\xfe", "not UTF-8"),
        (b'model,electricity_usd_per_kwh\n"Antminer', "not CSV"),
    ],
)
def test_a_file_with_a_mistake_is_named_and_changes_nothing(
    parts: Parts, reader: Reader, document: bytes, words: str
) -> None:
    with pytest.raises(BadDocument, match=words.replace("'", ".")):
        parts.db.write_now(tables.import_machines, reader, document, NOON)
    assert parts.db.read_now(miners.page, reader, after=None, limit=5) == []


def test_the_commands_do_what_they_say(tmp_path: Path) -> None:
    environ = {**os.environ, "HEADWATER_DATA_DIR": str(tmp_path / "data")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return forked.run("-m", "headwater", "fleet", *words, env=environ)

    added = json.loads(
        run("add", "--model", "Antminer T21", "--quantity", "3", "--usd-per-kwh", "0.05", "--json").stdout
    )
    assert (added["model"], added["quantity"]) == ("Antminer T21 (190T)", 3)
    changed = run("change", str(added["id"]), "--site", "Hall 7", "--json")
    assert json.loads(changed.stdout)["site"] == "Hall 7"
    assert run("trade", "buy", "0.5", "30000", "--key", "a", "--json").returncode == 0
    assert json.loads(run("show", "--json").stdout)["portfolio"]["btc_inventory"] == "0.5"
    assert "Hall 7" in run("show").stdout
    assert run("change", str(added["id"]), "--site", "Hall 8").returncode == 0
    assert "Hall 8" in run("show").stdout  # whether or not a server runs
    (tmp_path / "more.csv").write_text(
        "model_name,manufacturer,reference_hashrate_th,reference_power_w\nNew One,Us,1,2\n"
    )
    assert json.loads(run("import", "models", str(tmp_path / "more.csv"), "--json").stdout)["added"] == 1
    assert "New One" in run("models").stdout
    wrong = run("trade", "sell", "9", "1")
    assert (wrong.returncode, "8.5 BTC would be missing" in wrong.stderr) == (2, True)
    wrong = run("add", "--usd-per-kwh", "NaN", "--model", "Antminer T21")
    assert (wrong.returncode, "electricity_usd_per_kwh" in wrong.stderr) == (2, True)
    assert run("export", "trades").stdout.startswith("side,btc,usd,traded_at,note,idempotency_key")
    assert run("remove", str(added["id"])).returncode == 0
    assert run("machines", "--json").stdout == ""
