"""Wrapper around a user's Celery application. It names tasks, uses JSON only, and has timeouts everywhere.

    load      imports what FOLIOT_CELERY_APP names. Only the operator sets it, never a stored definition
    refuse    an application that could read pickled results: to unpickle is to run code
    send      over a separate connection, confirmed by the broker, in a thread that does nothing else
    state     from the result backend, in other threads: a backend that hangs does not delay sending

Celery's own pool is not used for sending: while the broker is away it retries for as long as its settings
say, by default without end.
"""

import asyncio
import contextlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from foliot.blocking_calls import BlockingCalls
from foliot.model.errors import FoliotError, SettingError
from foliot.model.policy import Priority

Answer = TypeVar("Answer")
SETTING = "FOLIOT_CELERY_APP"
JSON = frozenset({"json", "application/json"})
CALL_WITHIN_S = 20.0
CONNECT_WITHIN_S = 4.0
_BOUNDED: Mapping[str, Any] = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.2,
    "interval_max": 0.2,
}
_OF_DRIVER: Mapping[str, Mapping[str, Any]] = {
    "amqp": {"confirm_publish": True, "read_timeout": 15, "write_timeout": 15},
    "redis": {"socket_connect_timeout": CONNECT_WITHIN_S, "socket_timeout": 15},
}
"""Options that detect a lost server and confirm messages. Redis confirms each command by its reply."""
_PRIORITIES: Mapping[str, Mapping[Priority, int]] = {
    "amqp": {Priority.HIGH: 9, Priority.MEDIUM: 5, Priority.LOW: 1},
    "redis": {Priority.HIGH: 0, Priority.MEDIUM: 3, Priority.LOW: 6},
}
"""RabbitMQ delivers the highest number first (if the queue has x-max-priority), Redis the lowest."""
_WATCHERS = 2
DEFAULT_QUEUE = "default"


class CeleryUnreachableError(FoliotError):
    """Celery's broker or result backend can't be reached now."""


class CeleryRefusedError(FoliotError):
    """A message can't be sent, or a result can't be read; a retry would not help."""


@dataclass(frozen=True, slots=True)
class CeleryCall:
    """A task to be sent."""

    task: str
    task_id: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    queue: str | None = None
    """The destination; None: as the application's routes say."""
    priority: Priority | None = None
    expires_s: float | None = None
    """A worker that receives it later does not start it; None: no limit."""
    keeps_result: bool = True
    traceparent: str | None = None
    """The trace that the task continues, if its workers are instrumented."""


class TaskState(NamedTuple):
    """State of a task in the result backend."""

    name: str
    """Celery's state; PENDING also for a task that the backend does not know."""
    result: Any = None
    """The return value, the exception, or the progress that the task reported."""
    traceback: str | None = None


def load_celery(name: str) -> "CeleryApp":
    """Import the application that is named as `proj.celery:app`. Raises SettingError."""
    try:
        import celery  # noqa: F401
    except ImportError:
        raise SettingError(f'{SETTING} needs Celery: pip install "foliot[celery]"') from None
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise SettingError(f"{SETTING} {name} can't be imported: {type(error).__name__}: {error}") from error
    if not (hasattr(found, "send_task") and hasattr(found, "conf")):
        raise SettingError(f"{SETTING} {name} is no Celery application")
    try:
        require_json_results(found)
    except SettingError:
        raise
    except Exception as error:  # Celery reads its configuration on first access
        raise SettingError(f"{SETTING} {name} can't be used: {type(error).__name__}: {error}") from error
    return CeleryApp(found)


def require_json_results(app: Any) -> None:
    """Raise SettingError if the application writes, or would read, results in anything but JSON."""
    conf = app.conf
    if conf.result_serializer not in JSON:
        raise SettingError(
            f"the Celery application writes results as {conf.result_serializer}; Foliot reads JSON only: "
            'set result_serializer = "json" there'
        )
    accepted = conf.accept_content if conf.result_accept_content is None else conf.result_accept_content
    others = sorted(set(accepted) - JSON)
    if others:
        raise SettingError(
            f"the Celery application would read results as {', '.join(others)}; Foliot reads JSON only: "
            'set result_accept_content = ["json"] there'
        )


