"""Notifications: their rules, incidents and messages, and an index of what has failed."""

import sqlalchemy as sa
from alembic import op

from foliot.db.types import Instant, Json

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "notification_rule_t",
        sa.Column("rule_id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("rule_name", sa.String(length=126), nullable=False),
        sa.Column("document", Json, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("effective_ts", Instant(), nullable=False),
        sa.Column("watching_ts", Instant(), nullable=True),
        sa.Column("created_by", sa.String(length=255), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("updated_by", sa.String(length=255), nullable=True),
        sa.Column("updated_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("rule_id"),
        sa.UniqueConstraint("host_id", "rule_name", name="uq_notification_rule_name"),
    )
    op.create_table(
        "notification_incident_t",
        sa.Column("schedule_id", sa.Uuid(), nullable=False),
        sa.Column("rule_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("opened_ts", Instant(), nullable=False),
        sa.Column("closed_ts", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("schedule_id", "rule_id", "kind"),
    )
    op.create_index(
        "idx_incident_open",
        "notification_incident_t",
        ["schedule_id"],
        postgresql_where=sa.text("closed_ts IS NULL"),
        sqlite_where=sa.text("closed_ts IS NULL"),
    )
    op.create_index("idx_incident_closed", "notification_incident_t", ["closed_ts"])
    op.create_index("idx_incident_rule", "notification_incident_t", ["rule_id"])
    op.create_table(
        "notification_t",
        sa.Column("notification_id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("rule_id", sa.Uuid(), nullable=False),
        sa.Column("schedule_id", sa.Uuid(), nullable=True),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("dedupe_key", sa.String(length=255), nullable=False),
        sa.Column("message", Json, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_ts", Instant(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("ended_ts", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("notification_id"),
        sa.UniqueConstraint("dedupe_key", name="uq_notification_dedupe"),
    )
    op.create_index(
        "idx_notification_due",
        "notification_t",
        ["due_ts"],
        postgresql_where=sa.text("status = 'pending'"),
        sqlite_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "idx_notification_turn",
        "notification_t",
        ["rule_id", "due_ts"],
        postgresql_where=sa.text("status = 'pending'"),
        sqlite_where=sa.text("status = 'pending'"),
    )
    op.create_index("idx_notification_host", "notification_t", ["host_id", "notification_id"])
    op.create_index("idx_notification_rule", "notification_t", ["host_id", "rule_id", "notification_id"])
    op.create_index(
        "idx_notification_schedule", "notification_t", ["host_id", "schedule_id", "notification_id"]
    )
    for name, status in (("idx_notification_pending", "pending"), ("idx_notification_dead", "dead")):
        op.create_index(
            name,
            "notification_t",
            ["host_id", "notification_id"],
            postgresql_where=sa.text(f"status = '{status}'"),
            sqlite_where=sa.text(f"status = '{status}'"),
        )
    op.create_index(
        "idx_execution_failed",
        "execution_t",
        ["ended_ts"],
        postgresql_where=sa.text("status IN ('failed', 'timeout', 'unknown')"),
        sqlite_where=sa.text("status IN ('failed', 'timeout', 'unknown')"),
    )
