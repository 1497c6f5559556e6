"""Carries Foliot's executions out in the workers of a Celery application: FOLIOT_TRANSPORT=celery.

    from foliot.contrib.celery import register

    register(celery_app, foliot_app)

adds one task, `foliot.execute`, to the Celery application. The leader sends it the id of an execution; who
gets it claims that execution, runs its target with the task functions of the Foliot application, and settles
it. Timeouts, retries, cancels and history are as with Foliot's own workers; queues, pools and autoscaling as
with Celery's own tasks.

Each process that runs tasks of Celery's has one engine (`celery_engine.py`), made when the first ticket
comes: after the fork, since no connection and no thread survives one.

What a crash leaves behind: an execution whose lease runs out. The leader's janitor rescues it, and the leader
sends another ticket. A ticket that is lost is sent again; one that comes twice finds nothing to claim. So a
ticket is acknowledged when it comes, whatever the application does with its own tasks.
"""

import logging
import os
import threading
from typing import Any
from uuid import UUID

from foliot.celery_app import require_json_results
from foliot.contrib.celery_engine import Engine
from foliot.model.errors import SettingError
from foliot.model.event import DomainEvent, ServiceFailed, ServiceRecovered
from foliot.plan import InstanceRole, InstanceSpec
from foliot.sdk import Foliot
from foliot.settings import Settings, load_settings
from foliot.transport.celery import TASK

NEVER_S = 10 * 365 * 86400
ENDING_S = 0.2
"""How long a thread may take to end after its function has."""
_FEW_CONNECTIONS = {"pool_lease": 1, "pool_firing": 2, "pool_work": 2, "pool_api": 1}
"""There may be many such processes, and each runs few things at once."""
_log = logging.getLogger("foliot.celery")


def register(
    celery_app: Any, foliot_app: Foliot, *, settings: Settings | None = None, isolates: bool = False
) -> Any:
    """Add the task `foliot.execute` to a Celery application; returns it.

    `settings` are Foliot's; left out, they are read from the environment where the first ticket comes. Plain
    functions run in the process of Celery's that got the ticket. A timeout or a cancel ends that process if
    its pool is prefork; in the other pools they go on to their end although nobody waits for them, unless
    `isolates` gives them processes of their own.
    """
    try:
        from celery import signals
    except ImportError:
        raise SettingError('this needs Celery: pip install "foliot[celery]"') from None
    engines = _Engines(celery_app, foliot_app, settings, isolates=isolates)

    @celery_app.task(  # type: ignore[untyped-decorator, unused-ignore]
        name=TASK,
        # Else every other application of this process would have it too.
        shared=False,
        serializer="json",
        ignore_result=True,
        acks_late=False,
        # The execution's own timeout holds. Left out, or 0, the application's would end it before.
        time_limit=NEVER_S,
        soft_time_limit=NEVER_S,
    )
    def execute(execution_id: str) -> None:
        wanted = UUID(execution_id)
        engines.here().carry_out(wanted)
        engines.end_what_clings()

    # Not weak: nothing else keeps these.
    signals.worker_init.connect(engines.on_worker, weak=False)
    signals.worker_process_init.connect(engines.on_process, weak=False)
    signals.worker_process_shutdown.connect(engines.on_shutdown, weak=False)
    signals.worker_shutdown.connect(engines.on_shutdown, weak=False)
    return execute


class _Engines:
    """The engine of this process, made when it is first asked for."""

    def __init__(self, celery: Any, app: Foliot, settings: Settings | None, *, isolates: bool) -> None:
        self._celery = celery
        self._app = app
        self._settings = settings
        self._isolates = isolates
        self._engine: Engine | None = None
        self._pid = 0
        self._turn = threading.Lock()
        self._main_pid: int | None = None
        """Of the worker that forked this process, or that it is."""
        self.room = 1

    def here(self) -> Engine:
        with self._turn:
            if self._engine is None or self._pid != os.getpid() or not self._engine.is_alive:
                self._engine, self._pid = Engine(self._plan), os.getpid()
            return self._engine

    def on_worker(self, sender: Any = None, **_more: Any) -> None:
        """Celery's worker comes up: so many run at once in it, if its pool does not fork."""
        self.room = int(getattr(sender, "concurrency", None) or 1)
        self._main_pid = os.getpid()

    def on_process(self, **_more: Any) -> None:
        """It does one thing at a time. A lock that was held when it was forked would be held for ever."""
        self.room = 1
        self._turn = threading.Lock()

    def on_shutdown(self, **_more: Any) -> None:
        if self._engine is not None and self._pid == os.getpid():
            self._engine.close()

    def end_what_clings(self) -> None:
        """End this process if a function is left in it that was told to stop, and another can be forked for
        it: nothing else ends a thread. Celery does the same to a task that passes its time limit."""
        if self._main_pid in (None, os.getpid()):
            return
        clinging = [thread for thread in threading.enumerate() if thread.name.startswith("foliot-task ")]
        for thread in clinging:
            thread.join(ENDING_S)
        if any(thread.is_alive() for thread in clinging):
            _log.warning("a function did not stop when it was told to: this process ends, another is forked")
            self.on_shutdown()
            os._exit(1)

    def _plan(self) -> InstanceSpec:
        settings = self._settings or load_settings(database_url=self._app.url)
        changes = {"transport": "database", "worker_concurrency": self.room, **_FEW_CONNECTIONS}
        return InstanceSpec(
            settings=settings.model_copy(update=changes),
            roles=frozenset({InstanceRole.WORKER}),
            tasks=self._app.tasks,
            celery=self._target(),
            isolates=self._isolates,
            observers=[_Trouble()],
        )

    def _target(self) -> Any:
        """The application as target too, if Foliot may read its results; else others run such executions."""
        try:
            require_json_results(self._celery)
        except SettingError as error:
            _log.warning("this process runs no targets of kind celery: %s", error)
            return None
        return self._celery


class _Trouble:
    """Tells in Celery's own log what keeps an engine from its work; the rest is in Foliot's history."""

    def notify(self, event: DomainEvent) -> None:
        if isinstance(event, ServiceFailed):
            _log.warning("%s failed, tried again in %.1f s: %s", event.service, event.retry_in_s, event.error)
        elif isinstance(event, ServiceRecovered):
            _log.info("%s works again", event.service)
