"""An instance's row in the registry: where it runs, its roles and capacity, and whether it leads."""

from collections.abc import Awaitable, Callable

from foliot.db.rows.registry_rows import InstanceRecord, Registry, TaskRecord
from foliot.kinds.function_target import Task
from foliot.model.delivery_events import TransportLost, TransportRecovered
from foliot.model.event import DomainEvent
from foliot.model.instance_events import (
    LeaderElected,
    LeaseLost,
    LeaseProviderLost,
    LeaseProviderReached,
    LeaseReleased,
)
from foliot.service import Wake

_WRITTEN_AT_ONCE = (
    LeaderElected,
    LeaseLost,
    LeaseReleased,
    TransportLost,
    TransportRecovered,
    LeaseProviderLost,
    LeaseProviderReached,
)


class InstanceRegistration:
    """A service that updates the row, and reads from it whether to drain.

    Changes of leadership and of brokers are written at once. Rows that are not updated are deleted.
    """

    name = "presence"

    def __init__(
        self,
        registry: Registry,
        record: Callable[[], InstanceRecord],
        refresh: Callable[[], Awaitable[None]],
        every_s: float,
        drain: Callable[[bool], None] = lambda _is_draining: None,
    ) -> None:
        self.wake = Wake()
        self._registry = registry
        self._record = record
        self._refresh = refresh
        self._every_s = every_s
        self._drain = drain

    def notify(self, event: DomainEvent) -> None:
        if isinstance(event, _WRITTEN_AT_ONCE):
            self.wake.set()

    async def step(self) -> float | None:
        self._drain(await self._registry.heartbeat(self._record()))
        await self._refresh()
        return self._every_s


def task_record(task: Task) -> TaskRecord:
    """Return a task function's row for the registry."""
    return TaskRecord(
        name=task.name,
        display_name=task.display_name,
        description=task.description,
        handler_path=task.handler_path,
        handler_type=task.handler_type,
        queue=task.queue,
        default_timeout_seconds=task.timeout_s,
        args_schema=task.args_schema,
        is_system=task.is_system,
        default_retry=None if task.retry is None else task.retry.model_dump(mode="json"),
    )
