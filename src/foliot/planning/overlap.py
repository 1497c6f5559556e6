"""What the overlap policy decides, as a pure function of the policy and the open and held executions."""

from enum import Enum, auto
from typing import NamedTuple

from foliot.model.policy import Overlap, OverlapPolicy


class OpenCounts(NamedTuple):
    """Number of open executions of a schedule, counted under the schedule's lock."""

    total: int = 0
    held: int = 0
    """Those of them that wait until others have ended."""

    def plus(self, admission: "OverlapDecision") -> "OpenCounts":
        """Return the counts after one more execution with this decision."""
        if admission in (OverlapDecision.SKIP, OverlapDecision.WAIT):
            return self
        return OpenCounts(self.total + 1, self.held + (admission is not OverlapDecision.RUN))


NONE_OPEN = OpenCounts()


class OverlapDecision(Enum):
    """What happens to an execution that is about to be inserted."""

    RUN = auto()
    HOLD = auto()
    """Insert it, but it is not ready until an open one has ended."""
    SKIP = auto()
    REPLACE = auto()
    """Hold it, and ask the open ones to stop."""
    WAIT = auto()
    """Don't insert it: `max_queued` are held already. It must not be skipped, so try again later."""


def admit_execution(overlap: Overlap, opened: OpenCounts, *, is_skippable: bool) -> OverlapDecision:
    """Decide by the executions that are open now, counted under the schedule's lock.

    Only an ordinary scheduled time may be skipped. Manual runs, backfills, catch-up times of `fire_all`, and
    runs of a `delay` trigger (whose end sets the next time) are held instead. If `max_queued` are held, they
    wait without being inserted.
    """
    if overlap.policy is OverlapPolicy.ALLOW or opened.total < overlap.max_instances:
        return OverlapDecision.RUN
    if overlap.policy is OverlapPolicy.CANCEL_RUNNING:
        return OverlapDecision.REPLACE
    if is_skippable and (overlap.policy is OverlapPolicy.SKIP or opened.held >= overlap.max_queued):
        return OverlapDecision.SKIP
    return OverlapDecision.WAIT if opened.held >= overlap.max_queued else OverlapDecision.HOLD


def count_admissible(overlap: Overlap, opened: OpenCounts, wanted: int) -> tuple[int, int]:
    """Return how many of `wanted` executions, not skippable, are inserted now, and how many of them run."""
    inserted = ready = 0
    while inserted < wanted:
        admission = admit_execution(overlap, opened, is_skippable=False)
        if admission is OverlapDecision.WAIT:
            break
        opened = opened.plus(admission)
        inserted += 1
        ready += admission is OverlapDecision.RUN
    return inserted, ready
