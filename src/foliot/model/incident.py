"""What notification rules are decided by: schedules and runs as they were seen, and incidents."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from foliot.model.execution import Status, TriggeredBy
from foliot.model.notification import NotificationType

FAILING = frozenset({Status.FAILED, Status.TIMEOUT, Status.UNKNOWN})
"""How an execution ends that went wrong. One that somebody cancelled did not."""


class Subject(NamedTuple):
    """A schedule that a rule may be about."""

    schedule_id: UUID
    host_id: UUID
    name: str
    labels: Mapping[str, str]
    is_paused: bool
    is_deleted: bool
    is_active: bool
    is_completed: bool


class Run(NamedTuple):
    """An execution as it stood."""

    execution_id: UUID
    status: Status
    attempt: int
    triggered_by: TriggeredBy
    fire_ts: datetime
    started_ts: datetime | None
    ended_ts: datetime | None
    due_by_ts: datetime | None
    error: str | None

    @property
    def is_success(self) -> bool:
        """It shows that the schedule is well: a backfill makes good for other days."""
        return self.status is Status.SUCCESS and self.triggered_by is not TriggeredBy.BACKFILL

    @property
    def was_late(self) -> bool:
        """It was started later than its priority promises."""
        return self.started_ts is not None and self.due_by_ts is not None and self.started_ts > self.due_by_ts


class VersionStart(NamedTuple):
    """A version of a schedule, as far as it says from when on it is to run."""

    created_ts: datetime
    is_paused: bool
    paused_until_ts: datetime | None
    is_active: bool
    timing: tuple[Any, ...]
    """Whatever, when it changes, makes the schedule begin anew."""


class IncidentKind(StrEnum):
    FAILURE = "failure"
    FAILURES_IN_A_ROW = "failures_in_a_row"
    DID_NOT_RUN = "did_not_run"
    SLA_MISS = "sla_miss"


class IncidentKey(NamedTuple):
    """A rule has at most one open incident of a kind for a schedule."""

    schedule_id: UUID
    rule_id: UUID
    kind: IncidentKind


class Incident(NamedTuple):
    """Something that was found wrong, and told once. It is kept for a while after it is over, so that what
    is read again, being part of it, does not open it again."""

    key: IncidentKey
    host_id: UUID
    opened_ts: datetime
    """The first sign of it; a success after it ends it."""
    closed_ts: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.closed_ts is None


class Notice(NamedTuple):
    """A message to be sent, known by its key: the same is decided once."""

    host_id: UUID
    rule_id: UUID
    schedule_id: UUID | None
    """None: it is about many."""
    type: NotificationType
    dedupe_key: str
    data: Mapping[str, Any]
