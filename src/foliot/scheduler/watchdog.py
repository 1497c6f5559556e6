"""Every scheduler, leading or not, watches whether due times pass undecided, and raises the alarm.

A leader that hangs, or that there is none, is seen by those who are not concerned: the watchdog looks into
the database, not at what its own instance believes.
"""

from foliot.model.event import Observer, OverdueCounted, OverdueEnded, OverdueFound
from foliot.service import Wake
from foliot.store.overview import Overdue, Overviews
from foliot.timing.clock import ClusterClock

MIN_EVERY_S = 5.0
REMIND_EVERY_S = 60.0
"""While schedules stay overdue, the log is told again this often."""


class Watchdog:
    """A service. What is overdue is counted at every look, and told when it begins, lasts, and ends."""

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
        self._told_at: float | None = None
        """When the log was last told that there is something overdue; None: there is nothing."""

    async def step(self) -> float | None:
        found = await self._overviews.overdue_anywhere(ttl_s=self._ttl_s)
        late_s = 0.0
        if found.oldest is not None:
            late_s = (self._clock.now() - found.oldest.next_run_ts).total_seconds()
        self._observer.notify(OverdueCounted(found.count, late_s))
        self._tell(found, late_s, self._clock.monotonic())
        return self._every_s

    def _tell(self, found: Overdue, late_s: float, now: float) -> None:
        if found.oldest is None:
            if self._told_at is not None:
                self._told_at = None
                self._observer.notify(OverdueEnded())
        elif self._told_at is None or now - self._told_at >= REMIND_EVERY_S:
            self._told_at = now
            self._observer.notify(
                OverdueFound(found.count, found.is_capped, found.oldest.schedule_id, late_s)
            )
