"""The real engine on a virtual clock: a week in a second.

async with TestApp(app, now=datetime(2026, 3, 1, tzinfo=UTC)) as t:
    await t.advance(hours=72)
    assert [e.status for e in await t.executions("report-eu")] == …
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from foliot.instance.runtime import Instance
from foliot.instance.settings import Settings
from foliot.instance.spec import InstanceSpec
from foliot.model.errors import NotFoundError
from foliot.model.event import DomainEvent
from foliot.model.execution import Execution, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule
from foliot.planning.change import Author
from foliot.sdk.app import Foliot
from foliot.service import Service
from foliot.timing.clock import VirtualClock

MAX_STEPS = 10_000_000
_HOUR = 3600.0


class Recorder:
    """An observer that records every event it receives."""

    def __init__(self) -> None:
        self.events: list[DomainEvent] = []

    def notify(self, event: DomainEvent) -> None:
        self.events.append(event)


class TestApp:
    """Runs an application's schedules and tasks in virtual time. Real code, real SQL, no waiting.

    Time stands still except in `advance`, which stops at every moment something is due. A task takes no
    virtual time, however long it really runs.
    """

    __test__ = False  # users know this name; pytest must not collect it

    def __init__(self, app: Foliot, *, now: datetime, url: str = "memory") -> None:
        self.app = app
        self.clock = VirtualClock(now)
        self.recorder = Recorder()
        self._url = url
        self._instance: Instance | None = None
        self._wanted_at: dict[Service, float | None] = {}

    # --- life -------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self._started()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._instance is not None:
            instance, self._instance = self._instance, None
            await instance.close()

    async def _started(self) -> Instance:
        if self._instance is None:
            # There is one instance and its clock jumps. Leases and poll intervals must be longer than any
            # jump.
            settings = Settings(
                database_url=self._url,
                lease_ttl_seconds=3650 * 24 * _HOUR,
                heartbeat_seconds=30 * 24 * _HOUR,
                poll_seconds=24 * _HOUR,
                horizon_seconds=24 * _HOUR,
                worker_lease_seconds=24 * _HOUR,
                worker_poll_seconds=24 * _HOUR,
                hints="off",
            )
            self._instance = Instance(
                InstanceSpec(
                    settings=settings,
                    tasks=self.app.tasks,
                    schedules=tuple(self.app.schedules.values()),
                    consumers=tuple(self.app.consumers.values()),
                    upgrades_schema=True,
                    isolates=False,
                    observers=[self.recorder],
                    clock=self.clock,
                )
            )
            await self._instance.prepare()
            await self._settle(self._instance)
        return self._instance

    # --- time -------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        return self.clock.now()

    async def advance(self, **duration: float) -> None:
        """Advance the clock by a duration (`hours=72`) and do everything that becomes due on the way."""
        instance = await self._started()
        end = self.clock.monotonic() + timedelta(**duration).total_seconds()
        for _ in range(MAX_STEPS):
            await self._settle(instance)
            wanted = [at for at in self._wanted_at.values() if at is not None]
            at = min([*wanted, end])
            if at >= end:
                self.clock.advance(max(0.0, end - self.clock.monotonic()))
                await self._settle(instance)
                return
            self.clock.advance(max(0.0, at - self.clock.monotonic()))
        raise RuntimeError("the engine does not come to rest: a step wants to be repeated for ever")

    async def _settle(self, instance: Instance) -> None:
        """Step every service that has work to do, until none has."""
        for _ in range(MAX_STEPS):
            ready = [service for service in instance.services if self._is_ready(service)]
            if not ready:
                return
            for service in ready:
                service.wake.clear()
                pause_s = await service.step()
                self._wanted_at[service] = None if pause_s is None else self.clock.monotonic() + pause_s
            if instance.worker is not None:
                await instance.worker.idle()
                await asyncio.sleep(0)

    def _is_ready(self, service: Service) -> bool:
        if service.wake.is_set or service not in self._wanted_at:
            return True
        wanted_at = self._wanted_at[service]
        return wanted_at is not None and wanted_at <= self.clock.monotonic()

    # --- looking and commands ---------------------------------------------------------------------

    async def schedule(self, name: str) -> Schedule:
        instance = await self._started()
        found = await instance.store.schedules.find(DEFAULT_HOST_ID, name)
        if found is None:
            raise NotFoundError("schedule", name)
        return found

    async def executions(self, name: str) -> list[Execution]:
        """Return the executions of a schedule, oldest fire time first."""
        instance = await self._started()
        schedule = await self.schedule(name)
        rows = await instance.store.schedules.executions(schedule.schedule_id, limit=1_000_000)
        return rows[::-1]

    async def trigger(self, name: str, args: Mapping[str, Any] | None = None) -> UUID:
        """Run a schedule now, in addition to its own times. Raise InvalidError where production refuses."""
        instance = await self._started()
        schedule = await self.schedule(name)
        made = await instance.commands.schedules.trigger(
            schedule.schedule_id, Author("test"), by=TriggeredBy.API, args=args
        )
        await self._settle(instance)
        return made.execution_id

    async def pause(self, name: str, *, reason: str | None = None, until: datetime | None = None) -> Schedule:
        instance = await self._started()
        schedule = await self.schedule(name)
        author = Author("test", reason)
        paused = await instance.commands.schedules.pause(schedule.schedule_id, author, until_ts=until)
        await self._settle(instance)
        return paused

    async def resume(self, name: str) -> Schedule:
        instance = await self._started()
        schedule = await self.schedule(name)
        resumed = await instance.commands.schedules.resume(schedule.schedule_id, Author("test"))
        await self._settle(instance)
        return resumed
