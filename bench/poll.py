"""How much it costs to poll feeds: Headwater beside the programs people use today, in one run on one machine.

    python bench/poll.py [--feeds 2000] [--peers yarr,miniflux] [--ways plain,tls,bare]
    python bench/poll.py --peers "" --ways "" [--curve 500,2000,8000] [--stores 10000,100000,1000000]

All of them read the same feeds from the same local nginx, one after the other: first everything is new, then nothing
has changed. CPU seconds of the whole process tree, database server included, are the figure; wall time is beside it,
because the machine may be shared. The ways: `plain` HTTP with ETag and Last-Modified; `tls`, the same over TLS
(Headwater alone); `bare`, without anything to ask conditionally with. Politeness is off everywhere. Then the curves:
what a feed costs as there are more of them, and as more posts are stored. All of it takes half an hour.
"""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from corpus import Corpus, corpus
from peers import CannotBeHad, Job, Outcome, headwater, say
from webserver import WebServer, serving

WAYS = {
    "plain": "Plain HTTP, ETag and Last-Modified",
    "tls": "The same over TLS",
    "bare": "Without validators: every answer is a 200",
}


class Goal(NamedTuple):
    """What share of a peer's CPU Headwater may take, in the first pass and in the unchanged one."""

    way: str
    peer: str
    first: float | None
    unchanged: float | None


GOALS = (
    Goal("plain", "yarr", 1 / 3, 1 / 2),
    Goal("plain", "miniflux", 1 / 8, None),
    Goal("bare", "miniflux", None, 1 / 50),
)


class Quoted(NamedTuple):
    """What was measured on two cores with 2,000 other real feeds (198 MB, 56,000 entries): CPU seconds, and wall."""

    first: float
    wall: float
    unchanged: float


# Shown where a peer cannot be had; never held against a goal.
QUOTED = {
    "yarr": Quoted(36, 41, 0.84),
    "miniflux": Quoted(110, 67, 2.8),
    "scrapy": Quoted(24, 24, 4.5),
    "newsboat": Quoted(42, 43, 115),
    "sfeed": Quoted(44, 28, 42),
    "reader": Quoted(117, 134, 24),
}


def main() -> None:
    asked = _arguments()
    feeds = corpus(asked.feeds)
    print(f"{len(feeds.names):,} feeds, {feeds.size / 1e6:.0f} MB, {feeds.entries:,} entries: {feeds.origin}.")
    print(f"Local nginx with gzip, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.")
    with serving(feeds.folder) as server:
        for way in asked.ways:
            compare(way, asked.peers if way != "tls" else [], feeds, server, asked.limit)
    if asked.curve:
        curve("feeds", asked.curve, lambda size: _at_size(corpus(size), 0, asked.limit))
    if asked.stores:
        curve("posts in the store before", asked.stores, lambda posts: _at_size(feeds, posts, asked.limit))


def compare(way: str, names: Iterable[str], feeds: Corpus, server: WebServer, limit: float) -> None:
    base = {"plain": server.plain, "tls": server.tls, "bare": server.without_validators}[way]
    print(f"\n{WAYS[way]}\n{HEAD}")
    ours = run("headwater", headwater.poll, feeds.urls(base), server, limit)
    print(row("headwater", ours, ours), flush=True)
    missing: list[str] = []
    had: dict[str, Outcome] = {}
    for name in names:
        try:
            theirs = run(name, importlib.import_module(f"peers.{name}").poll, feeds.urls(base), server, limit)
        except CannotBeHad as reason:
            print(f"{name:<10} cannot be had here: {reason}")
            missing += [name]
            continue
        print(row(name, theirs, ours), flush=True)
        had[name] = theirs
        for goal in GOALS:
            if (goal.way, goal.peer) == (way, name):
                print(verdict(goal, theirs, ours))
    for absent in missing if way == "plain" else ():
        print(quoted_of(absent))
        for name, theirs in had.items():
            print(by_way_of(name, absent, theirs, ours))


def quoted_of(absent: str) -> str:
    quoted = QUOTED[absent]
    return (
        f"{absent:<10} quoted, from other feeds and another day:"
        f" {quoted.first:g} / {quoted.wall:g} s, unchanged {quoted.unchanged:g} s"
    )


