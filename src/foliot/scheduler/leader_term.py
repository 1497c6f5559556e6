"""What a leader knows during its term. A new lease begins a new term with nothing carried over."""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import chain, islice
from uuid import UUID

from foliot.db.rows.due_rows import LoadPosition
from foliot.model.instant import micros_of
from foliot.model.lease import Lease
from foliot.planning.fire import Due
from foliot.scheduler.due_queue import DueQueue
from foliot.timing.calendar import NO_CALENDARS, CalendarBook
from foliot.timing.wheel import TimingWheel

LOCKED_PAUSE_US = 500_000
LOAD_BEGINS_BEFORE = timedelta(seconds=1)
"""The load begins this long before the term. What has been due for longer is read as a backlog."""
MOVED_PER_SLICE = 1_000
"""When many schedules come due at once, yield to the event loop after this many."""


class LeaderState:
    def __init__(self, lease: Lease, now: datetime) -> None:
        self.lease = lease
        self.wheel: TimingWheel[Due] = TimingWheel(micros_of(now))
        self.queue = DueQueue()
        self.in_flight: set[UUID] = set()
        """Schedules in a transaction that has not returned yet."""
        self.position = LoadPosition(now - LOAD_BEGINS_BEFORE, UUID(int=0))
        """Cursor of the load."""
        self.known_until = self.position.run_ts
        """What is due up to this time belongs in memory: it was loaded, or its page is being read."""
        self.refused: dict[UUID, tuple[int, datetime]] = {}
        """Version and fire time of schedules as planned, whose update the store refused."""
        self.locked: set[UUID] = set()
        """Overdue schedules that wait in the wheel because another transaction locks their rows."""
        self.to_reload: set[UUID] = set()
        """Schedules whose rows differ from what is in memory."""
        self.calendars: CalendarBook = NO_CALENDARS
        self.calendar_revision: int | None = None
        """Revision of the calendars; None: not read yet."""

    def knows(self, instant: datetime) -> bool:
        """Whether a schedule that is due at this time belongs in memory."""
        return instant <= self.known_until

    def put(self, dues: Iterable[Due]) -> int:
        """Put schedules into the wheel, unless a version as new is known; return how many were put."""
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

    def enqueue(self, dues: Iterable[Due]) -> int:
        """Queue overdue schedules, unless a version as new is known; return how many were queued."""
        count = 0
        for due in dues:
            key = due.schedule_id
            if key in self.in_flight or key in self.queue:
                continue
            known = self.wheel.get(key)
            if known is None or _age(known) < _age(due):
                self.wheel.cancel(key)
                self.locked.discard(key)
                self.queue.put(due)
                count += 1
        return count

    def undecided(self, limit: int) -> list[UUID]:
        """Return the ids of schedules that are in flight, locked or queued, up to a limit."""
        return list(islice(chain(self.in_flight, self.locked, self.queue), limit))

    def replace(self, asked: Iterable[UUID], found: Iterable[Due], now: datetime) -> None:
        """Replace the `asked` schedules by those `found` in the store; the others are not due."""
        found_ids = set()
        for due in found:
            key = due.schedule_id
            found_ids.add(key)
            if key not in self.in_flight:
                self.queue.discard(key)
                self.locked.discard(key)
                due_us = micros_of(due.run_ts)
                if self.refused.pop(key, None) == _age(due):
                    # Unchanged since it was refused, so its row is locked: wait before the next try.
                    due_us = max(due_us, micros_of(now) + LOCKED_PAUSE_US)
                    self.locked.add(key)
                self.wheel.insert(key, due_us, due)
        for key in asked:
            if key not in found_ids:
                self.wheel.cancel(key)
                self.queue.discard(key)
                self.locked.discard(key)
                self.refused.pop(key, None)

    def refuse(self, dues: Iterable[Due]) -> None:
        """Note that the store did not update these; they are read again."""
        for due in dues:
            self.refused[due.schedule_id] = _age(due)
            self.to_reload.add(due.schedule_id)

    async def advance(self, now: datetime) -> int:
        """Move what is due from the wheel to the queue; return how many."""
        dues = self.wheel.advance(micros_of(now))
        if self.locked:
            self.locked.difference_update(due.schedule_id for due in dues)
        for number, due in enumerate(dues, start=1):
            self.queue.put(due)
            if number % MOVED_PER_SLICE == 0:
                await asyncio.sleep(0)
        return len(dues)

    def seconds_until_due(self, now: datetime) -> float | None:
        if len(self.queue):
            return 0.0
        due_us = self.wheel.next_due_us()
        return None if due_us is None else max(0.0, (due_us - micros_of(now)) / 1_000_000)

    def lag(self, now: datetime) -> timedelta:
        """Return how long the oldest queued schedule has been due."""
        oldest = self.queue.oldest()
        return timedelta(0) if oldest is None else max(timedelta(0), now - oldest.run_ts)


def _age(due: Due) -> tuple[int, datetime]:
    return (due.aggregate_version, due.fire_ts)
