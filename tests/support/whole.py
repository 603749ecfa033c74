"""Headwater in its own process, started as a person starts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from support.ports import free_port, wait_until_open


@contextmanager
def headwater_runs(command: str, *options: str, environ: Mapping[str, str] = {}) -> Iterator[str]:
    """Runs `headwater up`, or another command that serves pages, for the block; yields its login link."""
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    line = [sys.executable, "-m", "headwater", command, "--port", str(port), *options]
    with subprocess.Popen(
        line, env={**kept, **environ}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            link = next(
                (found[0] for line in process.stdout if (found := re.search(r"http://\S+/login\S+", line))), None
            )
            assert link, "it did not start"
            wait_until_open(port)
            yield link
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
