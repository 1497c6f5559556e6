"""Inputs and results of notification rules: schedules, runs, incidents and messages."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from foliot.model.execution import Status, TriggeredBy
from foliot.model.notification import NotificationType

FAILING = frozenset({Status.FAILED, Status.TIMEOUT, Status.UNKNOWN})
"""Statuses that count as failures. A cancel is not a failure."""


class Subject(NamedTuple):
    """A schedule that a rule may apply to."""

    schedule_id: UUID
    host_id: UUID
    name: str
    labels: Mapping[str, str]
    is_paused: bool
    is_deleted: bool
    is_active: bool
    is_completed: bool


class Run(NamedTuple):
    """State of an execution when it was read."""

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
        """Whether it shows that the schedule works. A backfill does not: it is for other days."""
        return self.status is Status.SUCCESS and self.triggered_by is not TriggeredBy.BACKFILL

    @property
    def was_late(self) -> bool:
        """Whether it started later than its priority's SLA."""
        return self.started_ts is not None and self.due_by_ts is not None and self.started_ts > self.due_by_ts


class VersionStart(NamedTuple):
    """A version of a schedule, with what decides from when on it runs."""

    created_ts: datetime
    is_paused: bool
    paused_until_ts: datetime | None
    is_active: bool
    timing: tuple[Any, ...]
    """If this changes, the schedule counts as started again."""


class IncidentKind(StrEnum):
    FAILURE = "failure"
    FAILURES_IN_A_ROW = "failures_in_a_row"
    DID_NOT_RUN = "did_not_run"
    SLA_MISS = "sla_miss"


class IncidentKey(NamedTuple):
    """Identity of an incident: a rule has at most one open incident of a kind per schedule."""

    schedule_id: UUID
    rule_id: UUID
    kind: IncidentKind


class Incident(NamedTuple):
    """A problem that was found and reported once. It is stored for a while after it is closed, so that its
    executions, when read again, do not open it again."""

    key: IncidentKey
    host_id: UUID
    opened_ts: datetime
    """The first sign of it. A later success closes it."""
    closed_ts: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.closed_ts is None


class Notice(NamedTuple):
    """A message to be sent. Messages with the same key are sent once."""

    host_id: UUID
    rule_id: UUID
    schedule_id: UUID | None
    """None: it is about several schedules."""
    type: NotificationType
    dedupe_key: str
    data: Mapping[str, Any]
