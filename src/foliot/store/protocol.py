"""What the engine asks of a store. The contract; `testing/conformance` proves it on every implementation."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from foliot.model.backfill import Backfill
from foliot.model.calendar import CalendarSpec
from foliot.model.event import CancelledExecution, FiredExecution, LostAttempt, SkippedExecution
from foliot.model.execution import AttemptRecord, Execution, LoggedLine, Status, TriggeredBy
from foliot.model.lease import Lease, Shard
from foliot.model.policy import Priority
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.backfill import BackfillStep
from foliot.planning.change import Author, PlannedChange
from foliot.planning.fire import Due, Firing, Unplanned
from foliot.planning.task_defaults import TaskDefaults

# --- leading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaseState:
    """How a lease stood when the store looked."""

    lease: Lease | None
    """Ours, if we got it or still have it."""
    store_now: datetime
    holder: str
    epoch: int
    is_contended: bool = False
    """It looked free, but another instance was quicker."""
    silent_s: float = 0.0
    """How long the holder had been silent when one that was not stale was refused."""


class LeaseStore(Protocol):
    async def shard_count(self) -> int: ...

    async def take(self, shard: Shard, instance_id: str, ttl_s: float) -> LeaseState:
        """Become the leader if the last heartbeat is older than the TTL; the epoch grows by one.

        Who has another proof that the leader is gone may ask with a shorter TTL.
        """
        ...

    async def renew(self, lease: Lease) -> LeaseState:
        """Heartbeat, on condition that the epoch is still ours."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give the lease up at once; nothing happens if it is not ours any more."""
        ...

    async def reshard(self, count: int, author: Author | None = None) -> int:
        """Change the number of shards. Every lease ends: all epochs grow, so no firing in flight survives.

        Returns how many there were; the same number again changes nothing.
        """
        ...


# --- firing ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadPosition:
    """Where a paged load goes on."""

    run_ts: datetime
    schedule_id: UUID


class LoadRange(NamedTuple):
    """The schedules of one host and priority, from an instant on."""

    host_id: UUID
    priority: Priority
    from_ts: datetime


@dataclass(frozen=True, slots=True)
class Fired:
    """What a firing transaction did."""

    fired: Sequence[FiredExecution]
    skipped: Sequence[SkippedExecution]
    refused: Sequence[Due]
    """Schedules that had changed since they were planned; nothing was written for them."""
    has_replaced: bool = False
    """Runs were asked to stop, for others to take their place."""
    held: frozenset[UUID] = frozenset()
    """Of those fired, the ones that wait for another run of their schedule."""
    cancelled: Sequence[CancelledExecution] = ()
    """Those that others took the place of, as far as that ended them at once."""
    waiting: Sequence[Due] = ()
    """Schedules with times that must not be skipped and find no room among the held executions: they stay
    undecided, and are tried again soon."""


class FiringStore(Protocol):
    @property
    def commits_in_background(self) -> int:
        """How many firing transactions may be under way while the next batch is planned."""
        ...

    async def load(
        self,
        shard: Shard,
        *,
        until: datetime,
        after: LoadPosition | None,
        limit: int,
        excluding: Sequence[UUID] = (),
    ) -> list[Due]:
        """Schedules that will be due by then, soonest first, a page at a time."""
        ...

    async def load_hosts(self, *, after: UUID | None, limit: int) -> list[UUID]:
        """All hosts in the order of their ids, a page at a time."""
        ...

    async def load_lanes(
        self,
        shard: Shard,
        lanes: Sequence[LoadRange],
        *,
        until: datetime,
        per_lane: int,
        excluding: Sequence[UUID] = (),
    ) -> list[Due]:
        """Up to `per_lane` schedules of each lane that are due by then, the oldest of the lane first."""
        ...

    async def load_some(self, shard: Shard, schedule_ids: Sequence[UUID]) -> list[Due]:
        """These schedules, as far as they are the shard's and will ever be due."""
        ...

    async def fire(self, lease: Lease, firings: Sequence[Firing], *, now: datetime) -> Fired:
        """The fence, the guarded advance and the rows, in one transaction. Raises FencedError."""
        ...

    async def fire_events(self, lease: Lease, firings: Sequence[Firing], *, now: datetime) -> Fired:
        """Fire schedules whose target is an event, and write the events, in one transaction.

        Raises FencedError, and UnreadableTargetError for all whose target can't be read.
        """
        ...

    async def park(self, lease: Lease, unplanned: Sequence[Unplanned], *, now: datetime) -> set[UUID]:
        """Put schedules that can't be planned into state `error` until they are tried again; their ids.

        Nothing is decided: whoever can plan them then, or a newer version that takes over, fires by misfire
        policy. Those that have changed meanwhile, or that somebody has locked, are left as they are.
        """
        ...


