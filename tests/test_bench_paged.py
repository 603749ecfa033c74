"""That the benchmark of paged sites still runs, and that what it crawls is read and stored."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.timeout(240)
def test_articles_quiet_lists_and_long_boards_are_measured(tmp_path: Path) -> None:
    few = ["--pages", "12", "--rounds", "1", "--boards", "4", "--known", "300", "--threads", "20"]
    answer = subprocess.run(
        [sys.executable, ROOT / "bench" / "paged.py", *few],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "HEADWATER_TEST_DATA": str(tmp_path / "nothing")},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert answer.returncode == 0, answer.stderr
    assert "12 made-up article pages" in answer.stdout
    assert "headwater, 8 sites" in answer.stdout
    assert "by its ETag" in answer.stdout
    assert "by its bytes" in answer.stdout
    assert "A board with 300 threads, all known" in answer.stdout
    assert "A board with 20 threads, none known" in answer.stdout
