"""What happened, as typed values in the past tense, and who may watch.

The core says each thing once, where it happens, to an Observer. Logs, metrics and traces are observers;
the core itself logs nothing. Firing, claiming and settling go in batches, so their events carry batches.
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
    """Told of events as they happen. Must return quickly and never raise."""

    def notify(self, event: DomainEvent) -> None: ...


class Observers:
    """Passes each event on to all of its observers."""

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
    """A worker has grown past its limit: it drains and ends."""

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
    """This instance stopped leading without meaning to."""

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
    """Somebody showed a credential that is worth nothing, or none. Why is not told to them."""

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
    """Until its first byte: a stream goes on for as long as somebody listens."""
    request_id: str


@dataclass(frozen=True, slots=True)
class RequestFailed(DomainEvent):
    """An exception of the API's that nobody handled: a defect. Its client was told nothing but the id."""

    request_id: str
    error: Exception


# --- schedules -------------------------------------------------------------------------------------


class SkippedExecution(NamedTuple):
    execution_id: UUID
    schedule_id: UUID
    fire_ts: datetime
    reason: SkipReason
    missed_count: int
    """Earlier due times that the same row decides."""
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
    """Of the request that asked for it, if that was part of a trace."""
    skipped: SkippedExecution | None = None
    """What was due already and does not fire for it."""


@dataclass(frozen=True, slots=True)
class ScheduleParked(DomainEvent):
    """A schedule could not be planned and was put into state `error`; it is tried again later.

    Published once per version of the schedule by each leader.
    """

    schedule_id: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class PendingEventsFailed(DomainEvent):
    """Events that an application triggered in its transaction can't be written; tried again later.

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
    """None in a large batch, unless somebody asked for all names."""
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
    """Rows that had changed since they were planned; they are read again."""
    duration_s: float


@dataclass(frozen=True, slots=True)
class ExecutionTriggered(DomainEvent):
    """Somebody had a schedule run now, besides its own times."""

    execution_id: UUID
    schedule_id: UUID
    schedule_name: str
    aggregate_version: int
    fire_ts: datetime
    queue: str
    triggered_by: TriggeredBy
    by: str | None
    trace_context: str | None
    """What the execution's trace continues; None: it has one of its own."""


@dataclass(frozen=True, slots=True)
class BackfillAdvanced(DomainEvent):
    """Executions were made for a few more of the times that a backfill is for."""

    backfill_id: UUID
    instance_id: str
    fired: Sequence[FiredExecution]


@dataclass(frozen=True, slots=True)
class TickCompleted(DomainEvent):
    """The leader looked at its wheel."""

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
    """From the end of the attempt until that was written down."""
    agent_url: str | None = None
    """Whom a failed attempt had asked, without what may be secret."""
    trace_context: str | None = None
    attempt_status: Status | None = None
    """How the attempt ended, where that is not how its execution stands now."""


@dataclass(frozen=True, slots=True)
class ExecutionsSettled(DomainEvent):
    worker_id: str
    settled: Sequence[SettledExecution]
    refused: Sequence[UUID]
    """Settles that came too late: the attempt was no longer this worker's."""


def settled_at_once(by: str, fired: Sequence[FiredExecution]) -> ExecutionsSettled:
    """Of events, which are over as they fire; `by` is the instance that fired them, if that is known."""
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
    """One that a cancel ended at once: it waited, or was with an agent, whom nobody renews."""

    execution_id: UUID
    schedule_id: UUID
    attempt: int
    """How many there have been, with the one that an agent was at."""
    reason: str
    cancelled_ts: datetime
    schedule_name: str | None = None
    queue: str = ""
    worker_id: str | None = None
    """Who had begun the agent's attempt."""
    started_ts: datetime | None = None
    """When that was; None: it waited."""
    trace_context: str | None = None

    @property
    def duration_s(self) -> float | None:
        """How long the agent was at it; None: it waited."""
        if self.started_ts is None:
            return None
        return max(0.0, (self.cancelled_ts - self.started_ts).total_seconds())


@dataclass(frozen=True, slots=True)
class ExecutionsCancelled(DomainEvent):
    """Executions ended by being cancelled. What runs in a worker is settled by it instead, when it stops."""

    cancelled: Sequence[CancelledExecution]


@dataclass(frozen=True, slots=True)
class ExecutionRetried(DomainEvent):
    """Somebody had an execution that had ended badly tried once more."""

    execution_id: UUID
    schedule_id: UUID
    schedule_name: str | None
    attempt: int
    """How many there have been."""
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
    """A batch of a partition's events was handled, and its offset moved with it."""

    group: str
    partition: int
    handled: int
    dead: int
    """Events that became dead letters instead."""
    duration_s: float