# --- schedules -------------------------------------------------------------------------------------


class Changed(NamedTuple):
    """A schedule after a change, and what became of its executions by it."""

    schedule: Schedule
    skipped: SkippedExecution | None = None
    """What was due already and does not fire any more."""
    cancelled: Sequence[CancelledExecution] = ()


class Triggered(NamedTuple):
    execution: Execution
    """As it was made; or as it stands, if it had been made before."""
    schedule: Schedule
    is_new: bool = True
    cancelled: Sequence[CancelledExecution] = ()
    """Those whose place it took, as far as that ended them at once."""
    is_staged: bool = False
    """Whether its event waits for an offset (`store.pending_events`)."""


class ScheduleStore(Protocol):
    async def create(self, plan: Callable[[datetime], PlannedChange], author: Author) -> Schedule:
        """Store what `plan` makes of the store's time. Raises NameTakenError."""
        ...

    async def change(
        self,
        schedule_id: UUID,
        plan: Callable[[Schedule, datetime], PlannedChange | None],
        author: Author,
        *,
        host_id: UUID | None = None,
        expected_version: int | None = None,
    ) -> Schedule:
        """Apply a planned change under the schedule's lock. Raises NotFoundError, StaleVersionError."""
        ...

    async def change_known(
        self,
        schedule_id: UUID,
        plan: Callable[[Schedule, datetime], PlannedChange | None],
        author: Author,
        *,
        host_id: UUID | None = None,
        expected_version: int | None = None,
    ) -> Changed:
        """Apply a planned change; return the schedule and the executions it skipped or cancelled."""
        ...

    async def get(self, schedule_id: UUID, *, host_id: UUID | None = None) -> Schedule:
        """Raises NotFoundError; with a `host_id` also for one of another host, or a deleted one."""
        ...

    async def find(self, host_id: UUID, name: str) -> Schedule | None: ...

    async def list_all(self, host_id: UUID, *, limit: int = 500, after_name: str = "") -> list[Schedule]: ...

    async def trigger(
        self,
        schedule_id: UUID,
        *,
        by: TriggeredBy,
        author: Author,
        args: Mapping[str, Any] | None = None,
        execution_id: UUID | None = None,
        host_id: UUID | None = None,
    ) -> UUID:
        """Run it now, besides its own times. Held, never skipped, when overlap forbids.

        With an `execution_id` that there is already, nothing more is done.
        """
        ...

    async def executions(self, schedule_id: UUID, *, limit: int = 500) -> list[Execution]:
        """Its ledger, latest fire time first."""
        ...

    async def execution(self, execution_id: UUID) -> Execution: ...


# --- executions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFilter:
    """Which executions to list: those of which everything given holds; of several values any may."""

    host_id: UUID | None = None
    schedule_ids: Sequence[UUID] = ()
    statuses: Sequence[Status] = ()
    queues: Sequence[str] = ()
    triggered_by: Sequence[TriggeredBy] = ()
    fire_from: datetime | None = None
    fire_to: datetime | None = None
    """Fire times before this; `fire_from` itself is included."""


class Steered(NamedTuple):
    execution: Execution
    cancelled: Sequence[CancelledExecution] = ()
    """What ended by it at once: the execution itself, or those whose place it took."""


