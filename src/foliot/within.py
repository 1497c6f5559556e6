"""Acting inside a transaction of the application's own: an order and its reminder, both or neither.

async with session.begin():
    session.add(order)
    await app.within(session).create_schedule("remind-7", remind, when=once(tomorrow))
    await app.within(session).trigger("receipt", {"order": 7})

Its engine has to connect to Foliot's own database. Schedulers and workers see what was asked for when the
transaction commits. A schedule that `trigger` names is locked until then, as by anybody who changes it: its
own fire times wait for the commit, those of other schedules don't. One whose target is an event is not locked
at all; its event gets its offset right after the commit, from the leader (`store.pending_events`).
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

from foliot.celery_app import load_celery
from foliot.model.errors import NotFoundError
from foliot.model.event import Observers
from foliot.model.execution import TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import Author
from foliot.security.address import AddressGuard
from foliot.security.secrets import SecretResolver
from foliot.settings import Settings
from foliot.steering.admission import DefinitionChecker
from foliot.steering.schedules import ScheduleSteering
from foliot.store.joining import JoinedDatabase, JoinedHints, awaited, dialect_of
from foliot.store.secrets import Secrets
from foliot.store.sql import SqlStore
from foliot.target.celery import CeleryRunner
from foliot.target.function import FunctionRunner, TaskRegistry
from foliot.target.http import HttpRunner
from foliot.target.http_connect import guarded_pool
from foliot.target.protocol import Target
from foliot.timing.clock import SystemClock

T = TypeVar("T")
Act = Callable[["_Acts"], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class Joining:
    """What an application brings along: its settings, its task functions, and how it defines schedules."""

    settings: Settings
    tasks: TaskRegistry
    define: Callable[..., ScheduleSpec]
    user: str | None

    @property
    def sends_hints(self) -> bool:
        """Over PostgreSQL, so that they belong to the transaction; Redis would tell too early."""
        return self.settings.uses_hints and self.settings.hints_redis_url is None


class _Acts:
    """What can be done, over a connection whose transaction is not ours."""

    def __init__(self, joining: Joining, database: JoinedDatabase) -> None:
        self._joining = joining
        self._author = Author(joining.user)
        self._database = database
        self._store = SqlStore.over(database)
        self._hints = JoinedHints()
        admission = DefinitionChecker(self._store, joining.tasks, _targets(joining, database))
        self._steering = ScheduleSteering(self._store, self._hints, Observers(), admission)

    async def trigger(self, name: str, args: Mapping[str, Any] | None) -> UUID:
        schedule = await self._find(name)
        made = await self._steering.trigger(schedule.schedule_id, self._author, by=TriggeredBy.API, args=args)
        return made.execution_id

    async def create(self, spec: ScheduleSpec) -> Schedule:
        return await self._steering.create(DEFAULT_HOST_ID, spec, self._author)

    async def delete(self, name: str) -> Schedule:
        schedule = await self._find(name)
        return await self._steering.delete(schedule.schedule_id, self._author)

    async def do(self, act: Act[T]) -> T:
        """All of an act, with its hints, or nothing of it."""

        async def work() -> T:
            result = await act(self)
            if self._joining.sends_hints:
                await self._hints.leave(self._database)
            return result

        return await self._database.act(work)

    async def _find(self, name: str) -> Schedule:
        # What can't be stored is no name of anything; drivers differ in what they say to it.
        can_be = "\0" not in name and name == name.encode("utf-8", "replace").decode()
        found = await self._store.schedules.find(DEFAULT_HOST_ID, name) if can_be else None
        if found is None:
            raise NotFoundError("schedule", name)
        return found


class AsyncWithin:
    """For an AsyncSession or an AsyncConnection. Raises InvalidError, NotFoundError, NameTakenError."""

    def __init__(self, joining: Joining, transaction: AsyncSession | AsyncConnection) -> None:
        self._joining = joining
        self._transaction = transaction

    async def trigger(self, name: str, args: Mapping[str, Any] | None = None) -> UUID:
        """Enqueue a run of the schedule; the arguments go over those of the schedule."""
        return await self._do(lambda acts: acts.trigger(name, args))

    async def create_schedule(self, name: str, task: Any, **definition: Any) -> Schedule:
        """As `app.schedule` takes it; made once, and not declared anew at every start."""
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
    """For a plain Session or Connection: the same acts, and nothing to await."""

    def __init__(self, joining: Joining, transaction: Session | Connection) -> None:
        self._joining = joining
        self._transaction = transaction

    def trigger(self, name: str, args: Mapping[str, Any] | None = None) -> UUID:
        """Enqueue a run of the schedule; the arguments go over those of the schedule."""
        return self._do(lambda acts: acts.trigger(name, args))

    def create_schedule(self, name: str, task: Any, **definition: Any) -> Schedule:
        """As `app.schedule` takes it; made once, and not declared anew at every start."""
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
    """Run what waits for nothing: every answer of a plain connection is there when it is awaited."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    coroutine.close()
    raise AssertionError("a plain connection made somebody wait")


def _targets(joining: Joining, database: JoinedDatabase) -> dict[str, Target]:
    """What checks the targets of schedules; none of these is run here."""
    settings, clock = joining.settings, SystemClock()
    secrets = SecretResolver(Secrets(database, settings.cipher), os.environ, settings.secrets_dir)
    http = HttpRunner(AddressGuard(settings.http_allowed), secrets, clock, pool=_no_connections())
    targets: dict[str, Target] = {"function": FunctionRunner(joining.tasks), "http": http}
    if settings.celery_app is not None:
        targets["celery"] = CeleryRunner(load_celery(settings.celery_app), secrets, clock)
    return targets


@cache
def _no_connections() -> httpcore2.AsyncConnectionPool:
    # Made once: to read the certificates of TLS took 30 ms, in each act, of whoever's loop it was.
    return guarded_pool(AddressGuard())
