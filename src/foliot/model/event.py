"""Domain events: what happened, as typed values in the past tense, and who observes them.

The core publishes each event once, where it happens, to an Observer. Logs, metrics and traces are observers;
the core itself logs nothing. Firing, claiming and settling work in batches, so their events carry batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from foliot.model.execution import SkipReason, Status, TriggeredBy
from foliot.model.policy import Priority
from foliot.model.schedule import ChangeKind


@dataclass(frozen=True, slots=True)
class DomainEvent:
    """Something that happened."""


class Observer(Protocol):
    """Receives events as they happen. `notify` must return quickly and never raise."""

    def notify(self, event: DomainEvent) -> None: ...


class Observers:
    """Forwards each event to all of its observers."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = list(observers)

    def add(self, observer: Observer) -> None:
        self._observers.append(observer)

    def notify(self, event: DomainEvent) -> None:
        for observer in self._observers:
            observer.notify(event)


# --- schedules -------------------------------------------------------------------------------------


class SkippedExecution(NamedTuple):
    execution_id: UUID
    schedule_id: UUID
    fire_ts: datetime
    reason: SkipReason
    missed_count: int
    """Number of earlier due times that the same row decides."""
    schedule_name: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleChanged(DomainEvent):
    schedule_id: UUID
    schedule_name: str
    change: ChangeKind
    aggregate_version: int
    by: str | None
    changed_ts: datetime | None = None
    trace_context: str | None = None
    """The `traceparent` of the request; None: it was not part of a trace."""
    skipped: SkippedExecution | None = None
    """The due time that the change prevents from firing; None: nothing was due."""


@dataclass(frozen=True, slots=True)
class ScheduleParked(DomainEvent):
    """A schedule could not be planned and is now in state `error`; planning is retried later.

    Published once per version of the schedule by each leader.
    """

    schedule_id: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class PendingEventsFailed(DomainEvent):
    """Events that an application triggered in its transaction can't be written; this is retried later.

    Published once per schedule by each leader.
    """

    schedule_id: UUID
    reason: str


# --- firing ----------------------------------------------------------------------------------------


class FiredExecution(NamedTuple):
    execution_id: UUID
    schedule_id: UUID
    fire_ts: datetime
    lateness_s: float
    missed_count: int
    schedule_name: str | None = None
    """None in a large batch, unless an observer needs all names."""
    queue: str = ""
    aggregate_version: int = 0


@dataclass(frozen=True, slots=True)
class BatchFired(DomainEvent):
    """A firing transaction committed."""

    shard: int
    epoch: int
    instance_id: str
    fired: Sequence[FiredExecution]
    skipped: Sequence[SkippedExecution]
    refused: int
    """Number of rows that had changed since they were planned; they are read again."""
    duration_s: float


@dataclass(frozen=True, slots=True)
class ExecutionTriggered(DomainEvent):
    """A user ran a schedule now, besides its fire times."""

    execution_id: UUID
    schedule_id: UUID
    schedule_name: str
    aggregate_version: int
    fire_ts: datetime
    queue: str
    triggered_by: TriggeredBy
    by: str | None
    trace_context: str | None
    """The trace that the execution continues; None: it has its own."""


@dataclass(frozen=True, slots=True)
class BackfillAdvanced(DomainEvent):
    """A backfill created executions for some more of its times."""

    backfill_id: UUID
    instance_id: str
    fired: Sequence[FiredExecution]


@dataclass(frozen=True, slots=True)
class TickCompleted(DomainEvent):
    """The leader has taken what was due from its wheel."""

    shard: int
    checked: int
    wheel_size: int
    lag_s: float
    """How long the oldest undecided due time has been waiting."""
    duration_s: float


@dataclass(frozen=True, slots=True)
class SchedulesLoaded(DomainEvent):
    shard: int
    count: int
    cause: str
    """`horizon`, `poll`, `hint` or `refused`."""


# --- executing -------------------------------------------------------------------------------------


class ClaimedExecution(NamedTuple):
    execution_id: UUID
    schedule_id: UUID
    attempt: int
    queue: str
    priority: Priority
    start_delay_s: float
    trace_context: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutionsClaimed(DomainEvent):
    worker_id: str
    claimed: Sequence[ClaimedExecution]


class SettledExecution(NamedTuple):
    execution_id: UUID
    schedule_id: UUID
    attempt: int
    status: Status
    duration_s: float
    error: str | None
    schedule_name: str | None = None
    queue: str = ""
    started_ts: datetime | None = None
    settling_s: float = 0.0
    """Seconds from the end of the attempt until it was stored."""
    agent_url: str | None = None
    """The agent that a failed attempt called, without secret parts; None: no agent."""
    trace_context: str | None = None
    attempt_status: Status | None = None
    """How the attempt ended; None: as `status`, the state of its execution."""


