"""How much memory a tree of processes takes, and limits on it. Where there is no /proc, nothing is known or limited."""

from __future__ import annotations

import os
import resource
import signal
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def find(argument: str) -> int | None:
    """Returns the process that was started with this argument."""
    for pid in _pids():
        with suppress(*_GONE):
            if argument.encode() in (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0"):
                return pid
    return None


def members(root: int) -> list[int]:
    """Returns the process and everything below it."""
    children = defaultdict(list)
    for pid in _pids():
        with suppress(*_GONE):
            # The name of a program may have spaces and brackets; the fields begin after the last one.
            fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            children[int(fields[1])].append(pid)
    found = [root]
    for pid in found:
        found += children[pid]
    return found


def memory(pids: list[int]) -> int:
    """Returns how many bytes they take, without the files that they share."""
    total = 0
    for pid in pids:
        with suppress(*_GONE):
            for line in (_PROC / str(pid) / "status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
    return total


def limit(pids: list[int], most: int) -> None:
    """Limits the data of each process. Those that they fork inherit it."""
    for pid in pids:
        with suppress(*_GONE):
            resource.prlimit(pid, resource.RLIMIT_DATA, (most, most))


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(*_GONE):
            os.kill(pid, signal.SIGKILL)


def _pids() -> list[int]:
    with suppress(FileNotFoundError):
        return [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    return []