class ExecutionStore(Protocol):
    """Single executions. With a `host_id`, those of other hosts are not found."""

    async def cancel(self, execution_id: UUID, author: Author, *, host_id: UUID | None = None) -> Steered:
        """End what waits or is with an agent; ask for what runs to be stopped: it stays `running` until then.

        Raises IllegalTransitionError for what has ended, NotFoundError.
        """
        ...

    async def retry(self, execution_id: UUID, author: Author, *, host_id: UUID | None = None) -> Steered:
        """Another try at what did not succeed: the same execution, with a fresh budget of retries.

        Held, never skipped, when overlap forbids. Raises IllegalTransitionError, NotFoundError (also for a
        schedule that is deleted).
        """
        ...

    async def get(self, execution_id: UUID, *, host_id: UUID | None = None) -> Execution: ...

    async def page(
        self, wanted: ExecutionFilter, *, after: UUID | None = None, limit: int = 50
    ) -> list[Execution]:
        """Latest first; `after` is the last execution of the page before."""
        ...

    async def for_schedule(
        self,
        schedule_id: UUID,
        *,
        wanted: ExecutionFilter | None = None,
        after: UUID | None = None,
        limit: int = 50,
    ) -> list[Execution]:
        """Executions of one schedule, latest first; `after` is the last execution of the page before."""
        ...

    async def attempts(self, execution_id: UUID, *, host_id: UUID | None = None) -> list[AttemptRecord]:
        """Every try at it, also the one under way; what was handed back was none."""
        ...

    async def logs(
        self,
        execution_id: UUID,
        *,
        after: tuple[int, int] | None = None,
        limit: int = 500,
        host_id: UUID | None = None,
    ) -> list[LoggedLine]:
        """What the code logged, in order; `after` is the (attempt, line) to go on from."""
        ...


# --- backfills -------------------------------------------------------------------------------------

PlanBackfill = Callable[[Schedule, datetime, datetime, int], BackfillStep]
"""From a schedule, the position, the end and the most times to fire, to what to do."""


@dataclass(frozen=True, slots=True)
class BackfillAdvance:
    """What a step of a backfill did."""

    created: int = 0
    ready: int = 0
    """How many of them may run at once; the others are held."""
    has_moved: bool = False
    """Times were seen to, though perhaps none of them fires."""
    is_over: bool = False
    has_events: bool = False
    """The outbox has grown by it."""
    fired: Sequence[FiredExecution] = ()


class CancelledBackfill(NamedTuple):
    backfill: Backfill
    cancelled: Sequence[CancelledExecution] = ()


class BackfillStore(Protocol):
    async def create(
        self,
        schedule_id: UUID,
        from_ts: datetime,
        to_ts: datetime,
        author: Author,
        *,
        backfill_id: UUID | None = None,
        host_id: UUID | None = None,
    ) -> Backfill:
        """Ask for the times in [from_ts, to_ts). Raises InvalidError, NotFoundError.

        With a `backfill_id` that there is already, that one is the answer.
        """
        ...

    async def get(self, backfill_id: UUID, *, host_id: UUID | None = None) -> Backfill: ...

    async def for_schedule(
        self, schedule_id: UUID, *, host_id: UUID | None = None, after: UUID | None = None, limit: int = 50
    ) -> list[Backfill]:
        """Those of one schedule, latest first; `after` is the last of the page before."""
        ...

    async def cancel(
        self, backfill_id: UUID, author: Author, *, host_id: UUID | None = None
    ) -> CancelledBackfill:
        """Make no more executions, and cancel those that wait; what runs goes on. Again is harmless."""
        ...

    async def running(self, shard: Shard, *, after: UUID | None, limit: int) -> list[UUID]:
        """Backfills of the shard's schedules that are not over, in order of their ids."""
        ...

    async def step(
        self, lease: Lease, backfill_id: UUID, plan: PlanBackfill, *, most: int, most_open: int
    ) -> BackfillAdvance:
        """Make the next executions, and keep the position, in one transaction. Raises FencedError.

        At most `most` of them, and no more than `most_open` open ones of backfills for one schedule. What
        `plan` raises is raised, and nothing is written. A backfill of a deleted schedule is cancelled.
        """
        ...


