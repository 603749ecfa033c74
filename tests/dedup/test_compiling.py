"""Compiling takes a minute of CPU: however many processes begin at once, it is done by one of them."""

from __future__ import annotations

import fcntl
import subprocess
import sys

from headwater.dedup import warm
from headwater.dedup.machine_code import folder


def test_a_process_that_finds_another_compiling_waits_for_it_and_does_nothing_itself() -> None:
    compiled = warm.is_compiled()
    folder().mkdir(parents=True, exist_ok=True)
    with (folder().parent / "compiling").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "headwater.dedup.warm"], stderr=-1, text=True
        )
        try:
            waiting.communicate(timeout=3)
            raise AssertionError("it did not wait")
        except subprocess.TimeoutExpired:
            (folder() / "done").touch()
    _, imported = waiting.communicate(timeout=60)
    if not compiled:
        (folder() / "done").unlink()
    assert waiting.returncode == 0
    assert "headwater.model" in imported
    assert "numba" not in imported
