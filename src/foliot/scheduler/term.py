"""What a leader knows while it leads. A new lease is a new term: nothing is carried over."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from foliot.model.instant import micros_of
from foliot.model.lease import Lease
from foliot.planning.fire import Due
from foliot.scheduler.due_queue import DueQueue
from foliot.store.protocol import Position
from foliot.timing.calendar import NO_CALENDARS, CalendarBook
from foliot.timing.wheel import TimingWheel

LOCKED_PAUSE_US = 500_000


class Term:
    def __init__(self, lease: Lease, now: datetime) -> None:
        self.lease = lease
        self.wheel: TimingWheel[Due] = TimingWheel(micros_of(now))
        self.queue = DueQueue()
        self.in_flight: set[UUID] = set()
        """Being decided by a transaction that has not returned yet."""
        self.position: Position | None = None
        """How far the load has come; what is due later is not known here."""
        self.refused: dict[UUID, tuple[int, datetime]] = {}
        """What the store would not move on, as it was planned."""
        self.to_reload: set[UUID] = set()
        """Rows that turned out to be other than remembered."""
        self.calendars: CalendarBook = NO_CALENDARS
        self.calendar_revision: int | None = None
        """What the calendars were read at; None: not yet."""

    def knows(self, instant: datetime) -> bool:
        """Whether everything due by then is in memory, as far as the load has come."""
        return self.position is not None and instant <= self.position.run_ts

    def put(self, dues: Iterable[Due]) -> int:
        """Remember schedules, unless what is known of them is as new; returns how many were news."""
        news = 0
        for due in dues:
            key = due.schedule_id
            if key in self.in_flight or key in self.queue:
                continue
            known = self.wheel.get(key)
            if known is not None and _age(known) >= _age(due):
                continue
            self.wheel.insert(key, micros_of(due.run_ts), due)
            news += 1
        return news

    def replace(self, asked: Iterable[UUID], found: Iterable[Due], now: datetime) -> None:
        """Take over what the store says of these schedules; those it does not speak of are not due."""
        found_ids = set()
        for due in found:
            key = due.schedule_id
            found_ids.add(key)
            if key not in self.in_flight:
                self.queue.discard(key)
                due_us = micros_of(due.run_ts)
                if self.refused.pop(key, None) == _age(due):
                    # Just as it was planned: somebody has it locked. Not at once again.
                    due_us = max(due_us, micros_of(now) + LOCKED_PAUSE_US)
                self.wheel.insert(key, due_us, due)
        for key in asked:
            if key not in found_ids:
                self.wheel.cancel(key)
                self.queue.discard(key)

    def refuse(self, dues: Iterable[Due]) -> None:
        """The store did not move these on; they are to be read again."""
        for due in dues:
            self.refused[due.schedule_id] = _age(due)
            self.to_reload.add(due.schedule_id)

    def advance(self, now: datetime) -> int:
        """Move what is due from the wheel to the queue; returns how many."""
        dues = self.wheel.advance(micros_of(now))
        for due in dues:
            self.queue.put(due)
        return len(dues)

    def seconds_until_due(self, now: datetime) -> float | None:
        if len(self.queue):
            return 0.0
        due_us = self.wheel.next_due_us()
        return None if due_us is None else max(0.0, (due_us - micros_of(now)) / 1_000_000)

    def lag(self, now: datetime) -> timedelta:
        """How long the oldest undecided time known here has been waiting."""
        oldest = self.queue.oldest()
        return timedelta(0) if oldest is None else max(timedelta(0), now - oldest.run_ts)


def _age(due: Due) -> tuple[int, datetime]:
    return (due.aggregate_version, due.fire_ts)
