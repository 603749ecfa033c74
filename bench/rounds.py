"""Rounds of visits by the loop of the product, and where their CPU goes."""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import resource
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import update

from headwater import wire
from headwater.model import SavedVisit
from headwater.settings import load
from headwater.store.tables import sources
from headwater.wire import Parts
from headwater.work import crawl_loop
from measure import TICKS, cpu_seconds


class Round(NamedTuple):
    visits: int
    seconds: float
    cpu: dict[str, float]  # seconds, by part
    new: int

    @property
    def total_cpu(self) -> float:
        return sum(self.cpu.values())


Visiting = Callable[[], Awaitable[Round]]


@contextmanager
def store(settings: Mapping[str, str]) -> Iterator[Parts]:
    """Opens an empty store, with no gap between requests."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        impolite = {"HEADWATER_ALLOW_PRIVATE_NETWORKS": "127.0.0.0/8", "HEADWATER_HOST_GAP_SECONDS": "0"}
        parts = wire.open_parts(load({"HEADWATER_DATA_DIR": folder, **impolite, **settings}))
        try:
            yield parts
        finally:
            parts.close()


@asynccontextmanager
async def rounds(parts: Parts, count: int) -> AsyncIterator[Visiting]:
    """Yields a function that visits `count` sources with the crawl loop; its parsers keep running."""
    saved: list[SavedVisit] = []
    unfinished: list[SavedVisit] = []
    complete = asyncio.Event()

    def on_saved(one: SavedVisit) -> None:
        (unfinished if one.visit.unfinished else saved).append(one)
        if len(saved) >= count:
            complete.set()

    async with wire.crawling(parts, on_saved) as crawler:

        async def round() -> Round:
            saved.clear()
            unfinished.clear()
            complete.clear()
            await parts.db.write(lambda conn: conn.execute(update(sources).values(next_check_at=parts.now())))
            before, began = spent(), time.monotonic()
            await crawl_loop.run(parts.db, crawler, wire.pace(parts.settings), parts.now, parts.woken, complete)
            seconds = time.monotonic() - began
            cpu = {part: value - before[part] for part, value in spent().items()}
            return Round(len(saved), seconds, cpu, sum(one.count("new") for one in saved + unfinished))

        yield round


def spent() -> dict[str, float]:
    """Returns CPU seconds of this process by thread, and of its parsers, including those that were replaced."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    found = {"loop": 0.0, "store": 0.0}
    for task in Path("/proc/self/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        is_store = names.get(int(task.name), "").startswith("headwater-")
        found["store" if is_store else "loop"] += sum(map(int, fields[11:13])) / TICKS
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = sum(cpu_seconds(child) for child in reading_processes())
    return {**found, "readers": living + ended.ru_utime + ended.ru_stime}


def reading_processes() -> list[int]:
    text = "".join((task / "children").read_text() for task in Path("/proc/self/task").iterdir())
    return [int(child) for child in text.split() if b"headwater.parse.process" in _command_of(child)]


def _command_of(process: str) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


async def profiled(round: Visiting) -> None:
    profile = cProfile.Profile()
    profile.enable()
    await round()
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(18)
