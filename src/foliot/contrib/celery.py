"""Run Foliot's executions in the workers of a Celery application: FOLIOT_TRANSPORT=celery.

    from foliot.contrib.celery import register

    register(celery_app, foliot_app)

adds one task, `foliot.execute`, to the Celery application. The leader sends messages: calls of this task with
the id of an execution. The task claims the execution, runs its target with the task functions of the Foliot
application, and settles it. Timeouts, retries, cancels and history work as with Foliot's own workers. Queues,
pools and autoscaling work as with Celery's own tasks.

Each Celery process that runs tasks has one engine (`celery_engine.py`). It is created with the first message,
after the fork, because connections and threads do not survive a fork.

After a crash, the execution's lease expires. The leader's janitor rescues the execution, and the leader sends
another message. A lost message is sent again. A duplicate finds nothing to claim. So messages are
acknowledged on arrival, whatever the application configures for its own tasks.
"""

import logging
import os
import threading
from typing import Any
from uuid import UUID

from foliot.brokers.celery_app import require_json_results
from foliot.contrib.celery_engine import Engine
from foliot.instance.settings import Settings, load_settings
from foliot.instance.spec import InstanceRole, InstanceSpec
from foliot.model.errors import SettingError
from foliot.model.event import DomainEvent
from foliot.model.instance_events import ServiceFailed, ServiceRecovered
from foliot.sdk.app import Foliot
from foliot.transport.celery import TASK

NEVER_S = 10 * 365 * 86400
ENDING_S = 0.2
"""How long a thread may take to end after its function has ended, in seconds."""
_FEW_CONNECTIONS = {"pool_lease": 1, "pool_firing": 2, "pool_work": 2, "pool_api": 1}
"""Small pools: there may be many of these processes, and each runs few executions at once."""
_log = logging.getLogger("foliot.celery")


def register(
    celery_app: Any, foliot_app: Foliot, *, settings: Settings | None = None, isolates: bool = False
) -> Any:
    """Add the task `foliot.execute` to a Celery application and return it.

    `settings`: Foliot's settings. None: read from the environment with the first message.

    `isolates`: run plain functions in processes of their own. If False, they run in the Celery process that
    got the message. A timeout or cancel then ends this process in a prefork pool. In other pools the function
    runs to its end, although nobody waits for it.
    """
    try:
        from celery import signals
    except ImportError:
        raise SettingError('this needs Celery: pip install "foliot[celery]"') from None
    engines = _Engines(celery_app, foliot_app, settings, isolates=isolates)

    @celery_app.task(  # type: ignore[untyped-decorator, unused-ignore]
        name=TASK,
        # Otherwise every other Celery application of this process would get the task too.
        shared=False,
        serializer="json",
        ignore_result=True,
        acks_late=False,
        # The execution has its own timeout. With None or 0 here, the application's limits would apply.
        time_limit=NEVER_S,
        soft_time_limit=NEVER_S,
    )
    def execute(execution_id: str) -> None:
        wanted = UUID(execution_id)
        engines.here().carry_out(wanted)
        engines.end_what_clings()

    # Not weak: nothing else holds a reference to these.
    signals.worker_init.connect(engines.on_worker, weak=False)
    signals.worker_process_init.connect(engines.on_process, weak=False)
    signals.worker_process_shutdown.connect(engines.on_shutdown, weak=False)
    signals.worker_shutdown.connect(engines.on_shutdown, weak=False)
    return execute


class _Engines:
    """Holds the engine of this process, which is created on first use."""

    def __init__(self, celery: Any, app: Foliot, settings: Settings | None, *, isolates: bool) -> None:
        self._celery = celery
        self._app = app
        self._settings = settings
        self._isolates = isolates
        self._engine: Engine | None = None
        self._pid = 0
        self._turn = threading.Lock()
        self._main_pid: int | None = None
        """Process id of the Celery worker: the parent of this process, or this process itself."""
        self.room = 1

    def here(self) -> Engine:
        with self._turn:
            if self._engine is None or self._pid != os.getpid() or not self._engine.is_alive:
                self._engine, self._pid = Engine(self._plan), os.getpid()
            return self._engine

    def on_worker(self, sender: Any = None, **_more: Any) -> None:
        """Read the concurrency of a starting Celery worker. It applies to pools that do not fork."""
        self.room = int(getattr(sender, "concurrency", None) or 1)
        self._main_pid = os.getpid()

    def on_process(self, **_more: Any) -> None:
        """Reset after a fork: one task at a time, and a new lock, as the old one may be held forever."""
        self.room = 1
        self._turn = threading.Lock()

    def on_shutdown(self, **_more: Any) -> None:
        if self._engine is not None and self._pid == os.getpid():
            self._engine.close()

    def end_what_clings(self) -> None:
        """End this forked process if a function did not stop when it was cancelled or timed out.

        Nothing else can end a thread. The worker forks another process. Celery does the same to a task that
        exceeds its time limit.
        """
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
        """Return the application for targets of kind `celery`. None: Foliot can't read its results."""
        try:
            require_json_results(self._celery)
        except SettingError as error:
            _log.warning("this process runs no targets of kind celery: %s", error)
            return None
        return self._celery


class _Trouble:
    """Writes failures of the engine's services to Celery's log. All else is in Foliot's history."""

    def notify(self, event: DomainEvent) -> None:
        if isinstance(event, ServiceFailed):
            _log.warning("%s failed, tried again in %.1f s: %s", event.service, event.retry_in_s, event.error)
        elif isinstance(event, ServiceRecovered):
            _log.info("%s works again", event.service)
