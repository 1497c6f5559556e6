"""Tables of hosts, credentials, secrets and the audit."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, String, Table, Text, Uuid, false

from foliot.db.tables.metadata import metadata
from foliot.db.types import Instant, Json

host_t = Table(
    "host_t",
    metadata,
    Column("host_id", Uuid, primary_key=True),
    Column("host_name", String(126), nullable=False, unique=True),
    Column("created_ts", Instant, nullable=False),
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
