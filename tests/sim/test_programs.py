"""Simulated sites as programs: each prints where it is, and its clock is moved by HTTP."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from datetime import datetime, timedelta
from typing import Any

import pytest

SITES = {"reddit": ["news"], "x": ["news"], "forum": [], "news": []}


def clock(url: str, method: str = "GET") -> Any:
    request = urllib.request.Request(f"{url}/sim/clock?seconds=3600", method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["now"]


@pytest.mark.parametrize("name", SITES)
def test_it_runs_as_a_program_whose_clock_is_moved_by_http(name: str) -> None:
    command = [sys.executable, "-m", f"headwater.sim.{name}", "--port", "0", "--seed", "1", *SITES[name]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            [url, *_] = re.findall(r"http://[\d.:]+", process.stdout.readline())
            before, after = clock(url), clock(url, "POST")
            if name != "forum":  # whose clock begins in the middle of its history
                assert (before, after) == ("2026-11-02T00:00:00+00:00", "2026-11-02T01:00:00+00:00")
            assert datetime.fromisoformat(after) - datetime.fromisoformat(before) == timedelta(hours=1)
        finally:
            process.terminate()
