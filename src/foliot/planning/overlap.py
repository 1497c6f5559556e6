"""What overlap does: a pure function of the policy and the number of open executions."""

from enum import Enum, auto

from foliot.model.policy import Overlap, OverlapPolicy


class Admission(Enum):
    """What becomes of an execution that is about to be inserted."""

    RUN = auto()
    HOLD = auto()
    """Inserted, but not ready before an open one has ended."""
    SKIP = auto()
    REPLACE = auto()
    """Held, and the open ones are asked to stop."""


def admit_execution(overlap: Overlap, open_count: int, *, is_skippable: bool) -> Admission:
    """Decide by the count of executions that are open right now, counted under the schedule's lock.

    Only an ordinary scheduled time may be skipped: manual runs, backfills, times that `fire_all` makes good,
    and runs of a `delay` trigger (whose end sets the next) are held instead.
    """
    if overlap.policy is OverlapPolicy.ALLOW or open_count < overlap.max_instances:
        return Admission.RUN
    match overlap.policy:
        case OverlapPolicy.CANCEL_RUNNING:
            return Admission.REPLACE
        case OverlapPolicy.SKIP if is_skippable:
            return Admission.SKIP
        case _:
            return Admission.HOLD
