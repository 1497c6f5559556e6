"""Checks in every scheduler, leading or not, whether due times pass undecided, and reports it.

The watchdog reads the database, not the state of its own instance. So other instances notice when a leader
hangs or is missing.
"""

from foliot.model.event import Observer, OverdueCounted, OverdueEnded, OverdueFound
from foliot.queries.overview import Overdue, Overviews
from foliot.service import Wake
from foliot.timing.clock import ClusterClock

MIN_EVERY_S = 5.0
REMIND_EVERY_S = 60.0
"""While schedules stay overdue, it is logged again at this interval."""


class Watchdog:
    """A service that counts overdue schedules, and reports when that begins, continues and ends."""

    name = "watchdog"

    def __init__(
        self, overviews: Overviews, clock: ClusterClock, observer: Observer, *, ttl_s: float, every_s: float
    ) -> None:
        self.wake = Wake()
        self._overviews = overviews
        self._clock = clock
        self._observer = observer
        self._ttl_s = ttl_s
        self._every_s = max(MIN_EVERY_S, every_s)
        self._reported_at: float | None = None
        """When overdue schedules were last reported; None: nothing is overdue."""

    async def step(self) -> float | None:
        found = await self._overviews.overdue_anywhere(ttl_s=self._ttl_s)
        late_s = 0.0
        if found.oldest is not None:
            late_s = (self._clock.now() - found.oldest.next_run_ts).total_seconds()
        self._observer.notify(OverdueCounted(found.count, late_s))
        self._report(found, late_s, self._clock.monotonic())
        return self._every_s

    def _report(self, found: Overdue, late_s: float, now: float) -> None:
        if found.oldest is None:
            if self._reported_at is not None:
                self._reported_at = None
                self._observer.notify(OverdueEnded())
        elif self._reported_at is None or now - self._reported_at >= REMIND_EVERY_S:
            self._reported_at = now
            self._observer.notify(
                OverdueFound(found.count, found.is_capped, found.oldest.schedule_id, late_s)
            )