def by_way_of(measured: str, absent: str, theirs: Outcome, ours: Outcome) -> str:
    """Returns quoted figures of a peer that cannot run here, scaled by another peer that runs in both places."""
    quoted, then = QUOTED[absent], QUOTED[measured]
    first = quoted.first * theirs.first.total_cpu / then.first
    unchanged = quoted.unchanged * theirs.unchanged.total_cpu / then.unchanged
    return (
        f"{'':<10} by what {measured} took then and takes now, an estimate: {first:.1f} s and {unchanged:.1f} s here;"
        f" Headwater's share 1/{first / ours.first.total_cpu:.1f} and 1/{unchanged / ours.unchanged.total_cpu:.1f}"
    )


def run(name: str, poll: Callable[[Job], Outcome], urls: list[str], server: WebServer, limit: float) -> Outcome:
    say(f"{name}: {len(urls):,} feeds")
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        return poll(Job(urls, Path(folder), limit, server.authority))


HEAD = (
    f"{'':<10} {'version':<12} {'first pass':>11} {'wall':>6} {'x ours':>7} "
    f"{'unchanged':>11} {'wall':>6} {'x ours':>7} {'MB':>6} {'feeds':>7} {'entries':>8}"
)


def row(name: str, theirs: Outcome, ours: Outcome) -> str:
    first, unchanged = theirs.first, theirs.unchanged
    return (
        f"{name:<10} {theirs.version:<12} {first.total_cpu:>9.2f} s {first.wall:>6.1f}"
        f" {first.total_cpu / ours.first.total_cpu:>7.1f}"
        f" {unchanged.total_cpu:>9.2f} s {unchanged.wall:>6.1f}"
        f" {unchanged.total_cpu / ours.unchanged.total_cpu:>7.1f}"
        f" {max(first.peak_mb, unchanged.peak_mb):>6.0f} {theirs.feeds:>7,} {theirs.entries:>8,}  {theirs.note}"
    ).rstrip()


def verdict(goal: Goal, theirs: Outcome, ours: Outcome) -> str:
    parts = []
    for what, share, one, other in (
        ("first pass", goal.first, ours.first, theirs.first),
        ("unchanged", goal.unchanged, ours.unchanged, theirs.unchanged),
    ):
        if share is not None:
            reached = one.total_cpu / other.total_cpu
            parts.append(
                f"{what} 1/{1 / reached:.1f} (goal 1/{1 / share:.0f}: {'reached' if reached <= share else 'MISSED'})"
            )
    return f"{'':<10} Headwater's share of {goal.peer}'s CPU: {', '.join(parts)}"


def curve(what: str, sizes: list[int], measure: Callable[[int], tuple[Outcome, int]]) -> None:
    """Prints whether the cost per feed stays the same as their number grows."""
    print(f"\n{what:<26} {'first pass':>18} {'unchanged':>18} {'MB':>6}")
    for size in sizes:
        outcome, visits = measure(size)
        print(
            f"{size:<26,} {outcome.first.total_cpu / visits * 1000:>10.2f} ms/feed"
            f" {outcome.unchanged.total_cpu / visits * 1000:>10.3f} ms/feed"
            f" {max(outcome.first.peak_mb, outcome.unchanged.peak_mb):>6.0f}",
            flush=True,
        )


def _at_size(feeds: Corpus, posts_before: int, limit: float) -> tuple[Outcome, int]:
    """Returns the outcome and its number of feeds."""
    with serving(feeds.folder) as server:
        poll = partial(headwater.poll, posts_before=posts_before)
        return run("headwater", poll, feeds.urls(server.plain), server, limit), len(feeds.names)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--feeds", type=int, default=2000)
    parser.add_argument("--peers", type=_names(QUOTED), default="yarr,miniflux")
    parser.add_argument("--ways", type=_names(WAYS), default="plain,tls,bare")
    parser.add_argument("--curve", type=_numbers, default="500,2000,8000", help="numbers of feeds, Headwater alone")
    parser.add_argument(
        "--stores", type=_numbers, default="10000,100000,1000000", help="numbers of posts that are there before"
    )
    parser.add_argument("--limit", type=float, default=900, help="seconds for one pass of one program")
    return parser.parse_args()


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        found = [name for name in text.split(",") if name]
        unknown = set(found) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: there are {', '.join(known)}")
        return found

    return names


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


if __name__ == "__main__":
    main()
