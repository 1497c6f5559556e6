"""The interface between the engine and a store. `testing/conformance` tests it on every implementation."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from foliot.model.attempt import Claim, Settlement
from foliot.model.backfill import Backfill
from foliot.model.calendar import CalendarSpec
from foliot.model.event import CancelledExecution, FiredExecution, LostAttempt, SkippedExecution
from foliot.model.execution import AttemptRecord, Execution, LoggedLine, Status, TriggeredBy
from foliot.model.lease import Lease, Shard
from foliot.model.policy import Priority
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.backfill import BackfillStep
from foliot.planning.change import Author, PlannedChange
from foliot.planning.fire import Due, Firing, UnplannedSchedule
from foliot.planning.task_defaults import TaskDefaults

# --- leading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The state of a shard's lease, as the store read it."""

    lease: Lease | None
    """The caller's lease. None: the caller does not hold it."""
    store_now: datetime
    holder: str
    epoch: int
    is_contended: bool = False
    """The lease was stale at first, but another instance took it before the caller could lock it."""
    silent_s: float = 0.0
    """Seconds since the holder's last heartbeat, set when `take` was refused because the lease is fresh."""


class LeaseStore(Protocol):
    async def shard_count(self) -> int: ...

    async def take(self, shard: Shard, instance_id: str, ttl_s: float) -> LeaseState:
        """Become the leader if the last heartbeat is older than the TTL. The epoch grows by one.

        A caller with another proof that the leader is gone may pass a shorter TTL.
        """
        ...

    async def renew(self, lease: Lease) -> LeaseState:
        """Write a heartbeat if the epoch is still the caller's."""
        ...

    async def release(self, lease: Lease) -> None:
        """Release the lease at once. Does nothing if the caller does not hold it any more."""
        ...

    async def reshard(self, count: int, author: Author | None = None) -> int:
        """Change the number of shards. Every lease ends: all epochs grow, so firings in flight are fenced.

        Return the previous number. An unchanged number changes nothing.
        """
        ...


# --- firing ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadPosition:
    """Cursor of a paged load: the last schedule of the previous page."""

    run_ts: datetime
    schedule_id: UUID


class LoadRange(NamedTuple):
    """A lane to load: the schedules of one host and priority, from an instant on."""

    host_id: UUID
    priority: Priority
    from_ts: datetime


@dataclass(frozen=True, slots=True)
class Fired:
    """Result of a firing transaction."""

    fired: Sequence[FiredExecution]
    skipped: Sequence[SkippedExecution]
    refused: Sequence[Due]
    """Schedules that had changed since they were planned. Nothing was written for them."""
    has_replaced: bool = False
    """Running executions were asked to stop, because new ones replace them."""
    held: frozenset[UUID] = frozenset()
    """Fired executions that wait for another run of their schedule (overlap)."""
    cancelled: Sequence[CancelledExecution] = ()
    """Executions that were replaced and ended at once. Running ones end later."""
    waiting: Sequence[Due] = ()
    """Schedules with fire times that must not be skipped, while the limit of held executions is reached.
    They stay undecided and are retried soon."""


class FiringStore(Protocol):
    @property
    def commits_in_background(self) -> int:
        """How many firing transactions may be in flight while the next batch is planned."""
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
        """Return a page of the schedules that are due by `until`, soonest first."""
        ...

    async def load_hosts(self, *, after: UUID | None, limit: int) -> list[UUID]:
        """Return a page of all host ids, in order."""
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
        """Return up to `per_lane` schedules of each lane that are due by `until`, oldest first per lane."""
        ...

    async def load_some(self, shard: Shard, schedule_ids: Sequence[UUID]) -> list[Due]:
        """Return those of these schedules that belong to the shard and have a next fire time."""
        ...

    async def fire(self, lease: Lease, firings: Sequence[Firing], *, now: datetime) -> Fired:
        """Check the fence, advance the schedules that have not changed, and insert the executions.

        All in one transaction. Raises FencedError.
        """
        ...

    async def fire_events(self, lease: Lease, firings: Sequence[Firing], *, now: datetime) -> Fired:
        """Fire schedules whose target is an event, and write the events, in one transaction.

        Raises FencedError, and UnreadableTargetError with all schedules whose target can't be read.
        """
        ...

    async def park(self, lease: Lease, unplanned: Sequence[UnplannedSchedule], *, now: datetime) -> set[UUID]:
        """Put schedules that can't be planned into state `error` until their next try. Return their ids.

        Their fire times stay undecided. An instance that can plan them later, for example a newer version,
        fires them by misfire policy. Schedules that have changed meanwhile, or that are locked, are left
        unchanged.
        """
        ...


# --- schedules -------------------------------------------------------------------------------------


