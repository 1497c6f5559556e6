"""Gives offsets to events that were triggered inside an application's own transaction, once it committed."""

from foliot.lease.leadership import Leadership
from foliot.model.errors import FencedError
from foliot.model.event import Observer, WriteFenced
from foliot.service import Wake
from foliot.store.hints import Hint, Hints
from foliot.store.protocol import PendingEventStore

BATCH = 500


class PendingEventPublisher:
    """A service of the leader. Woken by a hint, and by polling where there are no hints."""

    name = "pending-events"

    def __init__(
        self,
        leadership: Leadership,
        store: PendingEventStore,
        hints: Hints,
        observer: Observer,
        *,
        every_s: float,
    ) -> None:
        self.wake = Wake()
        self._leadership = leadership
        self._store = store
        self._hints = hints
        self._observer = observer
        self._every_s = every_s

    async def step(self) -> float | None:
        lease = self._leadership.lease
        if lease is None:
            return None  # woken when a term begins
        try:
            with self._leadership.acting():
                count = await self._store.publish(lease, limit=BATCH)
        except FencedError:
            self._observer.notify(WriteFenced(lease.shard.number, lease.epoch))
            if self._leadership.lease == lease:
                self._leadership.lose("a write was fenced")
            return self._every_s
        if count:
            self._hints.send(Hint.EVENTS)
        return 0.0 if count >= BATCH else self._every_s
