"""What the engine asks of a store. The contract; `testing/conformance` proves it on every implementation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from foliot.model.event import FiredExecution, SkippedExecution
from foliot.model.execution import Execution, Status, TriggeredBy
from foliot.model.lease import Lease, Shard
from foliot.model.policy import Priority
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import Author, Change
from foliot.planning.fire import Due, Firing

# --- leading ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Standing:
    """How a lease stood when the store looked."""

    lease: Lease | None
    """Ours, if we got it or still have it."""
    store_now: datetime
    holder: str
    epoch: int
    is_contended: bool = False
    """It looked free, but another instance was quicker."""


class LeaseStore(Protocol):
    async def shard_count(self) -> int: ...

    async def take(self, shard: Shard, instance_id: str, ttl_s: float) -> Standing:
        """Become the leader if the last heartbeat is older than the TTL; the epoch grows by one."""
        ...

    async def renew(self, lease: Lease) -> Standing:
        """Heartbeat, on condition that the epoch is still ours."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give the lease up at once; nothing happens if it is not ours any more."""
        ...

    async def reshard(self, count: int) -> None:
        """Change the number of shards. Every lease ends: all epochs grow, so no firing in flight survives."""
        ...


# --- firing ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """Where a paged load goes on."""

    run_ts: datetime
    schedule_id: UUID


@dataclass(frozen=True, slots=True)
class Fired:
    """What a firing transaction did."""

    fired: Sequence[FiredExecution]
    skipped: Sequence[SkippedExecution]
    refused: Sequence[Due]
    """Schedules that had changed since they were planned; nothing was written for them."""


class FiringStore(Protocol):
    @property
    def commits_in_background(self) -> int:
        """How many firing transactions may be under way while the next batch is planned."""
        ...

    async def load(self, shard: Shard, *, until: datetime, after: Position | None, limit: int) -> list[Due]:
        """Schedules that will be due by then, soonest first, a page at a time."""
        ...

    async def load_backlog(self, shard: Shard, *, until: datetime, per_host: int) -> list[Due]:
        """The first of every host and priority, for a backlog larger than a page."""
        ...

    async def load_some(self, shard: Shard, schedule_ids: Sequence[UUID]) -> list[Due]:
        """These schedules, as far as they are the shard's and will ever be due."""
        ...

    async def fire(self, lease: Lease, firings: Sequence[Firing], *, now: datetime) -> Fired:
        """The fence, the guarded advance and the rows, in one transaction. Raises FencedError."""
        ...

    async def park(self, lease: Lease, due: Due, reason: str) -> None:
        """Put a schedule that can't be planned into state `error`, unless it has changed since."""
        ...


# --- schedules -------------------------------------------------------------------------------------


class ScheduleStore(Protocol):
    async def create(self, plan: Callable[[datetime], Change], author: Author) -> Schedule:
        """Store what `plan` makes of the store's time. Raises NameTakenError."""
        ...

    async def change(
        self,
        schedule_id: UUID,
        plan: Callable[[Schedule, datetime], Change | None],
        author: Author,
        *,
        host_id: UUID | None = None,
        expected_version: int | None = None,
    ) -> Schedule:
        """Apply a planned change under the schedule's lock. Raises NotFoundError, StaleVersionError."""
        ...

    async def get(self, schedule_id: UUID) -> Schedule: ...

    async def find(self, host_id: UUID, name: str) -> Schedule | None: ...

    async def list_all(self, host_id: UUID, *, limit: int = 500, after_name: str = "") -> list[Schedule]: ...

    async def trigger(
        self,
        schedule_id: UUID,
        *,
        by: TriggeredBy,
        user: str | None,
        args: Mapping[str, Any] | None = None,
        execution_id: UUID | None = None,
    ) -> UUID:
        """Run it now, besides its own times. Held, never skipped, when overlap forbids."""
        ...

    async def executions(self, schedule_id: UUID, *, limit: int = 500) -> list[Execution]:
        """Its ledger, latest fire time first."""
        ...

    async def execution(self, execution_id: UUID) -> Execution: ...


# --- working ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
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


@dataclass(frozen=True, slots=True)
class Settlement:
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


@dataclass(frozen=True, slots=True)
class Renewal:
    lost: frozenset[UUID]
    """No longer ours: the work must stop and can't be settled."""
    cancelled: frozenset[UUID]
    """Somebody asked for it to stop."""


class WorkStore(Protocol):
    async def queues(self, names: Sequence[str] | None) -> list[tuple[UUID, str]]:
        """The (host_id, queue)s there are that are not paused; all of them, or those with these names."""
        ...

    async def claim(
        self, worker_id: str, queues: Sequence[tuple[UUID, str]], *, limit: int, lease_s: float
    ) -> list[Claim]:
        """Up to `limit` executions, most urgent first, each given to one worker only."""
        ...

    async def renew(self, worker_id: str, claims: Sequence[Claim], lease_s: float) -> Renewal:
        """Extend the leases of all of them in one statement."""
        ...

    async def settle(self, worker_id: str, settlements: Sequence[Settlement]) -> frozenset[UUID]:
        """Record how attempts ended; the ids of those that were no longer this worker's come back."""
        ...

    async def progress(self, worker_id: str, claim: Claim, fraction: float, text: str) -> None:
        """Note how far running work has come; ignored when it is no longer this worker's."""
        ...

    async def specs(self, versions: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], ScheduleSpec]:
        """The definitions these executions were fired with."""
        ...


# --- upkeep ----------------------------------------------------------------------------------------


class UpkeepStore(Protocol):
    async def rescue(self, lease: Lease, *, limit: int) -> dict[UUID, Status]:
        """Executions whose worker's lease ran out: tried again, failed, or `unknown`."""
        ...

    async def release_held(self, lease: Lease, *, limit: int) -> int:
        """Let held executions run as far as overlap now allows, oldest first."""
        ...

    async def restart_delays(self, lease: Lease, *, limit: int) -> list[UUID]:
        """Give `delay` schedules without a run under way their next time, should a settle have missed it."""
        ...

    async def prune(self, lease: Lease, *, before: datetime, limit: int) -> int:
        """Delete settled history older than this, a bounded number of rows."""
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


class RegistryStore(Protocol):
    async def heartbeat(self, record: InstanceRecord) -> None: ...

    async def leave(self, instance_id: str) -> None: ...

    async def forget_stale(self, older_than_s: float) -> int: ...

    async def register_tasks(self, tasks: Sequence[TaskRecord]) -> None: ...


class Store(Protocol):
    """The six parts, over one database."""

    @property
    def leases(self) -> LeaseStore: ...
    @property
    def firing(self) -> FiringStore: ...
    @property
    def schedules(self) -> ScheduleStore: ...
    @property
    def work(self) -> WorkStore: ...
    @property
    def upkeep(self) -> UpkeepStore: ...
    @property
    def registry(self) -> RegistryStore: ...

    async def now(self) -> datetime:
        """The store's clock: the cluster's time."""
        ...

    async def close(self) -> None: ...
