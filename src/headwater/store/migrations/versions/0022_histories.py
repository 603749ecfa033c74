"""The inbox says what was handled, when and how long it took. Readers choose how their runs fold."""

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import BigId, Json, Moment

revision = "0022"
down_revision = "0021"

_HISTORY = (
    ("kind", sa.Text()),
    ("user_id", BigId),
    ("consumed_at", Moment()),
    ("milliseconds", sa.Float()),
)


def upgrade() -> None:
    for name, type in _HISTORY:
        op.add_column("consumer_inbox", sa.Column(name, type))
    op.add_column("fold_settings", sa.Column("runs", Json))


def downgrade() -> None:
    op.drop_column("fold_settings", "runs")
    for name, _ in reversed(_HISTORY):
        op.drop_column("consumer_inbox", name)
