"""Measures the whole database in every scheduler: waiting executions, active schedules, and events that no
relay has shipped."""

from foliot.model.delivery_events import OutboxMeasured
from foliot.model.event import Observer, QueuesMeasured, SchedulesCounted
from foliot.model.instance_events import ServiceFailed
from foliot.scheduler.leases.leases_sql import Leases
from foliot.scheduler.measures_sql import Measures
from foliot.service import Wake
from foliot.timing.clock import Clock

MIN_EVERY_S = 5.0
MIN_REST = 100
"""Pause as a multiple of the measured duration: a large database spends at most 1 % of its time on this."""
MAX_REST_S = 300.0
"""If the process was suspended during a measurement, it would seem very long and cause hours of pause."""
MAX_REST_AFTER_FAILURE_S = 60.0


class MeasureService:
    """A service. If several schedulers report figures, use the largest."""

    name = "measuring"

    def __init__(
        self, measures: Measures, leases: Leases, clock: Clock, observer: Observer, *, every_s: float
    ) -> None:
        self.wake = Wake()
        self._measures = measures
        self._leases = leases
        self._clock = clock
        self._observer = observer
        self._every_s = max(MIN_EVERY_S, every_s)

    async def step(self) -> float | None:
        began_at = self._clock.monotonic()
        try:
            await self._measure()
        except Exception as error:
            # Not raised: the loop would retry soon, and a slow database would do little else, on
            # connections that leaders need for their heartbeats.
            pause_s = min(self._rest_s(began_at), MAX_REST_AFTER_FAILURE_S)
            self._observer.notify(ServiceFailed(self.name, f"{type(error).__name__}: {error}", pause_s))
            return pause_s
        return self._rest_s(began_at)

    async def _measure(self) -> None:
        self._observer.notify(QueuesMeasured(await self._measures.queue_depths()))
        active, shards = await self._measures.active_schedules(), await self._leases.shard_count()
        self._observer.notify(SchedulesCounted(active, shards))
        lag = await self._measures.outbox_lag()
        if lag is not None:
            # A relay that does not run can't report that it ships nothing.
            self._observer.notify(OutboxMeasured(lag))

    def _rest_s(self, began_at: float) -> float:
        took_s = self._clock.monotonic() - began_at
        return max(self._every_s, min(MIN_REST * took_s, MAX_REST_S))