class CeleryApp:
    """The operations that Foliot needs. They raise CeleryUnreachableError and CeleryRefusedError."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self._sending = BlockingCalls("foliot-celery-send")
        self._watching = BlockingCalls("foliot-celery-watch", threads=_WATCHERS)
        self._connection: Any = None
        """Used only by the thread that sends."""

    @property
    def can_follow(self) -> bool:
        """Whether any process can read task states. Results over `rpc://` reach one process only."""
        from celery.backends.base import DisabledBackend
        from celery.backends.rpc import RPCBackend

        return not isinstance(self.app.backend, DisabledBackend | RPCBackend)

    def has_queue(self, queue: str) -> bool:
        """Whether tasks can be sent to this queue. Most applications create unknown queues."""
        return bool(self.app.conf.task_create_missing_queues) or queue in self.app.amqp.queues

    def queue_of(self, queue: str) -> str:
        """Return the Celery queue for one of Foliot's queues: from `foliot_queues`, else of the same name."""
        routes = self.app.conf.get("foliot_queues") or {}
        usual = self.app.conf.task_default_queue if queue == DEFAULT_QUEUE else queue
        return str(routes.get(queue, usual))

    async def reach(self) -> None:
        """Return if the broker is reachable."""
        await self._within(self._sending.run(self._reach))

    async def send(self, calls: Sequence[CeleryCall]) -> None:
        """Send the tasks. When this returns, the broker has confirmed all of them."""
        await self._within(self._sending.run(partial(self._on_connection, partial(self._send, calls))))

    async def revoke(self, task_id: str) -> None:
        """Ask all running workers to skip or end the task, and mark it as revoked in the backend."""
        revoke = partial(self.app.control.revoke, task_id, terminate=True)
        await self._within(
            self._sending.run(partial(self._on_connection, lambda connection: revoke(connection=connection)))
        )
        if self.can_follow:
            # Otherwise a task whose worker is dead would seem to run still.
            await self._within(self._watching.run(partial(self._mark_revoked, task_id)))

    async def state(self, task_id: str) -> TaskState:
        return await self._within(self._watching.run(partial(self._state, task_id)))

    def close(self) -> None:
        """Let the threads end after the calls already submitted. Does not wait for them."""
        self._sending.run_later(self._disconnect)
        self._sending.close()
        self._watching.close()

    async def _within(self, answer: "asyncio.Future[Answer]") -> Answer:
        try:
            async with asyncio.timeout(CALL_WITHIN_S):
                return await answer
        except TimeoutError:
            raise CeleryUnreachableError(f"Celery did not answer within {CALL_WITHIN_S:g} s") from None

    # --- run in the threads -----------------------------------------------------------------------

    def _send(self, calls: Sequence[CeleryCall], connection: Any) -> None:
        driver = connection.transport.driver_type
        for call in calls:
            options: dict[str, Any] = {} if call.queue is None else {"queue": call.queue}
            headers: dict[str, Any] = {"ignore_result": not call.keeps_result}
            if call.traceparent is not None:
                headers["traceparent"] = call.traceparent
            if call.priority is not None and driver in _PRIORITIES:
                options["priority"] = _PRIORITIES[driver][call.priority]
            self.app.send_task(
                call.task,
                args=list(call.args),
                kwargs=dict(call.kwargs),
                task_id=call.task_id,
                connection=connection,
                serializer="json",
                expires=call.expires_s,
                retry=False,
                add_to_parent=False,
                # Here it means: don't subscribe to the result. The Redis backend would subscribe to each
                # task, for ever. The header decides whether the worker stores the result.
                ignore_result=True,
                headers=headers,
                **options,
            )

    def _reach(self) -> None:
        self._disconnect()
        # Reading the attribute connects.
        self._on_connection(lambda connection: connection.default_channel)

    def _on_connection(self, use: Any) -> None:
        """Call `use` with the connection. If an open connection turns out broken, reconnect once."""
        from celery.exceptions import QueueNotFound
        from kombu.exceptions import EncodeError

        was_open = self._connection is not None
        try:
            use(self._connected())
        except (EncodeError, QueueNotFound) as error:
            raise CeleryRefusedError(f"{type(error).__name__}: {error}") from None
        except Exception as error:
            self._disconnect()
            if was_open:
                return self._on_connection(use)
            raise CeleryUnreachableError(f"Celery's broker has not taken it: {_text_of(error)}") from None

    def _connected(self) -> Any:
        if self._connection is None:
            driver = self.app.connection_for_write().transport.driver_type
            theirs = self.app.conf.broker_transport_options
            ours = {**_BOUNDED, **_OF_DRIVER.get(driver, {})}
            self._connection = self.app.connection_for_write(
                connect_timeout=CONNECT_WITHIN_S,
                transport_options={
                    name: value
                    for name, value in ours.items()
                    if name not in theirs or name == "confirm_publish"
                },
            )
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.release()

    def _mark_revoked(self, task_id: str) -> None:
        try:
            self.app.backend.mark_as_revoked(task_id, "revoked")
        except Exception as error:
            raise CeleryUnreachableError(
                f"Celery's result backend can't be written: {_text_of(error)}"
            ) from None

    def _state(self, task_id: str) -> TaskState:
        from celery.exceptions import SecurityError
        from kombu.exceptions import ContentDisallowed, DecodeError

        try:
            meta = self.app.backend.get_task_meta(task_id, cache=False)
            return TaskState(str(meta["status"]), meta.get("result"), meta.get("traceback"))
        except (ContentDisallowed, DecodeError, SecurityError, LookupError, TypeError, ValueError) as error:
            raise CeleryRefusedError(f"the result can't be read: {_text_of(error)}") from None
        except Exception as error:
            raise CeleryUnreachableError(
                f"Celery's result backend can't be read: {_text_of(error)}"
            ) from None


def _text_of(error: BaseException) -> str:
    return str(error) or type(error).__name__
