"""Every scheduler measures what is of nobody in particular: how much waits, how many schedules there are."""

from foliot.model.event import Observer, QueuesMeasured, SchedulesCounted
from foliot.service import Wake
from foliot.store.leases import Leases
from foliot.store.measures import Measures
from foliot.timing.clock import Clock

LEAST_EVERY_S = 5.0
LEAST_REST = 100
"""How many times as long as it took: a large database spends no more than a hundredth of its time on this."""


class Measuring:
    """A service. Whoever reads the figures of several schedulers takes the largest."""

    name = "measuring"

    def __init__(
        self, measures: Measures, leases: Leases, clock: Clock, observer: Observer, *, every_s: float
    ) -> None:
        self.wake = Wake()
        self._measures = measures
        self._leases = leases
        self._clock = clock
        self._observer = observer
        self._every_s = max(LEAST_EVERY_S, every_s)

    async def step(self) -> float | None:
        began_at = self._clock.monotonic()
        self._observer.notify(QueuesMeasured(await self._measures.queue_depths()))
        active, shards = await self._measures.active_schedules(), await self._leases.shard_count()
        self._observer.notify(SchedulesCounted(active, shards))
        return max(self._every_s, LEAST_REST * (self._clock.monotonic() - began_at))
