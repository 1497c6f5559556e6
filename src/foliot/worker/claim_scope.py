"""Decides which executions a worker claims from the database itself, when brokers deliver some of them.

Priorities without a broker: all executions, at the poll interval. Priorities with a broker: at longer
intervals, only executions that nobody has claimed for a while, since a message may be lost. While a broker is
away, all executions of its priorities.
"""

from collections.abc import Mapping
from typing import NamedTuple

from foliot.model.policy import Priority
from foliot.timing.clock import ClusterClock
from foliot.transport.intervals import TransportIntervals
from foliot.transport.monitored_transport import MonitoredTransport


class ClaimScope(NamedTuple):
    """Which executions a worker claims from the database when brokers carry some priorities."""

    at_once: tuple[Priority, ...]
    others_after_s: float | None = None
    """Claim the other priorities after they were ready for this many seconds. None: never."""

    @property
    def is_empty(self) -> bool:
        return not self.at_once and self.others_after_s is None


class PollScope:
    """The part of the executions that a worker claims by polling the database."""

    def __init__(
        self, transports: Mapping[Priority, MonitoredTransport], clock: ClusterClock, pace: TransportIntervals
    ) -> None:
        self._transports = transports
        self._clock = clock
        self._pace = pace
        self._safety_at = float("-inf")

    def scope(self) -> ClaimScope | None:
        """Return what to claim now. None: everything."""
        at_once = self._at_once()
        if len(at_once) == len(Priority):
            return None
        is_time = self._clock.monotonic() >= self._safety_at
        return ClaimScope(at_once, self._pace.untaken_s if is_time else None)

    def note_claim(self, scope: ClaimScope | None, *, has_plenty: bool) -> None:
        """Note that a claim with this scope was made. With `has_plenty` the next one follows at once."""
        if scope is not None and scope.others_after_s is not None:
            pause_s = 0.0 if has_plenty else self._pace.safety_s
            self._safety_at = self._clock.monotonic() + pause_s

    def pause_s(self, poll_s: float) -> float:
        """Return the seconds until the next poll. `poll_s` is the normal poll interval."""
        at_once = self._at_once()
        if len(at_once) == len(Priority):
            return poll_s
        safety_s = max(0.0, self._safety_at - self._clock.monotonic())
        return min(poll_s, safety_s) if at_once else safety_s

    def _at_once(self) -> tuple[Priority, ...]:
        return tuple(
            each for each in Priority if each not in self._transports or self._transports[each].is_away
        )
