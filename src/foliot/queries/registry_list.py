"""Lists of instances and of task functions: what runs, who leads, and how many workers can run a task."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.audit import Action, record_audit
from foliot.db.dialect import Pool
from foliot.db.rows.from_row import from_row
from foliot.db.statements import Statements, transaction
from foliot.db.tables.cluster import instance_t, scheduler_lock_t, task_function_t
from foliot.model.errors import ConflictError, NotFoundError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.kind import SYSTEM_PREFIX
from foliot.model.policy import Priority
from foliot.planning.change import Author

LIVE_S = 15.0
"""Seconds after the last heartbeat that an instance counts as live. It sends one every 5 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedInstance:
    """A process of the cluster, as of its last heartbeat."""

    instance_id: str
    hostname: str
    pid: int
    roles: tuple[str, ...]
    version: str
    started_ts: datetime
    last_heartbeat: datetime
    heartbeat_age_s: float
    """By the store's clock."""
    is_live: bool
    is_draining: bool
    """It accepts no new work, because it was asked to drain or it stops."""
    leader_since: datetime | None
    leads: tuple[int, ...]
    """Numbers of the shards whose lease it holds now."""
    capacity: int
    load: int
    queues: tuple[str, ...] | None
    """None: all queues."""
    known_tasks: tuple[str, ...] | None
    """None: it is not a worker."""
    clock_offset_s: float | None
    transports: Mapping[str, Mapping[str, str | None]] | None
    """The transport of each priority. None: the database."""
    lease_provider: Mapping[str, str | None] | None
    """What elects leaders in addition to the database. None: nothing."""


@dataclass(frozen=True, slots=True)
class LeaseProviderRecord:
    """What elects leaders in addition to the database, as reported by schedulers."""

    kind: str
    address: str
    instance_count: int
    away_count: int
    """How many of these instances get no answer from it."""


@dataclass(frozen=True, slots=True)
class WorkerCounts:
    """Live workers of the cluster."""

    taking_work: int
    draining: int
    """Workers that finish their running executions and claim no more."""


@dataclass(frozen=True, slots=True)
class TransportRecord:
    """The transport of a priority, as reported by instances."""

    priority: str
    kind: str
    address: str | None
    instance_count: int
    away_count: int
    """How many of these instances get no answer from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which task functions to list. All given conditions must hold."""

    names: Sequence[str] = ()
    q: str = ""
    """Part of a name or of the description, case-insensitive (on SQLite only for A to Z)."""
    is_active: bool | None = None
    is_system: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTask:
    """A task function, and how many workers can run it."""

    name: str
    display_name: str
    description: str
    handler_path: str
    handler_type: str
    queue: str | None
    default_timeout_seconds: float
    args_schema: Mapping[str, Any]
    is_active: bool
    is_system: bool
    created_ts: datetime
    updated_ts: datetime
    worker_count: int
    default_retry: Mapping[str, Any] | None = None


