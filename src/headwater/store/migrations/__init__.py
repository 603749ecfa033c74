"""Migrations of the schema, run by Alembic. `store.migrate` starts them; `pieces` is what they share."""
