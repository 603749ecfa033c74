"""Memory that a burst leaves behind goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

# Every fiftieth block stays, so that the heap cannot shrink from its end.
BURST = """
import asyncio, re, sys
from pathlib import Path
from headwater.store.db import Database
from headwater.work import upkeep

def resident_mb():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

async def main():
    upkeep.TRIM_EVERY = 0.05
    stop = asyncio.Event()
    db = Database(sys.argv[1])
    db.read_now(lambda conn: None)
    trimming = asyncio.create_task(upkeep.keep_trimmed(db, stop))
    await asyncio.sleep(0.3)
    stop.set()
    await asyncio.wait_for(trimming, 20)
    db.read_now(lambda conn: None)
    db.close()

upkeep.share_one_heap()
blocks = [bytes(20_000) for _ in range(5_000)]
kept = blocks[::50]
del blocks
before = resident_mb()
asyncio.run(main())
print(before - resident_mb())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked to return memory")
def test_what_a_burst_leaves_behind_goes_back_to_the_system(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", BURST, f"sqlite:///{tmp_path / 'headwater.db'}"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert float(answer.stdout) > 30
