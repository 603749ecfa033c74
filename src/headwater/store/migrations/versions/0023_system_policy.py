"""Remakes the policy for the instance's own work, so that PostgreSQL reads long tables by their index behind it."""

from alembic import op

revision = "0023"
down_revision = "0022"

# The policies are made after every upgrade and downgrade, where there are none (`store/row_security.py`).
_REMOVE = """DO $$ DECLARE one record; BEGIN
    FOR one IN SELECT p.polrelid::regclass AS name FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE p.polname = 'system' AND c.relnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('DROP POLICY system ON %s', one.name);
    END LOOP;
END $$"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_REMOVE)


def downgrade() -> None:
    """Nothing to undo: both conditions show the same rows."""
