from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.model import Reader
from headwater.store import accounts, migrate
from headwater.store.db import Database
from support.posts import NOON


@pytest.fixture
def db(store_url: str) -> Iterator[Database]:
    """A store with the newest schema, on each database in turn."""
    database = Database(store_url)
    migrate.upgrade(database)
    yield database
    database.close()


@pytest.fixture
def owner(db: Database) -> Reader:
    return db.write_now(accounts.make_owner, NOON)
