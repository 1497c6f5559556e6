"""A backfill: runs for fire times in a range of the past, on request."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class BackfillState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    """Every time of the range has its execution; executions may still be waiting or running."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """A request to fire the times in [from_ts, to_ts), and its progress."""

    backfill_id: UUID
    schedule_id: UUID
    host_id: UUID
    from_ts: datetime
    to_ts: datetime
    position_ts: datetime
    """Times before this are done."""
    state: BackfillState
    total_count: int
    """Number of times in the range that fire. Times outside the schedule's window are subtracted when they
    are reached."""
    created_count: int
    existing_count: int
    """Number of times that an earlier backfill had already fired."""
    ended_count: int
    """Number of executions that have ended, of the times that are done."""
    requested_by: str | None
    created_ts: datetime
    updated_ts: datetime

    @property
    def progress(self) -> float:
        """The share of the times that have an execution, 0 to 1."""
        if self.state is BackfillState.DONE or self.total_count == 0:
            return 1.0
        return min(1.0, (self.created_count + self.existing_count) / self.total_count)
