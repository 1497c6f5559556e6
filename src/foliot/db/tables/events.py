"""Tables of events, the outbox, relays and consumers."""

from typing import Any

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text, UniqueConstraint, Uuid, text

from foliot.db.tables.metadata import metadata
from foliot.db.types import Instant, Json


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
