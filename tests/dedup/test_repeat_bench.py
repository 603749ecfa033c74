"""That the benchmark of folding still runs, also where there is nothing to measure with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_folding_is_measured_on_our_own_posts_where_there_are_no_others(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, ROOT / "bench" / "dedup.py", "--sizes", "1000", "--peers", ""],
        env={**os.environ, "HEADWATER_TEST_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[1].split()[:5] == ["repeats", "headwater", "1.0000", "1.0000", "1.0000"]
    assert any(line.startswith("ndt_en") and "is not there" in line for line in lines)
    for level in ("repeats", "stories"):
        assert any(line.split()[:3] == ["1,000", "headwater", level] for line in lines)
