"""All services of one shard."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from foliot.db.database import Database
from foliot.db.hints import Hint, Hints
from foliot.db.rows.registry_rows import Registry
from foliot.model.event import Observer
from foliot.model.lease import Lease, Shard
from foliot.model.policy import Priority
from foliot.scheduler.backfill import Backfiller
from foliot.scheduler.backfills_sql import Backfills
from foliot.scheduler.calendars_sql import Calendars
from foliot.scheduler.dispatch.dispatcher import Dispatcher
from foliot.scheduler.dispatch.dispatching_sql import Dispatching
from foliot.scheduler.dispatch.outgoing import Outgoing
from foliot.scheduler.firing import FiringService
from foliot.scheduler.firing_sql import FiringStatements
from foliot.scheduler.housekeeping_sql import Upkeep
from foliot.scheduler.janitor import HousekeepingOptions, Janitor
from foliot.scheduler.leader_term import LeaderState
from foliot.scheduler.leases.leadership import Leadership
from foliot.scheduler.leases.lease_provider import LeaseProvider
from foliot.scheduler.loader import Loader
from foliot.scheduler.pending_events import PendingEventPublisher
from foliot.scheduler.pending_events_sql import PendingEvents
from foliot.service import Service
from foliot.timing.calendar import NO_CALENDARS, CalendarBook
from foliot.timing.clock import ClusterClock

LANDING_S = 0.01
MAX_LANDINGS = 50
"""How often to check whether writes in flight have ended, before the shard is handed over anyway."""


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    ttl_s: float = 3.0
    heartbeat_s: float = 1.0
    horizon_s: float = 3600.0
    poll_s: float = 1.0
    retention_days: float = 90.0
    worker_lease_s: float = 15.0
    names_all: bool = False
    """Whether events name the schedules of large batches too, as tracing of each execution needs."""


class ShardScheduler:
    """Campaigns for a shard. While it leads, it turns due times into executions."""

    def __init__(
        self,
        shard: Shard,
        provider: LeaseProvider,
        database: Database,
        clock: ClusterClock,
        hints: Hints,
        observer: Observer,
        options: SchedulerOptions,
        outgoing: Mapping[Priority, Outgoing] | None = None,
    ) -> None:
        self.shard = shard
        self._clock = clock
        self._hints = hints
        self.leadership = Leadership(
            shard, provider, clock, observer, ttl_s=options.ttl_s, heartbeat_s=options.heartbeat_s
        )
        self.statements = FiringStatements(database, names_all=options.names_all)
        self.firing = FiringService(
            self.leadership, self.statements, clock, hints, observer, idle_s=options.poll_s
        )
        self.loader = Loader(
            self.leadership,
            self.statements,
            Calendars(database),
            clock,
            observer,
            self.firing.wake,
            horizon_s=options.horizon_s,
            poll_s=options.poll_s,
        )
        self.firing.reload_wake = self.loader.wake
        self.firing.read_calendars = self.loader.read_calendars
        self.housekeeping = Upkeep(database)
        self.janitor = Janitor(
            self.leadership,
            self.housekeeping,
            Registry(database),
            clock,
            hints,
            observer,
            HousekeepingOptions(options.poll_s, options.retention_days, options.worker_lease_s),
        )
        self.backfiller = Backfiller(
            self.leadership,
            Backfills(database),
            hints,
            observer,
            every_s=options.poll_s,
            calendars=self._calendars,
        )
        self.janitor.on_ended = self.backfiller.ended
        self.pending_events = PendingEventPublisher(
            self.leadership, PendingEvents(database), clock, hints, observer, every_s=options.poll_s
        )
        self.dispatcher: Dispatcher | None = None
        if outgoing:
            self.dispatcher = Dispatcher(
                self.leadership, Dispatching(database), outgoing, clock, observer, every_s=options.poll_s
            )
            self.firing.on_fired = self.dispatcher.fired
        self.leadership.on_elected(self._begin)

    @property
    def services(self) -> tuple[Service, ...]:
        found: tuple[Service, ...] = (
            self.leadership,
            self.loader,
            self.firing,
            self.backfiller,
            self.pending_events,
        )
        found += self.janitor.services
        return found if self.dispatcher is None else (*found, self.dispatcher)

    def _begin(self, lease: Lease) -> None:
        term = LeaderState(lease, self._clock.now())
        self.loader.begin(term)
        self.firing.begin(term)
        self.janitor.begin()
        self.backfiller.wake.set()
        self.pending_events.wake.set()
        if self.dispatcher is not None:
            self.dispatcher.begin()

    def _calendars(self) -> CalendarBook:
        term = self.firing.term
        return NO_CALENDARS if term is None else term.calendars

    async def hand_over(self) -> None:
        """Let another instance lead. Wait for writes in flight first: later they would be fenced."""
        lease = self.leadership.lay_down()
        if lease is None:
            return
        for _ in range(MAX_LANDINGS):
            if not self.leadership.is_acting:
                break
            await asyncio.sleep(LANDING_S)
        await self.leadership.give_back(lease)
        self._hints.send(Hint.LEASE)

    async def release(self) -> None:
        """Stop leading on purpose, and send a hint so that a follower takes over at once."""
        had_lease = self.leadership.lease is not None
        await self.leadership.release()
        if had_lease:
            self._hints.send(Hint.LEASE)
