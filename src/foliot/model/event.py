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


# --- instances and leading -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstanceStarted(DomainEvent):
    instance_id: str
    roles: tuple[str, ...]
    version: str
    database: str


@dataclass(frozen=True, slots=True)
class InstanceStopped(DomainEvent):
    instance_id: str


@dataclass(frozen=True, slots=True)
class MemoryLimitPassed(DomainEvent):
    """A worker has passed its memory limit: it drains and ends."""

    instance_id: str
    resident_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class LeaseAttempted(DomainEvent):
    """A follower asked for a lease: `acquired`, `held` by another, or `contended` (lost a race)."""

    shard: int
    result: str


@dataclass(frozen=True, slots=True)
class LeaderElected(DomainEvent):
    shard: int
    epoch: int
    instance_id: str


@dataclass(frozen=True, slots=True)
class LeaseLost(DomainEvent):
    """This instance stopped leading unintentionally."""

    shard: int
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseReleased(DomainEvent):
    """This instance stopped leading on purpose: it stops, or hands over to another."""

    shard: int
    epoch: int


@dataclass(frozen=True, slots=True)
class LeaseProviderLost(DomainEvent):
    """etcd or Redis has not answered for a TTL: the database alone decides who leads."""

    provider: str
    address: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseProviderReached(DomainEvent):
    """etcd or Redis answered for the first time, or again."""

    provider: str
    address: str
    away_s: float


@dataclass(frozen=True, slots=True)
class WriteFenced(DomainEvent):
    """A write under a lost lease was refused by the database."""

    shard: int
    epoch: int


# --- access ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CredentialRefused(DomainEvent):
    """A credential was missing or not valid. The client does not get to know the reason."""

    why: str
    address: str
    request_id: str


@dataclass(frozen=True, slots=True)
class RequestAnswered(DomainEvent):
    """The API has begun to answer a request."""

    method: str
    path: str
    status_code: int
    duration_s: float
    """Seconds until the first byte: a stream continues as long as its client listens."""
    request_id: str


@dataclass(frozen=True, slots=True)
class RequestFailed(DomainEvent):
    """An unhandled exception in the API: a defect. The client received only the request id."""

    request_id: str
    error: Exception


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
            each.execution_id,
            each.schedule_id,
            1,
            Status.SUCCESS,
            0.0,
            None,
            each.schedule_name,
            each.queue,
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


# --- consuming -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventsConsumed(DomainEvent):
    """A batch of a partition's events was handled, and its offset moved in the same transaction."""

    group: str
    partition: int
    handled: int
    dead: int
    """Number of events that became dead letters instead."""
    duration_s: float


@dataclass(frozen=True, slots=True)
class EventsDeadLettered(DomainEvent):
    """A handler failed too often with a transaction. Published just before the batch commits."""

    group: str
    transaction_id: UUID
    count: int
    error: str


@dataclass(frozen=True, slots=True)
class TopicRefused(DomainEvent):
    """The broker refuses a topic: the relay continues without it, and retries it."""

    topic: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConsumerLagChanged(DomainEvent):
    """Lag of a group's slowest partition behind the end of the outbox, in offsets."""

    group: str
    lag: int


# --- the relay -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RelayTookOver(DomainEvent):
    """This instance is the active relay from now on."""

    epoch: int
    instance_id: str


@dataclass(frozen=True, slots=True)
class RelayLost(DomainEvent):
    """This instance stopped being the active relay unintentionally."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class RelayReleased(DomainEvent):
    """This instance stopped being the active relay because it was asked to stop."""

    epoch: int


@dataclass(frozen=True, slots=True)
class RelayConfirmed(DomainEvent):
    """The broker confirmed more messages, up to this offset."""

    count: int
    offset: int
    lag: int
    """Number of messages that are committed and not yet confirmed."""


@dataclass(frozen=True, slots=True)
class OutboxMeasured(DomainEvent):
    """The active relay, or a scheduler, counted the messages that are committed and not yet confirmed."""

    lag: int


# --- transports ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransportLost(DomainEvent):
    """A broker has not answered for a while: workers poll the database."""

    kind: str
    address: str
    reason: str


@dataclass(frozen=True, slots=True)
class TransportRecovered(DomainEvent):
    kind: str
    address: str
    away_s: float


@dataclass(frozen=True, slots=True)
class TicketsRepublished(DomainEvent):
    """Executions that had waited too long were published to the broker again."""

    kind: str
    count: int


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


@dataclass(frozen=True, slots=True)
class ServiceFailed(DomainEvent):
    """A step of a service raised; it is retried after a pause."""

    service: str
    error: str
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class ServiceRecovered(DomainEvent):
    service: str


@dataclass(frozen=True, slots=True)
class ClockObserved(DomainEvent):
    """Offset of this machine's clock to the database's."""

    offset_s: float


@dataclass(frozen=True, slots=True)
class ReplicaLost(DomainEvent):
    """The replica can't be read from: all reads go to the primary."""

    database: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReplicaRecovered(DomainEvent):
    database: str


@dataclass(frozen=True, slots=True)
class ReplicaMeasured(DomainEvent):
    """Lag of the replica; None: not known."""

    lag_s: float | None


@dataclass(frozen=True, slots=True)
class RedisFailed(DomainEvent):
    """A call to Redis failed; Foliot continues without it."""

    what: str
    """`hints`, `rates`, `cache`, `lease`, `transport` or `relay`."""
    error: str


# --- notifying -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NotificationDecided(DomainEvent):
    """A notification is to be sent."""

    kind: str
    """Its type, such as `schedule.failed`."""
    rule_id: UUID
    schedule_id: UUID | None
    """None: it is about several schedules."""


@dataclass(frozen=True, slots=True)
class NotificationDelivered(DomainEvent):
    """A notification was delivered."""

    notification_id: UUID
    kind: str
    attempts: int


@dataclass(frozen=True, slots=True)
class NotificationFailed(DomainEvent):
    """A notification could not be delivered: it is retried or given up."""

    notification_id: UUID
    kind: str
    attempts: int
    error: str
    retry_in_s: float | None
    """Seconds until the retry; None: given up."""


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
