"""The scheduler of one instance: a ShardScheduler for every shard. It leads its share of them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from foliot.db.hints import Hint, Hints
from foliot.model.lease import Lease, Shard
from foliot.scheduler.cluster_sql import ClusterQueries, ClusterSnapshot
from foliot.scheduler.leases.database_lease import MIN_WAIT_S
from foliot.scheduler.shard import ShardScheduler
from foliot.scheduler.shard_assignment import ClusterView, LeaderlessTimer, ShareDecision, decide, view_of
from foliot.service import Service, Wake
from foliot.timing.clock import ClusterClock

MakeShard = Callable[[Shard], ShardScheduler]
Changed = Callable[[tuple[Service, ...], tuple[Service, ...]], None]

MIN_LIVE_S = 15.0
"""Maximum age of a registry row to count as live: a leader renews its row only every few seconds."""
KEEPS_FOR_TTLS = 10
"""In TTLs: how long a scheduler keeps shards that it took because their candidate had not taken them."""


@dataclass(frozen=True, slots=True)
class SharingIntervals:
    every_s: float
    """Interval of checking which other schedulers are live."""
    ttl_s: float


class Scheduler:
    """A service that keeps one ShardScheduler per shard, and lets its share of them campaign.

    Resharding ends every lease and raises every epoch in one transaction. So all later writes of the old
    shards are fenced; here they are only replaced.
    """

    name = "shards"

    def __init__(
        self,
        instance_id: str,
        surveys: ClusterQueries,
        clock: ClusterClock,
        hints: Hints,
        make: MakeShard,
        pace: SharingIntervals,
    ) -> None:
        self.wake = Wake()
        self.shards: list[ShardScheduler] = []
        self.on_changed: Changed = lambda _old, _new: None
        self._instance_id = instance_id
        self._surveys = surveys
        self._clock = clock
        self._make = make
        self._pace = pace
        self._patience = LeaderlessTimer(pace.ttl_s)
        self._keeps_until = float("-inf")
        hints.listen(Hint.SCHEDULES, self._schedules_changed)
        hints.listen(Hint.ENDED, self._executions_ended)
        hints.listen(Hint.LEASE, self._lease_released)
        hints.listen(Hint.INSTANCE, self._lease_released)
        hints.listen(Hint.BACKFILL, self._backfill_requested)
        hints.listen(Hint.READY, self._executions_ready)
        hints.listen(Hint.PENDING_EVENTS, self._events_pending)

    @property
    def services(self) -> tuple[Service, ...]:
        return tuple(service for shard in self.shards for service in shard.services)

    @property
    def leases(self) -> list[Lease]:
        return [shard.leadership.lease for shard in self.shards if shard.leadership.lease is not None]

    async def step(self) -> float | None:
        sent_at = self._clock.monotonic()
        survey = await self._surveys.read_snapshot(live_s=max(MIN_LIVE_S, self._pace.ttl_s))
        if survey.now is not None:
            self._clock.observe(survey.now, sent_at)
        if len(survey.shards) != len(self.shards):
            self._replace_shards(len(survey.shards))
        await self._share_out(survey)
        if not self.leases:
            # A leader needs no sign of life: its leases show that it is live.
            await self._surveys.say_present(self._instance_id)
        return self._pause_s(survey)

    def _pause_s(self, survey: ClusterSnapshot) -> float:
        """Seconds until the next check, or until a silent leader may be replaced."""
        ages = [shard.heartbeat_age_s for shard in survey.shards if shard.heartbeat_age_s <= self._pace.ttl_s]
        return min([self._pace.every_s, *(self._pace.ttl_s - age + MIN_WAIT_S for age in ages)])

    async def release(self) -> None:
        """Stop leading for good. Other schedulers no longer leave shards to this instance."""
        await self._surveys.withdraw(self._instance_id)
        for shard in self.shards:
            await shard.release()

    # --- assignment of shards ---------------------------------------------------------------------

    def _replace_shards(self, count: int) -> None:
        before = self.services
        for shard in self.shards:
            shard.leadership.lose("the number of shards has changed")
        self.shards = [self._make(Shard(number, count)) for number in range(count)]
        self._patience = LeaderlessTimer(self._pace.ttl_s)
        self.on_changed(before, self.services)

    async def _share_out(self, survey: ClusterSnapshot) -> None:
        view = view_of(survey, self._instance_id, self._pace.ttl_s)
        decision = self._decide(view)
        leaving = []
        for shard, holder in zip(self.shards, view.holders, strict=True):
            number = shard.shard.number
            leads = shard.leadership.lease is not None
            stays = (leads or holder == self._instance_id) and number not in decision.leave
            shard.leadership.want(stays or number in decision.take)
            if leads and number in decision.leave:
                leaving.append(shard)
        await asyncio.gather(*(shard.hand_over() for shard in leaving))

    def _decide(self, view: ClusterView) -> ShareDecision:
        decision = decide(self._instance_id, view)
        now = self._clock.monotonic()
        overdue = self._patience.ended(view.unled, now) - decision.take
        if self._instance_id not in view.candidates:
            return decision
        if overdue:
            self._keeps_until = now + KEEPS_FOR_TTLS * self._pace.ttl_s
        if now < self._keeps_until:
            return ShareDecision(take=decision.take | overdue)
        return decision

    # --- hints ------------------------------------------------------------------------------------

    @property
    def _led(self) -> list[ShardScheduler]:
        """Shards that need hints. A shard that is led later reads everything at its start."""
        return [shard for shard in self.shards if shard.leadership.lease is not None]

    def _schedules_changed(self, schedule_ids: tuple[UUID, ...]) -> None:
        for shard in self._led:
            shard.loader.hint(schedule_ids)

    def _executions_ended(self, schedule_ids: tuple[UUID, ...]) -> None:
        for shard in self._led:
            shard.janitor.ended(schedule_ids)

    def _backfill_requested(self, _ids: tuple[UUID, ...]) -> None:
        for shard in self._led:
            shard.backfiller.wake.set()

    def _events_pending(self, _ids: tuple[UUID, ...]) -> None:
        for shard in self._led:
            shard.pending_events.wake.set()

    def _executions_ready(self, _ids: tuple[UUID, ...]) -> None:
        for shard in self._led:
            if shard.dispatcher is not None:
                shard.dispatcher.wake.set()

    def _lease_released(self, _ids: tuple[UUID, ...]) -> None:
        for shard in self.shards:
            shard.leadership.wake.set()
        self.wake.set()