# --- working ---------------------------------------------------------------------------------------


# On the path of every execution, so named tuples: frozen dataclasses take three times as long to make.


class Claim(NamedTuple):
    """An execution that is this worker's for the time of its lease."""

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


class ClaimScope(NamedTuple):
    """What of its queues a worker claims from the database, when brokers carry some priorities."""

    at_once: tuple[Priority, ...]
    others_after_s: float | None = None
    """Of the other priorities, what has been ready for so long; None: nothing."""

    @property
    def is_empty(self) -> bool:
        return not self.at_once and self.others_after_s is None


class Settlement(NamedTuple):
    """How an attempt ended, and what becomes of its execution."""

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
    """The schedule's trigger is `delay`: the end of this run sets its next time."""
    schedule_name: str | None = None
    agent_url: str | None = None
    """Whom a failed attempt had asked."""
    ended_at: float | None = None
    """When the attempt ended, on the monotonic clock of whoever ran it; None: it did not run."""


@dataclass(frozen=True, slots=True)
class Renewal:
    lost: frozenset[UUID]
    """No longer ours: the work must stop and can't be settled."""
    cancelled: frozenset[UUID]
    """Somebody asked for it to stop."""


@dataclass(frozen=True, slots=True)
class Note:
    """What running work said of itself since the last note."""

    execution_id: UUID
    attempt: int
    progress: str | None = None
    """JSON text."""
    lines: Sequence[tuple[int, Sequence[Any]]] = ()
    """Numbered: (when, level, logger, message)."""
    external_id: str | None = None
    """What the work is called where it runs, such as the id of a Celery task."""


class NoteStore(Protocol):
    async def write(self, worker_id: str, notes: Sequence[Note]) -> None:
        """Keep progress and external id (of attempts that are still this worker's), and lines; the same again
        is harmless."""
        ...


@dataclass(frozen=True, slots=True)
class Settled:
    refused: frozenset[UUID] = frozenset()
    """Those that were no longer this worker's."""
    cancelled: frozenset[UUID] = frozenset()
    """Those that were to be tried again or handed back, and have ended: somebody had asked them to stop."""


@dataclass(frozen=True, slots=True)
class HandoverResult:
    is_open: bool
    """False: it was not ours any more, or somebody had asked for it to stop."""
    cancelled: Sequence[CancelledExecution] = ()
    """Itself, in the second case."""


class WorkStore(Protocol):
    async def queues(self, names: Sequence[str] | None) -> list[tuple[UUID, str]]:
        """The (host_id, queue)s there are that are not paused; all of them, or those with these names."""
        ...

    async def pause_queue(self, host_id: UUID, queue: str, author: Author, *, is_paused: bool) -> None:
        """Have a queue passed over by `queues`, or not any more; it need not exist yet."""
        ...

    async def claim(
        self,
        worker_id: str,
        queues: Sequence[tuple[UUID, str]],
        *,
        limit: int,
        lease_s: float,
        scope: ClaimScope | None = None,
        excluding: Sequence[tuple[UUID, int]] = (),
    ) -> list[Claim]:
        """Up to `limit` executions, most urgent first, each given to one worker only; all, or of a scope.

        Executions of the versions of schedules in `excluding` are left to other workers.
        """
        ...

    async def claim_some(
        self,
        worker_id: str,
        queues: Sequence[tuple[UUID, str]],
        execution_ids: Sequence[UUID],
        *,
        lease_s: float,
        excluding: Sequence[tuple[UUID, int]] = (),
    ) -> list[Claim]:
        """Of these, whatever is ready, waits in one of these queues, and is not being claimed by another.

        Executions of the versions of schedules in `excluding` are left to other workers.
        """
        ...

    async def renew(self, worker_id: str, claims: Sequence[Claim], lease_s: float) -> Renewal:
        """Extend the leases of all of them in one statement."""
        ...

    async def settle(self, worker_id: str, settlements: Sequence[Settlement]) -> Settled:
        """Record how attempts ended; what comes back are those that did not end as they were to."""
        ...

    async def accept(
        self, worker_id: str, claim: Claim, *, lease_s: float, external_id: str | None
    ) -> HandoverResult:
        """Leave it to an agent, which has so long from its start to report its end.

        One that somebody had asked to stop is cancelled instead.
        """
        ...

    async def inactive_tasks(self) -> frozenset[str]:
        """Names of task functions that an operator has switched off."""
        ...

    async def specs(self, versions: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], ScheduleSpec]:
        """The definitions these executions were fired with."""
        ...