@dataclass(frozen=True, slots=True)
class EventsDeadLettered(DomainEvent):
    """A handler has failed with a transaction as often as it may. Said when the batch is about to commit."""

    group: str
    transaction_id: UUID
    count: int
    error: str


@dataclass(frozen=True, slots=True)
class TopicRefused(DomainEvent):
    """The broker refuses a topic: the relay goes on without it, and tries it again."""

    topic: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConsumerLagChanged(DomainEvent):
    """How many offsets the last partition of a group is behind the end of the outbox."""

    group: str
    lag: int


# --- the relay -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RelayTookOver(DomainEvent):
    """This instance ships the outbox from now on."""

    epoch: int
    instance_id: str


@dataclass(frozen=True, slots=True)
class RelayLost(DomainEvent):
    """This instance stopped being the active relay without meaning to."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class RelayReleased(DomainEvent):
    """This instance stopped being the active relay because it was asked to stop."""

    epoch: int


@dataclass(frozen=True, slots=True)
class RelayConfirmed(DomainEvent):
    """The broker has taken so many more messages, up to this offset."""

    count: int
    offset: int
    lag: int
    """Messages committed and not yet confirmed."""


@dataclass(frozen=True, slots=True)
class OutboxMeasured(DomainEvent):
    """The active relay, or a scheduler, looked how many messages are committed and not yet confirmed."""

    lag: int


# --- transports ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransportLost(DomainEvent):
    """A broker has not answered for a while: workers look into the database themselves."""

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
    """Executions that had waited for too long were given to the broker once more."""

    kind: str
    count: int


# --- upkeep ----------------------------------------------------------------------------------------


class LostAttempt(NamedTuple):
    """An attempt whose end nobody reported, and how its execution stands now."""

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
    """From its start until somebody looked."""
    is_remote: bool = False
    """An agent had taken it over: no worker vanished, its time is up."""
    agent_url: str | None = None


@dataclass(frozen=True, slots=True)
class ExecutionsRescued(DomainEvent):
    """Executions whose worker vanished, and what became of each."""

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
    """A watchdog looked how many schedules have been due for too long and are not decided."""

    count: int
    late_s: float = 0.0
    """How long the oldest of them has been waiting."""


@dataclass(frozen=True, slots=True)
class OverdueFound(DomainEvent):
    """Due times pass undecided: nobody leads their shard, its leader hangs, or it can't keep up."""

    count: int
    is_capped: bool
    """There are at least so many."""
    oldest_schedule_id: UUID
    late_s: float
    """How long that one has been waiting."""


@dataclass(frozen=True, slots=True)
class OverdueEnded(DomainEvent):
    """Nothing is overdue any more."""


@dataclass(frozen=True, slots=True)
class ServiceFailed(DomainEvent):
    """A step of a service raised; it is tried again after a pause."""

    service: str
    error: str
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class ServiceRecovered(DomainEvent):
    service: str


@dataclass(frozen=True, slots=True)
class ClockObserved(DomainEvent):
    """How far this machine's clock is from the database's."""

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
    """How far the replica is behind; None: not known."""

    lag_s: float | None


@dataclass(frozen=True, slots=True)
class RedisFailed(DomainEvent):
    """Redis did not do what it was asked for; it is done without."""

    what: str
    """`hints`, `rates`, `cache`, `lease`, `transport` or `relay`."""
    error: str


# --- notifying -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NotificationDecided(DomainEvent):
    """Somebody is to be told something."""

    kind: str
    """Its type, such as `schedule.failed`."""
    rule_id: UUID
    schedule_id: UUID | None
    """None: it is about many."""


@dataclass(frozen=True, slots=True)
class NotificationDelivered(DomainEvent):
    """A message has arrived."""

    notification_id: UUID
    kind: str
    attempts: int


@dataclass(frozen=True, slots=True)
class NotificationFailed(DomainEvent):
    """A message did not arrive: it is tried again, or given up."""

    notification_id: UUID
    kind: str
    attempts: int
    error: str
    retry_in_s: float | None
    """None: never more."""


# --- measuring -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueuesMeasured(DomainEvent):
    """A scheduler looked how much waits for workers, in the whole database."""

    depths: Mapping[str, Mapping[Priority, int]]
    """By queue, over all hosts; a queue that is empty has zeros."""


@dataclass(frozen=True, slots=True)
class SchedulesCounted(DomainEvent):
    """A scheduler looked how many schedules are active, in the whole database, and over how many shards."""

    active: int
    shards: int


@dataclass(frozen=True, slots=True)
class AgentFailed(DomainEvent):
    """An agent did not do what an attempt asked of it."""

    status_code: str
    """Of its answer; `none`: there was none; `timeout`: none came in time."""
