"""How fast feeds are read: CPU per feed on real feeds, step by step, and beside feedparser in the same run.

    python bench/parse.py [--rounds 5] [--without-feedparser]

Without the real feeds (`../shared/data`, or HEADWATER_TEST_DATA) the golden feeds of the tests are read instead, which
says little: they are small.
"""

from __future__ import annotations

import argparse
import os
import sys
import tarfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from unittest.mock import patch

from headwater.errors import ReadFailed
from headwater.model import Page
from headwater.sources.feeds import parse_feed, posts, read_feed

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("HEADWATER_TEST_DATA") or ROOT.parent / "shared" / "data")
RECEIVED = datetime(2027, 1, 1, tzinfo=UTC)


def feeds() -> tuple[str, list[bytes]]:
    archive = DATA / "feeds" / "real.tar.xz"
    if not archive.exists():
        golden = sorted((ROOT / "tests" / "data" / "feeds").iterdir())
        return "golden feeds", [path.read_bytes() for path in golden if not path.name.endswith(".expected.json")]
    with tarfile.open(archive) as members:
        return "real feeds", [file.read() for member in members if (file := members.extractfile(member))]


def least_cpu(rounds: int, work: Callable[[], object]) -> float:
    """Returns the best of several rounds, because the machine may be shared."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)


def pages(bodies: list[bytes]) -> list[Page]:
    found = []
    for body in bodies:
        with suppress(ReadFailed):
            found.append(read_feed(body, url="https://a.example/feed", content_type=None, received_at=RECEIVED))
    return found


def parsed(bodies: list[bytes]) -> None:
    for body in bodies:
        with suppress(ReadFailed):
            parse_feed(body, None)


def measured(bodies: list[bytes], rounds: int) -> dict[str, float]:
    """Returns CPU seconds of everything, of all but the costliest steps, and of parsing alone."""
    found = {"everything": least_cpu(rounds, lambda: pages(bodies))}
    with patch.object(posts, "clean_html", lambda html, base: html):
        found["without cleaning"] = least_cpu(rounds, lambda: pages(bodies))
        with patch.object(posts, "text_hash", lambda title, content: b""):
            found["and without fingerprints"] = least_cpu(rounds, lambda: pages(bodies))
    found["parsing alone"] = least_cpu(rounds, lambda: parsed(bodies))
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--without-feedparser", action="store_true")
    given = arguments.parse_args()
    origin, bodies = feeds()
    size = sum(map(len, bodies)) / 1e6
    entries = sum(len(page.posts) for page in pages(bodies))
    print(f"{len(bodies)} {origin}, {size:.1f} MB, {entries:,} entries")
    print(f"{'':28}{'CPU':>8}{'feeds/s':>10}{'MB/s':>8}")
    results = measured(bodies, given.rounds)
    if not given.without_feedparser:
        import feedparser

        results["feedparser"] = least_cpu(1, lambda: [feedparser.parse(BytesIO(body)) for body in bodies])
    for name, seconds in results.items():
        print(f"{name:28}{seconds:7.2f}s{len(bodies) / seconds:10,.0f}{size / seconds:8.1f}")
    if "feedparser" in results:
        print(f"feedparser takes {results['feedparser'] / results['everything']:.0f} times the CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
