"""All statements of an instance, over one database."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from foliot.access.audit import Audit
from foliot.access.hosts import Hosts
from foliot.access.idempotency_sql import IdempotencyKeys
from foliot.access.keys_sql import ApiKeys
from foliot.access.sessions import Sessions
from foliot.commands.agents_sql import Agents
from foliot.commands.executions_sql import Executions
from foliot.commands.schedules_sql import Schedules
from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.opening import open_database
from foliot.db.rows.registry_rows import Registry
from foliot.notifications.incidents_sql import Incidents
from foliot.notifications.notification_queries import NotificationQueries
from foliot.notifications.notifications_sql import Notifications
from foliot.notifications.rules_sql import NotificationRules
from foliot.outbox.consumers_sql import Consumers
from foliot.outbox.dead_letters_sql import DeadLetterRows
from foliot.outbox.readers_sql import EventAdmin
from foliot.outbox.relays_sql import Relays
from foliot.queries.changes import ChangeFeed
from foliot.queries.execution_history import ExecutionHistory
from foliot.queries.execution_list import ExecutionList
from foliot.queries.outbox_list import OutboxList
from foliot.queries.overview import Overviews
from foliot.queries.queues import Queues
from foliot.queries.registry_list import RegistryList
from foliot.queries.schedule_list import ScheduleList
from foliot.queries.statistics import Statistics
from foliot.queries.timeline import Timeline
from foliot.scheduler.backfills_sql import Backfills
from foliot.scheduler.calendars_sql import Calendars
from foliot.scheduler.cluster_sql import ClusterQueries
from foliot.scheduler.dispatch.dispatching_sql import Dispatching
from foliot.scheduler.firing_sql import FiringStatements
from foliot.scheduler.housekeeping_sql import Upkeep
from foliot.scheduler.leases.leases_sql import Leases
from foliot.scheduler.pending_events_sql import PendingEvents
from foliot.timing.clock import Clock
from foliot.worker.journal_sql import Notes
from foliot.worker.work_sql import Work


@dataclass(frozen=True, slots=True)
class SqlStore:
    """All stores over one database. Each field but the first is a class that takes the database."""

    database: Database
    leases: Leases
    firing: FiringStatements
    schedules: Schedules
    executions: Executions
    backfills: Backfills
    pending_events: PendingEvents
    work: Work
    dispatching: Dispatching
    notes: Notes
    agents: Agents
    upkeep: Upkeep
    registry: Registry
    surveys: ClusterQueries
    calendars: Calendars
    schedule_list: ScheduleList
    execution_list: ExecutionList
    history: ExecutionHistory
    overviews: Overviews
    timeline: Timeline
    statistics: Statistics
    queues: Queues
    registry_list: RegistryList
    audit: Audit
    keys: ApiKeys
    sessions: Sessions
    hosts: Hosts
    idempotency: IdempotencyKeys
    changes: ChangeFeed
    outbox: OutboxList
    relays: Relays
    consumers: Consumers
    dead_letters: DeadLetterRows
    event_admin: EventAdmin
    notification_rules: NotificationRules
    notifications: Notifications
    incidents: Incidents
    sightings: NotificationQueries

    @classmethod
    def over(cls, database: Database) -> "SqlStore":
        parts: list[Any] = [part.type for part in fields(cls)[1:]]
        return cls(database, *(part(database) for part in parts))

    async def now(self) -> datetime:
        return await self.database.now()

    async def close(self) -> None:
        await self.database.close()


def open_store(
    url: str,
    *,
    clock: Clock,
    pools: dict[Pool, int] | None = None,
    ttl_s: float = 3.0,
    uses_hints: bool = True,
    read_url: str | None = None,
) -> SqlStore:
    """Open the store of a database. The arguments are those of `open_database`."""
    return SqlStore.over(
        open_database(url, clock=clock, pools=pools, ttl_s=ttl_s, uses_hints=uses_hints, read_url=read_url)
    )
