"""The change feed: polls the database once for all listeners and turns changes into events.

The feed polls while there are listeners, and LINGER_S longer, so that a client that reconnects misses
nothing. Hints trigger a poll; since a hint may be lost, the feed also polls without one. Changes become
events with increasing numbers in a ring buffer. A listener holds only a position in the ring, so many or slow
listeners cost no memory. A listener whose position is not (or no longer) in the ring receives `reset`: it
must read the lists again.

The feed also sends `reset` if there are too many changes to send one by one, so that none is lost silently.
The first reset is sent at once. While there are still too many changes, another follows every RESET_EVERY_S.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

import orjson
from sse_starlette import ServerSentEvent

from foliot.db.hints import Hint, Hints
from foliot.model.errors import OverloadedError
from foliot.model.execution import OPEN
from foliot.queries.changes import MAX_OPEN, ChangeBatch, ExecutionStanding, Mark, ScheduleChange
from foliot.service import Wake
from foliot.timing.clock import Clock

QUICK_S = 0.25
"""Minimum time between two polls, however many hints arrive."""
BUSY_S = 0.5
"""Time to the next poll after one that found changes. Claims and progress send no hints."""
POLL_S = 2.0
"""Maximum time between two polls."""
SHARE = 0.1
"""The share of time that polling may take. The longer a poll takes, the longer the pause after it."""
STATUS_EVERY_S = 2.0
RESET_EVERY_S = 5.0
LINGER_S = 30.0
"""How long the feed continues after the last listener left."""
MAX_KEPT = 5_000
MAX_SENT = 500
"""Maximum number of changes of one poll that are sent one by one."""
MAX_LISTENERS = 500


class StreamKind(StrEnum):
    SCHEDULE = "schedule"
    EXECUTION = "execution"
    STATUS = "status"
    RESET = "reset"


class ChangeSource(Protocol):
    """Reads changes from the database; see `foliot.queries.changes`."""

    async def begin(self) -> ChangeBatch: ...

    async def read_changes(self, mark: Mark, followed: Collection[UUID]) -> ChangeBatch: ...

    async def leaders(self) -> tuple[str, ...]: ...


# --- events and subscriptions ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FeedEvent:
    kind: StreamKind
    message: bytes
    """The encoded event, built once for all listeners."""
    host_id: UUID | None = None
    """The host that may see the event. None: all hosts."""
    schedule_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """Which events a listener receives. All listeners receive resets."""

    host_id: UUID
    kinds: frozenset[StreamKind] = frozenset(StreamKind)
    schedule_ids: frozenset[UUID] = frozenset()
    """Empty: all schedules."""

    def includes(self, event: FeedEvent) -> bool:
        if event.host_id not in (None, self.host_id):
            return False
        if event.kind is StreamKind.RESET:
            return True
        is_elsewhere = event.schedule_id is not None and event.schedule_id not in self.schedule_ids
        return event.kind in self.kinds and not (self.schedule_ids and is_elsewhere)


def message_of(event_id: str, kind: StreamKind, data: Mapping[str, Any]) -> bytes:
    # The driver's ids are of a subclass of UUID, which orjson does not serialise by itself.
    document = orjson.dumps(data, default=str, option=orjson.OPT_UTC_Z).decode()
    return ServerSentEvent(document, event=kind.value, id=event_id, sep="\n").encode()


def data_of(change: ScheduleChange | ExecutionStanding) -> dict[str, Any]:
    """Return the data of an event: all fields except `host_id`."""
    return {name: value for name, value in change._asdict().items() if name != "host_id"}


class Ring:
    """A ring buffer of the last events. Their numbers begin at 1."""

    def __init__(self, size: int = MAX_KEPT) -> None:
        self._name = secrets.token_hex(4)
        self._events: list[FeedEvent | None] = [None] * size
        self.last = 0

    def add(
        self,
        kind: StreamKind,
        data: Mapping[str, Any],
        *,
        host_id: UUID | None = None,
        schedule_id: UUID | None = None,
    ) -> None:
        number = self.last + 1
        message = message_of(self.id_of(number), kind, data)
        self._events[number % len(self._events)] = FeedEvent(kind, message, host_id, schedule_id)
        self.last = number

    def reset(self, reason: str) -> FeedEvent:
        """Return a reset event for one listener, whose new position is the end of the ring."""
        return FeedEvent(
            StreamKind.RESET, message_of(self.id_of(self.last), StreamKind.RESET, {"reason": reason})
        )

    def id_of(self, number: int) -> str:
        return f"{self._name}-{number}"

    def position_of(self, event_id: str) -> int | None:
        """Return the number of an event. None: unknown, or a later event was already dropped."""
        name, _, digits = event_id.partition("-")
        # Accept only the form that `id_of` writes: int() accepts more, and is slow for very many digits.
        if name != self._name or not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            return None
        number = int(digits)
        return number if number <= self.last and self.continues(number) else None

    def continues(self, position: int) -> bool:
        return self.last - position <= len(self._events)

    def after(self, position: int) -> Iterator[tuple[int, FeedEvent]]:
        """Yield the events after a position. `continues(position)` must be True."""
        for number in range(position + 1, self.last + 1):
            event = self._events[number % len(self._events)]
            assert event is not None
            yield number, event


class Subscription:
    """A listener's position in the feed. `leave` ends the subscription."""

    def __init__(self, feed: "Feed", wanted: StreamFilter, last_event_id: str | None) -> None:
        self._feed = feed
        self._wanted = wanted
        known = feed.ring.last if last_event_id is None else feed.ring.position_of(last_event_id)
        self._position = feed.ring.last if known is None else known
        self._owed_reset = "unknown_event_id" if known is None else None
        self._wake = Wake()
        self.is_ended = False

    @property
    def host_id(self) -> UUID:
        return self._wanted.host_id

    @property
    def event_id(self) -> str:
        """The id to resume from. All events up to it were taken, or filtered out."""
        return self._feed.ring.id_of(self._position)

    def take(self, limit: int = 100) -> list[FeedEvent]:
        """Return the next events that pass the filter. Empty: nothing new, `wait` for more."""
        ring = self._feed.ring
        if not ring.continues(self._position):
            self._owed_reset = "too_slow"
        if self._owed_reset is not None:
            event, self._owed_reset = ring.reset(self._owed_reset), None
            self._position = ring.last
            return [event]
        found: list[FeedEvent] = []
        for number, event in ring.after(self._position):
            self._position = number
            if self._wanted.includes(event):
                found.append(event)
                if len(found) == limit:
                    break
        return found

    async def wait(self, timeout_s: float) -> None:
        """Return when there may be new events, or after `timeout_s`."""
        await self._wake.wait(timeout_s)

    def notify(self) -> None:
        self._wake.set()

    def end(self) -> None:
        self.is_ended = True
        self._wake.set()

    def leave(self) -> None:
        self._feed.leave(self)


