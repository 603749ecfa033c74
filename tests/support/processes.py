"""Headwater's crawl loop in a process of its own, to be killed and paused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

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

TESTS = str(Path(__file__).resolve().parents[1])


def start(environ: dict[str, str], program: str = CRAWL_UNTIL_KILLED) -> subprocess.Popen[str]:
    paths = os.pathsep.join([TESTS, *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths, **environ},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "crawling\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def wait_until(condition: Callable[[], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
