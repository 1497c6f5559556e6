"""The interface of all compiled triggers: the nominal times after, before and between instants."""

from datetime import datetime
from typing import Protocol


class Recurrence(Protocol):
    """A compiled trigger. Its times are strictly increasing instants in UTC.

    The methods have no side effects. A recurrence does not know `start_ts` as a lower bound, `end_ts`,
    `max_runs`, windows or jitter. Those belong to the schedule, and planning applies them.
    """

    def after(self, instant: datetime) -> datetime | None:
        """Return the first time strictly after the instant; None: there is none."""
        ...

    def before(self, instant: datetime) -> datetime | None:
        """Return the last time strictly before the instant; None: there is none."""
        ...

    def count(self, first: datetime, last: datetime) -> int:
        """Return how many times lie in [first, last]; fast even for millions."""
        ...
