"""A backfill: the fire times of a range of the past, fired again because somebody asked."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class BackfillState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    """Every time of the range has its execution; those may still be waiting or running."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """A request to fire the times in [from_ts, to_ts), and how far it has come."""

    backfill_id: UUID
    schedule_id: UUID
    host_id: UUID
    from_ts: datetime
    to_ts: datetime
    position_ts: datetime
    """Times before this have been seen to."""
    state: BackfillState
    total_count: int
    """Times of the range that are to fire. Those that turn out to lie outside the schedule's window are
    taken off when they are met."""
    created_count: int
    existing_count: int
    """Times that an earlier backfill had fired already."""
    ended_count: int
    """Executions of the times seen to, that have ended."""
    requested_by: str | None
    created_ts: datetime
    updated_ts: datetime

    @property
    def progress(self) -> float:
        """The share of the times that have their execution, 0 to 1."""
        if self.state is BackfillState.DONE or self.total_count == 0:
            return 1.0
        return min(1.0, (self.created_count + self.existing_count) / self.total_count)
