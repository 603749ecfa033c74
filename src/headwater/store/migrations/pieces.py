"""Columns, constraints and indexes that recur in migrations.

Databases exist at every revision, so these never change. A migration that needs something else declares it itself.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import BigId, Json, Moment, optional, required


def own_id() -> sa.Column[Any]:
    return sa.Column("id", BigId, nullable=False)


def counters(*names: str) -> list[sa.Column[Any]]:
    """Numbers that start at 0."""
    return [sa.Column(name, sa.Integer(), server_default="0", nullable=False) for name in names]


def source_id(**options: Any) -> sa.Column[Any]:
    return sa.Column("source_id", BigId, nullable=False, **options)


def tenant_and_user() -> list[sa.Column[Any]]:
    return [sa.Column("tenant_id", BigId, nullable=False), sa.Column("user_id", BigId, nullable=False)]


def primary_key(table: str, *names: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*names, name=op.f(f"pk_{table}"))


def unique(table: str, *names: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*names, name=op.f(f"uq_{table}_{'_'.join(names)}"))


def refers_to(table: str, name: str, other: str) -> sa.ForeignKeyConstraint:
    """The constraint that the column `name` of a table is an id of another one."""
    return sa.ForeignKeyConstraint([name], [f"{other}.id"], name=op.f(f"fk_{table}_{name}"), ondelete="CASCADE")


def of_user(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", "user_id"],
        ["users.tenant_id", "users.id"],
        name=op.f(f"fk_{table}_tenant_id_user_id"),
        ondelete="CASCADE",
    )


def partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    """Creates an index of those rows that meet a condition."""
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def cursors(*key: str) -> None:
    """Creates the cursors of consumers, with this key."""
    partition = [sa.Column("partition", sa.Integer(), nullable=False)] if "partition" in key else []
    op.create_table(
        "consumer_cursors",
        sa.Column("consumer", sa.Text(), nullable=False),
        *partition,
        *required(xid=BigId, id=BigId, moved_at=Moment),
        primary_key("consumer_cursors", *key),
    )


def source_aliases(*key: sa.Column[Any]) -> None:
    """Creates the table of former addresses, with this key."""
    op.create_table(
        "source_aliases",
        *key,
        source_id(),
        refers_to("source_aliases", "source_id", "sources"),
        primary_key("source_aliases", *(column.name for column in key)),
    )


def event_facts() -> list[sa.Column[Any]]:
    """What a copy of an event is known by."""
    return [
        *required(event_id=sa.String(36), kind=sa.Text, version=sa.Integer, key=sa.Text),
        *optional(tenant_id=BigId, user_id=BigId),
    ]


def counted_visits() -> list[sa.Column[Any]]:
    """What the visits of a time brought."""
    return [
        *required(visits_ok=sa.Integer, visits_unchanged=sa.Integer, visits_empty=sa.Integer, visits_failed=sa.Integer),
        *required(seconds=sa.Float, posts_new=sa.Integer, posts_updated=sa.Integer, posts_duplicate=sa.Integer),
        *optional(valid_posts_24h=sa.Integer, sources_total=sa.Integer, tiers=Json),
    ]