class RegistryList(Statements):
    # --- instances --------------------------------------------------------------------------------

    async def instances(
        self, *, lease_ttl_s: float, after: str = "", limit: int = 50
    ) -> list[ListedInstance]:
        """Return a page in order of id, behind `after`. Shards with an expired lease count for nobody."""
        async with self._database.read(Pool.API) as connection:
            return await self._instances(
                connection, (instance_t.c.instance_id > after,), lease_ttl_s, limit=limit
            )

    async def _instances(
        self, connection: AsyncConnection, conditions: Sequence[Any], lease_ttl_s: float, *, limit: int
    ) -> list[ListedInstance]:
        statement = (
            select(instance_t, self._dialect.now().label("now"))
            .where(*conditions)
            .order_by(instance_t.c.instance_id)
            .limit(limit)
        )
        leases = select(scheduler_lock_t, self._dialect.now().label("now")).order_by(
            scheduler_lock_t.c.lock_id
        )
        rows = (await connection.execute(statement)).all()
        held = [row for row in await connection.execute(leases) if _is_fresh(row, lease_ttl_s)]
        # Lock ids count from 1, shards from 0.
        return [
            _instance_of(row, [each.lock_id - 1 for each in held if each.instance_id == row.instance_id])
            for row in rows
        ]

    async def instance(self, instance_id: str, *, lease_ttl_s: float) -> ListedInstance:
        """Return one instance. Raises NotFoundError."""
        is_wanted = instance_t.c.instance_id == instance_id
        async with self._database.read(Pool.API) as connection:
            found = await self._instances(connection, (is_wanted,), lease_ttl_s, limit=1)
        if not found:
            raise NotFoundError("instance", instance_id)
        return found[0]

    @transaction(Pool.API)
    async def set_draining(
        self, connection: AsyncConnection, instance_id: str, is_draining: bool, author: Author
    ) -> None:
        """Ask an instance to drain, or to resume. Idempotent. Raises NotFoundError."""
        table = instance_t
        statement = select(table.c.draining).where(table.c.instance_id == instance_id).with_for_update()
        was_draining = (await connection.execute(statement)).scalar_one_or_none()
        if was_draining is None:
            raise NotFoundError("instance", instance_id)
        if was_draining == is_draining:
            return
        await connection.execute(
            update(table).where(table.c.instance_id == instance_id).values(draining=is_draining)
        )
        await record_audit(
            connection,
            self._dialect,
            author,
            Action.INSTANCE_DRAINED if is_draining else Action.INSTANCE_RESUMED,
            instance_id,
            host_id=DEFAULT_HOST_ID,
            before={"is_draining": was_draining},
            after={"is_draining": is_draining},
        )

    async def transports(self) -> list[TransportRecord]:
        """Return the transports that live instances report. Empty: all executions go through the database."""
        oldest = self._dialect.plus(self._dialect.now(), -LIVE_S)
        statement = select(instance_t.c.transports).where(
            instance_t.c.transports.is_not(None), instance_t.c.last_heartbeat >= oldest
        )
        reports = [each for each in (await self._database.fetch(Pool.API, statement)).scalars() if each]
        seen: Counter[tuple[str, str, str | None]] = Counter()
        away: Counter[tuple[str, str, str | None]] = Counter()
        for each in reports:
            for priority in Priority:
                way = each[priority]
                key = (str(priority), way["kind"], way["address"])
                seen[key] += 1
                away[key] += way["state"] == "away"
        return [
            TransportRecord(*key, instance_count=count, away_count=away[key]) for key, count in seen.items()
        ]

    async def lease_providers(self) -> list[LeaseProviderRecord]:
        """Return the lease providers that live schedulers report. Empty: the database alone decides."""
        oldest = self._dialect.plus(self._dialect.now(), -LIVE_S)
        statement = select(instance_t.c.lease_provider).where(
            instance_t.c.lease_provider.is_not(None), instance_t.c.last_heartbeat >= oldest
        )
        reports = [each for each in (await self._database.fetch(Pool.API, statement)).scalars() if each]
        seen = Counter((each["kind"], each["address"]) for each in reports)
        away = Counter((each["kind"], each["address"]) for each in reports if each["state"] == "away")
        return [
            LeaseProviderRecord(*key, instance_count=count, away_count=away[key])
            for key, count in seen.items()
        ]

    async def worker_counts(self) -> WorkerCounts:
        """Count live workers: those that accept work, and those that drain."""
        oldest = self._dialect.plus(self._dialect.now(), -LIVE_S)
        statement = (
            select(instance_t.c.draining, func.count().label("amount"))
            .where(instance_t.c.known_tasks.is_not(None), instance_t.c.last_heartbeat >= oldest)
            .group_by(instance_t.c.draining)
        )
        counts = {row.draining: row.amount for row in await self._database.fetch(Pool.API, statement)}
        return WorkerCounts(taking_work=counts.get(False, 0), draining=counts.get(True, 0))

    # --- task functions ---------------------------------------------------------------------------

    async def tasks(self, wanted: TaskFilter, *, after: str = "", limit: int = 50) -> list[ListedTask]:
        """Return a page in order of name, behind `after`."""
        table = task_function_t
        statement = select(table).where(table.c.name > after).order_by(table.c.name).limit(limit)
        if wanted.names:
            statement = statement.where(table.c.name.in_(wanted.names))
        if wanted.q:
            columns = (table.c.name, table.c.display_name, table.c.description)
            parts = [column.icontains(wanted.q, autoescape=True) for column in columns]
            statement = statement.where(or_(*parts))
        if wanted.is_active is not None:
            statement = statement.where(table.c.is_active.is_(wanted.is_active))
        if wanted.is_system is not None:
            statement = statement.where(table.c.is_system.is_(wanted.is_system))
        async with self._database.read(Pool.API) as connection:
            rows = (await connection.execute(statement)).all()
            workers = await self._workers(connection) if rows else Counter()
        return [ListedTask(**row._mapping, worker_count=workers[row.name]) for row in rows]

    async def task(self, name: str) -> ListedTask:
        """Return one task function. Raises NotFoundError."""
        found = await self.tasks(TaskFilter(names=[name]), limit=1)
        if not found:
            raise NotFoundError("task function", name)
        return found[0]

    async def set_task_active(self, name: str, is_active: bool, author: Author) -> ListedTask:
        """Enable or disable a task function for workers. Idempotent. Raises NotFoundError.

        Raises ConflictError for a system function, because the leader runs it regardless of its row.
        """
        table = task_function_t
        if name.startswith(SYSTEM_PREFIX):
            raise ConflictError.at(
                "/is_active",
                "system_task",
                f"can't be changed: {name} is Foliot's own housekeeping, which always runs",
            )

        async def work(connection: AsyncConnection) -> None:
            statement = select(table.c.is_active).where(table.c.name == name).with_for_update()
            was_active = (await connection.execute(statement)).scalar_one_or_none()
            if was_active is None:
                raise NotFoundError("task function", name)
            if was_active == is_active:
                return
            await connection.execute(
                update(table)
                .where(table.c.name == name)
                .values(is_active=is_active, updated_ts=self._dialect.now())
            )
            await record_audit(
                connection,
                self._dialect,
                author,
                Action.TASK_FUNCTION_CHANGED,
                name,
                host_id=DEFAULT_HOST_ID,
                before={"is_active": was_active},
                after={"is_active": is_active},
            )

        await self._database.write(Pool.API, work)
        return await self.task(name)

    async def _workers(self, connection: AsyncConnection) -> Counter[str]:
        """Count live workers per task. Draining workers are not counted."""
        oldest = self._dialect.plus(self._dialect.now(), -LIVE_S)
        statement = select(instance_t.c.known_tasks).where(
            instance_t.c.known_tasks.is_not(None),
            instance_t.c.draining.is_(False),
            instance_t.c.last_heartbeat >= oldest,
        )
        known = (await connection.execute(statement)).scalars()
        return Counter(name for names in known for name in names)


def _is_fresh(row: Any, within_s: float) -> bool:
    # A heartbeat in the future counts as none, as it does for leases.
    return bool(abs(row.now - row.last_heartbeat) <= timedelta(seconds=within_s))


def _instance_of(row: Any, leads: Sequence[int]) -> ListedInstance:
    return from_row(
        ListedInstance,
        row,
        roles=tuple(row.roles),
        heartbeat_age_s=(row.now - row.last_heartbeat).total_seconds(),
        is_live=_is_fresh(row, LIVE_S),
        is_draining=row.draining,
        leads=tuple(leads),
        queues=None if row.queues is None else tuple(row.queues),
        known_tasks=None if row.known_tasks is None else tuple(row.known_tasks),
        clock_offset_s=row.clock_offset_seconds,
    )
