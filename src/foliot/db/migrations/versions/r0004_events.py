"""Events: the event store, the outbox, its consumers, its relay; light-portal's view; what is searched."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.exc import DBAPIError

from foliot.db.types import Instant, Json

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "event_store_t",
        *_event_columns(),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("aggregate_id", "aggregate_version", name="uq_event_aggregate_version"),
    )
    op.create_table(
        "outbox_message_t",
        *_event_columns(),
        sa.Column("c_offset", sa.BigInteger(), nullable=False),
        sa.Column("transaction_id", sa.Uuid(), nullable=False),
        sa.Column("transaction_ordinal", sa.Integer(), nullable=False),
        sa.Column("transaction_count", sa.Integer(), nullable=False),
        sa.Column("event_topic", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("c_offset"),
    )
    op.create_index("idx_outbox_host", "outbox_message_t", ["host_id", "c_offset"])
    op.create_table(
        "log_counter",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "consumer_offsets",
        sa.Column("group_id", sa.String(length=126), nullable=False),
        sa.Column("partition_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("partitions", sa.Integer(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("updated_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "partition_id"),
    )
    op.create_table(
        "dead_letter_queue",
        sa.Column("dead_letter_id", sa.Uuid(), nullable=False),
        sa.Column("group_id", sa.String(length=126), nullable=False),
        sa.Column("partition_id", sa.Integer(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("transaction_id", sa.Uuid(), nullable=False),
        sa.Column("c_offset", sa.BigInteger(), nullable=False),
        sa.Column("events", Json, nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("traceback", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("replayed_ts", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("dead_letter_id"),
    )
    op.create_index("idx_dead_letter_group", "dead_letter_queue", ["group_id", "dead_letter_id"])
    op.create_table(
        "consumed_event_t",
        sa.Column("group_id", sa.String(length=126), nullable=False),
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("consumed_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "event_id"),
    )
    op.create_index("idx_consumed_event_ts", "consumed_event_t", ["consumed_ts"])
    op.create_table(
        "relay_t",
        sa.Column("relay_name", sa.String(length=64), nullable=False),
        sa.Column("instance_id", sa.String(length=255), nullable=False),
        sa.Column("last_heartbeat", Instant(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("relay_name"),
    )
    op.create_table(
        "schedule_text_t",
        sa.Column("schedule_id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("schedule_name", sa.String(length=126), nullable=False),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_id"),
    )
    op.execute(
        "INSERT INTO schedule_text_t (schedule_id, host_id, schedule_name, search_text) "
        "SELECT schedule_id, host_id, schedule_name, lower(schedule_name || '\n' || description) "
        "FROM schedule_t WHERE deleted_ts IS NULL"
    )
    if op.get_bind().dialect.name == "postgresql":
        _index_for_search()
    op.add_column("instance_t", sa.Column("transports", Json, nullable=True))
    op.execute(_LIGHT_PORTAL_POSTGRES if op.get_bind().dialect.name == "postgresql" else _LIGHT_PORTAL_SQLITE)


def _index_for_search() -> None:
    """By trigrams, where the database has them and we may; without it a search reads all texts."""
    connection = op.get_bind()
    known = sa.text("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_trgm'")
    if not connection.scalar(known):
        return
    try:
        with connection.begin_nested():
            connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS pg_trgm"))
            connection.execute(
                sa.text(
                    "CREATE INDEX idx_schedule_text_search ON schedule_text_t "
                    # What is put off for later is read by every search: five times as long, measured.
                    "USING gin (search_text gin_trgm_ops) WITH (fastupdate = off)"
                )
            )
    except DBAPIError:
        return  # it takes a right that the owner of a database has, and others may not


def _event_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("nonce", sa.BigInteger(), nullable=False),
        sa.Column("aggregate_id", sa.String(length=255), nullable=False),
        sa.Column("aggregate_version", sa.BigInteger(), nullable=False),
        sa.Column("aggregate_type", sa.String(length=255), nullable=False),
        sa.Column("event_type", sa.String(length=255), nullable=False),
        sa.Column("event_ts", Instant(), nullable=False),
        sa.Column("payload", Json, nullable=False),
        sa.Column("metadata", Json, nullable=True),
    ]


# The columns of light-portal's `schedule_t`, for the queries that its users have: schedules by interval whose
# target is an event. `event_data` is text there, whatever it is here.
_LIGHT_PORTAL_POSTGRES = """
CREATE VIEW light_portal_schedule_v AS
SELECT schedule_id, host_id, schedule_name,
       trigger->>'frequency_unit' AS frequency_unit,
       (trigger->>'frequency_time')::integer AS frequency_time,
       coalesce(start_ts, effective_ts) AS start_ts,
       next_run_ts,
       target->>'event_topic' AS event_topic,
       target->>'event_type' AS event_type,
       target->>'event_data' AS event_data,
       aggregate_version,
       active AND NOT paused AS active
FROM schedule_t
WHERE deleted_ts IS NULL AND target->>'kind' = 'event' AND trigger->>'kind' = 'interval'
"""
_LIGHT_PORTAL_SQLITE = """
CREATE VIEW light_portal_schedule_v AS
SELECT schedule_id, host_id, schedule_name,
       json_extract("trigger", '$.frequency_unit') AS frequency_unit,
       json_extract("trigger", '$.frequency_time') AS frequency_time,
       coalesce(start_ts, effective_ts) AS start_ts,
       next_run_ts,
       json_extract(target, '$.event_topic') AS event_topic,
       json_extract(target, '$.event_type') AS event_type,
       json_extract(target, '$.event_data') AS event_data,
       aggregate_version,
       active AND NOT paused AS active
FROM schedule_t
WHERE deleted_ts IS NULL AND json_extract(target, '$.kind') = 'event'
  AND json_extract("trigger", '$.kind') = 'interval'
"""
