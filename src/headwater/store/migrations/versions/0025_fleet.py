"""Machines, their models, trades of coins, and portfolios."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import of_user, own_id, partial_index, primary_key, tenant_and_user, unique
from headwater.store.tables.columns import BigId, Exact, Json, Moment, optional, required

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    _models()
    _machines()
    _trades()
    _portfolios()


def _models() -> None:
    op.create_table(
        "miner_models",
        own_id(),
        *required(model_key=sa.Text, model_name=sa.Text, manufacturer=sa.Text),
        *required(reference_hashrate_th=Exact, reference_power_w=Exact),
        *optional(release_date=sa.String(10)),
        sa.Column("is_shipped", sa.Boolean(), server_default=sa.false(), nullable=False),
        primary_key("miner_models", "id"),
        unique("miner_models", "model_key"),
        sqlite_autoincrement=True,
    )


def _machines() -> None:
    op.create_table(
        "user_miners",
        own_id(),
        *tenant_and_user(),
        sa.Column("miner_model_id", BigId),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("site", sa.Text(), server_default="", nullable=False),
        sa.Column("pool", sa.Text(), server_default="", nullable=False),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.Column("actual_hashrate_th", Exact(), nullable=False),
        sa.Column("actual_power_w", Exact(), nullable=False),
        sa.Column("electricity_usd_per_kwh", Exact(), nullable=False),
        sa.Column("purchase_usd", Exact()),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("updated_at", Moment(), nullable=False),
        sa.ForeignKeyConstraint(["miner_model_id"], ["miner_models.id"], name=op.f("fk_user_miners_miner_model_id")),
        of_user("user_miners"),
        primary_key("user_miners", "id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ux_user_miners_tenant_id_id", "user_miners", ["tenant_id", "id"], unique=True)
    op.create_index("ix_user_miners_user", "user_miners", ["tenant_id", "user_id", "id"])


def _trades() -> None:
    op.create_table(
        "treasury_trades",
        own_id(),
        *tenant_and_user(),
        *required(side=sa.String(4), satoshis=sa.BigInteger, usd=Exact, traded_at=Moment),
        sa.Column("note", sa.Text(), server_default="", nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        of_user("treasury_trades"),
        primary_key("treasury_trades", "id"),
        unique("treasury_trades", "tenant_id", "user_id", "idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ux_treasury_trades_tenant_id_id", "treasury_trades", ["tenant_id", "id"], unique=True)
    op.create_index("ix_treasury_trades_time", "treasury_trades", ["tenant_id", "user_id", "traded_at", "id"])


def _portfolios() -> None:
    op.create_table(
        "user_portfolios",
        *tenant_and_user(),
        sa.Column("wanted", sa.Integer(), server_default="0", nullable=False),
        sa.Column("calculated", sa.Integer(), server_default="0", nullable=False),
        sa.Column("btc_inventory", Exact()),
        sa.Column("avg_cost_basis_usd", Exact()),
        sa.Column("monthly_opex_usd", Exact()),
        sa.Column("figures", Json),
        sa.Column("last_updated", Moment()),
        of_user("user_portfolios"),
        primary_key("user_portfolios", "tenant_id", "user_id"),
    )
    partial_index("ix_user_portfolios_stale", "user_portfolios", ["tenant_id", "user_id"], "calculated < wanted")


def downgrade() -> None:
    for table in ("user_portfolios", "treasury_trades", "user_miners", "miner_models"):
        op.drop_table(table)
