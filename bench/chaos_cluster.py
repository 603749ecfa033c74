"""A Celery deployment under faults, on a simulated web whose truth is known; and the results.

    python bench/chaos_cluster.py [--faults 1000] [--seed 1] [--feeds 40] [--pause 3] [--minutes 600] [--kafka]
        [--logs FOLDER]

Two web servers, three workers and two beats on PostgreSQL and Redis, and with --kafka also on Kafka and Debezium. Ends
with 1 if a post was lost or stored twice, a source stopped, two asked for one feed at once, a host or an API was asked
too often, or an event had no effect.
`tests/support/chaos_cluster.py` says what is done. Everything runs on 127.0.0.0/8.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

# The folder of the tests is on the path only while this runs: type checkers do not find it.
from support import chaos_cluster  # type: ignore[import-not-found]


def table(report: chaos_cluster.Report) -> str:
    faults = " | ".join(f"{count} {name}" for name, count in sorted(report.faults.items()))
    counted = "\n".join(f"| {name.replace('_', ' ')} | {value} |" for name, value in report.outcome._asdict().items())
    return (
        f"{sum(report.faults.values())} faults ({faults}) in {report.seconds:.0f} s, {report.requests} requests\n\n"
        f"| what | how many |\n|---|---|\n{counted}"
    )


def _say(words: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {words}", file=sys.stderr, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--faults", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--feeds", type=int, default=40)
    options.add_argument("--pause", type=float, default=3.0, help="seconds between two faults, on average")
    options.add_argument("--minutes", type=float, default=600.0, help="begin no fault after so many minutes")
    options.add_argument("--kafka", action="store_true", help="consumers follow Kafka, which is restarted as well")
    options.add_argument("--logs", type=Path, help="where the logs of all processes are kept; it must not exist")
    given = vars(options.parse_args())
    logs = given.pop("logs")
    with tempfile.TemporaryDirectory(prefix="headwater-chaos-") as folder:
        report = chaos_cluster.run(logs or Path(folder), say=_say, **given)
    print(table(report))
    sys.exit(0 if report.outcome.is_flawless else 1)


if __name__ == "__main__":
    main()
