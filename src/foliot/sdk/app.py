"""The Python SDK: register task functions, declare schedules, run.

app = Foliot()

@app.task(retries=3, timeout="10m")
async def send_report(region: str, fire: Fire) -> str: ...

app.schedule("report-eu", send_report, args={"region": "eu"}, when=cron("0 7 * * mon-fri"))
app.run()
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from foliot.db.migrate import require_schema
from foliot.instance.runtime import Instance
from foliot.instance.settings import Settings, load_settings
from foliot.instance.spec import ENGINE, InstanceRole, InstanceSpec
from foliot.instance.store import open_store
from foliot.kinds.checking import checked
from foliot.kinds.function_target import IsolationKind, Task, TaskRegistry, describe_task
from foliot.kinds.target_protocol import Fire
from foliot.model.errors import InvalidError, NotFoundError
from foliot.model.event import Observer
from foliot.model.ids import new_id
from foliot.model.kind import BaseTarget, BaseTrigger
from foliot.model.policy import RetryPolicy
from foliot.model.schedule import ScheduleSpec
from foliot.outbox.dead_letters import DeadLetters
from foliot.outbox.handlers import (
    DEFAULT_TIMEOUT_S,
    ConsumerSpec,
    Event,
    EventTransaction,
    Handler,
    Start,
)
from foliot.planning.admit import admit
from foliot.planning.task_defaults import fill_in
from foliot.sdk.client import Client
from foliot.sdk.transactions import AsyncWithin, TransactionContext, Within
from foliot.telemetry.embedded import embedded_log
from foliot.timing.clock import SystemClock
from foliot.timing.duration import Duration, seconds_of
from foliot.worker.isolation.loading import refuse_without

if TYPE_CHECKING:
    from foliot.sdk.asgi import AsgiApplication

__all__ = [
    "Event",
    "EventTransaction",
    "Fire",
    "Foliot",
]

F = TypeVar("F", bound=Callable[..., Any])
H = TypeVar("H", bound=Handler)
T = TypeVar("T")


class Foliot:
    """An application's task functions and schedules.

    `url` is the database: `postgresql://…`, `sqlite:///…`, or `memory` in tests. None: FOLIOT_DATABASE_URL.
    """

    def __init__(self, url: str | None = None) -> None:
        self.url = url
        self.tasks = TaskRegistry()
        self.schedules: dict[str, ScheduleSpec] = {}
        self.consumers: dict[str, ConsumerSpec] = {}
        self._asgi: AsgiApplication | None = None
        self._settings: Settings | None = None
        self._upgrades = False

    # --- declaring --------------------------------------------------------------------------------

    @overload
    def task(self, function: F, /) -> F: ...

    @overload
    def task(
        self,
        function: None = None,
        /,
        *,
        name: str | None = None,
        retries: int | None = None,
        timeout: Duration | None = None,
        queue: str | None = None,
        display_name: str | None = None,
        description: str | None = None,
        system: bool = False,
        isolation: IsolationKind | None = None,
    ) -> Callable[[F], F]: ...

    def task(
        self,
        function: F | None = None,
        /,
        *,
        name: str | None = None,
        retries: int | None = None,
        timeout: Duration | None = None,
        queue: str | None = None,
        display_name: str | None = None,
        description: str | None = None,
        system: bool = False,
        isolation: IsolationKind | None = None,
    ) -> F | Callable[[F], F]:
        """Register a function as a task. Its signature becomes the schema of its arguments.

        A sync function runs in a separate process, which a timeout or a cancel ends. With
        `isolation="thread"` it runs in a thread of the worker, which shares memory and can't be stopped.
        """
        given: dict[str, Any] = {
            "name": name,
            "queue": queue,
            "display_name": display_name,
            "description": description,
            "isolation": isolation,
            "timeout_s": None if timeout is None else seconds_of(timeout, "/timeout"),
            "retry": None if retries is None else _retry_of(retries),
        }
        options = {option: value for option, value in given.items() if value is not None}

        def register(target: F) -> F:
            self.tasks.add(describe_task(target, is_system=system, **options))
            return target

        return register if function is None else register(function)

    def schedule(
        self,
        name: str,
        task: Callable[..., Any] | str | BaseTarget,
        *,
        when: BaseTrigger | Mapping[str, Any],
        args: Mapping[str, Any] | None = None,
        retries: int | None = None,
        timeout: Duration | None = None,
        **fields: Any,
    ) -> ScheduleSpec:
        """Declare a schedule: an upsert by name when the application starts.

        `fields` are those of a schedule (`queue`, `priority`, `start_ts`, `labels` …). For `overlap` and
        `misfire` the name of the policy is enough. Raises InvalidError for wrong fields.
        """
        spec = self.define(name, task, when=when, args=args, retries=retries, timeout=timeout, **fields)
        self.schedules[name] = spec
        return spec

    def define(
        self,
        name: str,
        task: Callable[..., Any] | str | BaseTarget,
        *,
        when: BaseTrigger | Mapping[str, Any],
        args: Mapping[str, Any] | None = None,
        retries: int | None = None,
        timeout: Duration | None = None,
        **fields: Any,
    ) -> ScheduleSpec:
        """Check a definition and return it, without declaring it. Takes the arguments of `schedule`."""
        if "target" in fields:
            raise InvalidError.at("/target", "unexpected", "is the second argument", "leave it out")
        known = None if isinstance(task, BaseTarget) else self._task_of(task)
        if known is None and args is not None:
            raise InvalidError.at("/args", "unexpected", "are for task functions", "put them into the body")
        if retries is not None and "retry" in fields:
            raise InvalidError.at("/retries", "twice", "is given beside retry", "one of them")
        document: dict[str, Any] = {"name": name, "trigger": when, **fields}
        document["target"] = (
            task if known is None else {"kind": "function", "name": known.name, "args": dict(args or {})}
        )
        for policy in ("overlap", "misfire"):
            if isinstance(document.get(policy), str):
                document[policy] = {"policy": document[policy]}
        if timeout is not None:
            document.setdefault("timeout_seconds", seconds_of(timeout, "/timeout"))
        if retries is not None:
            document.setdefault("retry", _retry_of(retries))
        spec = fill_in(ScheduleSpec.parse(document), None if known is None else known.defaults)
        problems = [] if known is None else known.check(dict(args or {}), "/args")
        if problems:
            raise InvalidError(problems)
        admit(spec, new_id(), SystemClock().now())
        return spec

    def on_event(
        self,
        group: str,
        *,
        topics: Sequence[str] | None = None,
        partitions: int = 1,
        batch: int = 100,
        max_attempts: int = 3,
        timeout: Duration = DEFAULT_TIMEOUT_S,
        start: Start = "earliest",
        source: str = "database",
    ) -> Callable[[H], H]:
        """Register an async function that handles events: `async def handle(transaction: EventTransaction)`.

        A worker runs it. Writes through `transaction.connection` commit together with the group's offset.
        `source` is the database, or a Kafka that a relay fills: `kafka://host:9092`.
        """
        if isinstance(topics, str):
            raise InvalidError.at("/topics", "consumer", "must be a list", f"topics=[{topics!r}]")

        def register(handler: H) -> H:
            if group in self.consumers:
                raise InvalidError.at("/group", "twice", f'"{group}" has a handler', "name another group")
            self.consumers[group] = ConsumerSpec(
                group=group,
                handler=handler,
                topics=None if topics is None else tuple(topics),
                partitions=partitions,
                batch=batch,
                max_attempts=max_attempts,
                timeout_s=seconds_of(timeout, "/timeout"),
                start=start,
                source=source,
            )
            return handler

        return register

    def _task_of(self, task: Callable[..., Any] | str) -> Task:
        if isinstance(task, str):
            return self.tasks.get(task)
        for known in self.tasks:
            if known.function is task:
                found: Task = known
                return found
        name = getattr(task, "__name__", repr(task))
        raise InvalidError.at(
            "/task", "unknown_task", f"{name} is not a task function", "put @app.task on it"
        )

    # --- running ----------------------------------------------------------------------------------

    def instance(
        self,
        settings: Settings | None = None,
        *,
        roles: frozenset[InstanceRole] = ENGINE,
        observers: Sequence[Observer] = (),
        upgrade: bool = False,
    ) -> Instance:
        """Make an instance with this application's tasks and schedules, not started yet.

        It creates the schema in an empty database. It upgrades an existing schema only with `upgrade`.
        """
        return Instance(
            InstanceSpec(
                settings=settings or load_settings(database_url=self.url),
                roles=roles,
                tasks=self.tasks,
                schedules=tuple(self.schedules.values()),
                consumers=tuple(self.consumers.values()),
                creates_schema=True,
                upgrades_schema=upgrade,
                observers=observers,
            )
        )

    def run(self) -> None:
        """Run everything in this process until it is stopped, as `foliot up` does."""
        from foliot.cli.commands.up import run_app  # here because the CLI imports the SDK

        run_app(self)

    def connect(self, settings: Settings | None = None, *, user: str | None = None) -> Client:
        """Control what other processes run: `async with app.connect() as client: await client.trigger(…)`."""
        plan = InstanceSpec(
            settings=settings or self._settings_to_connect(), roles=frozenset(), tasks=self.tasks
        )
        return Client(plan, user=user)

    def _settings_to_connect(self) -> Settings:
        if self.url is None:
            # Otherwise a function in a separate process would silently use the default database.
            refuse_without("FOLIOT_DATABASE_URL")
        return load_settings(database_url=self.url)

    @overload
    def within(
        self, transaction: AsyncSession | AsyncConnection, *, user: str | None = None
    ) -> AsyncWithin: ...

    @overload
    def within(self, transaction: Session | Connection, *, user: str | None = None) -> Within: ...

    def within(
        self,
        transaction: AsyncSession | AsyncConnection | Session | Connection,
        *,
        user: str | None = None,
    ) -> AsyncWithin | Within:
        """Schedule and trigger inside your own transaction, on the same database; all commit together.

        `await app.within(session).trigger("receipt", {"order": 7})`; without `await` for a plain session.
        """
        if self._settings is None:
            self._settings = load_settings(database_url=self.url)
        joining = TransactionContext(self._settings, self.tasks, self.define, user)
        if isinstance(transaction, AsyncSession | AsyncConnection):
            return AsyncWithin(joining, transaction)
        return Within(joining, transaction)

    @asynccontextmanager
    async def dead_letters(self, group: str, settings: Settings | None = None) -> AsyncIterator[DeadLetters]:
        """Open the dead letters of a group: `async with app.dead_letters("billing") as letters: …`."""
        if group not in self.consumers:
            raise NotFoundError("handler of group", group)
        settings = settings or self._settings_to_connect()
        clock = SystemClock()
        store = open_store(settings.database_url, clock=clock, uses_hints=settings.uses_hints)
        try:
            await require_schema(store.database)
            yield DeadLetters(self.consumers[group], store.dead_letters, store.consumers, clock)
        finally:
            await store.close()

    def lifespan(self, *, upgrade: bool = False) -> Callable[[Any], AbstractAsyncContextManager[None]]:
        """Return a lifespan for FastAPI: `FastAPI(lifespan=app.lifespan())`.

        Several server processes may use it. It logs to `logging.getLogger("foliot")`. It creates the schema
        in an empty database. An older schema raises SchemaError, unless `upgrade` is true: then it is
        upgraded.
        """
        self._upgrades = self._upgrades or upgrade

        @asynccontextmanager
        async def running(_application: Any) -> AsyncIterator[None]:
            if self._asgi is not None:
                async with self._asgi.running():
                    yield
                return
            instance = self.instance(observers=[embedded_log()], upgrade=upgrade)
            await instance.start()
            try:
                yield
            finally:
                await asyncio.shield(instance.stop())

        return running

    def asgi(self, *, upgrade: bool = False) -> "AsgiApplication":
        """Return the REST API as an ASGI application, to serve or to mount in your own application.

        If mounted (`api.mount("/foliot", app.asgi())`), your application needs
        `FastAPI(lifespan=app.lifespan())`. Set FOLIOT_ADMIN_KEY, or create a key before. Logs and schema
        are as with `lifespan`.
        """
        from foliot.sdk.asgi import AsgiApplication

        self._upgrades = self._upgrades or upgrade

        def make(observers: Sequence[Observer]) -> Instance:
            return self.instance(
                roles=frozenset(InstanceRole), observers=[embedded_log(), *observers], upgrade=self._upgrades
            )

        if self._asgi is None:
            self._asgi = AsgiApplication(make)
        return self._asgi


def _retry_of(retries: int) -> RetryPolicy:
    if retries < 0:
        raise InvalidError.at("/retries", "negative", "must be 0 or more", "0 means one attempt")
    return checked(RetryPolicy, max_attempts=retries + 1)
