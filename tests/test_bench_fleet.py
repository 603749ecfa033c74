"""That the benchmark of portfolios still runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.timeout(240)
def test_portfolios_are_calculated_and_changes_become_visible() -> None:
    small = ["--machines", "200", "--trades", "30", "--writes", "20", "--seconds", "1"]
    answer = subprocess.run(
        [sys.executable, ROOT / "bench" / "fleet.py", *small],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    assert "calculating 200 machines and 30 trades" in answer.stdout
    assert "change to visible: p50" in answer.stdout