# --- dispatching -----------------------------------------------------------------------------------


class ClaimableExecution(NamedTuple):
    """An execution that may be claimed, and where it waits."""

    execution_id: UUID
    attempt: int
    """How often it has been claimed: what waits again after a claim is something new."""
    queue: str
    priority: Priority
    ready_ts: datetime
    trace_context: str | None = None


class DispatchStore(Protocol):
    async def waiting(
        self,
        priorities: Sequence[Priority],
        *,
        since: datetime,
        until: datetime,
        after: ClaimableExecution | None = None,
        limit: int,
        with_fired: bool,
    ) -> list[ClaimableExecution]:
        """What became ready in (since, until] and was not claimed, in queues that are not paused.

        In order of readiness, those behind `after`. Without what is as it was fired, if so asked: whoever
        fired it sees to it.
        """
        ...


# --- upkeep ----------------------------------------------------------------------------------------


class Released(NamedTuple):
    """What a look at held executions came to."""

    released: int
    """How many may run now."""
    position: UUID | None
    """The schedule after which to go on; None: all were looked at."""


class Restarted(NamedTuple):
    """What a look at `delay` schedules that wait for an end came to."""

    schedule_ids: list[UUID]
    position: UUID | None
    """The schedule after which to go on; None: all were looked at."""


class UpkeepStore(Protocol):
    async def rescue(self, lease: Lease, *, limit: int, until: datetime | None = None) -> list[LostAttempt]:
        """Executions whose worker's lease ran out: tried again, failed, or `unknown`.

        With `until`, only leases that ended before it, whatever the database's clock says.
        """
        ...

    async def release_held(self, lease: Lease, *, limit: int, after: UUID | None = None) -> Released:
        """Let held executions run as far as overlap now allows, oldest first.

        Looks at the next `limit` schedules that hold any, in the order of their ids.
        """
        ...

    async def restart_delays(self, lease: Lease, *, limit: int, after: UUID | None = None) -> Restarted:
        """Give `delay` schedules without a run under way their next time, should a settle have missed it.

        Looks at the next `limit` such schedules, in the order of their ids.
        """
        ...

    async def prune(self, lease: Lease, *, before: datetime, limit: int) -> int:
        """Delete settled history older than this, a bounded number of rows."""
        ...

    async def prune_events(self, lease: Lease, *, before: datetime, limit: int) -> int:
        """Delete events older than this that all consumers and the relay have passed, and what consumers have
        noted and need no more; each a bounded number of rows. The largest of these numbers."""
        ...


