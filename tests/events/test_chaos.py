"""kill -9, standing still and duplicates, for some seconds on each log: nothing lost, twice or out of order.

`make chaos` does the same for longer.
"""

from __future__ import annotations

from pathlib import Path

from support import chaos

EVENTS = 3000
SEED = 4


def assert_survived(report: chaos.Report) -> None:
    assert report.outcome.is_flawless, report
    assert report.outcome.events >= EVENTS
    assert report.faults["kill writer"]
    assert report.faults["kill consumer"]


def test_the_outbox_on_sqlite_survives_chaos(tmp_path: Path) -> None:  # E1, E3, H79, H80, H84, H85
    log = chaos.Log("SQLite", f"sqlite:///{tmp_path / 'chaos.db'}")
    assert_survived(chaos.run(log, events=EVENTS, seed=SEED, stop_seconds=1.0))


def test_the_outbox_on_postgresql_survives_chaos(postgres_url: str) -> None:  # E1, E3, H79, H80, H82, H84, H85
    log = chaos.Log("PostgreSQL", postgres_url)
    assert_survived(chaos.run(log, events=EVENTS, seed=SEED))
