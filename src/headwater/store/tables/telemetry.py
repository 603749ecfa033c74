"""Readings of machines, and what they come to by the hour and by the day.

Nothing refers to the machines by a constraint: checking it for every reading costs more than writing the reading. The
machines are checked once for a batch, and what is left of those that are gone is deleted by periodic work.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from headwater.store.tables.columns import BigId, Moment, counter, metadata


def _of_miner() -> list[sa.Column[Any]]:
    return [sa.Column("tenant_id", BigId, nullable=False), sa.Column("miner_id", BigId, nullable=False)]


def _summed(table: str) -> sa.Table:
    """What the readings of each stretch of time come to."""
    figures = [
        column
        for name in ("hashrate", "power", "temperature")
        for column in (
            sa.Column(f"{name}_count", sa.Integer, nullable=False),
            *(sa.Column(f"{name}_{what}", sa.Float) for what in ("min", "sum", "max")),
        )
    ]
    return sa.Table(
        table,
        metadata,
        *_of_miner(),
        sa.Column("start", Moment, nullable=False),
        *figures,
        sa.PrimaryKeyConstraint("miner_id", "start"),
        sqlite_with_rowid=False,
    )


miner_telemetry = sa.Table(
    "miner_telemetry",
    metadata,
    *_of_miner(),
    sa.Column("at", Moment, nullable=False),
    sa.Column("hashrate_th", sa.Float, nullable=False),
    sa.Column("power_w", sa.Float),
    sa.Column("temperature_c", sa.Float),
    sa.PrimaryKeyConstraint("miner_id", "at"),
    sqlite_with_rowid=False,
    postgresql_partition_by="RANGE (at)",
)
telemetry_hours = _summed("telemetry_hours")
telemetry_days = _summed("telemetry_days")

# What was last heard of each machine, and what the watch makes of it. `doubts` are looks in a row that saw a change.
telemetry_heard = sa.Table(
    "telemetry_heard",
    metadata,
    *_of_miner(),
    sa.Column("last_at", Moment, nullable=False),
    sa.Column("received_at", Moment, nullable=False),
    sa.Column("state", sa.String(10), nullable=False, server_default="ok"),  # ok, silent or low
    sa.Column("since", Moment),
    counter("doubts"),
    sa.PrimaryKeyConstraint("miner_id"),
)

# When the watch last looked, and since when it has looked without a pause. One row.
telemetry_looks = sa.Table(
    "telemetry_looks",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("looked_at", Moment, nullable=False),
    sa.Column("watching_since", Moment, nullable=False),
)
