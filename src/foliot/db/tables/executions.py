"""Tables of executions, and conditions of their partial indexes."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    String,
    Table,
    Text,
    Uuid,
    false,
    text,
)

from foliot.db.tables.metadata import metadata
from foliot.db.types import Instant, Json
from foliot.model.execution import CLAIMABLE, FINAL, OPEN, Status
from foliot.model.incident import FAILING


def _in(column: str, values: frozenset[Status]) -> str:
    return f"{column} IN ({', '.join(repr(str(value)) for value in sorted(values))})"


IS_OPEN = _in("status", OPEN)


IS_CLAIMABLE = f"{_in('status', CLAIMABLE)} AND due_by_ts IS NOT NULL"
"""A held execution has no `due_by_ts`, so it is not in the index of claimable executions."""


IS_NOT_WELL = _in("status", FINAL - {Status.SUCCESS})


IS_FAILED = _in("status", FAILING)


IS_BY_HAND = "triggered_by IN ('api', 'manual')"


IS_LATE = "created_ts - fire_ts > interval '1 day'"


IS_LATE_IN_SQLITE = "created_ts - fire_ts > 86400000000"
"""Decided more than a day after its fire time: by a backfill, or after a long outage."""


queue_t = Table(
    "queue_t",
    metadata,
    Column("host_id", Uuid, primary_key=True),
    Column("queue", String(64), primary_key=True),
    Column("paused", Boolean, nullable=False, server_default=false()),
)


execution_t = Table(
    "execution_t",
    metadata,
    Column("execution_id", Uuid, primary_key=True),
    Column("schedule_id", Uuid, nullable=False),
    Column("host_id", Uuid, nullable=False),
    Column("aggregate_version", BigInteger, nullable=False),
    Column("fire_ts", Instant, nullable=False),
    Column("missed_count", BigInteger, nullable=False, server_default=text("0")),
    Column("missed_from_ts", Instant),
    Column("status", String(16), nullable=False),
    Column("reason", String(64)),
    Column("triggered_by", String(16), nullable=False),
    Column("triggered_by_user", String(255)),
    Column("args", Json),
    Column("queue", String(64), nullable=False),
    Column("priority", String(16), nullable=False),
    Column("ready_ts", Instant),
    Column("due_by_ts", Instant),
    Column("lease_until", Instant),
    Column("worker_id", String(255)),
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    Column("failed_attempts", Integer, nullable=False, server_default=text("0")),
    Column("cancel_requested", Boolean, nullable=False, server_default=false()),
    Column("is_remote", Boolean, nullable=False, server_default=false()),
    Column("started_ts", Instant),
    Column("ended_ts", Instant),
    Column("duration_seconds", Float),
    Column("progress", Json),
    Column("result", Json),
    Column("error", Text),
    Column("traceback", Text),
    Column("external_id", String(255)),
    Column("trace_context", String(255)),
    Column("scheduler_instance_id", String(255)),
    Column("created_ts", Instant, nullable=False),
    CheckConstraint("missed_count >= 0", name="ck_execution_missed_count"),
    Index(
        "uq_execution_scheduled",
        "schedule_id",
        "fire_ts",
        unique=True,
        postgresql_where=text("triggered_by = 'scheduler'"),
        sqlite_where=text("triggered_by = 'scheduler'"),
    ),
    Index(
        "uq_execution_backfill",
        "schedule_id",
        "fire_ts",
        unique=True,
        postgresql_where=text("triggered_by = 'backfill'"),
        sqlite_where=text("triggered_by = 'backfill'"),
    ),
    Index(
        "idx_execution_claimable",
        "host_id",
        "queue",
        "due_by_ts",
        postgresql_where=text(IS_CLAIMABLE),
        sqlite_where=text(IS_CLAIMABLE),
    ),
    Index("idx_execution_open", "schedule_id", postgresql_where=text(IS_OPEN), sqlite_where=text(IS_OPEN)),
    Index(
        "idx_execution_lease",
        "lease_until",
        postgresql_where=text("status = 'running'"),
        sqlite_where=text("status = 'running'"),
    ),
    Index(
        "idx_execution_held",
        "schedule_id",
        "execution_id",
        postgresql_where=text("status = 'pending' AND due_by_ts IS NULL"),
        sqlite_where=text("status = 'pending' AND due_by_ts IS NULL"),
    ),
    # For lists. Each is small: fired executions that succeeded, which are nearly all, are in none of them. So
    # firing, claiming and settling do not write to them.
    Index(
        "idx_execution_by_hand",
        "schedule_id",
        "fire_ts",
        postgresql_where=text(IS_BY_HAND),
        sqlite_where=text(IS_BY_HAND),
    ),
    Index(
        "idx_execution_not_well",
        "host_id",
        "status",
        "execution_id",
        postgresql_where=text(IS_NOT_WELL),
        sqlite_where=text(IS_NOT_WELL),
    ),
    # For notifications: failures since the last poll.
    Index("idx_execution_failed", "ended_ts", postgresql_where=text(IS_FAILED), sqlite_where=text(IS_FAILED)),
    Index(
        "idx_execution_late",
        "execution_id",
        postgresql_where=text(IS_LATE),
        sqlite_where=text(IS_LATE_IN_SQLITE),
    ),
)


attempt_t = Table(
    "attempt_t",
    metadata,
    Column("execution_id", Uuid, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("status", String(16), nullable=False),
    Column("worker_id", String(255)),
    Column("started_ts", Instant),
    Column("ended_ts", Instant, nullable=False),
    Column("duration_seconds", Float),
    Column("error", Text),
    Column("traceback", Text),
)


sent_secret_t = Table(
    "sent_secret_t",
    metadata,
    # One row per execution, for its latest attempt.
    Column("execution_id", Uuid, primary_key=True),
    Column("attempt", Integer, nullable=False),
    # Only the agent has the key to decrypt it.
    Column("sealed", Text, nullable=False),
)


execution_log_t = Table(
    "execution_log_t",
    metadata,
    Column("execution_id", Uuid, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("line", Integer, primary_key=True),
    Column("logged_ts", Instant, nullable=False),
    Column("level", String(16), nullable=False),
    Column("logger", String(255), nullable=False),
    Column("message", Text, nullable=False),
)
