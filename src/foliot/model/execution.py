"""An execution: the recorded outcome of a fire time, and the table of its legal transitions."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from foliot.model.policy import Priority


class Status(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


OPEN = frozenset({Status.PENDING, Status.RUNNING, Status.RETRYING})
"""Statuses that have not ended. Overlap counts these."""

FINAL = frozenset(Status) - OPEN

CLAIMABLE = frozenset({Status.PENDING, Status.RETRYING})

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.RUNNING, Status.CANCELLED}),
    Status.RUNNING: frozenset(
        {
            Status.SUCCESS,
            Status.FAILED,
            Status.TIMEOUT,
            Status.CANCELLED,
            Status.UNKNOWN,
            Status.RETRYING,
            Status.PENDING,  # handed back by a worker that stops
        }
    ),
    Status.RETRYING: frozenset({Status.RUNNING, Status.CANCELLED, Status.FAILED}),
    **{status: frozenset() for status in FINAL},
}


RETRY_BY_HAND: dict[Status, frozenset[Status]] = {
    status: frozenset({Status.PENDING})
    for status in (Status.FAILED, Status.TIMEOUT, Status.CANCELLED, Status.UNKNOWN)
}
"""The only transition out of an ended status: a user asks for a retry. Nothing automatic may use it."""


def can_become(status: Status, wanted: Status) -> bool:
    return wanted in TRANSITIONS[status]


def can_be_retried(status: Status) -> bool:
    """Whether a user may retry an execution with this status."""
    return status in RETRY_BY_HAND


class SkipReason(StrEnum):
    """Why a due time did not fire."""

    OVERLAP = "overlap"
    MISFIRE = "misfire"
    WINDOW = "window"
    CALENDAR = "calendar"
    PAUSED = "paused"
    INACTIVE = "inactive"
    DELETED = "deleted"
    ERROR = "error"
    """The schedule could not be planned."""


class TriggeredBy(StrEnum):
    SCHEDULER = "scheduler"
    MANUAL = "manual"
    API = "api"
    BACKFILL = "backfill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A row of the ledger."""

    execution_id: UUID
    schedule_id: UUID
    schedule_name: str | None
    """The schedule's current name; None: the schedule no longer exists."""
    host_id: UUID
    aggregate_version: int
    fire_ts: datetime
    missed_count: int
    missed_from_ts: datetime | None
    status: Status
    reason: str | None
    triggered_by: TriggeredBy
    triggered_by_user: str | None
    args: dict[str, Any] | None
    queue: str
    priority: Priority
    ready_ts: datetime | None
    due_by_ts: datetime | None
    lease_until: datetime | None
    worker_id: str | None
    attempt: int
    started_ts: datetime | None
    ended_ts: datetime | None
    duration_seconds: float | None
    cancel_requested: bool
    """Whether a cancel was requested; it stays `running` until its worker has stopped it."""
    is_remote: bool
    """Whether an agent has accepted it and will report its end."""
    progress: dict[str, Any] | None
    result: Any
    error: str | None
    traceback: str | None
    external_id: str | None
    trace_context: str | None
    """The caller's trace that this continues; None: there is none."""
    trace_id: str
    scheduler_instance_id: str | None
    created_ts: datetime


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt at an execution."""

    attempt: int
    status: Status
    worker_id: str | None
    started_ts: datetime | None
    ended_ts: datetime | None
    duration_seconds: float | None
    error: str | None = None
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """A line that the task function logged."""

    attempt: int
    line: int
    logged_ts: datetime
    level: str
    logger: str
    message: str
