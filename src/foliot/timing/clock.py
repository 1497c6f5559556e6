"""The clocks. Nothing else in Foliot reads one, so a test can run a week in a second.

A machine's wall clock may be wrong or jump; its monotonic clock does not. The database's time is the time of
the cluster. So decisions use a ClusterClock: the database's time as last read, plus the time that has passed
since on the monotonic clock. It is late by at most one round trip, so nothing fires early.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall-clock time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps, for measuring durations."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        # This clock includes the time of a suspended machine: after it a leader must not trust its lease.
        return time.clock_gettime(_MONOTONIC)


_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class VirtualClock:
    """A clock for tests: it stands still until it is moved."""

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
        """Let time pass on both clocks."""
        if seconds < 0:
            raise ValueError("time does not run backwards; use jump for a wall clock that is set back")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator or NTP might, while no time passes."""
        self._now += timedelta(seconds=seconds)


STEP_S = 1.0
"""A reading of the database's clock this far ahead of the expected time means that the clock was set."""


class ClusterClock:
    """The database's clock, estimated by an offset to this machine's monotonic clock."""

    def __init__(self, local: Clock) -> None:
        self._local = local
        self._database_now: datetime | None = None
        self._observed_at = 0.0
        self.offset_s = 0.0
        """How far this machine's wall clock was ahead of the database's at the last reading."""
        self.stepped_at = float("-inf")
        """When (monotonic) the database's clock was last found to have been set forward."""
        self._round_trip_s = 0.0

    def observe(self, database_now: datetime, sent_at: float) -> None:
        """Use a reading of the database's clock that was requested at monotonic time `sent_at`.

        The reading was true at some moment between then and now. Counting from now keeps the estimate
        behind the truth, never ahead. A reading is ignored if it would set the clock back by less than its
        own round trip: it took long to arrive and contains nothing new.
        """
        received_at = self._local.monotonic()
        self.offset_s = (self._local.now() - database_now).total_seconds()
        if self._database_now is not None:
            behind_s = (self.now() - database_now).total_seconds()
            if 0 < behind_s <= received_at - sent_at:
                return
            # The previous reading may have been too old by its round trip.
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
