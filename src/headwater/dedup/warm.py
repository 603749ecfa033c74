"""Gets folding ready without anybody waiting for it.

Compiling takes a minute the first time; it is done once for each installation, by a process of its own at low priority.
After that the compiler is a hundred megabytes that nobody needs: the system may have them back.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from headwater.dedup.machine_code import folder
from headwater.model import PostText

_PAGEOUT = 21  # madvise(2), Linux 5.4: write back or drop these pages; whoever needs one gets it again
_COMPILER = "libllvmlite"
_DONE = "done"
_SAMPLES = (
    "River floods the copper mine at Halvorsen and stops production for weeks",
    "BREAKING: River floods the copper mine at Halvorsen and stops production for weeks",
    "Copper mine at Halvorsen flooded as river bursts banks, production stopped for weeks",
    "哈尔沃森铜矿被河水淹没，生产将停止数周",
    " ".join(f"word{number} of an article that is long enough to be compared by its runs" for number in range(40)),
)


def is_compiled() -> bool:
    """Whether this very code was compiled before, so that nobody has to wait for it."""
    return (folder() / _DONE).exists()


async def compile_all() -> None:
    """Have everything compiled and kept on disk. Where that fails, this process compiles for itself."""
    if is_compiled():
        return
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await process.wait()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise


def let_go_of_compiler() -> None:
    """Give back the memory of the compiler's code. Nothing is lost by it; other systems than Linux keep it."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    madvise = ctypes.CDLL(None).madvise
    for start, end in _mappings(maps.read_text(), _COMPILER):
        madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _PAGEOUT)


def _take_note() -> None:
    """It is all there. What was compiled from older code goes."""
    for older in folder().parent.glob("compiled-*"):
        if older != folder():
            shutil.rmtree(older, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        (folder() / _DONE).touch()


def _mappings(maps: str, name: str) -> Iterator[tuple[int, int]]:
    for line in maps.splitlines():
        if name in line:
            start, _, end = line.split(maxsplit=1)[0].partition("-")
            yield int(start, 16), int(end, 16)


def make() -> None:
    """Compile everything, unless another process has done so while this one waited for it."""
    with _one_at_a_time():
        if not is_compiled():
            _use_everything()
            _take_note()


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Processes that start together would do the same on the same cores, and outlive those that were killed."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            folder().parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context((folder().parent / "compiling").open("w")), fcntl.LOCK_EX)
        yield


def _use_everything() -> None:
    """Each function is compiled when it is used for the first time."""
    from headwater.dedup.engine import Engine

    now = datetime.now(UTC)
    engine = Engine(window_seconds=3600)
    posts = [PostText(number, 1, text, text, None, now) for number, text in enumerate(_SAMPLES)]
    engine.decide(posts)
    engine.forget(posts[0])
    engine.expire(now)


if __name__ == "__main__":
    os.nice(10)
    make()
