"""Readings of machines, and what they come to by the hour and by the day.

Nothing refers to the machines by a constraint: checking it for every reading costs more than writing the reading. The
machines are checked once for a batch. What is left of those that are gone is deleted a few rows at a time by periodic
work (`forget_gone` in `store/fleet/telemetry.py`); until then nobody can see it.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from headwater.store.tables.columns import BigId, Moment, counter, optional, required, table


def _of_miner() -> list[sa.Column[Any]]:
    return required(tenant_id=BigId, miner_id=BigId)


def _summed(name: str) -> sa.Table:
    """What the readings of each stretch of time come to."""
    figures = [
        column
        for figure in ("hashrate", "power", "temperature")
        for column in (
            sa.Column(f"{figure}_count", sa.Integer, nullable=False),
            *(sa.Column(f"{figure}_{what}", sa.Float) for what in ("min", "sum", "max")),
        )
    ]
    return table(
        name,
        *_of_miner(),
        *required(start=Moment),
        *figures,
        sa.PrimaryKeyConstraint("miner_id", "start"),
        sqlite_with_rowid=False,
    )


miner_telemetry = table(
    "miner_telemetry",
    *_of_miner(),
    *required(at=Moment, hashrate_th=sa.Float),
    *optional(power_w=sa.Float, temperature_c=sa.Float),
    sa.PrimaryKeyConstraint("miner_id", "at"),
    sqlite_with_rowid=False,
    postgresql_partition_by="RANGE (at)",
)
telemetry_hours = _summed("telemetry_hours")
telemetry_days = _summed("telemetry_days")

# What was last heard of each machine, and what the watch makes of it. `doubts` are looks in a row that saw a change.
telemetry_heard = table(
    "telemetry_heard",
    *_of_miner(),
    *required(last_at=Moment, received_at=Moment),
    sa.Column("state", sa.String(10), nullable=False, server_default="ok"),  # ok, silent or low
    sa.Column("since", Moment),
    counter("doubts"),
    sa.PrimaryKeyConstraint("miner_id"),
)

# When the watch last looked, and since when it has looked without a pause. One row.
telemetry_looks = table(
    "telemetry_looks",
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    *required(looked_at=Moment, watching_since=Moment),
)
