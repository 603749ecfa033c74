from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.store import migrate
from headwater.store.db import Database


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    """A store on PostgreSQL."""
    database = Database(postgres_url)
    migrate.upgrade(database)
    yield database
    database.close()
