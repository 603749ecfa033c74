"""No function that takes a reader can tell whether there is another tenant (E10, H68), on both databases.

SQLite has no row level security. There this is what keeps tenants apart (H75).

Each is called in a store with two tenants and in the same store with one. What it returns and what it changes has to be
the same, whether it is asked for what is the reader's own or for what is another tenant's.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection

from headwater.errors import HeadwaterError
from headwater.model import Reader
from headwater.store import row_security
from headwater.store.db import Database
from support.services import as_app_role, fresh_postgres_database, service_url
from tenants import contract
from tenants.contract import FOUND_BEFORE, Ids
from tenants.two_tenants import contents, fill, forget_tenant

# Made up anew in each call: ids of events and tasks, secrets, tokens and their hashes.
_RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}|whsec_[\w+/=]+|hw_[a-z]+_[\w-]{20,}|b'(?:[^'\\]|\\.){30,}'"
    r'|b"(?:[^"\\]|\\.){30,}"'
)
FUNCTIONS = [one for one in contract.functions() if contract.label(one) not in FOUND_BEFORE]


class Stores(NamedTuple):
    both: Database
    alone: Database
    ours: Reader
    own: Ids
    other: Ids


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            folder = tmp_path_factory.mktemp("contract")
            files = [folder / "both.db", folder / "alone.db"]
            shutil.copy(request.getfixturevalue("sqlite_schema"), files[0])
            ours, theirs, own, other = _filled(f"sqlite:///{files[0]}")
            shutil.copy(files[0], files[1])
            urls = [f"sqlite:///{file}" for file in files]
        else:
            template = request.getfixturevalue("postgres_schema")
            server = service_url("postgres")
            both = stack.enter_context(fresh_postgres_database(server, template))
            ours, theirs, own, other = _filled(both)
            alone = stack.enter_context(fresh_postgres_database(server, Path(both).name))
            urls = [as_app_role(both), as_app_role(alone)]
        dbs = [stack.enter_context(closing(Database(url))) for url in urls]
        dbs[1].write_now(forget_tenant, theirs.tenant_id, other)
        yield Stores(*dbs, ours, own, other)


def _filled(url: str) -> tuple[Reader, Reader, Ids, Ids]:
    with closing(Database(url)) as db:
        return db.write_now(fill)


def outcome(db: Database, reader: Reader, function: Callable[..., Any], given: dict[str, Any]) -> tuple[Any, ...]:
    """Calls a function in a transaction that is undone. Returns what it returned or raised, and the rows it changed."""
    with db.engine.connect().execution_options(headwater_writes=True) as conn, conn.begin() as transaction:
        row_security.begin(conn, [reader])
        before = _rows(conn)
        try:
            returned = function(conn, reader=reader, **given)
            answer = repr(list(returned) if isinstance(returned, Iterator) else returned)
        except HeadwaterError as error:
            answer = f"{type(error).__name__}: {error.detail} {error.facts}"
        after = _rows(conn)
        transaction.rollback()
    return _plain(answer), after - before, before - after


def _rows(conn: Connection) -> Counter[str]:
    return Counter(_plain(f"{table} {row}") for table, rows in contents(conn).items() for row in rows)


def _plain(words: str) -> str:
    return _RANDOM.sub("*", words)


@pytest.mark.parametrize("function", FUNCTIONS, ids=contract.label)
@pytest.mark.parametrize("whose", ["own", "other"])
def test_a_reader_cannot_tell_whether_there_is_another_tenant(
    stores: Stores, function: Callable[..., Any], whose: str
) -> None:
    given = contract.arguments(function, getattr(stores, whose))
    assert outcome(stores.both, stores.ours, function, given) == outcome(stores.alone, stores.ours, function, given)


def test_the_two_stores_differ(stores: Stores) -> None:
    """Or else the contract would show nothing."""
    rows = [db.read_now(_rows) for db in (stores.both, stores.alone)]
    only_with_both = {row.partition(" ")[0] for row in rows[0] - rows[1]}
    personal = {"tenants", "users", "subscriptions", "post_states", "fold_settings", "webhooks", "webhook_deliveries"}
    personal |= {"user_miners", "treasury_trades", "user_portfolios", "miner_telemetry", "telemetry_hours"}
    personal |= {"owned_subjects", "trade_corrections"}
    assert personal | {"sources", "posts", "images", "fold_runs", "event_outbox", "visit_tasks"} <= only_with_both
    assert not rows[1] - rows[0]