# --- the feed --------------------------------------------------------------------------------------


class Feed:
    """The service that polls for changes and holds the ring of events and the subscriptions."""

    name = "feed"

    def __init__(self, source: ChangeSource, clock: Clock, hints: Hints) -> None:
        self.wake = Wake()
        self.ring = Ring()
        self._source = source
        self._clock = clock
        self._subscriptions: set[Subscription] = set()
        self._joining = 0
        self._is_closed = False
        self._linger_until = 0.0
        self._has_begun = asyncio.Event()
        self._mark: Mark | None = None
        """The position of the last poll. None: the feed is not running."""
        self._open: dict[UUID, ExecutionStanding] = {}
        """The open executions that the feed follows, as last sent."""
        self._follows_all = True
        self._owes_reset = False
        self._statuses: dict[UUID, dict[str, Any]] = {}
        self._is_hinted = False
        self._polled_at = self._reset_at = self._status_at = float("-inf")
        self._pause_s = self._min_pause_s = 0.0
        for hint in Hint:
            hints.listen(hint, self._hear)

    # --- subscribing ------------------------------------------------------------------------------

    @property
    def listeners(self) -> int:
        """The number of listeners, including those that wait for the feed to start."""
        return len(self._subscriptions) + self._joining

    async def listen(self, wanted: StreamFilter, last_event_id: str | None = None) -> Subscription:
        """Wait until the feed is running, then return a subscription to all changes from now on.

        Raises OverloadedError if there are too many listeners, or the feed is closed.
        """
        if self.listeners >= MAX_LISTENERS:
            raise OverloadedError(f"{MAX_LISTENERS} streams are open here already; try again later")
        self._joining += 1
        self.wake.set()
        try:
            if not self._is_closed:
                await self._has_begun.wait()
        finally:
            self._joining -= 1
        if self._is_closed:
            raise OverloadedError("this instance is stopping; try again later")
        subscription = Subscription(self, wanted, last_event_id)
        self._subscriptions.add(subscription)
        # Send the status again, although it has not changed: the new listener has not seen it.
        self._statuses.pop(wanted.host_id, None)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        if not self._subscriptions:
            self._linger_until = self._clock.monotonic() + LINGER_S

    def close(self) -> None:
        """End all subscriptions and refuse new ones, because the instance stops."""
        self._is_closed = True
        self._has_begun.set()
        for subscription in self._subscriptions:
            subscription.end()

    def _hear(self, _ids: tuple[UUID, ...]) -> None:
        # One wake-up until the next poll is enough. Hints don't wake a feed without listeners.
        if self._mark is not None and not self._is_hinted:
            self._is_hinted = True
            self.wake.set()

    # --- the service ------------------------------------------------------------------------------

    async def step(self) -> float | None:
        now = self._clock.monotonic()
        if not self.listeners and now >= self._linger_until:
            self._forget()
            return None
        if self._wait_s(now) > 0:
            return self._wait_s(now)
        was_hinted, self._is_hinted = self._is_hinted, False
        try:
            has_changed = await self._poll(now)
        except BaseException:
            self._is_hinted = self._is_hinted or was_hinted
            raise
        self._has_begun.set()
        self._polled_at = self._clock.monotonic()
        self._min_pause_s = min(POLL_S, max(QUICK_S, (self._polled_at - now) / SHARE))
        self._pause_s = max(BUSY_S if has_changed else POLL_S, self._min_pause_s)
        return self._wait_s(self._polled_at)

    async def _poll(self, now: float) -> bool:
        """Poll once and add events to the ring. Return whether something has changed."""
        last = self.ring.last
        try:
            if self._mark is None:
                self._learn(await self._source.begin())
            else:
                self._tell(await self._source.read_changes(self._mark, self._open.keys()))
                await self._tell_reset(now)
            has_changed = self.ring.last > last
            await self._tell_status(now)
        finally:
            if self.ring.last > last:
                for subscription in self._subscriptions:
                    subscription.notify()
        return has_changed

    def _wait_s(self, now: float) -> float:
        """Return the seconds until the next poll."""
        return self._polled_at + (self._min_pause_s if self._is_hinted else self._pause_s) - now

    def _forget(self) -> None:
        """Stop polling and drop all state. Old event ids become invalid, because changes are missed now."""
        if self._mark is None:
            return
        self._mark = None
        self._has_begun.clear()
        self.ring = Ring()
        self._open.clear()
        self._statuses.clear()
        self._owes_reset = self._is_hinted = False
        self._polled_at = self._reset_at = self._status_at = float("-inf")

    # --- making events ----------------------------------------------------------------------------

    def _learn(self, batch: ChangeBatch) -> None:
        self._mark = batch.mark
        self._open = {each.execution_id: each for each in batch.executions if _is_open(each)}
        self._follows_all = batch.is_complete
        self._owes_reset = not batch.is_complete

    def _tell(self, batch: ChangeBatch) -> None:
        self._mark = batch.mark
        changed = [each for each in batch.executions if self._open.get(each.execution_id) != each]
        is_open = {each.execution_id: each for each in batch.executions if _is_open(each)}
        self._open = dict(list(is_open.items())[:MAX_OPEN])
        self._follows_all = self._follows_all and batch.is_complete and len(is_open) <= MAX_OPEN
        for schedule in batch.schedules[:MAX_SENT]:
            self._tell_one(StreamKind.SCHEDULE, schedule)
        for execution in changed[: max(0, MAX_SENT - len(batch.schedules))]:
            self._tell_one(StreamKind.EXECUTION, execution)
        has_too_much = len(batch.schedules) + len(changed) > MAX_SENT
        self._owes_reset = self._owes_reset or has_too_much or not self._follows_all

    def _tell_one(self, kind: StreamKind, change: ScheduleChange | ExecutionStanding) -> None:
        self.ring.add(kind, data_of(change), host_id=change.host_id, schedule_id=change.schedule_id)

    async def _tell_reset(self, now: float) -> None:
        if not self._owes_reset or now - self._reset_at < RESET_EVERY_S:
            return
        if self._follows_all:
            self._owes_reset = False
        else:
            # There may be few enough executions to follow all again. If not, `_learn` requests another reset.
            self._learn(await self._source.begin())
        self.ring.add(StreamKind.RESET, {"reason": "too_many_changes"})
        self._reset_at = now

    async def _tell_status(self, now: float) -> None:
        if now - self._status_at < STATUS_EVERY_S:
            return
        leaders = await self._source.leaders()
        counts = Counter((each.host_id, each.status) for each in self._open.values())
        for host_id in {each.host_id for each in self._subscriptions}:
            figures = {str(status): counts[host_id, status] for status in sorted(OPEN)}
            status = {"counts": figures if self._follows_all else None, "leaders": leaders}
            if self._statuses.get(host_id) != status:
                self._statuses[host_id] = status
                self.ring.add(StreamKind.STATUS, status, host_id=host_id)
        self._status_at = now


def _is_open(standing: ExecutionStanding) -> bool:
    return standing.status in OPEN
