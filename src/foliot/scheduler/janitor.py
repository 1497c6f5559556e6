"""Upkeep: what nobody else will do if a worker vanishes, a hint is lost, or history grows.

Rescues executions whose lease ran out, releases held ones, restarts `delay` schedules, prunes. Every step is
bounded; what is left over is done in the next.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from uuid import UUID

from foliot.lease.leadership import Leadership
from foliot.model.errors import FencedError
from foliot.model.event import (
    AgentFailed,
    Event,
    ExecutionsReleased,
    ExecutionsRescued,
    ExecutionsSettled,
    HistoryPruned,
    LostAttempt,
    Observer,
    SettledExecution,
    WriteFenced,
)
from foliot.model.execution import FINAL, Status
from foliot.model.lease import Lease
from foliot.service import Wake
from foliot.store.hints import Hint, Hints
from foliot.store.protocol import RegistryStore, UpkeepStore
from foliot.timing.clock import ClusterClock

BATCH = 500
PRUNE_EVERY_S = 60.0
PRUNE_BATCH = 1000
FORGET_AFTER_S = 120.0
LEAST_PAUSE_S = 0.05
"""However often executions end, held ones are looked for no more often than this."""


class Janitor:
    name = "janitor"

    def __init__(
        self,
        leadership: Leadership,
        upkeep: UpkeepStore,
        registry: RegistryStore,
        clock: ClusterClock,
        hints: Hints,
        observer: Observer,
        *,
        every_s: float,
        retention_days: float,
    ) -> None:
        self.wake = Wake()
        self.on_ended: Callable[[], None] = lambda: None
        self._leadership = leadership
        self._upkeep = upkeep
        self._registry = registry
        self._clock = clock
        self._hints = hints
        self._observer = observer
        self._every_s = every_s
        self._retention = timedelta(days=retention_days)
        self._swept_at = float("-inf")
        self._pruned_at = float("-inf")

    def ended(self, _schedule_ids: tuple[UUID, ...]) -> None:
        """Executions have ended: held ones may go on."""
        self.wake.set()
        self.on_ended()

    async def step(self) -> float | None:
        lease = self._leadership.lease
        if lease is None:
            return None  # woken when a term begins
        try:
            with self._leadership.acting():
                return await self._keep_up(lease)
        except FencedError:
            self._observer.notify(WriteFenced(lease.shard.number, lease.epoch))
            if self._leadership.lease == lease:
                self._leadership.lose("a write was fenced")
            return self._every_s

    async def _keep_up(self, lease: Lease) -> float:
        has_more = await self._release(lease)
        now = self._clock.monotonic()
        if now - self._swept_at >= self._every_s:
            has_more = await self._sweep(lease) or has_more
            self._swept_at = now
        if now - self._pruned_at >= PRUNE_EVERY_S:
            has_pruned_all = await self._prune(lease)
            if has_pruned_all:
                self._pruned_at = now
            has_more = has_more or not has_pruned_all
        if has_more:
            return LEAST_PAUSE_S
        return max(LEAST_PAUSE_S, self._swept_at + self._every_s - self._clock.monotonic())

    async def _release(self, lease: Lease) -> bool:
        count = await self._upkeep.release_held(lease, limit=BATCH)
        if count:
            self._observer.notify(ExecutionsReleased(lease.shard.number, count))
            self._hints.send(Hint.READY)
        return count >= BATCH

    async def _sweep(self, lease: Lease) -> bool:
        rescued = await self._upkeep.rescue(lease, limit=BATCH)
        if rescued:
            for event in _told(lease.shard.number, rescued):
                self._observer.notify(event)
            self._hints.send(Hint.READY)
            if any(each.status in FINAL for each in rescued):
                self._hints.send(Hint.ENDED)
        restarted = await self._upkeep.restart_delays(lease, limit=BATCH)
        if restarted:
            self._hints.send(Hint.SCHEDULES, tuple(restarted))
        return max(len(rescued), len(restarted)) >= BATCH

    async def _prune(self, lease: Lease) -> bool:
        before = self._clock.now() - self._retention
        count = await self._upkeep.prune(lease, before=before, limit=PRUNE_BATCH)
        if count:
            self._observer.notify(HistoryPruned(lease.shard.number, count))
        events = 0
        if lease.shard.number == 0:  # they are nobody's in particular
            events = await self._upkeep.prune_events(lease, before=before, limit=PRUNE_BATCH)
        await self._registry.forget_stale(FORGET_AFTER_S)
        return max(count, events) < PRUNE_BATCH


def _told(shard: int, lost: Sequence[LostAttempt]) -> Iterator[Event]:
    """An agent that let its time pass is no worker that vanished: its attempt has timed out."""
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
