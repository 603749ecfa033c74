"""The benchmark of fetching runs and prints its figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench" / "fetch.py"


def test_the_benchmark_compares_the_client_with_its_peers() -> None:
    run = subprocess.run(
        [sys.executable, str(BENCH), "--requests", "70", "--rounds", "1", "--without-nginx"],
        capture_output=True,
        text=True,
        check=True,
    )
    for words in ("answered 304", "100 KB of gzip", "headwater on uvloop", "bare pycurl", "goal"):
        assert words in run.stdout
