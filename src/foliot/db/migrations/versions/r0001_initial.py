"""The first schema: hosts, schedules and their versions, leases, executions, the registry."""

import sqlalchemy as sa
from alembic import op

from foliot.db.types import Instant, Json

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempt_t",
        sa.Column("execution_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("worker_id", sa.String(length=255), nullable=True),
        sa.Column("started_ts", Instant(), nullable=True),
        sa.Column("ended_ts", Instant(), nullable=False),
        sa.Column("duration_seconds", sa.Float(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("traceback", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("execution_id", "attempt"),
    )
    op.create_table(
        "cluster_t",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "execution_t",
        sa.Column("execution_id", sa.Uuid(), nullable=False),
        sa.Column("schedule_id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("aggregate_version", sa.BigInteger(), nullable=False),
        sa.Column("fire_ts", Instant(), nullable=False),
        sa.Column("missed_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("missed_from_ts", Instant(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("triggered_by", sa.String(length=16), nullable=False),
        sa.Column("triggered_by_user", sa.String(length=255), nullable=True),
        sa.Column("args", Json, nullable=True),
        sa.Column("queue", sa.String(length=64), nullable=False),
        sa.Column("priority", sa.String(length=16), nullable=False),
        sa.Column("ready_ts", Instant(), nullable=True),
        sa.Column("due_by_ts", Instant(), nullable=True),
        sa.Column("lease_until", Instant(), nullable=True),
        sa.Column("worker_id", sa.String(length=255), nullable=True),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed_attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("started_ts", Instant(), nullable=True),
        sa.Column("ended_ts", Instant(), nullable=True),
        sa.Column("duration_seconds", sa.Float(), nullable=True),
        sa.Column("progress", Json, nullable=True),
        sa.Column("result", Json, nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("traceback", sa.Text(), nullable=True),
        sa.Column("external_id", sa.String(length=255), nullable=True),
        sa.Column("trace_context", sa.String(length=255), nullable=True),
        sa.Column("scheduler_instance_id", sa.String(length=255), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.CheckConstraint("missed_count >= 0", name="ck_execution_missed_count"),
        sa.PrimaryKeyConstraint("execution_id"),
    )
    op.create_index(
        "idx_execution_claimable",
        "execution_t",
        ["host_id", "queue", "due_by_ts"],
        unique=False,
        postgresql_where=sa.text("status IN ('pending', 'retrying') AND due_by_ts IS NOT NULL"),
        sqlite_where=sa.text("status IN ('pending', 'retrying') AND due_by_ts IS NOT NULL"),
    )
    op.create_index(
        "idx_execution_held",
        "execution_t",
        ["schedule_id", "execution_id"],
        unique=False,
        postgresql_where=sa.text("status = 'pending' AND due_by_ts IS NULL"),
        sqlite_where=sa.text("status = 'pending' AND due_by_ts IS NULL"),
    )
    op.create_index(
        "idx_execution_lease",
        "execution_t",
        ["lease_until"],
        unique=False,
        postgresql_where=sa.text("status = 'running'"),
        sqlite_where=sa.text("status = 'running'"),
    )
    op.create_index(
        "idx_execution_open",
        "execution_t",
        ["schedule_id"],
        unique=False,
        postgresql_where=sa.text("status IN ('pending', 'retrying', 'running')"),
        sqlite_where=sa.text("status IN ('pending', 'retrying', 'running')"),
    )
    op.create_index(
        "uq_execution_backfill",
        "execution_t",
        ["schedule_id", "fire_ts"],
        unique=True,
        postgresql_where=sa.text("triggered_by = 'backfill'"),
        sqlite_where=sa.text("triggered_by = 'backfill'"),
    )
    op.create_index(
        "uq_execution_scheduled",
        "execution_t",
        ["schedule_id", "fire_ts"],
        unique=True,
        postgresql_where=sa.text("triggered_by = 'scheduler'"),
        sqlite_where=sa.text("triggered_by = 'scheduler'"),
    )
    op.create_table(
        "host_t",
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("host_name", sa.String(length=126), nullable=False),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("host_id"),
        sa.UniqueConstraint("host_name"),
    )
    op.create_table(
        "instance_t",
        sa.Column("instance_id", sa.String(length=255), nullable=False),
        sa.Column("hostname", sa.String(length=255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("roles", Json, nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("started_ts", Instant(), nullable=False),
        sa.Column("last_heartbeat", Instant(), nullable=False),
        sa.Column("leader_since", Instant(), nullable=True),
        sa.Column("capacity", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("load", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("queues", Json, nullable=True),
        sa.Column("known_tasks", Json, nullable=True),
        sa.Column("clock_offset_seconds", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("instance_id"),
    )
    op.create_table(
        "queue_t",
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("queue", sa.String(length=64), nullable=False),
        sa.Column("paused", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("host_id", "queue"),
    )
    op.create_table(
        "schedule_status_t",
        sa.Column("schedule_id", sa.Uuid(), nullable=False),
        sa.Column("last_run_ts", Instant(), nullable=False),
        sa.Column("last_status", sa.String(length=16), nullable=False),
        sa.Column("last_execution_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_id"),
    )
    op.create_table(
        "schedule_t",
        sa.Column("schedule_id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("schedule_name", sa.String(length=126), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("labels", Json, nullable=False),
        sa.Column("trigger", Json, nullable=False),
        sa.Column("target", Json, nullable=False),
        sa.Column("policies", Json, nullable=False),
        sa.Column("start_ts", Instant(), nullable=True),
        sa.Column("end_ts", Instant(), nullable=True),
        sa.Column("max_runs", sa.BigInteger(), nullable=True),
        sa.Column("run_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("effective_ts", Instant(), nullable=False),
        sa.Column("next_fire_ts", Instant(), nullable=True),
        sa.Column("next_run_ts", Instant(), nullable=True),
        sa.Column("priority", sa.String(length=16), nullable=False),
        sa.Column("queue", sa.String(length=64), nullable=False),
        sa.Column("timeout_seconds", sa.Float(), nullable=False),
        sa.Column("active", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("paused", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("paused_until_ts", Instant(), nullable=True),
        sa.Column("pause_reason", sa.Text(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("state_reason", sa.Text(), nullable=True),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("managed_by", sa.String(length=16), nullable=False),
        sa.Column("aggregate_version", sa.BigInteger(), nullable=False),
        sa.Column("event_seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("updated_by", sa.String(length=255), nullable=True),
        sa.Column("updated_ts", Instant(), nullable=False),
        sa.Column("deleted_ts", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("schedule_id"),
    )
    op.create_index(
        "idx_schedule_active_next_run", "schedule_t", ["active", "next_run_ts", "schedule_id"], unique=False
    )
    op.create_index(
        "idx_schedule_host_next_run",
        "schedule_t",
        ["host_id", "priority", "next_run_ts"],
        unique=False,
        postgresql_where=sa.text("next_run_ts IS NOT NULL"),
        sqlite_where=sa.text("next_run_ts IS NOT NULL"),
    )
    op.create_index(
        "idx_schedule_waiting",
        "schedule_t",
        ["schedule_id"],
        unique=False,
        postgresql_where=sa.text("state = 'active' AND next_run_ts IS NULL AND deleted_ts IS NULL"),
        sqlite_where=sa.text("state = 'active' AND next_run_ts IS NULL AND deleted_ts IS NULL"),
    )
    op.create_index(
        "uq_schedule_name",
        "schedule_t",
        ["host_id", "schedule_name"],
        unique=True,
        postgresql_where=sa.text("deleted_ts IS NULL"),
        sqlite_where=sa.text("deleted_ts IS NULL"),
    )
    op.create_table(
        "schedule_version_t",
        sa.Column("schedule_id", sa.Uuid(), nullable=False),
        sa.Column("aggregate_version", sa.BigInteger(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("change", sa.String(length=16), nullable=False),
        sa.Column("document", Json, nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("paused_until_ts", Instant(), nullable=True),
        sa.Column("effective_ts", Instant(), nullable=False),
        sa.Column("author", sa.String(length=255), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("schedule_id", "aggregate_version"),
    )
    op.create_table(
        "scheduler_lock_t",
        sa.Column("lock_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("instance_id", sa.String(length=255), nullable=False),
        sa.Column("last_heartbeat", Instant(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lock_id"),
    )
    op.create_table(
        "task_function_t",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("display_name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("handler_path", sa.String(length=500), nullable=False),
        sa.Column("handler_type", sa.String(length=32), nullable=False),
        sa.Column("queue", sa.String(length=64), nullable=True),
        sa.Column("default_timeout_seconds", sa.Float(), nullable=False),
        sa.Column("args_schema", Json, nullable=False),
        sa.Column("is_active", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("is_system", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("updated_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
