"""People who sign in with e-mail and password, roles, invitations, scopes of tokens, identities at providers.

The tenant that is there already runs the instance, and its owner signs in as before.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from headwater.store.migrations.pieces import of_user, own_id, primary_key, refers_to, tenant_and_user, unique
from headwater.store.tables.columns import BigId, Json, Moment, required

revision = "0019"
down_revision = "0018"

_USER_COLUMNS: dict[str, Any] = {
    "email": sa.Text(),
    "password_hash": sa.Text(),
    "time_zone": sa.Text(),
    "theme": sa.String(10),
}
_TOKEN_COLUMNS: dict[str, Any] = {"scopes": Json, "last_used_at": Moment(), "address": sa.Text(), "agent": sa.Text()}


def upgrade() -> None:
    op.add_column("tenants", sa.Column("runs_instance", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute("UPDATE tenants SET runs_instance = (id = (SELECT min(id) FROM tenants))")
    for name, kind in _USER_COLUMNS.items():
        op.add_column("users", sa.Column(name, kind))
    op.create_index("ux_users_tenant_id_email", "users", ["tenant_id", "email"], unique=True)
    op.create_index("ix_users_email", "users", ["email"])
    for name, kind in _TOKEN_COLUMNS.items():
        op.add_column("api_tokens", sa.Column(name, kind))
    op.create_index("ix_api_tokens_user_id", "api_tokens", ["tenant_id", "user_id", "kind"])
    op.create_table(
        "invitations",
        own_id(),
        *tenant_and_user(),
        *required(email=sa.Text, role=sa.String(20), token_hash=sa.LargeBinary, created_at=Moment, expires_at=Moment),
        of_user("invitations"),
        primary_key("invitations", "id"),
        unique("invitations", "token_hash"),
    )
    op.create_index("ux_invitations_tenant_id_email", "invitations", ["tenant_id", "email"], unique=True)
    op.create_table(
        "identities",
        *tenant_and_user(),
        *required(issuer=sa.Text, subject=sa.Text, created_at=Moment),
        of_user("identities"),
        primary_key("identities", "tenant_id", "issuer", "subject"),
    )
    op.create_index("ix_identities_subject", "identities", ["issuer", "subject"])
    op.create_index("ix_identities_user_id", "identities", ["tenant_id", "user_id"])
    op.create_table(
        "refresh_tokens",
        own_id(),
        *tenant_and_user(),
        *required(client_id=BigId, family=sa.String(36), token_hash=sa.LargeBinary, scopes=Json),
        *required(created_at=Moment, expires_at=Moment),
        sa.Column("spent_at", Moment()),
        of_user("refresh_tokens"),
        refers_to("refresh_tokens", "client_id", "api_tokens"),
        primary_key("refresh_tokens", "id"),
        unique("refresh_tokens", "token_hash"),
    )
    op.create_index("ix_refresh_tokens_family", "refresh_tokens", ["family"])
    op.create_index("ix_refresh_tokens_client_id", "refresh_tokens", ["client_id"])
    op.create_table(
        "account_changes",
        own_id(),
        sa.Column("number", BigId, nullable=False),
        primary_key("account_changes", "id"),
    )
    op.execute("INSERT INTO account_changes (id, number) VALUES (1, 0)")


def downgrade() -> None:
    op.execute("DELETE FROM api_tokens WHERE scopes IS NOT NULL")  # without scopes they would be allowed everything
    for table in ("account_changes", "refresh_tokens", "identities", "invitations"):
        op.drop_table(table)
    op.drop_index("ix_api_tokens_user_id", "api_tokens")
    for name in _TOKEN_COLUMNS:
        op.drop_column("api_tokens", name)
    op.drop_index("ix_users_email", "users")
    op.drop_index("ux_users_tenant_id_email", "users")
    for name in _USER_COLUMNS:
        op.drop_column("users", name)
    op.drop_column("tenants", "runs_instance")
