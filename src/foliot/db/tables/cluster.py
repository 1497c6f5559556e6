"""Tables of the cluster: shards, instances and task functions."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, String, Table, Text, false, text, true

from foliot.db.tables.metadata import metadata
from foliot.db.types import Instant, Json

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