@dataclass(frozen=True, slots=True)
class ExecutionsSettled(DomainEvent):
    worker_id: str
    settled: Sequence[SettledExecution]
    refused: Sequence[UUID]
    """Settles that came too late: the attempt no longer belonged to this worker."""


def settled_at_once(by: str, fired: Sequence[FiredExecution]) -> ExecutionsSettled:
    """Return the settled event for fired events, which end when they fire. `by` is the firing instance."""
    ended = [
        SettledExecution(
            each.execution_id, each.schedule_id, 1, Status.SUCCESS, 0.0, None, each.schedule_name, each.queue
        )
        for each in fired
    ]
    return ExecutionsSettled(by, ended, ())


class CancelledExecution(NamedTuple):
    """An execution that a cancel ended at once: it was waiting, or was at an agent, without renewals."""

    execution_id: UUID
    schedule_id: UUID
    attempt: int
    """Number of attempts so far, including the agent's."""
    reason: str
    cancelled_ts: datetime
    schedule_name: str | None = None
    queue: str = ""
    worker_id: str | None = None
    """The worker that began the agent's attempt; None: it was waiting."""
    started_ts: datetime | None = None
    """When the agent's attempt began; None: it was waiting."""
    trace_context: str | None = None

    @property
    def duration_s(self) -> float | None:
        """Seconds that the agent worked on it; None: it was waiting."""
        if self.started_ts is None:
            return None
        return max(0.0, (self.cancelled_ts - self.started_ts).total_seconds())


@dataclass(frozen=True, slots=True)
class ExecutionsCancelled(DomainEvent):
    """Executions ended by a cancel. Those that run in a worker are settled by it later, when they stop."""

    cancelled: Sequence[CancelledExecution]


@dataclass(frozen=True, slots=True)
class ExecutionRetried(DomainEvent):
    """A user retried an execution that had failed."""

    execution_id: UUID
    schedule_id: UUID
    schedule_name: str | None
    attempt: int
    """Number of attempts so far."""
    by: str | None
    trace_context: str | None


@dataclass(frozen=True, slots=True)
class WorkerLoadChanged(DomainEvent):
    worker_id: str
    running: int
    capacity: int


# --- housekeeping ----------------------------------------------------------------------------------


class LostAttempt(NamedTuple):
    """An attempt whose end nobody reported, and the new status of its execution."""

    execution_id: UUID
    schedule_id: UUID
    schedule_name: str | None
    attempt: int
    status: Status
    error: str
    worker_id: str | None
    queue: str
    started_ts: datetime | None
    trace_context: str | None
    duration_s: float = 0.0
    """Seconds from its start until it was found."""
    is_remote: bool = False
    """Whether it ran at an agent: then it timed out, and no worker vanished."""
    agent_url: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutionsRescued(DomainEvent):
    """Executions whose worker vanished, with their new status."""

    shard: int
    rescued: Mapping[UUID, Status]
    attempts: Sequence[LostAttempt] = ()
    """One entry per rescued execution, with its schedule, worker and agent."""


@dataclass(frozen=True, slots=True)
class ExecutionsReleased(DomainEvent):
    """Held executions that may now run."""

    shard: int
    count: int


@dataclass(frozen=True, slots=True)
class HistoryPruned(DomainEvent):
    shard: int
    count: int


@dataclass(frozen=True, slots=True)
class OverdueCounted(DomainEvent):
    """A watchdog counted the schedules that are overdue and not decided."""

    count: int
    late_s: float = 0.0
    """Seconds that the oldest of them has been due."""


@dataclass(frozen=True, slots=True)
class OverdueFound(DomainEvent):
    """Due times are not decided: their shard has no leader, or its leader hangs or is too slow."""

    count: int
    is_capped: bool
    """Whether `count` is a lower bound."""
    oldest_schedule_id: UUID
    late_s: float
    """Seconds that the oldest schedule has been due."""


@dataclass(frozen=True, slots=True)
class OverdueEnded(DomainEvent):
    """Nothing is overdue any more."""


# --- measuring -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueuesMeasured(DomainEvent):
    """A scheduler counted the executions that wait for workers, in the whole database."""

    depths: Mapping[str, Mapping[Priority, int]]
    """By queue, over all hosts; an empty queue has zeros."""


@dataclass(frozen=True, slots=True)
class SchedulesCounted(DomainEvent):
    """A scheduler counted the active schedules and the shards, in the whole database."""

    active: int
    shards: int


@dataclass(frozen=True, slots=True)
class AgentFailed(DomainEvent):
    """An agent failed to do what an attempt asked for."""

    status_code: str
    """HTTP status of its answer; `none`: no answer; `timeout`: no answer in time."""
