"""Columns, constraints and indexes that recur in migrations.

Databases exist at every revision, so these never change. A migration that needs something else declares it itself.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import BigId, Json, Moment


def own_id() -> sa.Column[Any]:
    return sa.Column("id", BigId, nullable=False)


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
        sa.Column("xid", BigId, nullable=False),
        sa.Column("id", BigId, nullable=False),
        sa.Column("moved_at", Moment(), nullable=False),
        primary_key("consumer_cursors", *key),
    )


def event_facts() -> list[sa.Column[Any]]:
    """What a copy of an event is known by."""
    return [
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant_id", BigId),
        sa.Column("user_id", BigId),
    ]


def counted_visits() -> list[sa.Column[Any]]:
    """What the visits of a time brought."""
    return [
        sa.Column("visits_ok", sa.Integer(), nullable=False),
        sa.Column("visits_unchanged", sa.Integer(), nullable=False),
        sa.Column("visits_empty", sa.Integer(), nullable=False),
        sa.Column("visits_failed", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("posts_new", sa.Integer(), nullable=False),
        sa.Column("posts_updated", sa.Integer(), nullable=False),
        sa.Column("posts_duplicate", sa.Integer(), nullable=False),
        sa.Column("valid_posts_24h", sa.Integer()),
        sa.Column("sources_total", sa.Integer()),
        sa.Column("tiers", Json),
    ]
