"""The store over a SQL database, and how to open it by its URL."""

import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from foliot.access.audit import Audit
from foliot.access.hosts import Hosts
from foliot.access.idempotency_sql import IdempotencyKeys
from foliot.access.keys_sql import ApiKeys
from foliot.access.sessions import Sessions
from foliot.commands.agents_sql import Agents
from foliot.commands.backfills_sql import Backfills
from foliot.commands.calendars_sql import Calendars
from foliot.commands.executions_sql import Executions
from foliot.commands.pending_events_sql import PendingEvents
from foliot.commands.registry_sql import Registry
from foliot.commands.schedules_sql import Schedules
from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.postgres import open_postgres
from foliot.db.postgres_url import parse_postgres_url
from foliot.db.sqlite import open_sqlite
from foliot.model.errors import SettingError
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
from foliot.scheduler.cluster_sql import ClusterQueries
from foliot.scheduler.dispatch.dispatching_sql import Dispatching
from foliot.scheduler.firing_sql import FiringStatements
from foliot.scheduler.housekeeping_sql import Upkeep
from foliot.scheduler.leases.leases_sql import Leases
from foliot.timing.clock import Clock
from foliot.worker.journal_sql import Notes
from foliot.worker.work_sql import Work

DEFAULT_POOLS = {
    Pool.LEASE: 2,
    Pool.FIRING: 3,
    Pool.UPKEEP: 2,
    Pool.WORK: 5,
    Pool.API: 10,
    Pool.CONSUMER: 2,
}
MEMORY = "memory"
SETTING = "FOLIOT_DATABASE_URL"
READ_SETTING = "FOLIOT_DATABASE_READ_URL"


@dataclass(frozen=True, slots=True)
class SqlStore:
    """All stores over one database."""

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
        return cls(
            database=database,
            leases=Leases(database),
            firing=FiringStatements(database),
            schedules=Schedules(database),
            executions=Executions(database),
            backfills=Backfills(database),
            pending_events=PendingEvents(database),
            work=Work(database),
            dispatching=Dispatching(database),
            notes=Notes(database),
            agents=Agents(database),
            upkeep=Upkeep(database),
            registry=Registry(database),
            surveys=ClusterQueries(database),
            calendars=Calendars(database),
            schedule_list=ScheduleList(database),
            execution_list=ExecutionList(database),
            history=ExecutionHistory(database),
            overviews=Overviews(database),
            timeline=Timeline(database),
            statistics=Statistics(database),
            queues=Queues(database),
            registry_list=RegistryList(database),
            audit=Audit(database),
            keys=ApiKeys(database),
            sessions=Sessions(database),
            hosts=Hosts(database),
            idempotency=IdempotencyKeys(database),
            changes=ChangeFeed(database),
            outbox=OutboxList(database),
            relays=Relays(database),
            consumers=Consumers(database),
            dead_letters=DeadLetterRows(database),
            event_admin=EventAdmin(database),
            notification_rules=NotificationRules(database),
            notifications=Notifications(database),
            incidents=Incidents(database),
            sightings=NotificationQueries(database),
        )

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
    """Open a store by its URL. `memory`: a temporary SQLite file that is deleted when the store closes.

    `read_url` is a replica, for reads inside `reading_from`.
    """
    sizes = DEFAULT_POOLS | (pools or {})
    if url == MEMORY:
        return _open_in_memory(clock, sizes)
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return SqlStore.over(open_sqlite(parsed, clock=clock, sizes=sizes))
    database = open_postgres(parsed, sizes=sizes, ttl_s=ttl_s, uses_hints=uses_hints)
    if read_url is not None:
        database.replica = open_postgres(
            parse_url(read_url, READ_SETTING),
            # LEASE: a pool of its own for health checks, so that they do not wait behind list queries.
            sizes={Pool.API: sizes[Pool.API], Pool.LEASE: 1},
            ttl_s=ttl_s,
            uses_hints=uses_hints,
            setting=READ_SETTING,
        )
    return SqlStore.over(database)


def _open_in_memory(clock: Clock, sizes: dict[Pool, int]) -> SqlStore:
    # A file, because connections can't share SQLite's in-memory databases without losing the busy
    # timeout. It is never flushed to disk, so it is as fast as memory.
    folder = Path(tempfile.mkdtemp(prefix="foliot-"))
    url = URL.create("sqlite", database=str(folder / "memory.db"))
    database = open_sqlite(url, clock=clock, sizes=sizes, is_durable=False)
    database.on_close(lambda: shutil.rmtree(folder, ignore_errors=True))
    return SqlStore.over(database)


def parse_url(url: str, setting: str = SETTING) -> URL:
    """Parse the URL of a setting. Raises SettingError with an example of a valid URL."""
    right = "postgresql://user:password@host:5432/database"
    if setting == SETTING:
        right = f"sqlite:///foliot.db or {right}"
    if url == MEMORY and setting == SETTING:
        return URL.create("sqlite", database=MEMORY)
    try:
        backend = url.partition(":")[0].partition("+")[0]
        is_postgres = backend in ("postgres", "postgresql")
        parsed = parse_postgres_url(url, setting) if is_postgres else make_url(url)
    except (ArgumentError, ValueError):
        raise SettingError(f"{setting} is not a database URL; right would be {right}") from None
    if not is_postgres and (backend != "sqlite" or setting != SETTING):
        raise SettingError(f"{setting} names {backend}, which is not supported; use {right}")
    if not is_postgres and parsed.query:
        raise SettingError(f"{setting}: unsupported parameter {min(parsed.query)}; SQLite takes none")
    if not parsed.database or parsed.database == ":memory:":
        raise SettingError(f"{setting} names no database; right would be {right}")
    return parsed
