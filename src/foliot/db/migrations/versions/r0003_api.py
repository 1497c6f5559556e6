"""What the API needs: credentials, audit, idempotency keys, rates, and indexes for its lists."""

import sqlalchemy as sa
from alembic import op

from foliot.db.types import Instant, Json

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_key_t",
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=126), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("expires_ts", Instant(), nullable=True),
        sa.Column("revoked_ts", Instant(), nullable=True),
        sa.Column("last_used_ts", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("key_id"),
    )
    op.create_index("idx_api_key_host", "api_key_t", ["host_id", "key_id"])
    op.create_table(
        "audit_t",
        sa.Column("audit_id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("audit_ts", Instant(), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=True),
        sa.Column("credential", sa.String(length=64), nullable=True),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("resource_type", sa.String(length=32), nullable=False),
        sa.Column("resource_id", sa.String(length=255), nullable=False),
        sa.Column("before", Json, nullable=True),
        sa.Column("after", Json, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("audit_id"),
    )
    op.create_index("idx_audit_host", "audit_t", ["host_id", "audit_id"])
    op.create_index("idx_audit_resource", "audit_t", ["host_id", "resource_id", "audit_id"])
    op.create_table(
        "idempotency_t",
        sa.Column("credential", sa.String(length=64), nullable=False),
        sa.Column("route", sa.String(length=200), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("body_hash", sa.String(length=64), nullable=False),
        sa.Column("resource_id", sa.Uuid(), nullable=False),
        sa.Column("claimed_ts", Instant(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", Json, nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("credential", "route", "key"),
    )
    op.create_index("idx_idempotency_created", "idempotency_t", ["created_ts"])
    op.create_table(
        "rate_t",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("window_ts", Instant(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "window_ts"),
    )
    op.create_index("idx_rate_window", "rate_t", ["window_ts"])
    op.create_table(
        "session_t",
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=True),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("is_operator", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("expires_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("secret_hash"),
    )
    op.create_index("idx_session_expires", "session_t", ["expires_ts"])
    op.create_index(
        "idx_execution_by_hand",
        "execution_t",
        ["schedule_id", "fire_ts"],
        postgresql_where=sa.text("triggered_by IN ('api', 'manual')"),
        sqlite_where=sa.text("triggered_by IN ('api', 'manual')"),
    )
    op.create_index(
        "idx_execution_late",
        "execution_t",
        ["execution_id"],
        postgresql_where=sa.text("created_ts - fire_ts > interval '1 day'"),
        sqlite_where=sa.text("created_ts - fire_ts > 86400000000"),
    )
    op.create_index(
        "idx_execution_not_well",
        "execution_t",
        ["host_id", "status", "execution_id"],
        postgresql_where=sa.text("status IN ('cancelled', 'failed', 'skipped', 'timeout', 'unknown')"),
        sqlite_where=sa.text("status IN ('cancelled', 'failed', 'skipped', 'timeout', 'unknown')"),
    )
    op.add_column("schedule_t", sa.Column("managed_source", sa.String(length=126), nullable=True))
    op.create_index("idx_schedule_version_created", "schedule_version_t", ["created_ts"])
