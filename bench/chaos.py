"""Delivery of events under faults, for a long time: kill -9, pauses, duplicates; and the results.

    python bench/chaos.py [--logs sqlite,postgres,kafka] [--events 60000] [--seed 1]

Ends with 1 if anything was lost, happened twice or came out of order. `tests/support/chaos.py` says what is done.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headwater.store import migrate
from headwater.store.db import Database
from peers.postgres import fresh_database

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

# The folder of the tests is on the path only while this runs: type checkers do not find it.
from support import chaos  # type: ignore[import-not-found]
from support.checkout import Checkout  # type: ignore[import-not-found]

COLUMNS = (
    *("log", "events", "kills of writers", "of consumers", "stops", "others"),
    *("changes without event", "missing", "twice", "out of order", "dead", "seconds"),
)


@contextmanager
def log_named(name: str, folder: Path) -> Iterator[chaos.Log]:
    if name == "sqlite":
        yield chaos.Log("SQLite", f"sqlite:///{folder / 'chaos.db'}")
        return
    with fresh_database(folder) as server:
        if name == "postgres":
            yield chaos.Log("PostgreSQL", server.url)
            return
        prepare(server.url)
        checkout = Checkout(folder / "kafka")
        try:
            checkout.services("up", "connect")
            yield chaos.kafka_log(checkout, server.url)
        finally:
            checkout.services("clean")


def prepare(url: str) -> None:
    db = Database(url)
    migrate.upgrade(db)
    db.close()


def row(log: chaos.Log, report: chaos.Report) -> list[str]:
    faults, outcome = report.faults, report.outcome
    kills = [faults["kill writer"], faults["kill consumer"]]
    stops = faults["stop writer"] + faults["stop consumer"]
    others = ", ".join(f"{count} {name}" for name, count in sorted(faults.items()) if name in log.faults)
    found = [outcome.changes - outcome.events, outcome.missing, outcome.twice, outcome.disordered, outcome.dead]
    return [log.name, f"{outcome.events:,}", *map(str, [*kills, stops, others, *found]), f"{report.seconds:.0f}"]


def table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", default="sqlite,postgres,kafka")
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows, flawless = [list(COLUMNS)], True
    for name in given.logs.split(","):
        with tempfile.TemporaryDirectory() as folder, log_named(name, Path(folder)) as log:
            report = chaos.run(log, events=given.events, seed=given.seed, writers=4, consumers=3)
        rows.append(row(log, report))
        flawless = flawless and report.outcome.is_flawless
    print(table(rows))
    return 0 if flawless else 1


if __name__ == "__main__":
    sys.exit(main())
