"""That the programs that measure and fuzz the reading of feeds still run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, program: str, *arguments: str) -> str:
    answer = subprocess.run(
        [sys.executable, ROOT / "bench" / program, *arguments],
        env={**os.environ, "HEADWATER_TEST_DATA": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_reading_is_measured_step_by_step(tmp_path: Path) -> None:
    printed = run(tmp_path, "parse.py", "--rounds", "1")
    assert "golden feeds" in printed
    assert "feedparser takes" in printed


def test_a_short_fuzz_run_finds_nothing_and_says_so(tmp_path: Path) -> None:
    assert "crashes, hangs and unsafe outputs: 0" in run(tmp_path, "fuzz_feeds.py", "--inputs", "500", "--seed", "7")
