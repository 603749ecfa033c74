"""Which posts name machines, makers, pools and coins that somebody has."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import of_user, primary_key, refers_to, tenant_and_user
from headwater.store.tables.columns import BigId, Moment

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.create_table(
        "owned_subjects",
        *tenant_and_user(),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("maker", sa.Text(), server_default="", nullable=False),
        sa.Column("machines", sa.Integer(), server_default="0", nullable=False),
        primary_key("owned_subjects", "tenant_id", "user_id", "subject_id"),
        of_user("owned_subjects"),
    )
    op.create_index("ix_owned_subjects_subject_id", "owned_subjects", ["subject_id"])
    op.create_table(
        "post_mentions",
        sa.Column("post_id", BigId, nullable=False),
        sa.Column("subject_id", sa.BigInteger(), nullable=False),
        sa.Column("word", sa.Text(), nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        primary_key("post_mentions", "post_id", "subject_id"),
        refers_to("post_mentions", "post_id", "posts"),
    )
    op.create_index("ix_post_mentions_newest", "post_mentions", ["subject_id", "created_at", "post_id"])
    op.create_table(
        "mention_scans",
        sa.Column("subject_id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("next_id", BigId, nullable=False),
        primary_key("mention_scans", "subject_id"),
    )


def downgrade() -> None:
    for table in ("mention_scans", "post_mentions", "owned_subjects"):
        op.drop_table(table)
