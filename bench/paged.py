"""What it costs to crawl paged sites: articles beside trafilatura, lists with nothing new, boards with many threads.

    python bench/paged.py [--parts articles,quiet,walk,threads] [--pages 0] [--boards 500] [--known 100000] ...

articles  article pages fetched over loopback, read in the reading processes and stored in SQLite, beside one process of
          trafilatura over the same pages in memory, in turns. All on one site, and spread over several
quiet     boards whose first page is as it was: by its ETag, and by its bytes alone
walk      a crawl through a list whose threads are all known: time for each page, and memory, as it goes on
threads   a board crawled for the first time: threads read and stored, and memory, as it goes on

Politeness is off. The sites have a process of their own, on the same cores.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import multiprocessing
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, update

import paged_sites
from headwater import wire
from headwater.crawl.visit.walk import Checkpoint
from headwater.follow.add import follow
from headwater.model import Item, Reader, Source
from headwater.store import tables
from headwater.store.visits import items
from headwater.wire import Parts
from loopback import serving
from measure import own_memory_mb
from rounds import Round, reading_processes, rounds, store

GOAL_TIMES = 1.8
GOAL_QUIET = 500.0
SITES = (1, 8)
WARMING = 40  # of so many pages one is read before anything is measured
SHARES = (0.1, 0.3, 0.6, 1.0)


def main() -> None:
    asked = _arguments()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.", flush=True)
    if "articles" in asked.parts:
        asyncio.run(articles(asked.pages, asked.rounds))
    if "quiet" in asked.parts:
        asyncio.run(quiet(asked.boards, asked.rounds))
    if "walk" in asked.parts:
        asyncio.run(long_board(asked.known, are_known=True))
    if "threads" in asked.parts:
        asyncio.run(long_board(asked.threads, are_known=False))


class Alone(NamedTuple):
    """What trafilatura alone took for pages in memory."""

    pages: int
    kilobytes: float
    origin: str
    seconds: float
    cpu: float


def alone(most: int) -> Alone:
    """Runs in a process of its own."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    found, origin = paged_sites.article_pages(most)
    trafilatura.extract(found[0])  # what is loaded once is not counted
    began, cpu = time.monotonic(), time.process_time()
    for page in found:
        trafilatura.extract(page, include_comments=False)
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    return Alone(len(found), sum(map(len, found)) / len(found) / 1000, origin, seconds, cpu)


async def articles(most: int, times: int) -> None:
    spawn = multiprocessing.get_context("spawn")
    with serving(partial(paged_sites.articles, most)) as url, ProcessPoolExecutor(1, spawn) as peer:
        beside = [peer.submit(alone, most).result()]
        count, kilobytes, origin = beside[0][:3]
        print(f"\n{count} {origin} article pages of {kilobytes:.0f} kB on average:")
        print(f"{'':<22}{'pages/s':>9}{'ms CPU':>8}   {'loop':>6}{'store':>7}{'readers':>8}{'cores':>7}{'MB':>7}")
        for sites in SITES:
            done, memory = await crawled(url, sites, times, lambda: beside.append(peer.submit(alone, most).result()))
            show(f"headwater, {sites} site{'s' * (sites > 1)}", count, done, memory)
        quickest, cheapest = min(beside, key=lambda one: one.seconds), min(beside, key=lambda one: one.cpu)
        cores = f"{quickest.cpu / quickest.seconds:.2f}"
        print(
            f"{'trafilatura alone':<22}{count / quickest.seconds:>9.1f}{cheapest.cpu / count * 1000:>8.2f}{cores:>31}"
        )
        times_faster = quickest.seconds / min(one.seconds for one in done)
        cpu_times = cheapest.cpu / min(one.total_cpu for one in done)
        reached = "reached" if times_faster >= GOAL_TIMES else "MISSED"
        print(f"{times_faster:.2f} times the pages of one process of trafilatura (goal {GOAL_TIMES}: {reached}),")
        most_times = cpu_times * (os.cpu_count() or 1)
        print(f"for {1 / cpu_times:.2f} times the CPU: with all cores to itself up to {most_times:.2f} times.")
        print("`cores` is how many it had.", flush=True)


async def crawled(url: str, sites: int, times: int, take_turns: Callable[[], None]) -> tuple[list[Round], float]:
    """Runs rounds over sites that were never seen. Returns them and the memory after them."""
    with store({}) as parts:
        owner = wire.prepare_store(parts)
        async with rounds(parts, sites) as round:
            found = []
            for number in range(times + 1):
                of = sites if number else max(WARMING, sites)
                addresses = [f"{url}/{number}/{site}/{of}/" for site in range(sites)]
                parts.db.write_now(watch_only, owner, addresses, "news", {"items": "a.article"}, parts)
                if number:
                    take_turns()
                found.append(await round())
            return found[1:], memory_mb()


