"""Runs weeks from the command line: prints a line for each seed, and what is wrong, if anything."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context

import structlog

from headwater import wire
from headwater.settings import load
from headwater.sim.week.course import Report, Size, live_through

COLUMNS = (
    "seed",
    "requests",
    "visits",
    "failed",
    "broken off",
    "posts",
    "versions",
    "gaps",
    "unseen",
    "faults",
    "ends",
)
HEAD = "".join(f"{name:>11}" for name in COLUMNS) + "   wrong  over budget  seconds"


def main() -> None:
    asked = _arguments()
    size = Size(asked.communities, asked.requests, asked.listing)
    print(
        f"{size.communities} communities, {size.requests} requests a minute, listings of {size.listing} posts\n{HEAD}",
        flush=True,
    )
    seeds = range(asked.first, asked.first + asked.seeds)
    with ProcessPoolExecutor(asked.processes, get_context("fork")) as pool:
        reports = list(pool.map(_week, seeds, repeat(size)))
    faults = sum((report.faults for report in reports), Counter[str]())
    print("faults:", ", ".join(f"{name} {count}" for name, count in sorted(faults.items())))
    sys.exit(0 if all(report.is_right for report in reports) else 1)


def _week(seed: int, size: Size) -> Report:
    """Runs a week in a process of its own: each takes a whole core."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory(prefix="headwater-week-") as folder:
        environ = {"HEADWATER_DATA_DIR": folder}
        parts = wire.open_parts(load(environ))
        wire.prepare_store(parts)
        parts.close()
        report = asyncio.run(live_through(seed, size, environ))
    print(line(report), flush=True)
    for wrong in report.findings.wrong[:20]:
        print(f"    {wrong}")
    return report


def line(report: Report) -> str:
    counts = report.findings.counts
    shown = (
        *(report.seed, report.requests, counts["visits"], counts["visits failed"], counts["visits broken off"]),
        *(counts["posts"], counts["versions"], counts["gaps"], counts["posts in gaps"], report.faults.total()),
        report.crashes + report.stops,
    )
    return (
        "".join(f"{number:>11,}" for number in shown)
        + f"{len(report.findings.wrong):>8}{report.over_budget:>13}{report.seconds:>9.0f}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Simulated weeks of Reddit that have to come out exact.")
    parser.add_argument("--seeds", type=int, default=3, help="how many weeks")
    parser.add_argument("--first", type=int, default=1, help="the first week's seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many weeks side by side")
    parser.add_argument("--communities", type=int, default=Size().communities)
    parser.add_argument("--requests", type=int, default=Size().requests, help="the budget of a minute")
    parser.add_argument("--listing", type=int, default=Size().listing, help="how many posts a listing shows at most")
    return parser.parse_args()


if __name__ == "__main__":
    main()
