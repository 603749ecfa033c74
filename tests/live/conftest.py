from __future__ import annotations

from collections.abc import Iterator

import pytest

from api.running import Running, running
from web.conftest import browser, headwater, opened

__all__ = ["browser", "headwater", "opened"]


@pytest.fixture
def on_both(store_url: str) -> Iterator[Running]:
    """A running Headwater on each database in turn."""
    with running(store_url) as made:
        yield made
