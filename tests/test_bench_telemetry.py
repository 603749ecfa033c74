"""The benchmark of readings: what it sends is stored, and every chart it asks for is answered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))

import telemetry
from headwater.accounts import tokens
from serve import served


def test_readings_are_stored_and_charts_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "BATCH", 100)
    db, owner, ids = telemetry.prepared(f"sqlite:///{tmp_path / 'headwater.db'}", 5)
    assert telemetry.fill_year(db, owner, ids, days=3) == 5 * 3 * 25
    assert telemetry.take(db, owner, ids, 2).readings == 200
    assert all(value > 0 for value in telemetry.ask(db, owner, ids, "1d", 365, 3))
    token = db.write_now(tokens.issue, owner, "api", "bench", telemetry.NOW)
    db.close()
    with served(tmp_path) as (process, port):
        assert telemetry.send(process, port, token, ids, range(2, 5)).readings == 300
        assert telemetry.ask_api(process, port, token, ids, "1h", 3, 3)[0] > 0
