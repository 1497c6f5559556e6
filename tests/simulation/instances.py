"""Simulated processes: the product's services, wired as in `foliot.instance.runtime`.

Their clocks are wrong by minutes, and their hints get lost.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from foliot.db.hints import Hint, Listener, LocalHints
from foliot.db.rows.registry_rows import InstanceRecord
from foliot.instance.registration import InstanceRegistration
from foliot.instance.store import SqlStore
from foliot.kinds.target_protocol import TargetRunner
from foliot.model.errors import FoliotError
from foliot.model.event import DomainEvent, ExecutionsRescued, ExecutionsSettled, Observers
from foliot.model.instance_events import LeaderElected, LeaseLost, ServiceFailed, WriteFenced
from foliot.model.lease import Shard
from foliot.scheduler.leases.database_lease import DatabaseLeases
from foliot.scheduler.scheduler import Scheduler, SharingIntervals
from foliot.scheduler.shard import SchedulerOptions, ShardScheduler
from foliot.service import Loop, Service
from foliot.timing.clock import Clock, ClusterClock
from foliot.worker.journal import Journal
from foliot.worker.renewer import Renewer
from foliot.worker.worker import Worker
from tests.simulation.network import Network, Sender, SimulatedDatabase, act_as

POLL_S = 2.0
WORKER_LEASE_S = 4.0
PRESENCE_S = 10.0
GRACE_S = 2.0
CONCURRENCY = 4
EXPECTED = ("DatabaseUnreachableError", "TimeoutError")
"""Errors with which a step may fail when the database is unreachable. Any other error is a finding."""


class WrongClock:
    """A machine's clock with a wrong wall time and a correct monotonic time."""

    def __init__(self, true: Clock, off_s: float) -> None:
        self._true = true
        self.off = timedelta(seconds=off_s)

    def now(self) -> datetime:
        return self._true.now() + self.off

    def monotonic(self) -> float:
        return self._true.monotonic()


class LossyHints:
    """Hints that always reach their own process, and other processes sometimes."""

    def __init__(self, sender: Sender, bus: "Bus") -> None:
        self.local = LocalHints()
        self._sender = sender
        self._bus = bus
        bus.ends[sender] = self.local

    def listen(self, hint: Hint, listener: Listener) -> None:
        self.local.listen(hint, listener)

    def send(self, hint: Hint, ids: tuple[UUID, ...] = ()) -> None:
        if not self._sender.is_dead:
            self.local.send(hint, ids)
            self._bus.carry(self._sender, hint, ids)


@dataclass(slots=True)
class Bus:
    choose: random.Random
    lost_share: float
    ends: dict[Sender, LocalHints] = field(default_factory=dict)

    def carry(self, sender: Sender, hint: Hint, ids: tuple[UUID, ...]) -> None:
        for other, end in self.ends.items():
            if other is not sender and not other.is_dead and self.choose.random() >= self.lost_share:
                end.send(hint, ids)


@dataclass(slots=True)
class Counting:
    """Counts events that show an effect of faults, and logs them."""

    name: str
    counts: Counter[str]
    tell: Callable[[str], None]
    accuse: Callable[[str], None]

    def notify(self, event: DomainEvent) -> None:
        match event:
            case LeaderElected():
                self.counts["leader changes"] += 1
                self.tell(f"{self.name} leads shard {event.shard} in epoch {event.epoch}")
            case LeaseLost():
                self.tell(f"{self.name} lost shard {event.shard}, epoch {event.epoch}: {event.reason}")
            case WriteFenced():
                self.counts["rejected writes of leaders"] += 1
                self.tell(f"{self.name}: a write in epoch {event.epoch} of shard {event.shard} was fenced")
            case ExecutionsRescued():
                self.counts["rescues"] += len(event.rescued)
                self.tell(f"{self.name} rescued {len(event.rescued)}")
            case ExecutionsSettled() if event.refused:
                self.counts["rejected settles"] += len(event.refused)
                self.tell(f"{self.name}: {len(event.refused)} settles were refused")
            case ServiceFailed():
                self.counts["failed steps"] += 1
                told = f"{self.name} {event.service} failed: {event.error}"
                (self.tell if event.error.startswith(EXPECTED) else self.accuse)(told)


@dataclass(slots=True)
class Surroundings:
    """What all simulated processes share."""

    clock: Clock
    network: Network
    bus: Bus
    open_database: Callable[[Sender], SimulatedDatabase]
    target: Callable[[Sender], TargetRunner]
    accuse: Callable[[str], None]
    ttl_s: float
    """TTL of leases in seconds.

    A short TTL changes leaders often; a long one lets cached state become old.
    """


