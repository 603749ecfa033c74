from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.running import Client, Running, running


@pytest.fixture
def headwater(tmp_path: Path) -> Iterator[Running]:
    """A running Headwater on SQLite."""
    with running(f"sqlite:///{tmp_path / 'headwater.db'}") as made:
        yield made


@pytest.fixture
def on_both(store_url: str) -> Iterator[Running]:
    """A running Headwater on each database in turn."""
    with running(store_url) as made:
        yield made


@pytest.fixture
def program(headwater: Running) -> Client:
    return headwater.program()
