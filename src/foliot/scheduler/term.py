"""What a leader knows while it leads. A new lease is a new term: nothing is carried over."""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import chain, islice
from uuid import UUID

from foliot.model.instant import micros_of
from foliot.model.lease import Lease
from foliot.planning.fire import Due
from foliot.scheduler.due_queue import DueQueue
from foliot.store.protocol import LoadPosition
from foliot.timing.calendar import NO_CALENDARS, CalendarBook
from foliot.timing.wheel import TimingWheel

LOCKED_PAUSE_US = 500_000
LOAD_BEGINS_BEFORE = timedelta(seconds=1)
"""The load begins so long before the term. What is due since longer is a backlog, and is read as one."""
MOVED_PER_SLICE = 1_000
"""When very many schedules come due at one instant, the event loop gets a turn after so many of them."""


class LeaderState:
    def __init__(self, lease: Lease, now: datetime) -> None:
        self.lease = lease
        self.wheel: TimingWheel[Due] = TimingWheel(micros_of(now))
        self.queue = DueQueue()
        self.in_flight: set[UUID] = set()
        """Being decided by a transaction that has not returned yet."""
        self.position = LoadPosition(now - LOAD_BEGINS_BEFORE, UUID(int=0))
        """How far the load has come."""
        self.known_until = self.position.run_ts
        """What is due up to then belongs in memory: it was loaded, or a page with it is being read."""
        self.refused: dict[UUID, tuple[int, datetime]] = {}
        """What the store would not move on, as it was planned."""
        self.locked: set[UUID] = set()
        """Overdue schedules that wait in the wheel, because somebody else has their rows locked."""
        self.to_reload: set[UUID] = set()
        """Rows that turned out to be other than remembered."""
        self.calendars: CalendarBook = NO_CALENDARS
        self.calendar_revision: int | None = None
        """What the calendars were read at; None: not yet."""

    def knows(self, instant: datetime) -> bool:
        """Whether a schedule that is due then belongs in memory."""
        return instant <= self.known_until

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

    def enqueue(self, dues: Iterable[Due]) -> int:
        """Queue overdue schedules, unless what is known of them is as new; return how many were queued."""
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
        """Take over what the store says of these schedules; those it does not speak of are not due."""
        found_ids = set()
        for due in found:
            key = due.schedule_id
            found_ids.add(key)
            if key not in self.in_flight:
                self.queue.discard(key)
                self.locked.discard(key)
                due_us = micros_of(due.run_ts)
                if self.refused.pop(key, None) == _age(due):
                    # Just as it was planned: somebody has it locked. Not at once again.
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
        """The store did not move these on; they are to be read again."""
        for due in dues:
            self.refused[due.schedule_id] = _age(due)
            self.to_reload.add(due.schedule_id)

    async def advance(self, now: datetime) -> int:
        """Move what is due from the wheel to the queue; returns how many."""
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
        """How long the oldest undecided time known here has been waiting."""
        oldest = self.queue.oldest()
        return timedelta(0) if oldest is None else max(timedelta(0), now - oldest.run_ts)


def _age(due: Due) -> tuple[int, datetime]:
    return (due.aggregate_version, due.fire_ts)
