"""Which posts name machines, makers, pools and coins that somebody has."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import counters, of_user, primary_key, refers_to, tenant_and_user
from headwater.store.tables.columns import BigId, Moment, required

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.create_table(
        "owned_subjects",
        *tenant_and_user(),
        *required(subject_id=sa.BigInteger, kind=sa.String(10), name=sa.Text),
        sa.Column("maker", sa.Text(), server_default="", nullable=False),
        *counters("machines"),
        primary_key("owned_subjects", "tenant_id", "user_id", "subject_id"),
        of_user("owned_subjects"),
    )
    op.create_index("ix_owned_subjects_subject_id", "owned_subjects", ["subject_id"])
    op.create_table(
        "post_mentions",
        *required(post_id=BigId, subject_id=sa.BigInteger, word=sa.Text, created_at=Moment),
        primary_key("post_mentions", "post_id", "subject_id"),
        refers_to("post_mentions", "post_id", "posts"),
    )
    op.create_index("ix_post_mentions_newest", "post_mentions", ["subject_id", "created_at", "post_id"])
    op.create_table(
        "mention_scans",
        sa.Column("subject_id", sa.BigInteger(), nullable=False, autoincrement=False),
        *required(next_id=BigId),
        primary_key("mention_scans", "subject_id"),
    )


def downgrade() -> None:
    for table in ("mention_scans", "post_mentions", "owned_subjects"):
        op.drop_table(table)