async def quiet(boards: int, times: int) -> None:
    print(f"\n{boards} boards whose first page is as it was:")
    print(f"{'':<22}{'visits/s':>9}{'ms CPU':>8}   {'loop':>6}{'store':>7}{'readers':>8}{'cores':>7}{'MB':>7}")
    with serving(paged_sites.boards) as url, store({}) as parts:
        owner = wire.prepare_store(parts)
        for way, words in (("validated", "by its ETag"), ("bare", "by its bytes")):
            addresses = [f"{url}/{way}/2/{number}/forum-1-1.html" for number in range(boards)]
            parts.db.write_now(watch_only, owner, addresses, "forum", {}, parts)
            async with rounds(parts, boards) as round:
                first = await round()
                assert first.new == boards * 2 * paged_sites.POSTS_A_THREAD
                done = [await round() for _ in range(times)]
                assert not any(one.new for one in done)
                speed = show(words, boards, done, memory_mb())
                print(f"(goal {GOAL_QUIET:.0f}: {'reached' if speed >= GOAL_QUIET else 'MISSED'})")


async def long_board(threads: int, *, are_known: bool) -> None:
    with serving(paged_sites.boards) as url, store({}) as parts:
        owner = wire.prepare_store(parts)
        address = f"{url}/bare/{threads}/1/forum-1-1.html"
        [source] = parts.db.write_now(watch_only, owner, [address], "forum", {"max_pages": 0}, parts)
        if are_known:
            parts.db.write_now(make_known, source, threads, parts)
        print(f"\nA board with {threads:,} threads, {'all known' if are_known else 'none known'}:")
        print(f"{'threads':>10}{'seconds':>9}{'ms a thread':>13}{'ms a list page':>16}{'MB':>7}")
        async with rounds(parts, 1) as round:
            over = asyncio.Event()
            watching = asyncio.create_task(curve(partial(passed_in, parts, source, are_known), threads, over))
            done = await round()
            over.set()
            await watching
            cpu = {part: spent / threads * 1000 for part, spent in done.cpu.items()}
            print("ms CPU a thread: " + ", ".join(f"{part} {value:.2f}" for part, value in cpu.items()))


async def curve(passed: Callable[[], Awaitable[int]], threads: int, over: asyncio.Event) -> None:
    """Prints progress and the cost since the line before, at each of the shares."""
    began, before, seconds = time.monotonic(), 0, 0.0
    for share in SHARES:
        while (here := await passed()) < share * threads and not over.is_set():
            await asyncio.sleep(0.1)
        if share == SHARES[-1]:
            await over.wait()
        now = time.monotonic() - began
        each = (now - seconds) * 1000 / max(1, here - before)
        print(f"{here:>10,}{now:>9.1f}{each:>13.2f}{each * paged_sites.THREADS_A_PAGE:>16.1f}{memory_mb():>7.0f}")
        before, seconds = here, now


async def passed_in(parts: Parts, source: Source, are_known: bool) -> int:
    """Returns how many threads the crawl has read or, if all are known, found in the list."""
    checkpoint = await parts.db.read(Checkpoint.load, source, parts.now())
    return checkpoint.current_page * paged_sites.THREADS_A_PAGE if are_known else checkpoint.stats.get("done", 0)


def watch_only(
    conn: Connection, owner: Reader, addresses: Sequence[str], kind: str, settings: Mapping[str, Any], parts: Parts
) -> list[Source]:
    """Follows these; sources followed before are not visited any more."""
    conn.execute(update(tables.sources).values(active=False))
    found = []
    for address in addresses:
        added = follow(conn, owner, address, parts.now(), kind=kind, settings=settings)
        found.append(Source(added.source_id, kind, address, settings=settings))
    return found


def make_known(conn: Connection, source: Source, threads: int, parts: Parts) -> None:
    """Marks all threads of the board as read."""
    base, mark = source.address.rpartition("/")[0], paged_sites.MARK
    found = [Item(str(id), f"{base}/thread-{id}-1-1.html", f"Thread {id}", mark) for id in range(1, threads + 1)]
    items.put_waiting(conn, source.id, found, parts.now())
    conn.execute(update(tables.items).values(state="done"))


def show(name: str, count: int, done: Sequence[Round], memory: float) -> float:
    """Prints the best round, because the machine may be shared. Returns its speed."""
    fastest, cheapest = min(done, key=lambda one: one.seconds), min(done, key=lambda one: one.total_cpu)
    speed, cores = count / fastest.seconds, fastest.total_cpu / fastest.seconds
    cpu = {part: spent / count * 1000 for part, spent in cheapest.cpu.items()}
    parts = f"{cpu['loop']:>6.2f}{cpu['store']:>7.2f}{cpu['readers']:>8.2f}"
    print(f"{name:<22}{speed:>9.1f}{sum(cpu.values()):>8.2f}   {parts}{cores:>7.2f}{memory:>7.0f}", flush=True)
    return speed


def memory_mb() -> float:
    """Returns the memory of this process and its parsers, without the sites and the peer."""
    return own_memory_mb(os.getpid()) + sum(map(own_memory_mb, reading_processes()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=lambda text: text.split(","), default="articles,quiet,walk,threads")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--pages", type=int, default=0, help="at most so many articles; 0: all there are")
    parser.add_argument("--boards", type=int, default=500)
    parser.add_argument("--known", type=int, default=100_000, help="threads of the board that is walked through")
    parser.add_argument("--threads", type=int, default=2_000, help="threads of the board that is read")
    return parser.parse_args()


if __name__ == "__main__":
    main()
