"""That the benchmark of communities still runs, and that a visit with nothing new is one request and writes no post."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.timeout(240)
def test_visits_of_communities_are_measured_and_quiet_ones_write_no_post() -> None:
    answer = subprocess.run(
        [
            sys.executable,
            ROOT / "bench" / "reddit.py",
            "--communities",
            "4",
            "--rounds",
            "1",
            "--parts",
            "quiet,visits",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert answer.returncode == 0, answer.stderr
    said = (
        "4 visits with nothing new: 4 requests; rows written: posts 0, versions 0, events 0, visits 4, posts touched 0"
    )
    assert said in answer.stdout
    assert "5 % of posts" in answer.stdout
