"""The market's daily figures, and what is forecast from them. Both are shared by everybody."""

from __future__ import annotations

import sqlalchemy as sa

from headwater.store.tables.columns import Moment, optional, partial_index, required, table

# A day has one row for each version; the one that holds now is not superseded.
market_daily = table(
    "market_daily",
    *required(day=Moment, version=sa.Integer),
    *optional(price_usd=sa.Float, difficulty=sa.Float, hashrate_th=sa.Float),
    *required(fees_btc=sa.Float, height=sa.Integer, blocks=sa.Integer, origin=sa.Text, stored_at=Moment),
    *optional(superseded_at=Moment),
    sa.PrimaryKeyConstraint("day", "version"),
)
partial_index("ux_market_daily_current", market_daily.c.day, where="superseded_at IS NULL", unique=True)

# What was forecast, by the last day that was known then. What was made again from corrected figures is a version.
forecast_daily = table(
    "forecast_daily",
    *required(made_on=Moment, version=sa.Integer, forecast_date=Moment),
    *required(predicted_btc_price=sa.Float, price_low=sa.Float, price_high=sa.Float),
    *required(predicted_difficulty=sa.Float, difficulty_low=sa.Float, difficulty_high=sa.Float),
    *required(predicted_hashprice=sa.Float, hashprice_low=sa.Float, hashprice_high=sa.Float),
    *optional(confidence_score=sa.Float, difficulty_skill=sa.Float),
    *required(model=sa.Text, created_at=Moment),
    sa.PrimaryKeyConstraint("made_on", "version", "forecast_date"),
)
sa.Index("ix_forecast_daily_forecast_date", forecast_daily.c.forecast_date)
