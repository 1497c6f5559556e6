"""The one question all triggers answer: which nominal times come after, before and between."""

from datetime import datetime
from typing import Protocol


class Recurrence(Protocol):
    """A trigger, compiled. Its times are strictly increasing instants in UTC; asking changes nothing.

    A recurrence knows nothing of `start_ts` as a lower bound, `end_ts`, `max_runs`, windows or jitter: those
    belong to the schedule, and planning applies them.
    """

    def after(self, instant: datetime) -> datetime | None:
        """The first time strictly after the instant, or None when there is none any more."""
        ...

    def before(self, instant: datetime) -> datetime | None:
        """The last time strictly before the instant, or None when there is none."""
        ...

    def count(self, first: datetime, last: datetime) -> int:
        """How many times lie in [first, last]: quick even when there are millions."""
        ...
