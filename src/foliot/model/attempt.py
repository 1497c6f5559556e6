"""An attempt at an execution: the claim that a worker holds, and how it was settled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from foliot.model.event import CancelledExecution
from foliot.model.execution import Status, TriggeredBy
from foliot.model.policy import Priority

# NamedTuples, because these are created for every execution: a frozen dataclass takes three times as long.


class Claim(NamedTuple):
    """An execution that a worker holds under a lease."""

    execution_id: UUID
    schedule_id: UUID
    host_id: UUID
    aggregate_version: int
    fire_ts: datetime
    attempt: int
    failed_attempts: int
    args: Mapping[str, Any] | None
    queue: str
    priority: Priority
    triggered_by: TriggeredBy
    ready_ts: datetime
    started_ts: datetime
    trace_context: str | None = None


class Settlement(NamedTuple):
    """How an attempt ended, and the new state of its execution."""

    claim: Claim
    attempt_status: Status
    status: Status
    retry_in_s: float = 0.0
    result: str | None = None
    """JSON text."""
    error: str | None = None
    traceback: str | None = None
    duration_s: float = 0.0
    is_delay: bool = False
    """The schedule's trigger is `delay`: the end of this run sets its next fire time."""
    schedule_name: str | None = None
    agent_url: str | None = None
    """URL of the agent that the failed attempt called."""
    ended_at: float | None = None
    """End of the attempt on the monotonic clock of the process that ran it. None: it did not run."""


@dataclass(frozen=True, slots=True)
class Renewal:
    lost: frozenset[UUID]
    """No longer held by this worker: the work must stop and can't be settled."""
    cancelled: frozenset[UUID]
    """Cancellation was requested."""


@dataclass(frozen=True, slots=True)
class Settled:
    refused: frozenset[UUID] = frozenset()
    """Executions that this worker no longer held."""
    cancelled: frozenset[UUID] = frozenset()
    """Executions that were to be retried or handed back, but ended, because cancellation was requested."""


@dataclass(frozen=True, slots=True)
class HandoverResult:
    is_open: bool
    """False: the worker no longer held the execution, or its cancellation was requested."""
    cancelled: Sequence[CancelledExecution] = ()
    """The execution itself, if its cancellation was requested."""
