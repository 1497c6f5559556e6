"""Schedule and trigger inside the application's own transaction: an order and its reminder, both or neither.

async with session.begin():
    session.add(order)
    await app.within(session).create_schedule("remind-7", remind, when=once(tomorrow))
    await app.within(session).trigger("receipt", {"order": 7})

The application's engine must connect to Foliot's database. Schedulers and workers see the changes when the
transaction commits. `trigger` locks the schedule until then: its own fire times wait for the commit, those of
other schedules don't. A schedule whose target is an event is not locked. The leader gives its event an offset
right after the commit (`scheduler/pending_events_sql.py`).
"""

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

import httpcore2
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from foliot.access.address_guard import AddressGuard
from foliot.access.secrets import SecretResolver
from foliot.access.secrets_sql import Secrets
from foliot.brokers.celery_app import load_celery
from foliot.commands.admission import DefinitionChecker
from foliot.commands.schedules import ScheduleCommands
from foliot.commands.schedules_sql import Schedules
from foliot.db.joined_transaction import JoinedDatabase, JoinedHints, awaited, dialect_of
from foliot.instance.settings import Settings
from foliot.kinds.function_target import TaskRegistry
from foliot.kinds.http_connections import guarded_pool
from foliot.kinds.target_protocol import RunnerContext, TargetRunner, open_runners
from foliot.model.errors import NotFoundError
from foliot.model.event import Observers
from foliot.model.execution import TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import Author
from foliot.timing.clock import SystemClock

T = TypeVar("T")
Act = Callable[["_Acts"], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class TransactionContext:
    """What the application provides: its settings, its task functions, and how it defines schedules."""

    settings: Settings
    tasks: TaskRegistry
    define: Callable[..., ScheduleSpec]
    user: str | None

    @property
    def sends_hints(self) -> bool:
        """Whether to send hints in the transaction, by PostgreSQL. Redis would send before the commit."""
        return self.settings.uses_hints and self.settings.hints_redis_url is None


class _Acts:
    """The operations, on a connection whose transaction belongs to the application."""

    def __init__(self, joining: TransactionContext, database: JoinedDatabase) -> None:
        self._joining = joining
        self._author = Author(joining.user)
        self._database = database
        self._schedules = Schedules(database)
        self._hints = JoinedHints()
        admission = DefinitionChecker(database, joining.tasks, _runners(joining, database))
        self._commands = ScheduleCommands(database, self._hints, Observers(), admission)

    async def trigger(self, name: str, args: Mapping[str, Any] | None) -> UUID:
        schedule = await self._find(name)
        made = await self._commands.trigger(schedule.schedule_id, self._author, by=TriggeredBy.API, args=args)
        return made.execution_id

    async def create(self, spec: ScheduleSpec) -> Schedule:
        return await self._commands.create(DEFAULT_HOST_ID, spec, self._author)

    async def delete(self, name: str) -> Schedule:
        schedule = await self._find(name)
        return await self._commands.delete(schedule.schedule_id, self._author)

    async def do(self, act: Act[T]) -> T:
        """Run an operation and send its hints; if it fails, undo all of it."""

        async def work() -> T:
            result = await act(self)
            if self._joining.sends_hints:
                await self._hints.leave(self._database)
            return result

        return await self._database.act(work)

    async def _find(self, name: str) -> Schedule:
        # Such a text can't be stored, so no schedule has it as a name; drivers raise different errors for it.
        can_be = "\0" not in name and name == name.encode("utf-8", "replace").decode()
        found = await self._schedules.find(DEFAULT_HOST_ID, name) if can_be else None
        if found is None:
            raise NotFoundError("schedule", name)
        return found


class AsyncWithin:
    """Operations for an AsyncSession or an AsyncConnection.

    Raises InvalidError, NotFoundError, NameTakenError.
    """

    def __init__(self, joining: TransactionContext, transaction: AsyncSession | AsyncConnection) -> None:
        self._joining = joining
        self._transaction = transaction

    async def trigger(self, name: str, args: Mapping[str, Any] | None = None) -> UUID:
        """Enqueue a run of the schedule. `args` override the schedule's arguments."""
        return await self._do(lambda acts: acts.trigger(name, args))

    async def create_schedule(self, name: str, task: Any, **definition: Any) -> Schedule:
        """Create a schedule, with the arguments of `app.schedule`. It is not declared again at each start."""
        spec = self._joining.define(name, task, **definition)
        return await self._do(lambda acts: acts.create(spec))

    async def delete_schedule(self, name: str) -> Schedule:
        return await self._do(lambda acts: acts.delete(name))

    async def _do(self, act: Act[T]) -> T:
        connection = await self._connect()
        dialect = await connection.run_sync(dialect_of)
        acts = _Acts(self._joining, JoinedDatabase(dialect, self._connect))
        return await acts.do(act)

    async def _connect(self) -> AsyncConnection:
        if isinstance(self._transaction, AsyncSession):
            return await self._transaction.connection()
        return self._transaction


class Within:
    """Operations for a plain Session or Connection, without `await`."""

    def __init__(self, joining: TransactionContext, transaction: Session | Connection) -> None:
        self._joining = joining
        self._transaction = transaction

    def trigger(self, name: str, args: Mapping[str, Any] | None = None) -> UUID:
        """Enqueue a run of the schedule. `args` override the schedule's arguments."""
        return self._do(lambda acts: acts.trigger(name, args))

    def create_schedule(self, name: str, task: Any, **definition: Any) -> Schedule:
        """Create a schedule, with the arguments of `app.schedule`. It is not declared again at each start."""
        spec = self._joining.define(name, task, **definition)
        return self._do(lambda acts: acts.create(spec))

    def delete_schedule(self, name: str) -> Schedule:
        return self._do(lambda acts: acts.delete(name))

    def _do(self, act: Act[T]) -> T:
        given = self._transaction
        connection = given.connection() if isinstance(given, Session) else given
        answering = awaited(connection)

        async def connect() -> AsyncConnection:
            return answering

        acts = _Acts(self._joining, JoinedDatabase(dialect_of(connection), connect))
        return _at_once(acts.do(act))


def _at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends: with a plain connection every await has its result at once."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    coroutine.close()
    raise AssertionError("a plain connection made somebody wait")


def _runners(joining: TransactionContext, database: JoinedDatabase) -> dict[str, TargetRunner]:
    """Return runners for checking definitions only; they never run."""
    settings, clock = joining.settings, SystemClock()
    secrets = SecretResolver(Secrets(database, settings.cipher), os.environ, settings.secrets_dir)
    return open_runners(
        RunnerContext(
            clock=clock,
            secrets=secrets,
            guard=AddressGuard(settings.http_allowed),
            tasks=joining.tasks,
            http_pool=_no_connections(),
            observer=Observers(),
            celery=None if settings.celery_app is None else load_celery(settings.celery_app),
        )
    )


@cache
def _no_connections() -> httpcore2.AsyncConnectionPool:
    # Cached: reading the TLS certificates takes 30 ms, and blocks the application's event loop.
    return guarded_pool(AddressGuard())
