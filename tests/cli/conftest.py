from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import forked
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
        done = forked.run("-m", "headwater", *words, env={**environ, **more}, input=given.decode())
        return Ran(done.returncode, done.stdout, done.stderr)

    return run
