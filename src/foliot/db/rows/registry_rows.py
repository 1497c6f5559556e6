"""Statements on `instance_t` and `task_function_t`: running instances, and the tasks they can run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, null, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.statements import Statements, transaction
from foliot.db.tables.cluster import instance_t, task_function_t
from foliot.model.policy import RetryPolicy
from foliot.planning.task_defaults import TaskDefaults

NAMES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    instance_id: str
    hostname: str
    pid: int
    roles: tuple[str, ...]
    version: str
    capacity: int = 0
    load: int = 0
    queues: tuple[str, ...] | None = None
    known_tasks: tuple[str, ...] | None = None
    is_leader: bool = False
    clock_offset_s: float | None = None
    transports: Mapping[str, Mapping[str, str | None]] | None = None
    """The transport of each priority. None: the database."""
    lease_provider: Mapping[str, str | None] | None = None
    """What elects leaders in addition to the database. None: nothing."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    name: str
    display_name: str
    description: str
    handler_path: str
    handler_type: str
    queue: str | None
    default_timeout_seconds: float
    args_schema: Mapping[str, Any]
    is_system: bool = False
    default_retry: Mapping[str, Any] | None = None
    """Retry policy of schedules that define none. None: the general default."""


@dataclass(frozen=True, slots=True)
class RegisteredTask:
    """What every process can read about a task function."""

    name: str
    args_schema: Mapping[str, Any]
    is_active: bool


class Registry(Statements):
    @transaction(Pool.LEASE)
    async def heartbeat(self, connection: AsyncConnection, record: InstanceRecord) -> bool:
        """Publish the instance's state. Return whether the instance is asked to drain."""
        now = self._dialect.now()
        changing: dict[str, Any] = {
            "last_heartbeat": now,
            "capacity": record.capacity,
            "load": record.load,
            "queues": None if record.queues is None else list(record.queues),
            "known_tasks": None if record.known_tasks is None else list(record.known_tasks),
            "clock_offset_seconds": record.clock_offset_s,
            "transports": None if record.transports is None else dict(record.transports),
            "lease_provider": None if record.lease_provider is None else dict(record.lease_provider),
        }
        statement = self._dialect.insert(instance_t).values(
            instance_id=record.instance_id,
            hostname=record.hostname,
            pid=record.pid,
            roles=list(record.roles),
            version=record.version,
            started_ts=now,
            leader_since=now if record.is_leader else None,
            **changing,
        )
        leader_since = func.coalesce(instance_t.c.leader_since, now)
        registered = statement.on_conflict_do_update(
            index_elements=[instance_t.c.instance_id],
            set_={**changing, "leader_since": leader_since if record.is_leader else null()},
        ).returning(instance_t.c.draining)
        return bool((await connection.execute(registered)).scalar_one())

    @transaction(Pool.LEASE)
    async def leave(self, connection: AsyncConnection, instance_id: str) -> None:
        await connection.execute(delete(instance_t).where(instance_t.c.instance_id == instance_id))

    @transaction(Pool.LEASE)
    async def forget_stale(self, connection: AsyncConnection, older_than_s: float) -> int:
        oldest = self._dialect.plus(self._dialect.now(), -older_than_s)
        stale = select(instance_t.c.instance_id).where(instance_t.c.last_heartbeat < oldest)
        result = await connection.execute(delete(instance_t).where(instance_t.c.instance_id.in_(stale)))
        return result.rowcount

    async def task(self, name: str) -> RegisteredTask | None:
        """Return the record that a worker wrote about a task function. None: there is none."""
        table = task_function_t
        wanted = select(table.c.name, table.c.args_schema, table.c.is_active).where(table.c.name == name)
        row = (await self._database.fetch(Pool.API, wanted)).one_or_none()
        return None if row is None else RegisteredTask(*row)

    async def task_defaults(self, names: Iterable[str]) -> dict[str, TaskDefaults]:
        """Return the defaults that schedules take from these task functions. Unknown names are left out."""
        table, wanted = task_function_t, sorted(set(names))
        found: dict[str, TaskDefaults] = {}
        async with self._database.read(Pool.API) as connection:
            for begin in range(0, len(wanted), NAMES_AT_ONCE):
                statement = select(
                    table.c.name, table.c.queue, table.c.default_timeout_seconds, table.c.default_retry
                ).where(table.c.name.in_(wanted[begin : begin + NAMES_AT_ONCE]))
                for row in await connection.execute(statement):
                    found[row.name] = TaskDefaults(
                        row.queue, row.default_timeout_seconds or None, _retry_of(row.default_retry)
                    )
        return found

    async def task_names(self, *, limit: int = 1000) -> list[str]:
        """Return the names of the task functions that schedules may use."""
        table = task_function_t
        wanted = select(table.c.name).where(table.c.is_system.is_(False)).order_by(table.c.name).limit(limit)
        return list((await self._database.fetch(Pool.API, wanted)).scalars())

    @transaction(Pool.WORK)
    async def register_tasks(self, connection: AsyncConnection, tasks: Sequence[TaskRecord]) -> None:
        """Write the tasks that this process can run. Existing rows are updated, except for `is_active`."""
        # In order of name: several workers may start at once and must not deadlock.
        for task in sorted(tasks, key=lambda each: each.name):
            values: dict[str, Any] = {
                "display_name": task.display_name,
                "description": task.description,
                "handler_path": task.handler_path,
                "handler_type": task.handler_type,
                "queue": task.queue,
                "default_timeout_seconds": task.default_timeout_seconds,
                "args_schema": dict(task.args_schema),
                "is_system": task.is_system,
                "default_retry": None if task.default_retry is None else dict(task.default_retry),
                "updated_ts": self._dialect.now(),
            }
            statement = self._dialect.insert(task_function_t).values(
                name=task.name, created_ts=self._dialect.now(), **values
            )
            await connection.execute(
                statement.on_conflict_do_update(index_elements=[task_function_t.c.name], set_=values)
            )


def _retry_of(document: Any) -> RetryPolicy | None:
    # A newer version may have written fields that this one does not know.
    return None if document is None else RetryPolicy.model_validate(document, extra="ignore")