class Changed(NamedTuple):
    """A schedule after a change, and the executions that the change skipped or cancelled."""

    schedule: Schedule
    skipped: SkippedExecution | None = None
    """The fire time that was due already and does not fire any more. None: there was none."""
    cancelled: Sequence[CancelledExecution] = ()


class Triggered(NamedTuple):
    execution: Execution
    """The new execution. If it existed before, its current state."""
    schedule: Schedule
    is_new: bool = True
    cancelled: Sequence[CancelledExecution] = ()
    """Executions that were replaced by this one and ended at once."""
    is_staged: bool = False
    """Whether its event waits for an offset (`pending_events_sql.py`)."""


class ScheduleStore(Protocol):
    async def create(self, plan: Callable[[datetime], PlannedChange], author: Author) -> Schedule:
        """Store the change that `plan` returns for the store's time. Raises NameTakenError."""
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
        """Return a schedule. Raises NotFoundError.

        With a `host_id`, schedules of other hosts and deleted schedules are not found either.
        """
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
        """Run the schedule now, in addition to its fire times. Held, never skipped, if overlap forbids it.

        Return the execution's id. If an execution with `execution_id` exists already, nothing is done.
        """
        ...

    async def executions(self, schedule_id: UUID, *, limit: int = 500) -> list[Execution]:
        """Return the schedule's executions, latest fire time first."""
        ...

    async def execution(self, execution_id: UUID) -> Execution: ...


# --- executions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFilter:
    """Which executions to list. All given conditions must hold; of several values, any may match."""

    host_id: UUID | None = None
    schedule_ids: Sequence[UUID] = ()
    statuses: Sequence[Status] = ()
    queues: Sequence[str] = ()
    triggered_by: Sequence[TriggeredBy] = ()
    fire_from: datetime | None = None
    fire_to: datetime | None = None
    """Exclusive; `fire_from` is inclusive."""


class ChangedExecution(NamedTuple):
    execution: Execution
    cancelled: Sequence[CancelledExecution] = ()
    """Executions that ended at once: this execution, or those it replaced."""


class ExecutionStore(Protocol):
    """Commands and queries on single executions. With a `host_id`, those of other hosts are not found."""

    async def cancel(
        self, execution_id: UUID, author: Author, *, host_id: UUID | None = None
    ) -> ChangedExecution:
        """Cancel an execution. If it waits or is with an agent, it ends at once.

        A running one is asked to stop, and stays `running` until it has. Raises IllegalTransitionError if the
        execution has ended, NotFoundError.
        """
        ...

    async def retry(
        self, execution_id: UUID, author: Author, *, host_id: UUID | None = None
    ) -> ChangedExecution:
        """Run an unsuccessful execution again: the same execution, with a new retry budget.

        Held, never skipped, if overlap forbids it. Raises IllegalTransitionError, NotFoundError (also if its
        schedule is deleted).
        """
        ...

    async def get(self, execution_id: UUID, *, host_id: UUID | None = None) -> Execution: ...

    async def page(
        self, wanted: ExecutionFilter, *, after: UUID | None = None, limit: int = 50
    ) -> list[Execution]:
        """Return a page, latest first. `after` is the last execution of the previous page."""
        ...

    async def for_schedule(
        self,
        schedule_id: UUID,
        *,
        wanted: ExecutionFilter | None = None,
        after: UUID | None = None,
        limit: int = 50,
    ) -> list[Execution]:
        """Return a page of one schedule's executions, latest first. `after`: last of the previous page."""
        ...

    async def attempts(self, execution_id: UUID, *, host_id: UUID | None = None) -> list[AttemptRecord]:
        """Return all attempts, including the running one. A claim that was handed back is not an attempt."""
        ...

    async def logs(
        self,
        execution_id: UUID,
        *,
        after: tuple[int, int] | None = None,
        limit: int = 500,
        host_id: UUID | None = None,
    ) -> list[LoggedLine]:
        """Return the lines that the code logged, in order. `after`: the last (attempt, line) already read."""
        ...


# --- backfills -------------------------------------------------------------------------------------

PlanBackfill = Callable[[Schedule, datetime, datetime, int], BackfillStep]
"""(schedule, position, end, max number of times to fire) -> the next step of the backfill."""


