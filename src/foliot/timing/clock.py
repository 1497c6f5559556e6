"""The clocks. Nothing else in Foliot reads one, so a test can run a week in a second.

A machine's wall clock may be wrong or jump; its monotonic clock may not. The cluster's time is the
database's, so decisions use a ClusterClock: the database's time as last seen, carried on by this machine's
monotonic clock. It errs on the late side by at most one round trip, so nothing fires early.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps, for measuring how long something took."""
        ...


class SystemClock:
    """This machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        # Counts through a suspended machine as well: a leader that slept must not trust its lease on waking.
        return time.clock_gettime(_MONOTONIC)


_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class VirtualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: datetime) -> None:
        if now.tzinfo is None:
            raise ValueError("now must have a time zone: datetime(…, tzinfo=UTC)")
        self._now = now.astimezone(UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        if seconds < 0:
            raise ValueError("time does not run backwards; use jump for a wall clock that is set back")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator or NTP might, while no time passes."""
        self._now += timedelta(seconds=seconds)


STEP_S = 1.0
"""How far a reading of the database's clock must be ahead of what was expected to be a step of that clock."""


class ClusterClock:
    """The database's clock, followed by offset on this machine's monotonic clock."""

    def __init__(self, local: Clock) -> None:
        self._local = local
        self._database_now: datetime | None = None
        self._observed_at = 0.0
        self.offset_s = 0.0
        """How far this machine's wall clock was ahead of the database's when last observed."""
        self.stepped_at = float("-inf")
        """When, on the monotonic clock, the database's clock was last seen to have been set forward."""
        self._round_trip_s = 0.0

    def observe(self, database_now: datetime, sent_at: float) -> None:
        """Take over a reading of the database's clock that was asked for at monotonic time `sent_at`.

        The reading was true at some moment between then and now. Counting from now keeps the estimate
        behind the truth, never ahead. A reading that took long to arrive and would set the clock back by
        less than its own round trip tells nothing new and is ignored.
        """
        received_at = self._local.monotonic()
        self.offset_s = (self._local.now() - database_now).total_seconds()
        if self._database_now is not None:
            behind_s = (self.now() - database_now).total_seconds()
            if 0 < behind_s <= received_at - sent_at:
                return
            # The reading before may have been older than it was taken for, by its round trip.
            if -behind_s > STEP_S + self._round_trip_s:
                self.stepped_at = received_at
        self._round_trip_s = received_at - sent_at
        self._database_now = database_now
        self._observed_at = received_at

    def now(self) -> datetime:
        if self._database_now is None:
            raise RuntimeError("the database's clock has not been read yet")
        return self._database_now + timedelta(seconds=self._local.monotonic() - self._observed_at)

    def monotonic(self) -> float:
        return self._local.monotonic()
