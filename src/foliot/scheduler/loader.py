"""Fills the wheel.

Three ways in: the horizon, by pages, soonest first, so that a leader of a million schedules fires at once;
changed rows, by hints, one row each; and a poll for what is overdue, which finds whatever a hint missed. A
backlog larger than a page is read host by host, so that one host's million does not hide another's ten.

Calendars come in with the poll, and before anything else: a term has no schedules before it has them.
"""

from datetime import timedelta
from uuid import UUID

from foliot.lease.leadership import Leadership
from foliot.model.event import Observer, SchedulesLoaded
from foliot.scheduler.term import Term
from foliot.service import Wake
from foliot.store.protocol import CalendarStore, FiringStore, Position
from foliot.timing.calendar import Calendar
from foliot.timing.clock import ClusterClock

PAGE = 2000
MOST_ENTRIES = 500_000
BACKLOG_PER_HOST = 200
IN_FLIGHT_PAUSE_S = 0.01
"""Rows to read again that are being fired right now are waited for so long at a time."""
OVERDUE_AFTER_S = 0.25
"""The poll looks for what should have fired this long ago, so that it does not read what is just firing."""


class Loader:
    name = "loader"

    def __init__(
        self,
        leadership: Leadership,
        store: FiringStore,
        calendars: CalendarStore,
        clock: ClusterClock,
        observer: Observer,
        firing_wake: Wake,
        *,
        horizon_s: float,
        poll_s: float,
    ) -> None:
        self.wake = Wake()
        self.term: Term | None = None
        self._leadership = leadership
        self._store = store
        self._calendars = calendars
        self._clock = clock
        self._observer = observer
        self._firing_wake = firing_wake
        self._horizon_s = horizon_s
        self._poll_s = poll_s
        self._polled_at = 0.0
        self._hinted: set[UUID] = set()

    def begin(self, term: Term) -> None:
        """Start over for a new term."""
        self.term = term
        self._hinted.clear()
        self._polled_at = float("-inf")
        self.wake.set()

    def hint(self, schedule_ids: tuple[UUID, ...]) -> None:
        """These schedules have changed; none named: hints may have been lost, so look now."""
        if schedule_ids:
            self._hinted.update(schedule_ids)
        else:
            self._polled_at = float("-inf")
        self.wake.set()

    async def step(self) -> float | None:
        term = self.term
        if term is None or self._leadership.lease != term.lease:
            self.term = None
            return None
        # Added up as the pause below is: rounded in another way, a step would ask to be repeated for ever on
        # a clock that stands still.
        is_poll_wanted = self._clock.monotonic() >= self._polled_at + self._poll_s
        if is_poll_wanted:
            await self.read_calendars(term)
        changed = self._hinted | term.to_reload
        if changed:
            await self._reload(term, changed)
        # Also while pages are still to be loaded: they come by time alone, the poll sees to every host.
        if is_poll_wanted:
            await self._poll(term)
        if self._is_load_wanted(term):
            await self._load_page(term)
            self._firing_wake.set()
            return 0.0
        if self._hinted or term.to_reload:
            return IN_FLIGHT_PAUSE_S
        return max(0.0, self._polled_at + self._poll_s - self._clock.monotonic())

    async def read_calendars(self, term: Term) -> None:
        """Take over the calendars as they are now, unless none has changed."""
        revision = await self._calendars.revision()
        if revision == term.calendar_revision:
            return
        known = term.calendars
        specs = await self._calendars.snapshot()
        # One that is as it was keeps the years it has worked out.
        term.calendars = {
            key: known[key] if key in known and known[key].spec == spec else Calendar(spec)
            for key, spec in specs.items()
        }
        term.calendar_revision = revision

    async def _reload(self, term: Term, schedule_ids: set[UUID]) -> None:
        # A row in flight is looked at when its transaction has returned.
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
        known = [due for due in found if term.position is None or term.knows(due.run_ts)]
        term.replace(asked, known, self._clock.now())
        self._observer.notify(SchedulesLoaded(term.lease.shard.number, len(found), "hint"))
        self._firing_wake.set()

    def _is_load_wanted(self, term: Term) -> bool:
        if len(term.wheel) + len(term.queue) >= MOST_ENTRIES:
            return False
        if term.position is None:
            return True
        ahead_s = (term.position.run_ts - self._clock.now()).total_seconds()
        # Not for every second that passes: a sixtieth of the horizon at a time.
        return ahead_s < self._horizon_s * 59 / 60

    async def _load_page(self, term: Term) -> None:
        until = self._clock.now() + timedelta(seconds=self._horizon_s)
        page = await self._store.load(term.lease.shard, until=until, after=term.position, limit=PAGE)
        term.put(page)
        is_whole = len(page) < PAGE
        last = page[-1] if page else None
        if is_whole or last is None:
            term.position = Position(until, UUID(int=2**128 - 1))
        else:
            term.position = Position(last.run_ts, last.schedule_id)
        if page:
            self._observer.notify(SchedulesLoaded(term.lease.shard.number, len(page), "horizon"))

    async def _poll(self, term: Term) -> None:
        self._polled_at = self._clock.monotonic()
        until = self._clock.now() - timedelta(seconds=OVERDUE_AFTER_S)
        page = await self._store.load(term.lease.shard, until=until, after=None, limit=PAGE)
        if len(page) == PAGE:
            page = await self._store.load_backlog(term.lease.shard, until=until, per_host=BACKLOG_PER_HOST)
        news = term.put(page)
        if news:
            self._observer.notify(SchedulesLoaded(term.lease.shard.number, news, "poll"))
            self._firing_wake.set()