@dataclass(frozen=True, slots=True)
class BackfillAdvance:
    """Result of one step of a backfill."""

    created: int = 0
    ready: int = 0
    """How many of the created executions may run now. The others are held."""
    has_moved: bool = False
    """The position moved, though perhaps no time fired."""
    is_over: bool = False
    has_events: bool = False
    """Events were written to the outbox."""
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
        """Request runs for the fire times in [from_ts, to_ts). Raises InvalidError, NotFoundError.

        If a backfill with `backfill_id` exists already, return it.
        """
        ...

    async def get(self, backfill_id: UUID, *, host_id: UUID | None = None) -> Backfill: ...

    async def for_schedule(
        self, schedule_id: UUID, *, host_id: UUID | None = None, after: UUID | None = None, limit: int = 50
    ) -> list[Backfill]:
        """Return a page of one schedule's backfills, latest first. `after`: last of the previous page."""
        ...

    async def cancel(
        self, backfill_id: UUID, author: Author, *, host_id: UUID | None = None
    ) -> CancelledBackfill:
        """Create no more executions, and cancel the waiting ones; running ones continue. Idempotent."""
        ...

    async def running(self, shard: Shard, *, after: UUID | None, limit: int) -> list[UUID]:
        """Return unfinished backfills of the shard's schedules, in order of their ids."""
        ...

    async def step(
        self, lease: Lease, backfill_id: UUID, plan: PlanBackfill, *, most: int, most_open: int
    ) -> BackfillAdvance:
        """Create the next executions and store the new position, in one transaction. Raises FencedError.

        Creates at most `most` executions, and keeps up to `most_open` backfill executions open per schedule.
        If `plan` raises, the exception propagates and nothing is written. A backfill of a deleted schedule
        is cancelled.
        """
        ...


# --- working ---------------------------------------------------------------------------------------


class ClaimScope(NamedTuple):
    """Which executions a worker claims from the database when brokers carry some priorities."""

    at_once: tuple[Priority, ...]
    others_after_s: float | None = None
    """Claim the other priorities after they were ready for this many seconds. None: never."""

    @property
    def is_empty(self) -> bool:
        return not self.at_once and self.others_after_s is None


@dataclass(frozen=True, slots=True)
class Renewal:
    lost: frozenset[UUID]
    """No longer held by this worker: the work must stop and can't be settled."""
    cancelled: frozenset[UUID]
    """Cancellation was requested."""


@dataclass(frozen=True, slots=True)
class Note:
    """Progress and log lines of a running execution since the last note."""

    execution_id: UUID
    attempt: int
    progress: str | None = None
    """JSON text."""
    lines: Sequence[tuple[int, Sequence[Any]]] = ()
    """(number, (time, level, logger, message)) of each line."""
    external_id: str | None = None
    """Id of the work in the system that runs it, for example a Celery task id."""


class NoteStore(Protocol):
    async def write(self, worker_id: str, notes: Sequence[Note]) -> None:
        """Store log lines, and progress and external id of attempts this worker still holds. Idempotent."""
        ...


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


