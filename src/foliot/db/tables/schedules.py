"""Tables of schedules, calendars and backfills."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    text,
    true,
)

from foliot.db.tables.metadata import metadata
from foliot.db.types import Instant, Json

schedule_t = Table(
    "schedule_t",
    metadata,
    Column("schedule_id", Uuid, primary_key=True),
    Column("host_id", Uuid, nullable=False),
    Column("schedule_name", String(126), nullable=False),
    Column("description", Text, nullable=False),
    Column("labels", Json, nullable=False),
    Column("trigger", Json, nullable=False),
    Column("target", Json, nullable=False),
    Column("policies", Json, nullable=False),
    Column("start_ts", Instant),
    Column("end_ts", Instant),
    Column("max_runs", BigInteger),
    Column("run_count", BigInteger, nullable=False, server_default=text("0")),
    Column("effective_ts", Instant, nullable=False),
    Column("next_fire_ts", Instant),
    Column("next_run_ts", Instant),
    Column("priority", String(16), nullable=False),
    Column("queue", String(64), nullable=False),
    Column("timeout_seconds", Float, nullable=False),
    Column("active", Boolean, nullable=False, server_default=true()),
    Column("paused", Boolean, nullable=False, server_default=false()),
    Column("paused_until_ts", Instant),
    Column("pause_reason", Text),
    Column("state", String(16), nullable=False),
    Column("state_reason", Text),
    Column("slot", Integer, nullable=False),
    Column("managed_by", String(16), nullable=False),
    Column("managed_source", String(126)),
    Column("aggregate_version", BigInteger, nullable=False),
    Column("event_seq", BigInteger, nullable=False, server_default=text("0")),
    Column("created_by", String(255)),
    Column("created_ts", Instant, nullable=False),
    Column("updated_by", String(255)),
    Column("updated_ts", Instant, nullable=False),
    Column("deleted_ts", Instant),
    # A schedule that will not become due has no next_run_ts, so the due query is a plain range of this index.
    # The id at the end lets a load page through any number of schedules with the same next_run_ts.
    Index("idx_schedule_active_next_run", "active", "next_run_ts", "schedule_id"),
    # For a backlog larger than a page: finds the most urgent schedules of every host without reading all.
    Index(
        "idx_schedule_host_next_run",
        "host_id",
        "priority",
        "next_run_ts",
        postgresql_where=text("next_run_ts IS NOT NULL"),
        sqlite_where=text("next_run_ts IS NOT NULL"),
    ),
    Index(
        "uq_schedule_name",
        "host_id",
        "schedule_name",
        unique=True,
        postgresql_where=text("deleted_ts IS NULL"),
        sqlite_where=text("deleted_ts IS NULL"),
    ),
    # `delay` schedules that wait for the end of a run: few. The janitor scans them.
    Index(
        "idx_schedule_waiting",
        "schedule_id",
        postgresql_where=text("state = 'active' AND next_run_ts IS NULL AND deleted_ts IS NULL"),
        sqlite_where=text("state = 'active' AND next_run_ts IS NULL AND deleted_ts IS NULL"),
    ),
)


# Search text of schedules that are not deleted.
schedule_text_t = Table(
    "schedule_text_t",
    metadata,
    Column("schedule_id", Uuid, primary_key=True),
    Column("host_id", Uuid, nullable=False),
    Column("schedule_name", String(126), nullable=False),
    Column("search_text", Text, nullable=False),
)


schedule_version_t = Table(
    "schedule_version_t",
    metadata,
    Column("schedule_id", Uuid, primary_key=True),
    Column("aggregate_version", BigInteger, primary_key=True),
    Column("host_id", Uuid, nullable=False),
    Column("change", String(16), nullable=False),
    Column("document", Json, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("paused_until_ts", Instant),
    Column("effective_ts", Instant, nullable=False),
    Column("author", String(255)),
    Column("reason", Text),
    Column("created_ts", Instant, nullable=False),
    # For the change feed. Not an index on schedule_t, because firing would have to write to it.
    Index("idx_schedule_version_created", "created_ts"),
)


schedule_status_t = Table(
    "schedule_status_t",
    metadata,
    Column("schedule_id", Uuid, primary_key=True),
    Column("last_run_ts", Instant, nullable=False),
    Column("last_status", String(16), nullable=False),
    Column("last_execution_id", Uuid, nullable=False),
)


calendar_t = Table(
    "calendar_t",
    metadata,
    Column("calendar_id", Uuid, primary_key=True),
    Column("host_id", Uuid, nullable=False),
    Column("calendar_name", String(126), nullable=False),
    Column("description", Text, nullable=False, server_default=text("''")),
    Column("document", Json, nullable=False),
    Column("updated_by", String(255)),
    Column("created_ts", Instant, nullable=False),
    Column("updated_ts", Instant, nullable=False),
    UniqueConstraint("host_id", "calendar_name", name="uq_calendar_name"),
)


backfill_t = Table(
    "backfill_t",
    metadata,
    Column("backfill_id", Uuid, primary_key=True),
    Column("schedule_id", Uuid, nullable=False),
    Column("host_id", Uuid, nullable=False),
    Column("from_ts", Instant, nullable=False),
    Column("to_ts", Instant, nullable=False),
    Column("position_ts", Instant, nullable=False),
    Column("state", String(16), nullable=False),
    Column("total_count", BigInteger, nullable=False),
    Column("created_count", BigInteger, nullable=False, server_default=text("0")),
    Column("existing_count", BigInteger, nullable=False, server_default=text("0")),
    Column("requested_by", String(255)),
    Column("created_ts", Instant, nullable=False),
    Column("updated_ts", Instant, nullable=False),
    Index(
        "idx_backfill_running",
        "created_ts",
        postgresql_where=text("state = 'running'"),
        sqlite_where=text("state = 'running'"),
    ),
    Index("idx_backfill_schedule", "schedule_id", "created_ts"),
)
