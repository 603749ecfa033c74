"""What most commands begin with: settings, an open store with the right schema, the owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headwater import wire
from headwater.cli.logs import configure
from headwater.errors import SchemaMismatch
from headwater.model import Reader
from headwater.settings import load
from headwater.store import migrate
from headwater.store.people import accounts
from headwater.wire import Parts


@contextmanager
def opened(**given: Any) -> Iterator[tuple[Parts, Reader]]:
    """Parts and the owner. A new store is made; an old one is left alone until `headwater db upgrade` or `up`."""
    loaded = load(**given)
    configure(loaded.settings.log_level, loaded.settings.log_format)
    parts = wire.open_parts(loaded)
    try:
        if migrate.current(parts.db) is None:
            owner: Reader | None = wire.prepare_store(parts)
        else:
            migrate.check(parts.db)
            owner = parts.db.read_now(accounts.owner)
        if owner is None:
            raise SchemaMismatch("The database has no owner yet. Run `headwater db upgrade`.")
        yield parts, owner
    finally:
        parts.close()