class WorkStore(Protocol):
    async def queues(self, names: Sequence[str] | None) -> list[tuple[UUID, str]]:
        """Return (host_id, queue) of the queues that are not paused. `names` None: all queues."""
        ...

    async def pause_queue(self, host_id: UUID, queue: str, author: Author, *, is_paused: bool) -> None:
        """Pause or resume a queue. `queues` leaves out paused ones. The queue need not exist yet."""
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
        """Claim up to `limit` executions, most urgent first. Each goes to one worker only.

        `scope` None: all priorities. Executions of the schedule versions in `excluding` are left to other
        workers.
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
        """Claim those of these executions that are ready, in one of these queues, and not locked by another.

        Executions of the schedule versions in `excluding` are left to other workers.
        """
        ...

    async def renew(self, worker_id: str, claims: Sequence[Claim], lease_s: float) -> Renewal:
        """Extend all these leases in one statement."""
        ...

    async def settle(self, worker_id: str, settlements: Sequence[Settlement]) -> Settled:
        """Record how attempts ended. Return the executions that did not end as requested."""
        ...

    async def accept(
        self, worker_id: str, claim: Claim, *, lease_s: float, external_id: str | None
    ) -> HandoverResult:
        """Hand the execution to an agent, which must report its end within `lease_s` of the start.

        If its cancellation was requested, it is cancelled instead.
        """
        ...

    async def inactive_tasks(self) -> frozenset[str]:
        """Return the names of the task functions that an operator has disabled."""
        ...

    async def specs(self, versions: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], ScheduleSpec]:
        """Return the schedule definitions of these (schedule_id, aggregate_version) pairs."""
        ...


# --- dispatching -----------------------------------------------------------------------------------


class ClaimableExecution(NamedTuple):
    """An execution that may be claimed, and the queue it waits in."""

    execution_id: UUID
    attempt: int
    """Number of claims so far. An execution that waits again after a claim counts as new."""
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
        """Return executions that became ready in (since, until] and are unclaimed, in queues not paused.

        In order of readiness, only those behind `after`. `with_fired` False: leave out executions that are
        unchanged since they were fired; the scheduler that fired them dispatches them.
        """
        ...


# --- upkeep ----------------------------------------------------------------------------------------


class Released(NamedTuple):
    """Result of a scan of held executions."""

    released: int
    """How many may run now."""
    position: UUID | None
    """Cursor: the schedule to continue after. None: the scan reached the end."""


class Restarted(NamedTuple):
    """Result of a scan of `delay` schedules that wait for the end of a run."""

    schedule_ids: list[UUID]
    position: UUID | None
    """Cursor: the schedule to continue after. None: the scan reached the end."""


class UpkeepStore(Protocol):
    async def rescue(self, lease: Lease, *, limit: int, until: datetime | None = None) -> list[LostAttempt]:
        """Take back executions whose worker's lease expired: they are retried, fail, or become `unknown`.

        With `until`, the lease must also have ended before it, even if the database's clock is later.
        """
        ...

    async def release_held(self, lease: Lease, *, limit: int, after: UUID | None = None) -> Released:
        """Let held executions run as far as overlap now allows, oldest first.

        Scans the next `limit` schedules with held executions, in order of their ids.
        """
        ...

    async def restart_delays(self, lease: Lease, *, limit: int, after: UUID | None = None) -> Restarted:
        """Set the next time of `delay` schedules that have no run in progress, in case a settle missed it.

        Scans the next `limit` of these schedules, in order of their ids.
        """
        ...

    async def prune(self, lease: Lease, *, before: datetime, limit: int) -> int:
        """Delete up to `limit` finished executions older than `before`, with attempts and logs."""
        ...

    async def prune_events(self, lease: Lease, *, before: datetime, limit: int) -> int:
        """Delete old events that all consumers and the relay have passed, and unneeded consumer records.

        At most `limit` rows of each. Return the largest of the counts.
        """
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
    """The transport of each priority. None: the database."""
    lease_provider: Mapping[str, str | None] | None = None
    """What elects leaders in addition to the database. None: nothing."""


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
    """Retry policy of schedules that define none. None: the general default."""


@dataclass(frozen=True, slots=True)
class RegisteredTask:
    """What every process can read about a task function."""

    name: str
    args_schema: Mapping[str, Any]
    is_active: bool


class RegistryStore(Protocol):
    async def heartbeat(self, record: InstanceRecord) -> bool:
        """Publish the instance's state. Return whether the instance is asked to drain."""
        ...

    async def leave(self, instance_id: str) -> None: ...

    async def forget_stale(self, older_than_s: float) -> int: ...

    async def register_tasks(self, tasks: Sequence[TaskRecord]) -> None: ...

    async def task(self, name: str) -> RegisteredTask | None:
        """Return the record that a worker wrote about a task function. None: there is none."""
        ...

    async def task_defaults(self, names: Iterable[str]) -> dict[str, TaskDefaults]:
        """Return the defaults that schedules take from these task functions. Unknown names are left out."""
        ...

    async def task_names(self, *, limit: int = 1000) -> list[str]:
        """Return the names of the task functions that schedules may use."""
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
        """Create the calendar, or replace the one with that name. Raises InvalidError.

        With `replaces` False, raises NameTakenError instead of replacing. If `calendar_id` exists already,
        return that calendar.
        """
        ...

    async def delete(self, host_id: UUID, name: str, author: Author) -> None:
        """Delete a calendar. Raises NotFoundError, and CalendarInUseError while a schedule uses it."""
        ...

    async def get(self, host_id: UUID, name: str) -> CalendarRecord:
        """Return a calendar. Raises NotFoundError."""
        ...

    async def list_all(
        self, host_id: UUID, *, limit: int = 500, after_name: str = ""
    ) -> list[CalendarRecord]: ...

    async def names(self, host_id: UUID) -> frozenset[str]: ...

    async def revision(self) -> int:
        """Return a number that grows with every change of any calendar."""
        ...

    async def snapshot(self) -> dict[tuple[UUID, str], CalendarSpec]:
        """Return all calendars by (host_id, name)."""
        ...


@dataclass(frozen=True, slots=True)
class PublishedEvents:
    """Result of one step of publishing pending events."""

    count: int
    after: UUID | None = None
    """Cursor: the last schedule of this step. None: there are no more."""
    failures: Mapping[UUID, str] = field(default_factory=dict)
    """Schedules whose events can't be written, with the reason. Their events stay pending."""


class PendingEventStore(Protocol):
    async def publish(
        self, lease: Lease, *, limit: int, after: UUID | None = None, excluding: Collection[UUID] = ()
    ) -> PublishedEvents:
        """Assign offsets to pending events of this shard's schedules, in order of schedule ids.

        `after`: only schedules behind this one. `excluding`: skip these schedules. Raises FencedError.
        """
        ...


class Store(Protocol):
    """All stores over one database."""

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
        """Return the time of the store's clock, which is the cluster's time."""
        ...

    async def close(self) -> None: ...
