"""Fills the wheel.

There are three sources. The horizon is loaded by pages, soonest first, from the start of the term. Changed
rows are loaded one by one after hints. A poll loads what is overdue: what was due before the term, or whose
hint was lost. A backlog larger than a page is read in portions that are fair between hosts
(`scheduler.backlog`).

Every step reads a bounded number of rows. While enough is queued, nothing overdue is read: it can just as
well wait in the database.

Calendars are read with the poll, and first of all: a term loads no schedules before its calendars.
"""

from datetime import timedelta
from uuid import UUID

from foliot.db.rows.due_rows import LoadPosition
from foliot.model.event import Observer, SchedulesLoaded
from foliot.scheduler.backlog import MAX_EXCLUDED, BacklogReader
from foliot.scheduler.calendars_sql import Calendars
from foliot.scheduler.firing_sql import FiringStatements
from foliot.scheduler.leader_term import LeaderState
from foliot.scheduler.leases.leadership import Leadership
from foliot.service import Wake
from foliot.timing.calendar import Calendar
from foliot.timing.clock import ClusterClock

PAGE = 2000
POLL_PAGE = 1000
MAX_ENTRIES = 500_000
MAX_QUEUED = 2000
"""While more than this is queued, overdue schedules are read only every BUSY_POLLS polls."""
BUSY_POLLS = 5
"""In poll intervals. Unknown overdue schedules must not wait until the queue is empty."""
IN_FLIGHT_PAUSE_S = 0.01
"""Pause before retrying to reload rows that are in flight, and before checking again whether the queue has
become short."""
OVERDUE_AFTER_S = 0.25
"""The poll reads what is overdue by at least this, so that it skips what is just firing."""


class Loader:
    name = "loader"

    def __init__(
        self,
        leadership: Leadership,
        store: FiringStatements,
        calendars: Calendars,
        clock: ClusterClock,
        observer: Observer,
        firing_wake: Wake,
        *,
        horizon_s: float,
        poll_s: float,
    ) -> None:
        self.wake = Wake()
        self.term: LeaderState | None = None
        self._leadership = leadership
        self._store = store
        self._calendars = calendars
        self._clock = clock
        self._observer = observer
        self._firing_wake = firing_wake
        self._horizon_s = horizon_s
        self._poll_s = poll_s
        self._polled_at = 0.0
        self._overdue_read_at = 0.0
        self._backlog = BacklogReader(store)
        self._hinted: set[UUID] = set()

    def begin(self, term: LeaderState) -> None:
        """Start over for a new term."""
        self.term = term
        self._hinted.clear()
        self._backlog.stop()
        self._poll_now()

    def hint(self, schedule_ids: tuple[UUID, ...]) -> None:
        """Reload these schedules, which have changed. No ids: hints may have been lost, so poll now."""
        if schedule_ids:
            self._hinted.update(schedule_ids)
            self.wake.set()
        else:
            self._poll_now()

    def _poll_now(self) -> None:
        self._polled_at = self._overdue_read_at = float("-inf")
        self.wake.set()

    async def step(self) -> float | None:
        term = self.term
        if term is None or self._leadership.lease != term.lease:
            self.term = None
            return None
        # Computed as the pause below. With another rounding, a step on a clock that stands still would
        # repeat for ever.
        is_poll_wanted = self._clock.monotonic() >= self._polled_at + self._poll_s
        if is_poll_wanted:
            await self.read_calendars(term)
            self._polled_at = self._clock.monotonic()
        changed = self._hinted | term.to_reload
        if changed:
            await self._reload(term, changed)
        # Also while pages are still to be loaded: they contain only what is due since the term began.
        has_read = self._is_overdue_wanted(term, is_poll_wanted=is_poll_wanted)
        if has_read:
            await self._read_overdue(term)
        if self._is_load_wanted(term):
            await self._load_page(term)
            self._firing_wake.set()
            return 0.0
        if self._backlog.is_reading and has_read:
            return 0.0
        if self._backlog.is_reading or self._hinted or term.to_reload:
            return IN_FLIGHT_PAUSE_S
        return max(0.0, self._polled_at + self._poll_s - self._clock.monotonic())

    async def read_calendars(self, term: LeaderState) -> None:
        """Update the term's calendars if any has changed."""
        revision = await self._calendars.revision()
        if revision == term.calendar_revision:
            return
        known = term.calendars
        specs = await self._calendars.snapshot()
        # An unchanged calendar keeps its computed years.
        term.calendars = {
            key: known[key] if key in known and known[key].spec == spec else Calendar(spec)
            for key, spec in specs.items()
        }
        term.calendar_revision = revision

    async def _reload(self, term: LeaderState, schedule_ids: set[UUID]) -> None:
        # A row in flight is read after its transaction has returned.
        asked = list(schedule_ids - term.in_flight)[:PAGE]
        if not asked:
            return
        self._hinted.difference_update(asked)
        term.to_reload.difference_update(asked)
        try:
            found = await self._store.load_some(term.lease.shard, asked)
        except BaseException:
            term.to_reload.update(asked)
            raise
        known = [due for due in found if term.knows(due.run_ts)]
        term.replace(asked, known, self._clock.now())
        self._observer.notify(SchedulesLoaded(term.lease.shard.number, len(found), "hint"))
        self._firing_wake.set()

    def _is_load_wanted(self, term: LeaderState) -> bool:
        if len(term.wheel) + len(term.queue) >= MAX_ENTRIES:
            return False
        ahead_s = (term.position.run_ts - self._clock.now()).total_seconds()
        # In steps of a sixtieth of the horizon, not for every second that passes.
        return ahead_s < self._horizon_s * 59 / 60

    async def _load_page(self, term: LeaderState) -> None:
        until = self._clock.now() + timedelta(seconds=self._horizon_s)
        # Set before the read: firing may meanwhile write a next time that belongs in this page, and the
        # read may not see it yet.
        term.known_until = until
        try:
            page = await self._store.load(term.lease.shard, until=until, after=term.position, limit=PAGE)
            term.put(page)
            is_whole = len(page) < PAGE
            last = page[-1] if page else None
            if is_whole or last is None:
                term.position = LoadPosition(until, UUID(int=2**128 - 1))
            else:
                term.position = LoadPosition(last.run_ts, last.schedule_id)
        finally:
            term.known_until = term.position.run_ts
        if page:
            self._observer.notify(SchedulesLoaded(term.lease.shard.number, len(page), "horizon"))

    def _is_overdue_wanted(self, term: LeaderState, *, is_poll_wanted: bool) -> bool:
        if len(term.queue) <= MAX_QUEUED:
            return is_poll_wanted or self._backlog.is_reading
        if len(term.queue) >= MAX_ENTRIES:
            return False
        return self._clock.monotonic() >= self._overdue_read_at + self._poll_s * BUSY_POLLS

    async def _read_overdue(self, term: LeaderState) -> None:
        self._overdue_read_at = self._clock.monotonic()
        if not self._backlog.is_reading:
            until = self._clock.now() - timedelta(seconds=OVERDUE_AFTER_S)
            page = await self._store.load(
                term.lease.shard,
                until=until,
                after=None,
                limit=POLL_PAGE,
                excluding=term.undecided(MAX_EXCLUDED),
            )
            news = term.enqueue(page)
            if len(page) == POLL_PAGE:
                self._backlog.begin(until)
        else:
            news = await self._backlog.read(term)
        if news:
            self._observer.notify(SchedulesLoaded(term.lease.shard.number, news, "poll"))
            self._firing_wake.set()
