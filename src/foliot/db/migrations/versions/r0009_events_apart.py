"""Events that wait for an offset, attempts of consumers, topics that a broker refuses, requested replays."""

import sqlalchemy as sa
from alembic import op

from foliot.db.types import Instant, Json

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pending_event_t",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("schedule_id", sa.Uuid(), nullable=False),
        sa.Column("host_id", sa.Uuid(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("args", Json, nullable=True),
        sa.Column("fire_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("idx_pending_event_schedule", "pending_event_t", ["schedule_id", "fire_ts"])
    op.create_table(
        "consumer_group_t",
        sa.Column("group_id", sa.String(length=126), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("seen_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("group_id"),
    )
    op.create_table(
        "consumer_claim_t",
        sa.Column("group_id", sa.String(length=126), nullable=False),
        sa.Column("place", sa.String(length=300), nullable=False),
        sa.Column("claim_offset", sa.BigInteger(), nullable=False),
        sa.Column("claimed_by", sa.String(length=64), nullable=True),
        sa.Column("claimed_ts", Instant(), nullable=False),
        sa.Column("crashes", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("careful_until", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "place"),
    )
    op.create_table(
        "relay_parked_t",
        sa.Column("relay_name", sa.String(length=64), nullable=False),
        sa.Column("event_topic", sa.String(length=255), nullable=False),
        sa.Column("next_offset", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("since_ts", Instant(), nullable=False),
        sa.Column("tried_ts", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("relay_name", "event_topic"),
    )
    op.add_column("dead_letter_queue", sa.Column("replay_requested_ts", Instant(), nullable=True))
    op.create_index(
        "idx_dead_letter_replay",
        "dead_letter_queue",
        ["group_id"],
        postgresql_where=sa.text("replay_requested_ts IS NOT NULL"),
        sqlite_where=sa.text("replay_requested_ts IS NOT NULL"),
    )
