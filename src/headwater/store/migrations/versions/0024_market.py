"""Daily figures of the market and the chain, and what is forecast from them. Both keep their versions."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import primary_key
from headwater.store.tables.columns import Moment

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.create_table(
        "market_daily",
        sa.Column("day", Moment(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("price_usd", sa.Float()),
        sa.Column("difficulty", sa.Float()),
        sa.Column("hashrate_th", sa.Float()),
        sa.Column("fees_btc", sa.Float(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("blocks", sa.Integer(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("stored_at", Moment(), nullable=False),
        sa.Column("superseded_at", Moment()),
        primary_key("market_daily", "day", "version"),
    )
    current = sa.text("superseded_at IS NULL")
    op.create_index(
        "ux_market_daily_current",
        "market_daily",
        ["day"],
        unique=True,
        sqlite_where=current,
        postgresql_where=current,
    )
    op.create_table(
        "forecast_daily",
        sa.Column("made_on", Moment(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("forecast_date", Moment(), nullable=False),
        *(
            sa.Column(name, sa.Float(), nullable=False)
            for name in (
                *("predicted_btc_price", "price_low", "price_high"),
                *("predicted_difficulty", "difficulty_low", "difficulty_high"),
                *("predicted_hashprice", "hashprice_low", "hashprice_high"),
            )
        ),
        sa.Column("confidence_score", sa.Float()),
        sa.Column("difficulty_skill", sa.Float()),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        primary_key("forecast_daily", "made_on", "version", "forecast_date"),
    )
    op.create_index("ix_forecast_daily_forecast_date", "forecast_daily", ["forecast_date"])


def downgrade() -> None:
    op.drop_table("forecast_daily")
    op.drop_table("market_daily")
