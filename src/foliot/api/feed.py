"""The feed of changes: one look at the database for everybody who listens, and the events that came of it.

The feed works while somebody listens, and a little longer, so that who comes back has missed nothing. Hints
wake it; since a hint may be lost, it looks without one as well. What it finds becomes events with growing
numbers, kept in a ring. Each listener has a position in the ring and nothing else, so many or slow ones cost
no memory. Whose position is not in the ring (any more) is told `reset`: read the lists again.

A reset is also told where more has changed than can be told one by one, so nothing is left out in silence.
It comes at once, but not again and again: while there is too much, every RESET_EVERY_S.
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

from foliot.model.errors import OverloadedError
from foliot.model.execution import OPEN
from foliot.service import Wake
from foliot.store.changes import MAX_OPEN, ExecutionStanding, Look, Mark, ScheduleChange
from foliot.store.hints import Hint, Hints
from foliot.timing.clock import Clock

QUICK_S = 0.25
"""Between two looks, at least: however many hints come."""
BUSY_S = 0.5
"""After a look that found something, without a hint: none tells that work was claimed, or how far it is."""
POLL_S = 2.0
"""Between two looks, at most."""
SHARE = 0.1
"""The part of the time that the feed may take: looks that take long are further apart."""
STATUS_EVERY_S = 2.0
RESET_EVERY_S = 5.0
LINGER_S = 30.0
"""How long the feed goes on when nobody listens any more."""
MAX_KEPT = 5_000
MAX_TOLD = 500
"""Changes of one look that are told one by one."""
MAX_LISTENERS = 500


class StreamKind(StrEnum):
    SCHEDULE = "schedule"
    EXECUTION = "execution"
    STATUS = "status"
    RESET = "reset"


class ChangeSource(Protocol):
    """Where the feed looks; see `foliot.store.changes`."""

    async def begin(self) -> Look: ...

    async def look(self, mark: Mark, followed: Collection[UUID]) -> Look: ...

    async def leaders(self) -> tuple[str, ...]: ...


# --- events and who wants them ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FeedEvent:
    kind: StreamKind
    message: bytes
    """As it is sent: made once for all who listen."""
    host_id: UUID | None = None
    """Whose it is; None: everybody's."""
    schedule_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """What a listener wants to hear of. A reset is heard by all."""

    host_id: UUID
    kinds: frozenset[StreamKind] = frozenset(StreamKind)
    schedule_ids: frozenset[UUID] = frozenset()
    """Empty: all of them."""

    def includes(self, event: FeedEvent) -> bool:
        if event.host_id not in (None, self.host_id):
            return False
        if event.kind is StreamKind.RESET:
            return True
        is_elsewhere = event.schedule_id is not None and event.schedule_id not in self.schedule_ids
        return event.kind in self.kinds and not (self.schedule_ids and is_elsewhere)


def message_of(event_id: str, kind: StreamKind, data: Mapping[str, Any]) -> bytes:
    # The driver's ids are a subclass of UUID, which orjson does not take for one.
    document = orjson.dumps(data, default=str, option=orjson.OPT_UTC_Z).decode()
    return ServerSentEvent(document, event=kind.value, id=event_id, sep="\n").encode()


def data_of(change: ScheduleChange | ExecutionStanding) -> dict[str, Any]:
    """What is told of it: all but whose it is."""
    return {name: value for name, value in change._asdict().items() if name != "host_id"}


class Ring:
    """The last events, by their numbers, which begin at 1."""

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
        """For one listener, whose position is now the end of the ring."""
        return FeedEvent(
            StreamKind.RESET, message_of(self.id_of(self.last), StreamKind.RESET, {"reason": reason})
        )

    def id_of(self, number: int) -> str:
        return f"{self._name}-{number}"

    def position_of(self, event_id: str) -> int | None:
        """The number of an event of this ring all of whose successors are still kept."""
        name, _, digits = event_id.partition("-")
        # As we write it, and not all that int() takes, which takes long for very many digits.
        if name != self._name or not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            return None
        number = int(digits)
        return number if number <= self.last and self.continues(number) else None

    def continues(self, position: int) -> bool:
        return self.last - position <= len(self._events)

    def after(self, position: int) -> Iterator[tuple[int, FeedEvent]]:
        """What comes after a position from which the ring continues."""
        for number in range(position + 1, self.last + 1):
            event = self._events[number % len(self._events)]
            assert event is not None
            yield number, event


class Subscription:
    """A listener's place in the feed; `leave` gives it back."""

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
        """With which to come back: all up to it was taken, or was not wanted."""
        return self._feed.ring.id_of(self._position)

    def take(self, most: int = 100) -> list[FeedEvent]:
        """The next events that are wanted; none: wait."""
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
                if len(found) == most:
                    break
        return found

    async def wait(self, timeout_s: float) -> None:
        """Return when there may be something to take, or after so many seconds."""
        await self._wake.wait(timeout_s)

    def notify(self) -> None:
        self._wake.set()

    def end(self) -> None:
        self.is_ended = True
        self._wake.set()

    def leave(self) -> None:
        self._feed.leave(self)


