"""Real instances in the test's own process, with short intervals, and helpers to wait."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from foliot.instance.runtime import Instance
from foliot.instance.settings import Settings
from foliot.instance.spec import InstanceRole, InstanceSpec
from foliot.instance.store import SqlStore
from foliot.kinds.function_target import TaskRegistry, describe_task
from foliot.model.event import DomainEvent
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import Author, create
from foliot.queries.schedule_list import ScheduleFilter
from foliot.testing.app import Recorder
from foliot.timing.clock import Clock, SystemClock

E = TypeVar("E", bound=DomainEvent)
TTL_S = 1.2
AUTHOR = Author("test")


def quick_settings(url: str, **changes: Any) -> Settings:
    defaults: dict[str, Any] = {
        "database_url": url,
        "lease_ttl_seconds": TTL_S,
        "heartbeat_seconds": TTL_S / 4,
        "poll_seconds": 0.3,
        "worker_lease_seconds": 1.5,
        "stop_grace_seconds": 2,
    }
    return Settings(**(defaults | changes))


def registry(*functions: Callable[..., Any]) -> TaskRegistry:
    tasks = TaskRegistry()
    for function in functions:
        tasks.add(describe_task(function))
    return tasks


async def noop() -> None:
    """Do nothing, as a task."""


SCHEDULER = frozenset({InstanceRole.SCHEDULER})
WORKER = frozenset({InstanceRole.WORKER})


def make_instance(
    url: str,
    *,
    roles: frozenset[InstanceRole] = SCHEDULER,
    tasks: TaskRegistry | None = None,
    clock: Clock | None = None,
    **settings: Any,
) -> tuple[Instance, Recorder]:
    recorder = Recorder()
    plan = InstanceSpec(
        settings=quick_settings(url, **settings),
        roles=roles,
        tasks=registry(noop) if tasks is None else tasks,
        upgrades_schema=True,
        observers=[recorder],
        clock=clock or SystemClock(),
    )
    return Instance(plan), recorder


@asynccontextmanager
async def running(url: str, **options: Any) -> AsyncIterator[tuple[Instance, Recorder]]:
    instance, recorder = make_instance(url, **options)
    await instance.start()
    try:
        yield instance, recorder
    finally:
        await instance.stop()


async def until(
    condition: Callable[[], bool | Awaitable[bool]], *, within_s: float = 60.0, every_s: float = 0.05
) -> None:
    """Wait until the condition is true. The timeout only prevents a hanging test."""
    async with asyncio.timeout(within_s):
        while True:
            outcome = condition()
            if outcome if isinstance(outcome, bool) else await outcome:
                return
            await asyncio.sleep(every_s)


def seen(recorder: Recorder, kind: type[E]) -> list[E]:
    return [event for event in recorder.events if isinstance(event, kind)]


def spec(name: str, trigger: dict[str, Any], **fields: Any) -> ScheduleSpec:
    document = {"name": name, "trigger": trigger, "target": {"kind": "function", "name": "noop"}, **fields}
    return ScheduleSpec.parse(document)


def every_second(name: str, **fields: Any) -> ScheduleSpec:
    return spec(name, {"kind": "interval", "seconds": 1}, **fields)


async def add(store: SqlStore, definition: ScheduleSpec) -> Schedule:
    return await store.schedules.create(
        lambda now: create(definition, host_id=DEFAULT_HOST_ID, now=now, author=AUTHOR), AUTHOR
    )


async def all_schedules(store: SqlStore) -> list[Schedule]:
    """Return the schedules of the default host, in the order of their names."""
    page = await store.schedule_list.page(ScheduleFilter(host_id=DEFAULT_HOST_ID), limit=10_000)
    return [each.schedule for each in page.items]


async def add_all(store: SqlStore, definitions: Sequence[ScheduleSpec]) -> list[Schedule]:
    return [await add(store, definition) for definition in definitions]
