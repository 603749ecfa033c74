"""Loops of Headwater in processes of their own, to be killed and paused."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.forked import Forked

CRAWL_UNTIL_KILLED = """
import asyncio
from headwater import wire
from headwater.settings import load
from headwater.work import crawl_loop

def tell(saved):
    if not saved.accepted:
        print("refused", flush=True)

async def crawl(parts):
    async with wire.crawling(parts, tell) as crawler:
        print("crawling", flush=True)
        await crawl_loop.run(parts.db, crawler, wire.pace(parts.settings), parts.now, parts.woken, asyncio.Event())

asyncio.run(crawl(wire.open_parts(load())))
"""

# How a program begins whose clock is ahead by its first argument, in seconds.
WITH_A_CLOCK_AHEAD = """
import asyncio, sys
from datetime import timedelta
from headwater import wire
from headwater.settings import load

parts = wire.open_parts(load())
ahead = timedelta(seconds=float(sys.argv[1]))
parts.now = lambda: wire.utc_now() + ahead
"""

StartAhead = Callable[[int], Forked]


def start(environ: dict[str, str], program: str = CRAWL_UNTIL_KILLED, *given: str, says: str = "crawling") -> Forked:
    """Starts the program; returns when it has said its first word."""
    process = Forked("-c", program, *given, env={**os.environ, **environ}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == f"{says}\n"
    return process


@contextmanager
def starting(environ: dict[str, str], program: str, says: str) -> Iterator[StartAhead]:
    """Yields what starts the program with a clock ahead; kills what still runs at the end."""
    started: list[Forked] = []

    def start_one(ahead: int = 0) -> Forked:
        started.append(start(environ, program, str(ahead), says=says))
        return started[-1]

    yield start_one
    for process in started:
        if process.poll() is None:
            kill(process)


def kill(process: Forked | subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def stop(process: Forked) -> None:
    """Stops it as Ctrl-Z does. Returns when it stands still, which may be a moment after the signal."""
    process.send_signal(signal.SIGSTOP)
    stat = Path(f"/proc/{process.pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")


def wait_until(condition: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def killed_after(environ: dict[str, str], program: str, says: str, last: str, *, ends: bool) -> None:
    """Starts a program and kills it when it prints the line `last`. With `ends` it ends by itself after that line."""
    process = start(environ, program, says=says)
    assert process.stdout is not None
    for line in process.stdout:
        if line == f"{last}\n":
            break
    if not ends:
        kill(process)
    process.wait()
    process.stdout.close()
