"""Definitions of the tables. The migrations in `migrations/` must produce the same; a test compares them."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    text,
    true,
)

from foliot.db.types import Instant, Json
from foliot.model.execution import CLAIMABLE, FINAL, OPEN, Status
from foliot.model.incident import FAILING

metadata = MetaData()


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

host_t = Table(
    "host_t",
    metadata,
    Column("host_id", Uuid, primary_key=True),
    Column("host_name", String(126), nullable=False, unique=True),
    Column("created_ts", Instant, nullable=False),
)

cluster_t = Table(
    "cluster_t",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

scheduler_lock_t = Table(
    "scheduler_lock_t",
    metadata,
    Column("lock_id", Integer, primary_key=True, autoincrement=False),
    Column("instance_id", String(255), nullable=False),
    Column("last_heartbeat", Instant, nullable=False),
    Column("epoch", BigInteger, nullable=False),
)

instance_t = Table(
    "instance_t",
    metadata,
    Column("instance_id", String(255), primary_key=True),
    Column("hostname", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
    Column("roles", Json, nullable=False),
    Column("version", String(64), nullable=False),
    Column("started_ts", Instant, nullable=False),
    Column("last_heartbeat", Instant, nullable=False),
    Column("leader_since", Instant),
    Column("capacity", Integer, nullable=False, server_default=text("0")),
    Column("load", Integer, nullable=False, server_default=text("0")),
    Column("queues", Json),
    Column("known_tasks", Json),
    Column("clock_offset_seconds", Float),
    Column("transports", Json),
    Column("draining", Boolean, nullable=False, server_default=false()),
    Column("lease_provider", Json),
)

queue_t = Table(
    "queue_t",
    metadata,
    Column("host_id", Uuid, primary_key=True),
    Column("queue", String(64), primary_key=True),
    Column("paused", Boolean, nullable=False, server_default=false()),
)

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
    Index(
        "idx_execution_open",
        "schedule_id",
        postgresql_where=text(IS_OPEN),
        sqlite_where=text(IS_OPEN),
    ),
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
    Index(
        "idx_execution_failed",
        "ended_ts",
        postgresql_where=text(IS_FAILED),
        sqlite_where=text(IS_FAILED),
    ),
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

task_function_t = Table(
    "task_function_t",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("display_name", String(200), nullable=False),
    Column("description", Text, nullable=False),
    Column("handler_path", String(500), nullable=False),
    Column("handler_type", String(32), nullable=False),
    Column("queue", String(64)),
    Column("default_timeout_seconds", Float, nullable=False),
    Column("args_schema", Json, nullable=False),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    Column("is_system", Boolean, nullable=False, server_default=false()),
    Column("created_ts", Instant, nullable=False),
    Column("updated_ts", Instant, nullable=False),
    Column("default_retry", Json),
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

secret_t = Table(
    "secret_t",
    metadata,
    Column("host_id", Uuid, primary_key=True),
    Column("name", String(126), primary_key=True),
    Column("value", Text, nullable=False),
    Column("updated_by", String(255)),
    Column("created_ts", Instant, nullable=False),
    Column("updated_ts", Instant, nullable=False),
)

cluster_key_t = Table(
    "cluster_key_t",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

api_key_t = Table(
    "api_key_t",
    metadata,
    Column("key_id", String(32), primary_key=True),
    Column("host_id", Uuid, nullable=False),
    Column("name", String(126), nullable=False),
    Column("role", String(16), nullable=False),
    Column("secret_hash", String(64), nullable=False),
    Column("created_by", String(255)),
    Column("created_ts", Instant, nullable=False),
    Column("expires_ts", Instant),
    Column("revoked_ts", Instant),
    Column("last_used_ts", Instant),
    Index("idx_api_key_host", "host_id", "key_id"),
)

# Browser sessions, and links that sign a browser in once.
session_t = Table(
    "session_t",
    metadata,
    Column("secret_hash", String(64), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("host_id", Uuid, nullable=False),
    Column("key_id", String(32)),
    Column("name", String(255), nullable=False),
    Column("role", String(16), nullable=False),
    Column("is_operator", Boolean, nullable=False, server_default=false()),
    Column("created_ts", Instant, nullable=False),
    Column("expires_ts", Instant, nullable=False),
    Index("idx_session_expires", "expires_ts"),
)

audit_t = Table(
    "audit_t",
    metadata,
    Column("audit_id", Uuid, primary_key=True),
    Column("host_id", Uuid, nullable=False),
    Column("audit_ts", Instant, nullable=False),
    Column("actor", String(255)),
    Column("credential", String(64)),
    Column("action", String(64), nullable=False),
    Column("resource_type", String(32), nullable=False),
    Column("resource_id", String(255), nullable=False),
    Column("before", Json),
    Column("after", Json),
    Column("reason", Text),
    Column("request_id", String(64)),
    Column("address", String(64)),
    Index("idx_audit_host", "host_id", "audit_id"),
    Index("idx_audit_resource", "host_id", "resource_id", "audit_id"),
)

# What a POST with an Idempotency-Key did, or is doing.
idempotency_t = Table(
    "idempotency_t",
    metadata,
    Column("credential", String(64), primary_key=True),
    Column("route", String(200), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("body_hash", String(64), nullable=False),
    Column("resource_id", Uuid, nullable=False),
    Column("claimed_ts", Instant, nullable=False),
    Column("status", Integer),
    Column("headers", Json),
    Column("body", Text),
    Column("created_ts", Instant, nullable=False),
    Index("idx_idempotency_created", "created_ts"),
)

# Used only by older versions, which may still run during an upgrade.
rate_t = Table(
    "rate_t",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("window_ts", Instant, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Index("idx_rate_window", "window_ts"),
)


def _event_columns() -> list[Column[Any]]:
    """Columns as in light-portal, so that its consumers can read both tables."""
    return [
        Column("id", Uuid, primary_key=True),
        Column("host_id", Uuid, nullable=False),
        Column("user_id", Uuid, nullable=False),
        Column("nonce", BigInteger, nullable=False),
        Column("aggregate_id", String(255), nullable=False),
        Column("aggregate_version", BigInteger, nullable=False),
        Column("aggregate_type", String(255), nullable=False),
        Column("event_type", String(255), nullable=False),
        Column("event_ts", Instant, nullable=False),
        Column("payload", Json, nullable=False),
        Column("metadata", Json),
    ]


event_store_t = Table(
    "event_store_t",
    metadata,
    *_event_columns(),
    UniqueConstraint("aggregate_id", "aggregate_version", name="uq_event_aggregate_version"),
)

outbox_message_t = Table(
    "outbox_message_t",
    metadata,
    *_event_columns(),
    Column("c_offset", BigInteger, nullable=False, unique=True),
    Column("transaction_id", Uuid, nullable=False),
    Column("transaction_ordinal", Integer, nullable=False),
    Column("transaction_count", Integer, nullable=False),
    Column("event_topic", String(255), nullable=False),
    Index("idx_outbox_host", "host_id", "c_offset"),
)

# One row: the offset of the next event. The transaction that increments it keeps it locked until COMMIT. So
# offsets have no gaps and are in commit order.
log_counter = Table(
    "log_counter",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("next_offset", BigInteger, nullable=False),
)

# Events of an application's transactions: they get their offset right after COMMIT (`pending_events.py`).
pending_event_t = Table(
    "pending_event_t",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("schedule_id", Uuid, nullable=False),
    Column("host_id", Uuid, nullable=False),
    Column("target", Text, nullable=False),
    Column("args", Json),
    Column("fire_ts", Instant, nullable=False),
    Index("idx_pending_event_schedule", "schedule_id", "fire_ts"),
)

consumer_offsets = Table(
    "consumer_offsets",
    metadata,
    Column("group_id", String(126), primary_key=True),
    Column("partition_id", Integer, primary_key=True, autoincrement=False),
    Column("partitions", Integer, nullable=False),
    Column("next_offset", BigInteger, nullable=False),
    Column("updated_ts", Instant, nullable=False),
)

dead_letter_queue = Table(
    "dead_letter_queue",
    metadata,
    Column("dead_letter_id", Uuid, primary_key=True),
    Column("group_id", String(126), nullable=False),
    Column("partition_id", Integer, nullable=False),
    Column("host_id", Uuid, nullable=False),
    Column("transaction_id", Uuid, nullable=False),
    Column("c_offset", BigInteger, nullable=False),
    Column("events", Json, nullable=False),
    Column("error", Text, nullable=False),
    Column("traceback", Text),
    Column("attempts", Integer, nullable=False),
    Column("created_ts", Instant, nullable=False),
    Column("replayed_ts", Instant),
    Column("replay_requested_ts", Instant),
    Index("idx_dead_letter_group", "group_id", "dead_letter_id"),
    Index(
        "idx_dead_letter_replay",
        "group_id",
        postgresql_where=text("replay_requested_ts IS NOT NULL"),
        sqlite_where=text("replay_requested_ts IS NOT NULL"),
    ),
)

# When a consumer group was last active.
consumer_group_t = Table(
    "consumer_group_t",
    metadata,
    Column("group_id", String(126), primary_key=True),
    Column("source", String(16), nullable=False),
    Column("seen_ts", Instant, nullable=False),
)

# What a consumer is handling, written before it begins: a process that crashes leaves its claim.
consumer_claim_t = Table(
    "consumer_claim_t",
    metadata,
    Column("group_id", String(126), primary_key=True),
    Column("place", String(300), primary_key=True),
    Column("claim_offset", BigInteger, nullable=False),
    Column("claimed_by", String(64)),
    Column("claimed_ts", Instant, nullable=False),
    Column("crashes", Integer, nullable=False, server_default=text("0")),
    Column("careful_until", BigInteger, nullable=False, server_default=text("0")),
)

# Events handled by groups that read from a broker, because a broker may deliver an event again.
consumed_event_t = Table(
    "consumed_event_t",
    metadata,
    Column("group_id", String(126), primary_key=True),
    Column("event_id", Uuid, primary_key=True),
    Column("consumed_ts", Instant, nullable=False),
    Index("idx_consumed_event_ts", "consumed_ts"),
)

# The lease of the relay, which sends the outbox to a broker, and its offset.
relay_t = Table(
    "relay_t",
    metadata,
    Column("relay_name", String(64), primary_key=True),
    Column("instance_id", String(255), nullable=False),
    Column("last_heartbeat", Instant, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("next_offset", BigInteger, nullable=False),
)

# Topics that the broker refuses: the relay continues without them and retries them.
relay_parked_t = Table(
    "relay_parked_t",
    metadata,
    Column("relay_name", String(64), primary_key=True),
    Column("event_topic", String(255), primary_key=True),
    Column("next_offset", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("since_ts", Instant, nullable=False),
    Column("tried_ts", Instant, nullable=False),
)

notification_rule_t = Table(
    "notification_rule_t",
    metadata,
    Column("rule_id", Uuid, primary_key=True),
    Column("host_id", Uuid, nullable=False),
    Column("rule_name", String(126), nullable=False),
    Column("document", Json, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("effective_ts", Instant, nullable=False),
    Column("watching_ts", Instant),
    Column("created_by", String(255)),
    Column("created_ts", Instant, nullable=False),
    Column("updated_by", String(255)),
    Column("updated_ts", Instant, nullable=False),
    UniqueConstraint("host_id", "rule_name", name="uq_notification_rule_name"),
)

# Detected problems. A closed incident is kept for a while, see `incidents_sql.py`.
notification_incident_t = Table(
    "notification_incident_t",
    metadata,
    Column("schedule_id", Uuid, primary_key=True),
    Column("rule_id", Uuid, primary_key=True),
    Column("kind", String(32), primary_key=True),
    Column("host_id", Uuid, nullable=False),
    Column("opened_ts", Instant, nullable=False),
    Column("closed_ts", Instant),
    Index(
        "idx_incident_open",
        "schedule_id",
        postgresql_where=text("closed_ts IS NULL"),
        sqlite_where=text("closed_ts IS NULL"),
    ),
    Index("idx_incident_closed", "closed_ts"),
    # For a change or deletion of a rule.
    Index("idx_incident_rule", "rule_id"),
)

notification_t = Table(
    "notification_t",
    metadata,
    Column("notification_id", Uuid, primary_key=True),
    Column("host_id", Uuid, nullable=False),
    Column("rule_id", Uuid, nullable=False),
    Column("schedule_id", Uuid),
    Column("type", String(32), nullable=False),
    Column("dedupe_key", String(255), nullable=False),
    Column("message", Json, nullable=False),
    Column("status", String(16), nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("due_ts", Instant),
    Column("error", Text),
    Column("created_ts", Instant, nullable=False),
    Column("ended_ts", Instant),
    UniqueConstraint("dedupe_key", name="uq_notification_dedupe"),
    Index(
        "idx_notification_due",
        "due_ts",
        postgresql_where=text("status = 'pending'"),
        sqlite_where=text("status = 'pending'"),
    ),
    # For senders, which take messages from the rules in rotation.
    Index(
        "idx_notification_turn",
        "rule_id",
        "due_ts",
        postgresql_where=text("status = 'pending'"),
        sqlite_where=text("status = 'pending'"),
    ),
    # For lists.
    Index("idx_notification_host", "host_id", "notification_id"),
    Index("idx_notification_rule", "host_id", "rule_id", "notification_id"),
    Index("idx_notification_schedule", "host_id", "schedule_id", "notification_id"),
    # Few rows to find among very many.
    Index(
        "idx_notification_pending",
        "host_id",
        "notification_id",
        postgresql_where=text("status = 'pending'"),
        sqlite_where=text("status = 'pending'"),
    ),
    Index(
        "idx_notification_dead",
        "host_id",
        "notification_id",
        postgresql_where=text("status = 'dead'"),
        sqlite_where=text("status = 'dead'"),
    ),
)
