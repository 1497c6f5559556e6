"""Runs backfills in small steps, so that they never delay what is due now.

Backfills are served round robin, in the order of their ids. The number of open executions per schedule is
limited. The position of each backfill is in its row, so a new leader continues where the last one stopped.
"""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from foliot.db.hints import Hint, Hints
from foliot.model.errors import FencedError, InvalidError, UnreadableError
from foliot.model.event import BackfillAdvanced, Observer, settled_at_once
from foliot.model.instance_events import WriteFenced
from foliot.model.lease import Lease
from foliot.model.schedule import Schedule
from foliot.planning.backfill import BackfillStep, plan_backfill
from foliot.planning.definition import compile_spec
from foliot.scheduler.backfills_sql import BackfillAdvance, Backfills
from foliot.scheduler.leases.leadership import Leadership
from foliot.service import Wake
from foliot.timing.calendar import NO_CALENDARS, CalendarBook

PER_STEP = 100
"""Executions created in one step, by all backfills together."""
TURNS_PER_STEP = 10
MAX_OPEN = 200
"""Limit of open executions from backfills per schedule, held ones included."""
PACE_S = 0.1


class Backfiller:
    name = "backfill"

    def __init__(
        self,
        leadership: Leadership,
        store: Backfills,
        hints: Hints,
        observer: Observer,
        *,
        every_s: float,
        calendars: Callable[[], CalendarBook] = lambda: NO_CALENDARS,
    ) -> None:
        self.wake = Wake()
        self._leadership = leadership
        self._store = store
        self._hints = hints
        self._observer = observer
        self._every_s = every_s
        self._calendars = calendars
        self._last: UUID | None = None
        self._has_work = False

    def ended(self) -> None:
        """Executions have ended, so a schedule may be below its limit: wake up if a backfill waits."""
        if self._has_work:
            self.wake.set()

    async def step(self) -> float | None:
        lease = self._leadership.lease
        if lease is None:
            self._last, self._has_work = None, False
            return None  # woken when a term begins
        try:
            with self._leadership.acting():
                has_more = await self._take_turns(lease)
            return PACE_S if has_more else self._every_s
        except FencedError:
            self._observer.notify(WriteFenced(lease.shard.number, lease.epoch))
            if self._leadership.lease == lease:
                self._leadership.lose("a write was fenced")
            return self._every_s

    async def _take_turns(self, lease: Lease) -> bool:
        """Advance the next few backfills; return whether there is more to do right away."""
        turns = await self._next(lease)
        self._has_work = bool(turns)
        ready, has_more, has_events = 0, False, False
        for backfill_id in turns:
            self._last = backfill_id  # also if it fails, so that it can't block the others
            advance = await self._advance(lease, backfill_id, PER_STEP // len(turns))
            ready += advance.ready
            if advance.fired:
                self._observer.notify(BackfillAdvanced(backfill_id, lease.instance_id, advance.fired))
            if advance.has_events:
                self._observer.notify(settled_at_once(lease.instance_id, advance.fired))
            has_events = has_events or advance.has_events
            has_more = has_more or (advance.has_moved and not advance.is_over)
        if ready:
            self._hints.send(Hint.READY)
        if has_events:
            self._hints.send(Hint.EVENTS)
        return has_more

    async def _advance(self, lease: Lease, backfill_id: UUID, limit: int) -> BackfillAdvance:
        try:
            return await self._store.step(lease, backfill_id, self._plan, limit=limit, max_open=MAX_OPEN)
        except (InvalidError, UnreadableError):
            # The schedule can't be read or planned, which firing reports. The backfill continues once it can.
            return BackfillAdvance()

    async def _next(self, lease: Lease) -> list[UUID]:
        turns = await self._store.running(lease.shard, after=self._last, limit=TURNS_PER_STEP)
        if len(turns) < TURNS_PER_STEP and self._last is not None:
            # Wrap around to the first ids; none twice.
            first = await self._store.running(lease.shard, after=None, limit=TURNS_PER_STEP - len(turns))
            turns += [each for each in first if each not in turns]
        return turns

    def _plan(self, schedule: Schedule, position_ts: datetime, to_ts: datetime, limit: int) -> BackfillStep:
        cadence = compile_spec(schedule.spec, schedule.schedule_id, schedule.effective_ts)
        return plan_backfill(schedule, cadence, position_ts, to_ts, limit=limit, calendars=self._calendars())
