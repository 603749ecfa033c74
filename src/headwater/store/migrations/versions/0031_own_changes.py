"""Each reader has a number that is another one after every change of what is theirs, whoever makes the change.

Triggers set it, so no way of writing can forget it, and it commits with the change. On PostgreSQL it is the number of
the transaction, which is set once however many rows a transaction writes.
"""

import sqlalchemy as sa
from alembic import op

from headwater.store.tables.columns import BigId

revision = "0031"
down_revision = "0030"

OF_READER = ("post_states", "subscriptions", "fold_settings")
OF_TENANT = ("story_sides",)
_FUNCTION = """CREATE FUNCTION headwater_note_change() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    row record := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    number bigint := pg_current_xact_id()::text::bigint;
BEGIN
    IF TG_ARGV[0] = 'tenant' THEN
        UPDATE users SET changed = number WHERE tenant_id = row.tenant_id AND changed <> number;
    ELSE
        UPDATE users SET changed = number
            WHERE tenant_id = row.tenant_id AND id = row.user_id AND changed <> number;
    END IF;
    RETURN NULL;
END $$"""


def upgrade() -> None:
    op.add_column("users", sa.Column("changed", BigId, nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_FUNCTION)
        for table in (*OF_READER, *OF_TENANT):
            op.execute(
                f"""CREATE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW
                EXECUTE FUNCTION headwater_note_change('{"tenant" if table in OF_TENANT else "reader"}')"""
            )
        return
    for table, action, row in _on_sqlite():
        of_reader = "" if table in OF_TENANT else f" AND id = {row}.user_id"
        op.execute(
            f"""CREATE TRIGGER note_change_{table}_{action} AFTER {action} ON {table} BEGIN
                UPDATE users SET changed = changed + 1 WHERE tenant_id = {row}.tenant_id{of_reader};
            END"""
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in (*OF_READER, *OF_TENANT):
            op.execute(f"DROP TRIGGER note_change ON {table}")
        op.execute("DROP FUNCTION headwater_note_change()")
    else:
        for table, action, _ in _on_sqlite():
            op.execute(f"DROP TRIGGER note_change_{table}_{action}")
    op.drop_column("users", "changed")


def _on_sqlite() -> list[tuple[str, str, str]]:
    actions = {"insert": "new", "update": "new", "delete": "old"}
    return [(table, action, row) for table in (*OF_READER, *OF_TENANT) for action, row in actions.items()]
