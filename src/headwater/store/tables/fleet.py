"""Machines, coins and what they come to. The catalogue of models is shared; the rest belongs to a user."""

from __future__ import annotations

import sqlalchemy as sa

from headwater.store.tables.columns import (
    BigId,
    Exact,
    Json,
    Moment,
    counter,
    metadata,
    of_user,
    own_id,
    partial_index,
    refers_to,
    required,
    table,
    tenant_and_user,
)

miner_models = sa.Table(
    "miner_models",
    metadata,
    own_id(),
    sa.Column("model_key", sa.Text, nullable=False, unique=True),  # the name as it is compared
    sa.Column("model_name", sa.Text, nullable=False),
    sa.Column("manufacturer", sa.Text, nullable=False),
    sa.Column("reference_hashrate_th", Exact, nullable=False),
    sa.Column("reference_power_w", Exact, nullable=False),
    sa.Column("release_date", sa.String(10)),  # a year, a month or a day, as far as it is known
    sa.Column("is_shipped", sa.Boolean, nullable=False, server_default=sa.false()),  # False: somebody imported it
    sqlite_autoincrement=True,
)

# Machines of one kind at one place. `actual_` figures are those of one machine.
user_miners = sa.Table(
    "user_miners",
    metadata,
    own_id(),
    *tenant_and_user(),
    sa.Column("miner_model_id", BigId, sa.ForeignKey("miner_models.id")),  # None: a model that no catalogue has
    sa.Column("name", sa.Text, nullable=False, server_default=""),
    sa.Column("site", sa.Text, nullable=False, server_default=""),
    sa.Column("pool", sa.Text, nullable=False, server_default=""),
    sa.Column("quantity", sa.Integer, nullable=False),
    sa.Column("actual_hashrate_th", Exact, nullable=False),
    sa.Column("actual_power_w", Exact, nullable=False),
    sa.Column("electricity_usd_per_kwh", Exact, nullable=False),
    sa.Column("purchase_usd", Exact),  # what one machine cost
    sa.Column("revision", sa.Integer, nullable=False, server_default="1"),  # grows with every change
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    of_user(),
    sqlite_autoincrement=True,
)
sa.Index("ux_user_miners_tenant_id_id", user_miners.c.tenant_id, user_miners.c.id, unique=True)
sa.Index("ix_user_miners_user", user_miners.c.tenant_id, user_miners.c.user_id, user_miners.c.id)

# Coins that came or went. Rows are added and never changed.
treasury_trades = sa.Table(
    "treasury_trades",
    metadata,
    own_id(),
    *tenant_and_user(),
    sa.Column("side", sa.String(4), nullable=False),  # buy, mine or sell
    sa.Column("satoshis", sa.BigInteger, nullable=False),
    sa.Column("usd", Exact, nullable=False),  # what they cost or brought, fees included
    sa.Column("traded_at", Moment, nullable=False),
    sa.Column("note", sa.Text, nullable=False, server_default=""),
    sa.Column("idempotency_key", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.UniqueConstraint("tenant_id", "user_id", "idempotency_key"),
    of_user(),
    sqlite_autoincrement=True,
)
sa.Index("ux_treasury_trades_tenant_id_id", treasury_trades.c.tenant_id, treasury_trades.c.id, unique=True)
sa.Index(
    "ix_treasury_trades_time",
    treasury_trades.c.tenant_id,
    treasury_trades.c.user_id,
    treasury_trades.c.traded_at,
    treasury_trades.c.id,
)

# Trades that were entered wrongly: each is called off once, and what should have been entered is a trade of its own.
# Rows are added and never changed.
trade_corrections = table(
    "trade_corrections",
    own_id(),
    *tenant_and_user(),
    sa.Column("trade_id", BigId, nullable=False),
    sa.Column("replaced_by", BigId),  # the trade that counts instead; None: there was no such trade
    *required(reason=sa.Text, idempotency_key=sa.Text, created_at=Moment),
    sa.UniqueConstraint("tenant_id", "trade_id"),
    sa.UniqueConstraint("tenant_id", "user_id", "idempotency_key"),
    of_user(),
    sa.ForeignKeyConstraint(
        ["tenant_id", "trade_id"], ["treasury_trades.tenant_id", "treasury_trades.id"], ondelete="CASCADE"
    ),
    sqlite_autoincrement=True,
)

# What a user's machines and coins come to. `wanted` grows with every event that changes it; `calculated` is the value
# of `wanted` that the figures are made for.
user_portfolios = sa.Table(
    "user_portfolios",
    metadata,
    *tenant_and_user(),
    counter("wanted"),
    counter("calculated"),
    sa.Column("stale_since", Moment),  # the first change that is not taken in
    sa.Column("btc_inventory", Exact),
    sa.Column("avg_cost_basis_usd", Exact),
    sa.Column("monthly_opex_usd", Exact),
    sa.Column("figures", Json),  # all that is shown
    sa.Column("last_updated", Moment),
    sa.PrimaryKeyConstraint("tenant_id", "user_id"),
    of_user(),
)
partial_index("ix_user_portfolios_stale", user_portfolios.c.stale_since, where="calculated < wanted")

# What posts can name of a user's: the models and makers of machines, their pools, and coins. `subject_id` stands for
# one of them wherever it is counted for everybody, and says nothing about who has it.
owned_subjects = table(
    "owned_subjects",
    *tenant_and_user(),
    *required(subject_id=sa.BigInteger, kind=sa.String(10), name=sa.Text),
    sa.Column("maker", sa.Text, nullable=False, server_default=""),  # of a model
    counter("machines"),
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "subject_id"),
    of_user(),
)
sa.Index("ix_owned_subjects_subject_id", owned_subjects.c.subject_id)

# Which posts name something that somebody has, and by which word.
post_mentions = table(
    "post_mentions",
    refers_to("posts"),
    *required(subject_id=sa.BigInteger, word=sa.Text),
    sa.Column("created_at", Moment, nullable=False),  # the post's
    sa.PrimaryKeyConstraint("post_id", "subject_id"),
)
sa.Index("ix_post_mentions_newest", post_mentions.c.subject_id, post_mentions.c.created_at, post_mentions.c.post_id)

# How far earlier posts were searched for each subject: down to `next_id`. 0: all of them were.
mention_scans = table(
    "mention_scans",
    sa.Column("subject_id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("next_id", BigId, nullable=False),
)
