"""Remembers which schedule versions a worker can't run, and excludes them from its claims for a while."""

from collections.abc import Sequence
from uuid import UUID

from foliot.timing.clock import ClusterClock

FIRST_S = 60.0
LONGEST_S = 600.0
"""Maximum exclusion. The time starts at FIRST_S and doubles each time the worker claims the version again: a
process seldom becomes able to run a version later."""
MAX_REMEMBERED = 1000

Version = tuple[UUID, int]


class Unrunnable:
    """Schedule versions that this worker can't run, because it does not know the task or the target kind.

    The row of an execution does not contain its target. So one execution of each version is claimed and
    handed back before the others are excluded.
    """

    def __init__(self, clock: ClusterClock) -> None:
        self._clock = clock
        self._until: dict[Version, float] = {}
        self._pause_s: dict[Version, float] = {}

    def add(self, version: Version) -> bool:
        """Exclude this version from claims. Returns False if too many versions are remembered already."""
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
        """Return the versions to exclude from claims now."""
        if not self._until:
            return ()
        now = self._clock.monotonic()
        return tuple(version for version, until in self._until.items() if until > now)

    def _forget_one(self, now: float) -> None:
        """Forget the version whose exclusion ended first, if any has ended."""
        version = min(self._until, key=lambda each: self._until[each])
        if self._until[version] <= now:
            del self._until[version], self._pause_s[version]
