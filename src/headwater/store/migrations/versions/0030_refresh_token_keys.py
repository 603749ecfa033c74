"""A refresh token belongs to an API token of its own tenant, by a key that includes the tenant."""

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import of_user, own_id, primary_key, refers_to, tenant_and_user, unique
from headwater.store.tables.columns import BigId, Json, Moment

revision = "0030"
down_revision = "0029"

_TABLE = "refresh_tokens"
_OLD, _NEW = "fk_refresh_tokens_client_id", "fk_refresh_tokens_tenant_id_client_id"


def upgrade() -> None:
    op.create_index("ux_api_tokens_tenant_id_id", "api_tokens", ["tenant_id", "id"], unique=True)
    if _is_sqlite():
        _rebuild(of_tenant=True)
        return
    op.drop_constraint(_OLD, _TABLE)
    op.create_foreign_key(
        _NEW, _TABLE, "api_tokens", ["tenant_id", "client_id"], ["tenant_id", "id"], ondelete="CASCADE"
    )


def downgrade() -> None:
    if _is_sqlite():
        _rebuild(of_tenant=False)
    else:
        op.drop_constraint(_NEW, _TABLE)
        op.create_foreign_key(_OLD, _TABLE, "api_tokens", ["client_id"], ["id"], ondelete="CASCADE")
    op.drop_index("ux_api_tokens_tenant_id_id", "api_tokens")


def _rebuild(*, of_tenant: bool) -> None:
    """Makes the table again: SQLite cannot change a constraint."""
    columns = [
        own_id(),
        *tenant_and_user(),
        sa.Column("client_id", BigId, nullable=False),
        sa.Column("family", sa.String(36), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", Json, nullable=False),
        sa.Column("created_at", Moment(), nullable=False),
        sa.Column("expires_at", Moment(), nullable=False),
        sa.Column("spent_at", Moment()),
    ]
    of_client = (
        sa.ForeignKeyConstraint(
            ["tenant_id", "client_id"], ["api_tokens.tenant_id", "api_tokens.id"], name=op.f(_NEW), ondelete="CASCADE"
        )
        if of_tenant
        else refers_to(_TABLE, "client_id", "api_tokens")
    )
    names = ", ".join(str(column.name) for column in columns)
    op.rename_table(_TABLE, "old_refresh_tokens")
    op.create_table(
        _TABLE, *columns, of_user(_TABLE), of_client, primary_key(_TABLE, "id"), unique(_TABLE, "token_hash")
    )
    op.execute(f"INSERT INTO {_TABLE} ({names}) SELECT {names} FROM old_refresh_tokens")
    op.drop_table("old_refresh_tokens")
    op.create_index("ix_refresh_tokens_family", _TABLE, ["family"])
    op.create_index("ix_refresh_tokens_client_id", _TABLE, ["client_id"])


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"
