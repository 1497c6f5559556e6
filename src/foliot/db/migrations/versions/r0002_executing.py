"""What executing needs: logs of executions, calendars, backfills, secrets, and work that agents finish."""

import sqlalchemy as sa
from alembic import op

from foliot.db.types import Instant, Json

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "execution_t", sa.Column("is_remote", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.create_table(
        "execution_log_t",
        sa.Column("execution_id", sa.Uuid(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("logged_ts", Instant(), nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("logger", sa.String(length=255), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "attempt", "line"),
    )
    op.create_table(
        "calendar_t",
        sa.Column("calendar_id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("calendar_name", sa.String(length=126), nullable=False),
        sa.Column("description", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("document", Json, nullable=False),
        sa.Column("updated_by", sa.String(length=255), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("updated_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("calendar_id"),
        sa.UniqueConstraint("host_id", "calendar_name", name="uq_calendar_name"),
    )
    op.create_table(
        "backfill_t",
        sa.Column("backfill_id", sa.Uuid(), nullable=False),
        sa.Column("schedule_id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("from_ts", Instant(), nullable=False),
        sa.Column("to_ts", Instant(), nullable=False),
        sa.Column("position_ts", Instant(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("total_count", sa.BigInteger(), nullable=False),
        sa.Column("created_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("existing_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("requested_by", sa.String(length=255), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("updated_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("backfill_id"),
    )
    op.create_index(
        "idx_backfill_running",
        "backfill_t",
        ["created_ts"],
        postgresql_where=sa.text("state = 'running'"),
        sqlite_where=sa.text("state = 'running'"),
    )
    op.create_index("idx_backfill_schedule", "backfill_t", ["schedule_id", "created_ts"])
    op.create_table(
        "secret_t",
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=126), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_by", sa.String(length=255), nullable=True),
        sa.Column("created_ts", Instant(), nullable=False),
        sa.Column("updated_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("host_id", "name"),
    )
    op.create_table(
        "cluster_key_t",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
