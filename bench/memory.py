"""How much memory Headwater takes, and how much disk.

    python bench/memory.py [--what idle,crawl,installed] [--sources 2000] [--posts 50000]

`idle` is `headwater up` with nothing followed. `crawl` is the same after it has visited so many feeds behind a local
nginx; all of their posts are recent, so folding keeps all of them in its window. Memory is the proportional set size of
the whole process tree, after the work is done. `installed` is a fresh virtual environment without the development
extra.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib.metadata import Distribution, distributions
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import certifi

from corpus import ROOT
from measure import memory_mb, own_memory_mb, tree, wait_until_quiet
from peers import Job, wait_until
from peers.dedup_posts import posts as made_up_texts
from peers.headwater import running
from webserver import serving

IDLE_GOAL, CRAWL_GOAL, INSTALLED_GOAL = 80, 250, 250
LARGEST_SHOWN = 8
WINDOW = timedelta(hours=48)
TEXTS_PER_POST = 3
# Paragraphs behind the first two, of 20 words each. With them, posts are as long as in 250 real feeds: half of them
# have fewer than 60 words, a quarter more than 300, a tenth more than 800.
PARAGRAPHS, SPREAD, MOST_PARAGRAPHS = 1.5, 2.2, 100
POOL = 3000


class Figure(NamedTuple):
    """One line of the table. Parts of a total have no goal."""

    what: str
    mb: float
    goal: int | None = None


def main() -> None:
    asked = _arguments()
    print(f"{'':<44} {'MB':>6} {'goal':>6}", flush=True)
    if "idle" in asked.what:
        show(idle())
    if "crawl" in asked.what:
        show(after_a_crawl(asked.sources, asked.posts, asked.limit, asked.settle))
    if "installed" in asked.what:
        show(installed())


def show(figures: list[Figure]) -> None:
    for figure in figures:
        goal = "" if figure.goal is None else f"{figure.goal:>6} {'reached' if figure.mb <= figure.goal else 'MISSED'}"
        print(f"{figure.what:<44} {figure.mb:>6.1f} {goal}".rstrip(), flush=True)


def idle() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        nothing = Job([], Path(folder), 0, Path(certifi.where()))
        with running(nothing) as ours:
            wait_until_quiet(ours.pid)
            return memory_of(ours.pid, "nothing followed", IDLE_GOAL)


def after_a_crawl(sources: int, posts: int, limit: float, settle: float) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        www = Path(folder) / "www"
        www.mkdir()
        names = write_feeds(www, sources, posts, datetime.now(UTC))
        with serving(www) as server:
            job = Job([f"{server.plain}/{name}" for name in names], Path(folder), limit, server.authority)
            with running(job) as ours:
                spent = ours.visit_all(limit)
                wait_until(lambda: ours.folded() >= posts, limit, pause=1)
                wait_until_quiet(ours.pid, limit)
                time.sleep(settle)
                what = f"{sources:,} sources, {ours.folded():,} posts in the window"
                at_the_peak = Figure("  all of them, at the peak of the crawl", spent.peak_mb)
                return [*memory_of(ours.pid, what, CRAWL_GOAL), at_the_peak]


def memory_of(pid: int, what: str, goal: int) -> list[Figure]:
    """The memory of a tree as a whole, and of each of its processes."""
    parts = [
        Figure(f"  {'headwater up' if process == pid else _module(process)}", own_memory_mb(process))
        for process in tree(pid)
    ]
    return [Figure(what, memory_mb(pid), goal), *parts]


def write_feeds(folder: Path, sources: int, posts: int, now: datetime) -> list[str]:
    """Writes RSS feeds of posts that were published within the last two days. Returns the names of the files."""
    chance = random.Random(1)
    texts = (text for text, _ in made_up_texts(TEXTS_PER_POST * posts + POOL))
    pool = list(islice(texts, POOL))
    names = []
    for number in range(sources):
        count = posts * (number + 1) // sources - posts * number // sources
        items = "".join(_item(number, place, texts, pool, chance, now) for place in range(count))
        names.append(f"{number:06d}.xml")
        (folder / names[-1]).write_text(
            f"<?xml version='1.0'?><rss version='2.0'><channel><title>Site {number}</title>"
            f"<link>http://site{number}.example/</link><description/>{items}</channel></rss>"
        )
    return names


def _item(number: int, place: int, texts: Iterator[str], pool: list[str], chance: random.Random, now: datetime) -> str:
    address = f"http://site{number}.example/{place}"
    published = format_datetime(now - WINDOW * chance.random())
    more = min(MOST_PARAGRAPHS, int(PARAGRAPHS * chance.lognormvariate(0, SPREAD)))
    paragraphs = [*islice(texts, TEXTS_PER_POST - 1), *chance.choices(pool, k=more)]
    body = "".join(f"&lt;p&gt;{text}&lt;/p&gt;" for text in paragraphs)
    return (
        f"<item><title>{next(texts)}</title><link>{address}</link><guid>{address}</guid>"
        f"<pubDate>{published}</pubDate><description>{body}</description></item>"
    )


def installed() -> list[Figure]:
    """The size of a fresh virtual environment, and its largest packages."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        environment = Path(folder) / "venv"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        pip = [str(environment / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "uninstall", "--yes", "setuptools"], check=True)  # as scripts/venv does
        subprocess.run([*pip, "install", "-c", str(ROOT / "constraints.txt"), str(ROOT)], check=True)
        return [Figure("installed", size_mb(environment), INSTALLED_GOAL), *largest(environment)]


def largest(environment: Path) -> list[Figure]:
    (packages,) = environment.glob("lib/python*/site-packages")
    sizes = [Figure(f"  {one.name}", _size_of(one)) for one in distributions(path=[str(packages)])]
    return sorted(sizes, key=lambda figure: -figure.mb)[:LARGEST_SHOWN]


def _size_of(package: Distribution) -> float:
    return sum(_blocks(Path(str(file.locate()))) for file in package.files or ()) / 2048


def size_mb(folder: Path) -> float:
    return sum(_blocks(Path(parent) / name) for parent, _, names in os.walk(folder) for name in names) / 2048


def _blocks(file: Path) -> int:
    """What a file takes on disk, in blocks of 512 bytes."""
    return file.lstat().st_blocks if file.exists() else 0


def _module(pid: int) -> str:
    """What a process runs: `headwater.parse.process` of `python -m headwater.parse.process`."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return words[words.index("-m") + 1] if "-m" in words else Path(words[0]).name


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", type=lambda text: text.split(","), default="idle,crawl,installed")
    parser.add_argument("--sources", type=int, default=2000)
    parser.add_argument("--posts", type=int, default=50_000)
    parser.add_argument("--limit", type=float, default=900, help="seconds for the crawl")
    parser.add_argument("--settle", type=float, default=70, help="seconds after it, in which idle parsers end")
    return parser.parse_args()


if __name__ == "__main__":
    main()
