from __future__ import annotations

from collections.abc import Iterator

import pytest

from api.running import Client, Running, running


@pytest.fixture
def headwater(sqlite_url: str) -> Iterator[Running]:
    """A running Headwater on SQLite."""
    with running(sqlite_url) as made:
        yield made


@pytest.fixture
def on_both(store_url: str) -> Iterator[Running]:
    """A running Headwater on each database in turn."""
    with running(store_url) as made:
        yield made


@pytest.fixture
def program(headwater: Running) -> Client:
    return headwater.program()
