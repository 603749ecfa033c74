"""Run by Alembic: migrates on the connection, and in the transaction, that `store.migrate` opened."""

from alembic import context

from headwater.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,  # the transaction is the caller's
)
context.run_migrations()
