"""What is stored of one schedule: how it stands, its versions, and the rows that decide its times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

SKIPPED = "skipped"
ERROR = "error"


class CurrentState(NamedTuple):
    """How a schedule stands now."""

    schedule_id: UUID
    host_id: UUID
    name: str
    next_fire_ts: datetime | None
    run_count: int


class VersionPeriod(NamedTuple):
    """A schedule as it was from one change to the next."""

    number: int
    change: str
    document: Mapping[str, Any]
    paused: bool
    paused_until_ts: datetime | None
    effective_ts: datetime
    created_ts: datetime


class Row(NamedTuple):
    """A row of the ledger that a scheduled time was decided by."""

    fire_ts: datetime
    missed_count: int
    missed_from_ts: datetime | None
    status: str
    reason: str | None
    version: int
    created_ts: datetime
    scheduler_instance_id: str | None

    @property
    def has_fired(self) -> bool:
        return self.status != SKIPPED

    @property
    def first_ts(self) -> datetime:
        """The first of the times that it decides."""
        return self.missed_from_ts or self.fire_ts


@dataclass(frozen=True)
class StoredHistory:
    """All that is stored of one schedule within the span that is looked at."""

    standing: CurrentState
    versions: Sequence[VersionPeriod]
    """In order, from the first on."""
    rows: Sequence[Row]
    """In order of their fire times."""
    before: Row | None
    """The last row before the span."""

    @cached_property
    def version(self) -> dict[int, VersionPeriod]:
        return {each.number: each for each in self.versions}

    @cached_property
    def has_limit(self) -> bool:
        """Whether it may ever have run often enough."""
        return any(each.document.get("max_runs") is not None for each in self.versions)

    @cached_property
    def fired_before(self) -> int:
        """How often it had fired before the first of the rows."""
        return self.standing.run_count - sum(1 for row in self.rows if row.has_fired)
