"""What overlap does: a pure function of the policy and the numbers of open and held executions."""

from enum import Enum, auto
from typing import NamedTuple

from foliot.model.policy import Overlap, OverlapPolicy


class OpenCounts(NamedTuple):
    """How many executions of a schedule are not over, counted under the schedule's lock."""

    total: int = 0
    held: int = 0
    """Those of them that wait until others have ended."""

    def plus(self, admission: "OverlapDecision") -> "OpenCounts":
        """The numbers after one more execution was admitted so."""
        if admission in (OverlapDecision.SKIP, OverlapDecision.WAIT):
            return self
        return OpenCounts(self.total + 1, self.held + (admission is not OverlapDecision.RUN))


NONE_OPEN = OpenCounts()


class OverlapDecision(Enum):
    """What becomes of an execution that is about to be inserted."""

    RUN = auto()
    HOLD = auto()
    """Inserted, but not ready before an open one has ended."""
    SKIP = auto()
    REPLACE = auto()
    """Held, and the open ones are asked to stop."""
    WAIT = auto()
    """Not inserted: `max_queued` are held already. It may be skipped as little as held; try again later."""


def admit_execution(overlap: Overlap, opened: OpenCounts, *, is_skippable: bool) -> OverlapDecision:
    """Decide by the executions that are open right now, counted under the schedule's lock.

    Only an ordinary scheduled time may be skipped: manual runs, backfills, times that `fire_all` makes good,
    and runs of a `delay` trigger (whose end sets the next) are held instead, and wait outside when the queue
    of held ones is full.
    """
    if overlap.policy is OverlapPolicy.ALLOW or opened.total < overlap.max_instances:
        return OverlapDecision.RUN
    if overlap.policy is OverlapPolicy.CANCEL_RUNNING:
        return OverlapDecision.REPLACE
    if is_skippable and (overlap.policy is OverlapPolicy.SKIP or opened.held >= overlap.max_queued):
        return OverlapDecision.SKIP
    return OverlapDecision.WAIT if opened.held >= overlap.max_queued else OverlapDecision.HOLD


def count_admissible(overlap: Overlap, opened: OpenCounts, most: int) -> tuple[int, int]:
    """Of so many executions that must not be skipped: how many are inserted now, and how many of them run."""
    inserted = ready = 0
    while inserted < most:
        admission = admit_execution(overlap, opened, is_skippable=False)
        if admission is OverlapDecision.WAIT:
            break
        opened = opened.plus(admission)
        inserted += 1
        ready += admission is OverlapDecision.RUN
    return inserted, ready
