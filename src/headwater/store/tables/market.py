"""The market's daily figures, and what is forecast from them. Both are shared by everybody."""

from __future__ import annotations

import sqlalchemy as sa

from headwater.store.tables.columns import Moment, metadata

# A day has one row for each version; the one that holds now is not superseded.
market_daily = sa.Table(
    "market_daily",
    metadata,
    sa.Column("day", Moment, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("price_usd", sa.Float),
    sa.Column("difficulty", sa.Float),
    sa.Column("hashrate_th", sa.Float),
    sa.Column("fees_btc", sa.Float, nullable=False),
    sa.Column("height", sa.Integer, nullable=False),
    sa.Column("blocks", sa.Integer, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("stored_at", Moment, nullable=False),
    sa.Column("superseded_at", Moment),
    sa.PrimaryKeyConstraint("day", "version"),
)
sa.Index(
    "ux_market_daily_current",
    market_daily.c.day,
    unique=True,
    sqlite_where=sa.text("superseded_at IS NULL"),
    postgresql_where=sa.text("superseded_at IS NULL"),
)

# What was forecast, by the last day that was known then. What was made again from corrected figures is a version.
forecast_daily = sa.Table(
    "forecast_daily",
    metadata,
    sa.Column("made_on", Moment, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("forecast_date", Moment, nullable=False),
    sa.Column("predicted_btc_price", sa.Float, nullable=False),
    sa.Column("price_low", sa.Float, nullable=False),
    sa.Column("price_high", sa.Float, nullable=False),
    sa.Column("predicted_difficulty", sa.Float, nullable=False),
    sa.Column("difficulty_low", sa.Float, nullable=False),
    sa.Column("difficulty_high", sa.Float, nullable=False),
    sa.Column("predicted_hashprice", sa.Float, nullable=False),
    sa.Column("hashprice_low", sa.Float, nullable=False),
    sa.Column("hashprice_high", sa.Float, nullable=False),
    sa.Column("confidence_score", sa.Float),
    sa.Column("difficulty_skill", sa.Float),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.PrimaryKeyConstraint("made_on", "version", "forecast_date"),
)
sa.Index("ix_forecast_daily_forecast_date", forecast_daily.c.forecast_date)