class Instance:
    """A simulated process. Its services are stepped one at a time, until it crashes or stops."""

    def __init__(self, name: str, role: str, around: Surroundings, off_s: float) -> None:
        self.sender = Sender(name, role)
        self.wall = WrongClock(around.clock, off_s)
        self.clock = ClusterClock(self.wall)
        self.store = SqlStore.over(around.open_database(self.sender))
        self.hints = LossyHints(self.sender, around.bus)
        self.observer = Observers([Counting(name, around.network.counts, around.network.tell, around.accuse)])
        self.is_started = False
        self.is_stopping = False
        self._network = around.network
        self._presence = InstanceRegistration(self.store.registry, self._record, self._refresh, PRESENCE_S)
        self.observer.add(self._presence)
        self._loops: dict[Service, Loop] = {}
        self._wanted_at: dict[Service, float | None] = {}
        self._turns: dict[Service, asyncio.Task[None]] = {}

    @property
    def name(self) -> str:
        return self.sender.name

    @property
    def is_dead(self) -> bool:
        return self.sender.is_dead

    @property
    def services(self) -> tuple[Service, ...]:
        return (self._presence,)

    # --- life -------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the process: read the database's clock. A process that can't read it ends."""

        async def work() -> None:
            act_as(self.sender, "start")
            try:
                await self._refresh()
            except FoliotError:
                self.crash()
            self.is_started = True

        self._own_task(work())

    def crash(self) -> None:
        """End the process as `kill -9` does: its tasks stop, and nothing it sends from now on arrives."""
        self.sender.is_dead = True
        for task in list(self.sender.tasks):
            task.cancel()

    def stop(self) -> None:
        """Stop the process cleanly, as SIGTERM does."""

        async def work() -> None:
            act_as(self.sender, "stop")
            try:
                for task in list(self._turns.values()):
                    await asyncio.wait([task])
                await self._wind_up()
                await self.store.registry.leave(self.name)
            except FoliotError as error:
                self._network.tell(f"{self.name} could not stop cleanly: {error}")
            self.crash()

        self.is_stopping = True
        self._own_task(work())

    async def _wind_up(self) -> None:
        """Do the last work of the role. Subclasses override it."""

    # --- turns ------------------------------------------------------------------------------------

    def ready(self, at: float) -> list[Service]:
        """Return the services that could be stepped at this time."""
        if self.is_dead or self.sender.is_paused or self.is_stopping or not self.is_started:
            return []
        return [each for each in self.services if each not in self._turns and self._wants(each, at)]

    def next_wanted(self) -> float | None:
        wanted = [self._wanted_at.get(each) for each in self.services if each not in self._turns]
        return min((each for each in wanted if each is not None), default=None)

    def _wants(self, service: Service, at: float) -> bool:
        if service.wake.is_set or service not in self._wanted_at:
            return True
        wanted_at = self._wanted_at[service]
        return wanted_at is not None and wanted_at <= at

    def step(self, service: Service) -> None:
        """Begin a step of a service. It continues as the network lets its calls pass."""
        loop = self._loops.setdefault(service, Loop(service, self.observer))

        async def turn() -> None:
            act_as(self.sender, service.name, service)
            service.wake.clear()
            pause_s = await loop.turn()
            now = self.clock.monotonic()
            self._wanted_at[service] = None if pause_s is None else now + pause_s

        self._turns[service] = self._own_task(turn())
        self._turns[service].add_done_callback(lambda _task: self._turns.pop(service, None))

    def _own_task(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.sender.tasks.add(task)
        task.add_done_callback(self.sender.tasks.discard)
        return task

    async def _refresh(self) -> None:
        sent_at = self.clock.monotonic()
        self.clock.observe(await self.store.now(), sent_at)

    def _record(self) -> InstanceRecord:
        return InstanceRecord(self.name, "simulated", 1, (self.sender.role,), "0")


class SchedulerInstance(Instance):
    def __init__(self, name: str, around: Surroundings, off_s: float) -> None:
        super().__init__(name, "scheduler", around, off_s)
        leases = DatabaseLeases(self.store.leases, name, around.ttl_s)
        options = SchedulerOptions(around.ttl_s, around.ttl_s / 3, horizon_s=60.0, poll_s=POLL_S)

        def make(shard: Shard) -> ShardScheduler:
            return ShardScheduler(
                shard, leases, self.store.database, self.clock, self.hints, self.observer, options
            )

        pace = SharingIntervals(POLL_S, around.ttl_s)
        self.scheduler = Scheduler(name, self.store.surveys, self.clock, self.hints, make, pace)

    @property
    def services(self) -> tuple[Service, ...]:
        return (self.scheduler, *self.scheduler.services, *super().services)

    async def _wind_up(self) -> None:
        await self.scheduler.release()

    def _record(self) -> InstanceRecord:
        is_leader = bool(self.scheduler.leases)
        return InstanceRecord(self.name, "simulated", 1, (self.sender.role,), "0", is_leader=is_leader)


class WorkerInstance(Instance):
    def __init__(self, name: str, around: Surroundings, off_s: float) -> None:
        super().__init__(name, "worker", around, off_s)
        journal = Journal(name, self.store.notes)
        self.worker = Worker(
            name,
            self.store.work,
            {"function": around.target(self.sender)},
            self.clock,
            self.hints,
            self.observer,
            journal,
            queues=None,
            concurrency=CONCURRENCY,
            lease_s=WORKER_LEASE_S,
            poll_s=POLL_S,
        )
        renewer = Renewer(self.worker, self.store.work, self.clock, self.hints, WORKER_LEASE_S)
        self._own: Sequence[Service] = (self.worker, renewer, self.worker.settler)

    @property
    def services(self) -> tuple[Service, ...]:
        return (*self._own, *super().services)

    async def _wind_up(self) -> None:
        await self.worker.drain(GRACE_S)
