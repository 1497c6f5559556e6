"""Alembic's entry: runs on the connection that `foliot.db.migrate` hands over."""

from alembic import context

from foliot.db.tables import access, cluster, events, executions, notifications, schedules  # noqa: F401
from foliot.db.tables.metadata import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table="schema_version_t",
    transaction_per_migration=False,
    render_as_batch=connection.dialect.name == "sqlite",
)
with context.begin_transaction():
    context.run_migrations()
