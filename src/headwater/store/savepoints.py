"""Savepoints: what a handler wrote can be undone without ending the transaction.

Those of SQLAlchemy do not do: after a handler that caught an error of PostgreSQL's they cannot be rolled back any more.
"""

from __future__ import annotations

from sqlalchemy import Connection

from headwater.store.driver import portable

_set = portable("SAVEPOINT attempt")
_drop = portable("RELEASE SAVEPOINT attempt")
_undo = portable("ROLLBACK TO SAVEPOINT attempt")


def begin(conn: Connection) -> None:
    _set.once(conn)


def keep(conn: Connection) -> None:
    """What was written since `begin` is part of the transaction. Fails if the transaction is broken."""
    _drop.once(conn)


def undo(conn: Connection) -> None:
    """What was written since `begin` is gone, and the transaction is whole again."""
    _undo.once(conn)
    _drop.once(conn)
