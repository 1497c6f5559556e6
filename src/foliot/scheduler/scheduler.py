"""The scheduler of one instance: a ShardScheduler for every shard there is."""

from collections.abc import Callable
from uuid import UUID

from foliot.model.lease import Lease, Shard
from foliot.scheduler.shard import ShardScheduler
from foliot.service import Service, Wake
from foliot.store.hints import Hint, Hints
from foliot.store.protocol import LeaseStore

MakeShard = Callable[[Shard], ShardScheduler]
Changed = Callable[[tuple[Service, ...], tuple[Service, ...]], None]


class Scheduler:
    """A service that keeps one ShardScheduler per shard, also when their number is changed.

    Resharding ends every lease and raises every epoch in one transaction, so that whatever the old shards
    still do is fenced; here they are only replaced.
    """

    name = "shards"

    def __init__(self, store: LeaseStore, hints: Hints, make: MakeShard, *, every_s: float) -> None:
        self.wake = Wake()
        self.shards: list[ShardScheduler] = []
        self.on_changed: Changed = lambda _old, _new: None
        self._store = store
        self._make = make
        self._every_s = every_s
        hints.listen(Hint.SCHEDULES, self._schedules_changed)
        hints.listen(Hint.ENDED, self._executions_ended)
        hints.listen(Hint.LEASE, self._lease_released)
        hints.listen(Hint.BACKFILL, self._backfill_requested)
        hints.listen(Hint.READY, self._executions_ready)

    @property
    def services(self) -> tuple[Service, ...]:
        return tuple(service for shard in self.shards for service in shard.services)

    @property
    def leases(self) -> list[Lease]:
        return [shard.leadership.lease for shard in self.shards if shard.leadership.lease is not None]

    async def step(self) -> float | None:
        count = await self._store.shard_count()
        if count != len(self.shards):
            before = self.services
            for shard in self.shards:
                shard.leadership.lose("the number of shards has changed")
            self.shards = [self._make(Shard(number, count)) for number in range(count)]
            self.on_changed(before, self.services)
        return self._every_s

    async def release(self) -> None:
        for shard in self.shards:
            await shard.release()

    def _schedules_changed(self, schedule_ids: tuple[UUID, ...]) -> None:
        for shard in self.shards:
            shard.loader.hint(schedule_ids)

    def _executions_ended(self, schedule_ids: tuple[UUID, ...]) -> None:
        for shard in self.shards:
            shard.janitor.ended(schedule_ids)

    def _backfill_requested(self, _ids: tuple[UUID, ...]) -> None:
        for shard in self.shards:
            shard.backfiller.wake.set()

    def _executions_ready(self, _ids: tuple[UUID, ...]) -> None:
        for shard in self.shards:
            if shard.dispatcher is not None:
                shard.dispatcher.wake.set()

    def _lease_released(self, _ids: tuple[UUID, ...]) -> None:
        for shard in self.shards:
            shard.leadership.wake.set()
        self.wake.set()
