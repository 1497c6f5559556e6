"""Gives offsets to events that were triggered inside an application's own transaction, after its commit."""

from collections.abc import Mapping
from uuid import UUID

from foliot.db.hints import Hint, Hints
from foliot.model.errors import FencedError
from foliot.model.event import Observer, PendingEventsFailed
from foliot.model.instance_events import WriteFenced
from foliot.scheduler.leases.leadership import Leadership
from foliot.scheduler.pending_events_sql import PendingEvents
from foliot.service import Wake
from foliot.timing.clock import Clock

BATCH = 500
RETRY_FAILED_S = 60.0
"""How long schedules are excluded after their pending events could not be written."""
MAX_FAILED = 10_000
"""Limit of excluded schedules."""


class PendingEventPublisher:
    """A service of the leader. It is woken by hints, and polls in case there are none."""

    name = "pending-events"

    def __init__(
        self,
        leadership: Leadership,
        store: PendingEvents,
        clock: Clock,
        hints: Hints,
        observer: Observer,
        *,
        every_s: float,
    ) -> None:
        self.wake = Wake()
        self._leadership = leadership
        self._store = store
        self._clock = clock
        self._hints = hints
        self._observer = observer
        self._every_s = every_s
        self._after: UUID | None = None
        """Cursor: the last schedule of the previous step; None: begin with the first."""
        self._failed_at: dict[UUID, float] = {}

    async def step(self) -> float | None:
        lease = self._leadership.lease
        if lease is None:
            return None  # woken when a term begins
        now = self._clock.monotonic()
        excluded = [each for each, at in self._failed_at.items() if now - at < RETRY_FAILED_S]
        is_whole_pass = self._after is None
        try:
            with self._leadership.acting():
                published = await self._store.publish(
                    lease, limit=BATCH, after=self._after, excluding=excluded
                )
        except FencedError:
            self._observer.notify(WriteFenced(lease.shard.number, lease.epoch))
            if self._leadership.lease == lease:
                self._leadership.lose("a write was fenced")
            return self._every_s
        self._after = published.after
        self._note_failures(published.failures, now)
        if published.count:
            self._hints.send(Hint.EVENTS)
        is_all_done = is_whole_pass and published.after is None
        return self._every_s if is_all_done and not published.count and not published.failures else 0.0

    def _note_failures(self, failures: Mapping[UUID, str], now: float) -> None:
        if len(self._failed_at) + len(failures) > MAX_FAILED:
            self._failed_at.clear()
        for schedule_id, reason in failures.items():
            if schedule_id not in self._failed_at:
                self._observer.notify(PendingEventsFailed(schedule_id, reason))
            self._failed_at[schedule_id] = now
