"""The stored data of one schedule: its current state, its versions, and the rows that decide its times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

SKIPPED = "skipped"
ERROR = "error"


class CurrentState(NamedTuple):
    """The current state of a schedule."""

    schedule_id: UUID
    host_id: UUID
    name: str
    next_fire_ts: datetime | None
    run_count: int


class VersionPeriod(NamedTuple):
    """The definition of a schedule from one change to the next."""

    number: int
    change: str
    document: Mapping[str, Any]
    paused: bool
    paused_until_ts: datetime | None
    effective_ts: datetime
    created_ts: datetime


class Row(NamedTuple):
    """An execution row that decides one or more scheduled times."""

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
        """The first of the times that the row decides."""
        return self.missed_from_ts or self.fire_ts


@dataclass(frozen=True)
class StoredHistory:
    """The stored data of one schedule within the checked span."""

    standing: CurrentState
    versions: Sequence[VersionPeriod]
    """In order, beginning with the first version."""
    rows: Sequence[Row]
    """In order of their fire times."""
    before: Row | None
    """The last row before the span. None: there is none."""
    fired_after: int = 0
    """How often the schedule fired after the span."""

    @cached_property
    def version(self) -> dict[int, VersionPeriod]:
        return {each.number: each for each in self.versions}

    @cached_property
    def has_limit(self) -> bool:
        """Whether any version has `max_runs`."""
        return any(each.document.get("max_runs") is not None for each in self.versions)

    @cached_property
    def fired_before(self) -> int:
        """How often the schedule had fired before the first of the rows."""
        fired = sum(1 for row in self.rows if row.has_fired)
        return self.standing.run_count - fired - self.fired_after
