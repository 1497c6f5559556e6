"""Tables of notification rules, incidents and messages."""

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text, UniqueConstraint, Uuid, text

from foliot.db.tables.metadata import metadata
from foliot.db.types import Instant, Json

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