# --- registry --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    instance_id: str
    hostname: str
    pid: int
    roles: tuple[str, ...]
    version: str
    capacity: int = 0
    load: int = 0
    queues: tuple[str, ...] | None = None
    known_tasks: tuple[str, ...] | None = None
    is_leader: bool = False
    clock_offset_s: float | None = None
    transports: Mapping[str, Mapping[str, str | None]] | None = None
    """How each priority travels; None: through the database."""
    lease_provider: Mapping[str, str | None] | None = None
    """What decides about leaders beside the database; None: nothing."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    name: str
    display_name: str
    description: str
    handler_path: str
    handler_type: str
    queue: str | None
    default_timeout_seconds: float
    args_schema: Mapping[str, Any]
    is_system: bool = False
    default_retry: Mapping[str, Any] | None = None
    """For schedules that leave theirs out; None: the usual default."""


@dataclass(frozen=True, slots=True)
class RegisteredTask:
    """What every process can know of a task function."""

    name: str
    args_schema: Mapping[str, Any]
    is_active: bool


class RegistryStore(Protocol):
    async def heartbeat(self, record: InstanceRecord) -> bool:
        """Say what others may know; returns whether the instance is asked to drain."""
        ...

    async def leave(self, instance_id: str) -> None: ...

    async def forget_stale(self, older_than_s: float) -> int: ...

    async def register_tasks(self, tasks: Sequence[TaskRecord]) -> None: ...

    async def task(self, name: str) -> RegisteredTask | None:
        """What a worker has written about a task function."""
        ...

    async def task_defaults(self, names: Iterable[str]) -> dict[str, TaskDefaults]:
        """What schedules of these task functions take from them; unknown names are left out."""
        ...

    async def task_names(self, *, limit: int = 1000) -> list[str]:
        """Of those that schedules may name."""
        ...


# --- calendars -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CalendarRecord:
    calendar_id: UUID
    host_id: UUID
    spec: CalendarSpec
    updated_by: str | None
    created_ts: datetime
    updated_ts: datetime


class CalendarStore(Protocol):
    async def put(
        self,
        host_id: UUID,
        spec: CalendarSpec,
        author: Author,
        *,
        replaces: bool = True,
        calendar_id: UUID | None = None,
    ) -> CalendarRecord:
        """Make the calendar, or replace the one of that name. Raises InvalidError.

        Where it must not replace one, NameTakenError. The id of one that there is gives that one back.
        """
        ...

    async def delete(self, host_id: UUID, name: str, author: Author) -> None:
        """Raises NotFoundError, and CalendarInUseError while a schedule names it."""
        ...

    async def get(self, host_id: UUID, name: str) -> CalendarRecord:
        """Raises NotFoundError."""
        ...

    async def list_all(
        self, host_id: UUID, *, limit: int = 500, after_name: str = ""
    ) -> list[CalendarRecord]: ...

    async def names(self, host_id: UUID) -> frozenset[str]: ...

    async def revision(self) -> int:
        """A number that grows with every change of any calendar."""
        ...

    async def snapshot(self) -> dict[tuple[UUID, str], CalendarSpec]:
        """Every calendar there is, by its host and its name."""
        ...


@dataclass(frozen=True, slots=True)
class PublishedEvents:
    """What a step has done with pending events."""

    count: int
    after: UUID | None = None
    """The last schedule of this step, if there may be more behind it."""
    failures: Mapping[UUID, str] = field(default_factory=dict)
    """Schedules whose events can't be written, and why. They stay pending."""


class PendingEventStore(Protocol):
    async def publish(
        self, lease: Lease, *, limit: int, after: UUID | None = None, excluding: Collection[UUID] = ()
    ) -> PublishedEvents:
        """Give offsets to pending events of this shard's schedules, in the order of schedule ids.

        `after`: only of schedules behind this one. `excluding`: not of these. Raises FencedError.
        """
        ...


class Store(Protocol):
    """All parts, over one database."""

    @property
    def leases(self) -> LeaseStore: ...
    @property
    def firing(self) -> FiringStore: ...
    @property
    def schedules(self) -> ScheduleStore: ...
    @property
    def executions(self) -> ExecutionStore: ...
    @property
    def backfills(self) -> BackfillStore: ...
    @property
    def pending_events(self) -> PendingEventStore: ...
    @property
    def work(self) -> WorkStore: ...
    @property
    def dispatching(self) -> DispatchStore: ...
    @property
    def notes(self) -> NoteStore: ...
    @property
    def upkeep(self) -> UpkeepStore: ...
    @property
    def registry(self) -> RegistryStore: ...
    @property
    def calendars(self) -> CalendarStore: ...

    async def now(self) -> datetime:
        """The store's clock: the cluster's time."""
        ...

    async def close(self) -> None: ...
