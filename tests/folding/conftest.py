from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from api.running import Running, running
from web.conftest import browser, opened

__all__ = ["browser", "opened"]


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compiling takes longer than any test waits; it is done once."""
    subprocess.run([sys.executable, "-m", "headwater.dedup.warm"], check=True)


@pytest.fixture
def on_both(store_url: str) -> Iterator[Running]:
    with running(store_url) as made:
        yield made


@pytest.fixture
def headwater(sqlite_url: str) -> Iterator[Running]:
    with running(sqlite_url) as made:
        yield made