# --- looking ---------------------------------------------------------------------------------------


class Feed:
    """A service: run its `step`."""

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
        """None: not begun."""
        self._open: dict[UUID, ExecutionStanding] = {}
        """The executions that are followed, as they were told last."""
        self._follows_all = True
        self._owes_reset = False
        self._statuses: dict[UUID, dict[str, Any]] = {}
        self._is_hinted = False
        self._looked_at = self._reset_at = self._status_at = float("-inf")
        self._pause_s = self._least_pause_s = 0.0
        for hint in Hint:
            hints.listen(hint, self._hear)

    # --- listening --------------------------------------------------------------------------------

    @property
    def listeners(self) -> int:
        """How many listen, or wait for the feed to begin."""
        return len(self._subscriptions) + self._joining

    async def listen(self, wanted: StreamFilter, last_event_id: str | None = None) -> Subscription:
        """A place in the feed, once the feed has begun: what changes from now on is told.

        Raises OverloadedError where there are too many already, or the feed was closed.
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
        # So that who comes second is told the figures as well, though they have not changed.
        self._statuses.pop(wanted.host_id, None)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)
        if not self._subscriptions:
            self._linger_until = self._clock.monotonic() + LINGER_S

    def close(self) -> None:
        """End all streams, and begin no other: the instance stops."""
        self._is_closed = True
        self._has_begun.set()
        for subscription in self._subscriptions:
            subscription.end()

    def _hear(self, _ids: tuple[UUID, ...]) -> None:
        # Once is enough until the next look; and who is asleep is not woken by hints.
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
            has_changed = await self._look(now)
        except BaseException:
            self._is_hinted = self._is_hinted or was_hinted
            raise
        self._has_begun.set()
        self._looked_at = self._clock.monotonic()
        self._least_pause_s = min(POLL_S, max(QUICK_S, (self._looked_at - now) / SHARE))
        self._pause_s = max(BUSY_S if has_changed else POLL_S, self._least_pause_s)
        return self._wait_s(self._looked_at)

    async def _look(self, now: float) -> bool:
        """Whether something has changed."""
        last = self.ring.last
        try:
            if self._mark is None:
                self._learn(await self._source.begin())
            else:
                self._tell(await self._source.look(self._mark, self._open.keys()))
                await self._tell_reset(now)
            has_changed = self.ring.last > last
            await self._tell_status(now)
        finally:
            if self.ring.last > last:
                for subscription in self._subscriptions:
                    subscription.notify()
        return has_changed

    def _wait_s(self, now: float) -> float:
        """The seconds until the next look."""
        return self._looked_at + (self._least_pause_s if self._is_hinted else self._pause_s) - now

    def _forget(self) -> None:
        """What happens from now on is not seen, so nobody may go on from an event of before."""
        if self._mark is None:
            return
        self._mark = None
        self._has_begun.clear()
        self.ring = Ring()
        self._open.clear()
        self._statuses.clear()
        self._owes_reset = self._is_hinted = False
        self._looked_at = self._reset_at = self._status_at = float("-inf")

    # --- what is told -----------------------------------------------------------------------------

    def _learn(self, look: Look) -> None:
        self._mark = look.mark
        self._open = {each.execution_id: each for each in look.executions if _is_open(each)}
        self._follows_all = look.is_complete
        self._owes_reset = not look.is_complete

    def _tell(self, look: Look) -> None:
        self._mark = look.mark
        changed = [each for each in look.executions if self._open.get(each.execution_id) != each]
        is_open = {each.execution_id: each for each in look.executions if _is_open(each)}
        self._open = dict(list(is_open.items())[:MAX_OPEN])
        self._follows_all = self._follows_all and look.is_complete and len(is_open) <= MAX_OPEN
        for schedule in look.schedules[:MAX_TOLD]:
            self._tell_one(StreamKind.SCHEDULE, schedule)
        for execution in changed[: max(0, MAX_TOLD - len(look.schedules))]:
            self._tell_one(StreamKind.EXECUTION, execution)
        has_too_much = len(look.schedules) + len(changed) > MAX_TOLD
        self._owes_reset = self._owes_reset or has_too_much or not self._follows_all

    def _tell_one(self, kind: StreamKind, change: ScheduleChange | ExecutionStanding) -> None:
        self.ring.add(kind, data_of(change), host_id=change.host_id, schedule_id=change.schedule_id)

    async def _tell_reset(self, now: float) -> None:
        if not self._owes_reset or now - self._reset_at < RESET_EVERY_S:
            return
        if self._follows_all:
            self._owes_reset = False
        else:
            # There may be few enough to follow by now. If not, the next reset is owed already.
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
