from __future__ import annotations

import subprocess
import sys

import pytest

from web.conftest import browser, opened

__all__ = ["browser", "opened"]


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compiling takes longer than any test waits; it is done once."""
    subprocess.run([sys.executable, "-m", "headwater.dedup.warm"], check=True)
