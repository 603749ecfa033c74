"""What a program costs: CPU seconds and memory of a whole process tree, read from /proc."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")

QUIET_SECONDS = 6  # longer than the rest of any consumer that works behind the crawl


class Pass(NamedTuple):
    """One pass over all feeds."""

    cpu: float  # seconds, of the program and all its children
    database_cpu: float
    wall: float
    peak_mb: float  # of the program and all its children, shared pages counted once

    @property
    def total_cpu(self) -> float:
        return self.cpu + self.database_cpu


def tree(root: int) -> Iterator[int]:
    """Yields the process and all its living descendants."""
    yield root
    try:
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from tree(int(child))
    except (FileNotFoundError, ProcessLookupError):
        return


def cpu_seconds(root: int) -> float:
    """Returns CPU seconds of living processes and of those that ended and were waited for."""
    return sum(_own_cpu(pid) for pid in tree(root))


def _own_cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def memory_mb(root: int) -> float:
    return sum(own_memory_mb(pid) for pid in tree(root))


def own_memory_mb(pid: int) -> float:
    """Returns the proportional set size: memory that two processes share is not counted twice."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass  # it ended between the listing and this line
    return 0.0


class Peak:
    """The peak memory of a process tree, sampled a few times a second."""

    def __init__(self, root: int) -> None:
        self.mb = 0.0
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            self.mb = max(self.mb, memory_mb(self._root))

    @contextmanager
    def watched(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()
            self.mb = max(self.mb, memory_mb(self._root))


def measured(root: int, work: Callable[[], None], database: int | None = None) -> Pass:
    """What the tree of `root`, which goes on running, and a database server spend on `work`.

    What is left to do behind it, such as an index that follows, counts as CPU but not as time that somebody waits.
    """
    peak = Peak(root)
    before, database_before, start = cpu_seconds(root), cpu_seconds(database) if database else 0.0, time.monotonic()
    with peak.watched():
        work()
        wall = time.monotonic() - start
        wait_until_quiet(root)
    database_cpu = cpu_seconds(database) - database_before if database else 0.0
    return Pass(cpu_seconds(root) - before, database_cpu, wall, peak.mb)


def wait_until_quiet(root: int, patience: float = 120.0) -> None:
    deadline = time.monotonic() + patience
    spent, quiet = cpu_seconds(root), 0
    while quiet < QUIET_SECONDS and time.monotonic() < deadline:
        time.sleep(1.0)
        now = cpu_seconds(root)
        quiet = quiet + 1 if now - spent < 0.05 else 0
        spent = now
