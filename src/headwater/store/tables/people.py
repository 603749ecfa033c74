"""People, and what is theirs: every table that has tenant_id and user_id."""

from __future__ import annotations

import sqlalchemy as sa

from headwater.store.tables import columns as col

tenants = col.table(
    "tenants",
    col.own_id(),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", col.Moment, nullable=False),
    # The tenant whose owners and operators run the whole instance. The first one does.
    sa.Column("runs_instance", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("plan", sa.Text),  # a name in HEADWATER_PLANS; None: the default one
)

users = col.table(
    "users",
    col.own_id(),
    col.refers_to("tenants"),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.String(20), nullable=False),  # owner, operator, member or viewer: see accounts/scopes.py
    sa.Column("created_at", col.Moment, nullable=False),
    sa.Column("email", sa.Text),  # in lower case; None: signs in by login links alone
    sa.Column("password_hash", sa.Text),  # argon2id
    sa.Column("time_zone", sa.Text),  # None: the browser's
    sa.Column("theme", sa.String(10)),  # light or dark; None: the system's
    sa.Column("language", sa.String(10)),  # None: the browser's
    # Another number after each change of what is theirs: triggers set it (migration 0031).
    sa.Column("changed", col.BigId, nullable=False, server_default="0"),
    sa.UniqueConstraint("tenant_id", "name"),
    sa.UniqueConstraint("tenant_id", "id"),
)
# Only within a tenant: whether somebody has an account elsewhere is nobody's business.
sa.Index("ux_users_tenant_id_email", users.c.tenant_id, users.c.email, unique=True)
sa.Index("ix_users_email", users.c.email)

api_tokens = col.table(
    "api_tokens",
    col.own_id(),
    *col.tenant_and_user(),
    *col.required(kind=sa.String(10), name=sa.Text),
    sa.Column("token_hash", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("created_at", col.Moment, nullable=False),
    sa.Column("expires_at", col.Moment),
    sa.Column("scopes", col.Json),  # None: everything that the role of its user allows
    sa.Column("last_used_at", col.Moment),
    sa.Column("address", sa.Text),  # of the browser that a session belongs to
    sa.Column("agent", sa.Text),
    col.of_user(),
)
sa.Index("ix_api_tokens_user_id", api_tokens.c.tenant_id, api_tokens.c.user_id, api_tokens.c.kind)
sa.Index("ux_api_tokens_tenant_id_id", api_tokens.c.tenant_id, api_tokens.c.id, unique=True)

invitations = col.table(
    "invitations",
    col.own_id(),
    *col.tenant_and_user(),  # who invited
    *col.required(email=sa.Text, role=sa.String(20)),
    sa.Column("token_hash", sa.LargeBinary, nullable=False, unique=True),
    *col.required(created_at=col.Moment, expires_at=col.Moment),
    col.of_user(),
)
sa.Index("ux_invitations_tenant_id_email", invitations.c.tenant_id, invitations.c.email, unique=True)

# Who a person is at an OpenID Connect provider.
identities = col.table(
    "identities",
    *col.tenant_and_user(),
    *col.required(issuer=sa.Text, subject=sa.Text, created_at=col.Moment),
    sa.PrimaryKeyConstraint("tenant_id", "issuer", "subject"),
    col.of_user(),
)
sa.Index("ix_identities_subject", identities.c.issuer, identities.c.subject)
sa.Index("ix_identities_user_id", identities.c.tenant_id, identities.c.user_id)

# Each is used once and replaced by the next of its family. If a used one comes again, somebody stole it.
refresh_tokens = col.table(
    "refresh_tokens",
    col.own_id(),
    *col.tenant_and_user(),
    sa.Column("client_id", col.BigId, nullable=False),
    sa.Column("family", sa.String(36), nullable=False),
    sa.Column("token_hash", sa.LargeBinary, nullable=False, unique=True),
    *col.required(scopes=col.Json, created_at=col.Moment, expires_at=col.Moment),
    sa.Column("spent_at", col.Moment),
    col.of_user(),
    sa.ForeignKeyConstraint(["tenant_id", "client_id"], ["api_tokens.tenant_id", "api_tokens.id"], ondelete="CASCADE"),
)
sa.Index("ix_refresh_tokens_family", refresh_tokens.c.family)
sa.Index("ix_refresh_tokens_client_id", refresh_tokens.c.client_id)

# One row. Its number grows with every change of who may do what, so that processes know when to forget what they know.
account_changes = col.table(
    "account_changes",
    col.own_id(),
    sa.Column("number", col.BigId, nullable=False),
)

# Who changed what: see store/people/audit.py. It outlives the people and tenants that it is about.
audit_log = col.table(
    "audit_log",
    col.own_id(),
    sa.Column("tenant_id", col.BigId, nullable=False),
    sa.Column("user_id", col.BigId),  # NULL: somebody who runs the instance and is of another tenant
    sa.Column("user_name", sa.Text),
    sa.Column("at", col.Moment, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("resource", sa.Text, nullable=False),
    sa.Column("resource_id", sa.Text),
    sa.Column("detail", sa.Text),
    sa.Column("address", sa.Text),
    sa.Column("agent", sa.Text),
    sa.Column("request_id", sa.String(36), nullable=False),
    sqlite_autoincrement=True,
)
sa.Index("ix_audit_log_tenant_id", audit_log.c.tenant_id, audit_log.c.id)
sa.Index("ix_audit_log_at", audit_log.c.at)

subscriptions = col.table(
    "subscriptions",
    *col.tenant_and_user(),
    col.refers_to("sources"),
    *col.optional(title=sa.Text, folder=sa.Text),
    sa.Column("fold", sa.Boolean, nullable=False, server_default=sa.true()),  # False: its posts are never folded
    sa.Column("created_at", col.Moment, nullable=False),
    sa.Column("interval_seconds", sa.Integer),  # how often the reader wants it to be visited; None: no wish
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "source_id"),
    col.of_user(),
)
sa.Index("ix_subscriptions_source_id", subscriptions.c.source_id)

fold_settings = col.table(
    "fold_settings",
    *col.tenant_and_user(),
    sa.Column("level", sa.String(10), nullable=False),  # off, repeats or stories
    sa.Column("threshold", sa.Float, nullable=False),
    sa.Column("runs", col.Json),  # how the runs fold that they ask for; NULL: as the server does
    sa.PrimaryKeyConstraint("tenant_id", "user_id"),
    col.of_user(),
)

post_states = col.table(
    "post_states",
    *col.tenant_and_user(),
    col.refers_to("posts"),
    *col.optional(read_at=col.Moment, starred_at=col.Moment),
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "post_id"),
    col.of_user(),
)
col.partial_index(
    "ix_post_states_starred",
    post_states.c.tenant_id,
    post_states.c.user_id,
    post_states.c.post_id,
    where="starred_at IS NOT NULL",
)

# Secrets that have to be used again, encrypted: see store/people/accounts.py.
secrets = col.table(
    "secrets",
    sa.Column("name", sa.Text, primary_key=True),
    *col.required(sealed=sa.LargeBinary, changed_at=col.Moment),
)
