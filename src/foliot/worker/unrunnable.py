"""What a worker can't run, and leaves to others: it does not claim it again for a while."""

from collections.abc import Sequence
from uuid import UUID

from foliot.timing.clock import ClusterClock

FIRST_S = 60.0
LONGEST_S = 600.0
"""Doubled each time that the worker meets the version again. A process seldom learns what it did not know."""
MAX_REMEMBERED = 1000

Version = tuple[UUID, int]


class Unrunnable:
    """Versions of schedules whose target this worker can't run: a task or a kind that it does not know.

    An execution's row does not say what its target is, so one of each version is claimed and handed back
    before the others are passed over.
    """

    def __init__(self, clock: ClusterClock) -> None:
        self._clock = clock
        self._until: dict[Version, float] = {}
        self._pause_s: dict[Version, float] = {}

    def add(self, version: Version) -> bool:
        """Pass this version over from now on. False: there are too many to remember."""
        now = self._clock.monotonic()
        if self._until.get(version, now) > now:
            return True
        if version not in self._until and len(self._until) >= MAX_REMEMBERED:
            self._forget_one(now)
            if len(self._until) >= MAX_REMEMBERED:
                return False
        pause_s = min(self._pause_s.get(version, FIRST_S / 2) * 2, LONGEST_S)
        self._pause_s[version], self._until[version] = pause_s, now + pause_s
        return True

    def passed_over(self) -> Sequence[Version]:
        """What not to claim now."""
        if not self._until:
            return ()
        now = self._clock.monotonic()
        return tuple(version for version, until in self._until.items() if until > now)

    def _forget_one(self, now: float) -> None:
        """The one whose time is over for longest, if there is any."""
        version = min(self._until, key=lambda each: self._until[each])
        if self._until[version] <= now:
            del self._until[version], self._pause_s[version]
