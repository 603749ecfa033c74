"""That the benchmark of events still runs, in small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--logs", "sqlite", "--events", "1000", "--writes", "100", "--rows", "1000,2000", "--rounds", "1")


def test_the_cost_of_an_event_is_measured(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, ROOT / "bench" / "events.py", *SMALL],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert answer.returncode == 0, answer.stderr
    for part in (
        "the share with an event",
        "events consumed",
        "the commit of its effect",
        "microseconds for one event",
    ):
        assert part in answer.stdout
