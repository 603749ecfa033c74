"""Visits that people ask for go first and have results; readers choose intervals; a password is part of a source."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import partial_index, primary_key, refers_to, source_aliases, source_id
from headwater.store.tables.columns import Moment, optional, required

revision = "0015"
down_revision = "0014"

# Until its key is derived from it, nobody can name a source by its password.
_UNKNOWN_KEY = "unknown:"


def upgrade() -> None:
    for column in (
        _credential_key(),
        sa.Column("chosen_seconds", sa.Integer()),
        sa.Column("chosen_by_all", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("not_before", Moment()),
        sa.Column("asked_at", Moment()),
        sa.Column("task_id", sa.Text()),
    ):
        op.add_column("sources", column)
    op.execute(f"UPDATE sources SET credential_key = '{_UNKNOWN_KEY}' || id WHERE credential IS NOT NULL")
    partial_index("ix_sources_asked", "sources", ["asked_at"], "asked_at IS NOT NULL")
    _make_unique(["address"], ["address", "credential_key"])
    _rename_aliases()
    source_aliases(*required(address=sa.Text), _credential_key())
    op.execute(
        """INSERT INTO source_aliases (address, credential_key, source_id)
        SELECT a.address, s.credential_key, a.source_id FROM old_aliases a JOIN sources s ON s.id = a.source_id"""
    )
    op.drop_table("old_aliases")
    op.create_index("ix_source_aliases_source_id", "source_aliases", ["source_id"])
    op.add_column("subscriptions", sa.Column("interval_seconds", sa.Integer()))
    op.add_column("posts", sa.Column("revision", sa.Integer(), server_default="1", nullable=False))
    op.execute("UPDATE posts SET revision = version WHERE version > 1")
    op.create_table(
        "visit_tasks",
        sa.Column("id", sa.Text(), nullable=False),
        source_id(),
        sa.Column("created_at", Moment(), nullable=False),
        *optional(
            finished_at=Moment, success=sa.Boolean, article_count=sa.Integer, duration_ms=sa.Integer, error=sa.Text
        ),
        refers_to("visit_tasks", "source_id", "sources"),
        primary_key("visit_tasks", "id"),
    )
    op.create_index("ix_visit_tasks_created_at", "visit_tasks", ["created_at"])
    op.create_index("ix_visit_tasks_source_id", "visit_tasks", ["source_id"])


def _credential_key() -> sa.Column[str]:
    return sa.Column("credential_key", sa.Text(), server_default="", nullable=False)


def downgrade() -> None:
    """Of several sources at one address, only one keeps it: the one without a password, or else the oldest."""
    op.drop_table("visit_tasks")
    op.drop_column("posts", "revision")
    op.drop_column("subscriptions", "interval_seconds")
    op.execute(
        """UPDATE sources SET address = address || '#' || id WHERE EXISTS (
            SELECT 1 FROM sources o WHERE o.address = sources.address
                AND (o.credential_key <> '', o.id) < (sources.credential_key <> '', sources.id))"""
    )
    _rename_aliases()
    source_aliases(*required(address=sa.Text))
    op.execute(
        """INSERT INTO source_aliases (address, source_id) SELECT address, source_id FROM old_aliases a
        WHERE credential_key = (SELECT min(o.credential_key) FROM old_aliases o WHERE o.address = a.address)"""
    )
    op.drop_table("old_aliases")
    op.create_index("ix_source_aliases_source_id", "source_aliases", ["source_id"])
    _make_unique(["address", "credential_key"], ["address"])
    op.drop_index("ix_sources_asked", table_name="sources")
    for name in ("task_id", "asked_at", "not_before", "chosen_by_all", "chosen_seconds", "credential_key"):
        op.drop_column("sources", name)


def _rename_aliases() -> None:
    op.drop_index("ix_source_aliases_source_id", table_name="source_aliases")
    op.rename_table("source_aliases", "old_aliases")
    if op.get_context().dialect.name == "postgresql":
        for kind in ("pk_source_aliases", "fk_source_aliases_source_id"):
            op.execute(f"ALTER TABLE old_aliases RENAME CONSTRAINT {kind} TO old_{kind}")


def _make_unique(before: list[str], after: list[str]) -> None:
    """Replaces the constraint that says which sources are one."""
    if op.get_context().dialect.name == "postgresql":
        op.drop_constraint(_name(before), "sources", type_="unique")
        op.create_unique_constraint(_name(after), "sources", after)
        return
    # SQLite cannot change a constraint. A copy of the table takes its place; `migrate` has switched foreign keys off.
    conn = op.get_bind()
    [made] = conn.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'sources'").scalars()
    found = conn.exec_driver_sql(
        "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'sources' AND sql IS NOT NULL"
    )
    indexes = list(found.scalars())
    constraint = f"CONSTRAINT {_name(before)} UNIQUE ({', '.join(before)})"
    assert constraint in made, made
    wanted = f"CONSTRAINT {_name(after)} UNIQUE ({', '.join(after)})"
    made = made.replace(constraint, wanted)
    opening = made.partition("(")[0]
    conn.exec_driver_sql(made.replace(opening, "CREATE TABLE new_sources ", 1))
    conn.exec_driver_sql("INSERT INTO new_sources SELECT * FROM sources")
    conn.exec_driver_sql(
        """UPDATE sqlite_sequence SET seq = (SELECT seq FROM sqlite_sequence WHERE name = 'sources')
        WHERE name = 'new_sources'"""
    )
    conn.exec_driver_sql("PRAGMA legacy_alter_table = ON")  # or a view of sources would be in the way
    conn.exec_driver_sql("DROP TABLE sources")
    conn.exec_driver_sql("ALTER TABLE new_sources RENAME TO sources")
    conn.exec_driver_sql("PRAGMA legacy_alter_table = OFF")
    for index in indexes:
        conn.exec_driver_sql(index)


def _name(columns: list[str]) -> str:
    return f"uq_sources_{'_'.join(columns)}"
