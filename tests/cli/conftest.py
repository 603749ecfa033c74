from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.web import ALLOW_LOOPBACK


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture(scope="session")
def environ_of() -> Callable[[Path], dict[str, str]]:
    """Return the environment of commands whose data is in a folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    fixed = {**clean, **ALLOW_LOOPBACK, "HEADWATER_HOST_GAP_SECONDS": "0"}
    return lambda folder: {**fixed, "HEADWATER_DATA_DIR": str(folder)}


@pytest.fixture
def environ(tmp_path: Path, environ_of: Callable[[Path], dict[str, str]]) -> dict[str, str]:
    return environ_of(tmp_path / "data")


@pytest.fixture
def headwater(environ: dict[str, str]) -> Callable[..., Ran]:
    """Run the command as a person would, in a process of its own."""

    def run(*words: str, given: bytes = b"", **more: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "headwater", *words],
            env={**environ, **more},
            input=given,
            capture_output=True,
            timeout=200,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
