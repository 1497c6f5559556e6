"""Publishes waiting executions to the brokers that carry them to workers.

    fired        a leader publishes what it fires, as soon as the transaction has committed
    scan         what became ready otherwise (triggered, retried, released, rescued, handed back, backfilled)
                 is found by polling, and at once after a hint
    again        what is ready and was not claimed for a while is published again, oldest first, because
                 messages may get lost anywhere

Every leader publishes what it fires. The leader of the first shard does the rest for all shards. After a
crash between commit and publish, the first poll of the next leader finds the executions: it includes fired
ones.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from foliot.model.delivery_events import TicketsRepublished
from foliot.model.event import Observer
from foliot.model.policy import Priority
from foliot.planning.fire import Fired, Firing
from foliot.scheduler.dispatch.dispatching_sql import ClaimableExecution, Dispatching
from foliot.scheduler.dispatch.outgoing import Outgoing
from foliot.scheduler.dispatch.published import Published
from foliot.scheduler.leases.leadership import Leadership
from foliot.service import Wake
from foliot.timing.clock import ClusterClock
from foliot.transport.transport_protocol import ExecutionMessage

PAGE = 1000
MAX_PAGES = 10
MAX_AGAIN = 1000
MIN_PAUSE_S = 0.05
"""Minimum pause between polls, however many hints arrive."""
OVERLAP = timedelta(seconds=2)
"""Polls overlap by this much, since a transaction commits later than the time it writes. Later ones are
found by their age."""
FIRST_SCAN = timedelta(seconds=15)
AHEAD = timedelta(seconds=5)
"""Our estimate of the database's clock is behind it. The database itself leaves out what is not ready yet."""
EVER = timedelta(days=3650)


class Dispatcher:
    """A service of a shard that this instance leads."""

    name = "dispatching"

    def __init__(
        self,
        leadership: Leadership,
        store: Dispatching,
        outgoing: Mapping[Priority, Outgoing],
        clock: ClusterClock,
        observer: Observer,
        *,
        every_s: float,
    ) -> None:
        self.wake = Wake()
        self._leadership = leadership
        self._store = store
        self._outgoing = outgoing
        self._clock = clock
        self._observer = observer
        self._every_s = every_s
        self._pace = next(iter(outgoing.values())).transport.pace
        self.begin()

    def begin(self) -> None:
        """Start a term as leader. What other leaders have published is not known."""
        self._published = Published(first_s=self._pace.untaken_s, longest_s=self._pace.longest_s)
        self._scanned_at = float("-inf")
        self._scanned_until: datetime | None = None
        self._unfinished: tuple[datetime, ClaimableExecution] | None = None
        """Where a poll that found too much began and stopped; None: the last one read all."""
        self._again_at = self._clock.monotonic() + self._pace.untaken_s
        self.wake.set()

    def fired(self, firings: Sequence[Firing], fired: Fired) -> None:
        """Publish what has just been committed, except held executions."""
        definitions = {firing.due.schedule_id: firing.due.definition for firing in firings}
        now, found = self._clock.monotonic(), list[ExecutionMessage]()
        for each in fired.fired:
            definition = definitions[each.schedule_id]
            if definition.priority in self._outgoing and each.execution_id not in fired.held:
                self._published.add(each.execution_id, 0, now)
                found.append(ExecutionMessage(each.execution_id, definition.queue, definition.priority))
        self._put(found)

    async def step(self) -> float | None:
        if self._leadership.lease is None or self._leadership.shard.number != 0:
            return None
        now = self._clock.monotonic()
        too_early_s = self._scanned_at + MIN_PAUSE_S - now
        if too_early_s > 0:
            return too_early_s
        self._scanned_at = now
        await self._scan()
        if now >= self._again_at:
            self._again_at = now + self._pace.untaken_s
            await self._publish_again()
        return max(0.0, min(self._every_s, self._again_at - now))

    async def _scan(self) -> None:
        now = self._clock.now()
        is_first = self._scanned_until is None
        since = (self._scanned_until or now - FIRST_SCAN) - OVERLAP
        after: ClaimableExecution | None = None
        if self._unfinished is not None:
            since, after = self._unfinished
        monotonic = self._clock.monotonic()
        for _ in range(MAX_PAGES):
            page = await self._store.waiting(
                list(self._outgoing),
                since=since,
                until=now + AHEAD,
                after=after,
                limit=PAGE,
                with_fired=is_first,
            )
            new = [each for each in page if not self._published.knows(each.execution_id, each.attempt)]
            self._publish(new, monotonic)
            if len(page) < PAGE:
                self._scanned_until, self._unfinished = now, None
                return
            after = page[-1]
            self._unfinished = since, after
        self.wake.set()

    async def _publish_again(self) -> None:
        now, monotonic = self._clock.now(), self._clock.monotonic()
        there = [priority for priority, way in self._outgoing.items() if not way.transport.is_away]
        left: list[ClaimableExecution] = []
        after: ClaimableExecution | None = None
        for _ in range(MAX_PAGES if there else 0):
            page = await self._store.waiting(
                there,
                since=now - EVER,
                until=now - timedelta(seconds=self._pace.untaken_s),
                after=after,
                limit=PAGE,
                with_fired=True,
            )
            left += [
                each
                for each in page
                if self._published.is_due_again(each.execution_id, each.attempt, monotonic)
            ]
            if len(page) < PAGE or len(left) >= MAX_AGAIN:
                break
            after = page[-1]
        self._publish(left[:MAX_AGAIN], monotonic)
        for way in dict.fromkeys(self._outgoing.values()):
            count = sum(1 for each in left[:MAX_AGAIN] if self._outgoing[each.priority] is way)
            if count:
                self._observer.notify(TicketsRepublished(way.transport.kind, count))

    def _publish(self, waiting: Sequence[ClaimableExecution], now: float) -> None:
        for each in waiting:
            self._published.add(each.execution_id, each.attempt, now)
        self._put(
            [
                ExecutionMessage(each.execution_id, each.queue, each.priority, each.trace_context)
                for each in waiting
            ]
        )

    def _put(self, messages: Sequence[ExecutionMessage]) -> None:
        for way in dict.fromkeys(self._outgoing.values()):
            way.put([each for each in messages if self._outgoing[each.priority] is way])
