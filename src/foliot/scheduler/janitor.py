"""Housekeeping after vanished workers and lost hints, and pruning of history.

Each duty is a separate service with its own loop and backoff: one that fails or is slow delays no other.
Every step of a duty handles a bounded number of rows; the next step does the rest.

    rescue     executions whose lease ran out
    release    held executions that may run now
    delays     `delay` schedules whose run ended without a settle
    history    deletes old executions
    events     deletes old events (shard 0 alone: they belong to no shard)
    registry   forgets instances that are gone
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from foliot.db.hints import Hint, Hints
from foliot.db.rows.registry_rows import Registry
from foliot.model.errors import FencedError
from foliot.model.event import (
    AgentFailed,
    DomainEvent,
    ExecutionsReleased,
    ExecutionsRescued,
    ExecutionsSettled,
    HistoryPruned,
    LostAttempt,
    Observer,
    SettledExecution,
)
from foliot.model.execution import FINAL, Status
from foliot.model.instance_events import WriteFenced
from foliot.model.lease import Lease
from foliot.scheduler.housekeeping_sql import Upkeep
from foliot.scheduler.leases.leadership import Leadership
from foliot.service import Service, Wake
from foliot.timing.clock import ClusterClock

BATCH = 500
MAX_SCANNED = 200
"""How many schedules with held executions one step examines."""
PRUNE_EVERY_S = 60.0
PRUNE_BATCH = 1000
FORGET_AFTER_S = 120.0
MIN_PAUSE_S = 0.05
"""Minimum pause between scans for held executions, however often executions end."""
SCAN_PAUSE_S = 0.01
"""Pause between two portions of one scan over all held executions."""


@dataclass(frozen=True, slots=True)
class HousekeepingOptions:
    every_s: float
    retention_days: float
    worker_lease_s: float = 15.0
    """Within this time every live worker has renewed its leases."""


class Duty:
    """One kind of housekeeping, as a service. `work` returns the seconds until the next step."""

    def __init__(
        self,
        name: str,
        leadership: Leadership,
        observer: Observer,
        work: Callable[[Lease], Awaitable[float]],
        every_s: float,
    ) -> None:
        self.name = f"janitor.{name}"
        self.wake = Wake()
        self._leadership = leadership
        self._observer = observer
        self._work = work
        self._every_s = every_s

    async def step(self) -> float | None:
        lease = self._leadership.lease
        if lease is None:
            return None  # woken when a term begins
        try:
            with self._leadership.acting():
                return await self._work(lease)
        except FencedError:
            self._observer.notify(WriteFenced(lease.shard.number, lease.epoch))
            if self._leadership.lease == lease:
                self._leadership.lose("a write was fenced")
            return self._every_s


class Janitor:
    def __init__(
        self,
        leadership: Leadership,
        upkeep: Upkeep,
        registry: Registry,
        clock: ClusterClock,
        hints: Hints,
        observer: Observer,
        options: HousekeepingOptions,
    ) -> None:
        self.on_ended: Callable[[], None] = lambda: None
        self._upkeep = upkeep
        self._registry = registry
        self._clock = clock
        self._hints = hints
        self._observer = observer
        self._options = options
        self._retention = timedelta(days=options.retention_days)
        self._prune_every_s = max(PRUNE_EVERY_S, options.every_s)
        self._position: UUID | None = None
        """Cursor of the current scan over held executions; None: no scan runs."""
        self._is_scan_wanted = False
        """Whether executions have ended since the current scan began."""
        self._delays_position: UUID | None = None

        def duty(name: str, work: Callable[[Lease], Awaitable[float]], every_s: float) -> Duty:
            return Duty(name, leadership, observer, work, every_s)

        every_s = options.every_s
        self._release_duty = duty("release", self._release, every_s)
        self.duties: tuple[Duty, ...] = (
            self._release_duty,
            duty("rescue", self._rescue, every_s),
            duty("delays", self._restart_delays, every_s),
            duty("history", self._prune_history, self._prune_every_s),
            duty("events", self._prune_events, self._prune_every_s),
            duty("registry", self._forget_stale, self._prune_every_s),
        )

    @property
    def services(self) -> tuple[Service, ...]:
        return self.duties

    def begin(self) -> None:
        """Start over for a new term."""
        self._position = self._delays_position = None
        for each in self.duties:
            each.wake.set()

    def ended(self, _schedule_ids: tuple[UUID, ...]) -> None:
        """Executions have ended, so held ones may run now: scan for them."""
        self._is_scan_wanted = True
        self._release_duty.wake.set()
        self.on_ended()

    async def _release(self, lease: Lease) -> float:
        if self._position is None:
            self._is_scan_wanted = False
        scan = await self._upkeep.release_held(lease, limit=MAX_SCANNED, after=self._position)
        self._position = scan.position
        if scan.released:
            self._observer.notify(ExecutionsReleased(lease.shard.number, scan.released))
            self._hints.send(Hint.READY)
        if self._position is not None:
            return SCAN_PAUSE_S
        return MIN_PAUSE_S if self._is_scan_wanted else self._options.every_s

    async def _rescue(self, lease: Lease) -> float:
        since_step_s = self._clock.monotonic() - self._clock.stepped_at
        if since_step_s < self._options.worker_lease_s:
            # The database's clock was set forward, so all leases expired at once. Live workers renew
            # theirs within this time.
            return min(self._options.every_s, self._options.worker_lease_s - since_step_s)
        # Our clock, not the database's: a step of that clock may not be noticed yet.
        rescued = await self._upkeep.rescue(lease, limit=BATCH, until=self._clock.now())
        if rescued:
            for event in _events_of(lease.shard.number, rescued):
                self._observer.notify(event)
            self._hints.send(Hint.READY)
            if any(each.status in FINAL for each in rescued):
                self._hints.send(Hint.ENDED)
        return self._pause_s(len(rescued), BATCH, self._options.every_s)

    async def _restart_delays(self, lease: Lease) -> float:
        scan = await self._upkeep.restart_delays(lease, limit=BATCH, after=self._delays_position)
        self._delays_position = scan.position
        if scan.schedule_ids:
            self._hints.send(Hint.SCHEDULES, tuple(scan.schedule_ids))
        return self._options.every_s if scan.position is None else MIN_PAUSE_S

    async def _prune_history(self, lease: Lease) -> float:
        before = self._clock.now() - self._retention
        count = await self._upkeep.prune(lease, before=before, limit=PRUNE_BATCH)
        if count:
            self._observer.notify(HistoryPruned(lease.shard.number, count))
        return self._pause_s(count, PRUNE_BATCH, self._prune_every_s)

    async def _prune_events(self, lease: Lease) -> float:
        if lease.shard.number != 0:
            return self._prune_every_s
        before = self._clock.now() - self._retention
        count = await self._upkeep.prune_events(lease, before=before, limit=PRUNE_BATCH)
        return self._pause_s(count, PRUNE_BATCH, self._prune_every_s)

    async def _forget_stale(self, _lease: Lease) -> float:
        await self._registry.forget_stale(FORGET_AFTER_S)
        return self._prune_every_s

    def _pause_s(self, count: int, portion: int, every_s: float) -> float:
        """Return a short pause after a full portion, because there may be more."""
        return MIN_PAUSE_S if count >= portion else every_s


def _events_of(shard: int, lost: Sequence[LostAttempt]) -> Iterator[DomainEvent]:
    """Return the events to publish. A remote attempt timed out at its agent; no worker vanished."""
    vanished = [each for each in lost if not each.is_remote]
    if vanished:
        yield ExecutionsRescued(shard, {each.execution_id: each.status for each in vanished}, vanished)
    by_worker: dict[str, list[SettledExecution]] = {}
    for each in lost:
        if each.is_remote:
            by_worker.setdefault(each.worker_id or "", []).append(_timed_out(each))
            yield AgentFailed("timeout")
    for worker_id, settled in by_worker.items():
        yield ExecutionsSettled(worker_id, settled, ())


def _timed_out(lost: LostAttempt) -> SettledExecution:
    return SettledExecution(
        lost.execution_id,
        lost.schedule_id,
        lost.attempt,
        lost.status,
        lost.duration_s,
        lost.error,
        lost.schedule_name,
        lost.queue,
        lost.started_ts,
        agent_url=lost.agent_url,
        trace_context=lost.trace_context,
        attempt_status=Status.TIMEOUT,
    )
