"""What runs targets: the protocol, what a runner is given when it is opened, and what for each attempt."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID

from foliot.model.errors import FoliotError, Problem
from foliot.model.kind import TARGETS
from foliot.model.schedule import ScheduleSpec
from foliot.model.trace import execute_span
from foliot.timing.clock import Clock

if TYPE_CHECKING:
    from httpcore2 import AsyncConnectionPool

    from foliot.access.address_guard import AddressGuard
    from foliot.access.secrets import SecretResolver
    from foliot.brokers.celery_app import CeleryApp
    from foliot.kinds.function_target import Isolation, TaskRegistry
    from foliot.model.event import Observer


class LogLine(NamedTuple):
    """One log line of a running execution."""

    logged_ts: datetime
    level: str
    logger: str
    message: str


Report = Callable[[float, str], None]
"""Reports progress from any thread. Returns at once; the database is written a moment later."""
Log = Callable[[LogLine], None]
"""Logs a line from any thread. Returns at once; the database is written a moment later."""
KeepExternalId = Callable[[str], None]
"""Stores the id that the work has in another system. The database is written a moment later."""

PASSED_ON = "passed on"
"""Message of the CancelledError that stops an attempt which another attempt will continue. Work that runs in
another system may be left running for it."""
TIMED_OUT = "timed out"
"""Message of the CancelledError that stops an attempt which exceeded its timeout."""


def nowhere(*_anything: object) -> None:
    """Discard the arguments. The default for callbacks that are not needed."""


class _Done:
    """An awaitable that is already done."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


# Not frozen: one is created per attempt, and setting the fields of a frozen one takes three times as long.
@dataclass(slots=True)
class Fire:
    """What the running code may know: which execution this is, and how to report progress."""

    execution_id: UUID
    """Equal on every attempt: use it as an idempotency key."""
    schedule_id: UUID
    schedule_name: str
    fire_ts: datetime
    """The nominal fire time, not the time at which the attempt started."""
    attempt: int
    _report: Report = field(default=nowhere, repr=False, compare=False)
    _traceparent: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    @property
    def traceparent(self) -> str:
        """The W3C trace context of this attempt. Send it with your calls, and they join the trace."""
        if self._traceparent is None:
            return str(execute_span(self.execution_id, self.attempt))
        return self._traceparent()

    def progress(self, fraction: float, text: str = "") -> Awaitable[None]:
        """Report progress: a fraction from 0 to 1, and a text that says what is being done.

        It has been reported when this returns. Async functions may await it; others just call it.
        """
        if not 0 <= fraction <= 1:
            raise ValueError("fraction must be from 0 to 1")
        self._report(fraction, text)
        return _Done()


class Assignment(NamedTuple):
    """An attempt to carry out."""

    fire: Fire
    spec: ScheduleSpec
    args: dict[str, Any]
    """The schedule's arguments, overridden by those of a manual trigger."""
    host_id: UUID
    log: Log = nowhere
    keep_external_id: KeepExternalId = nowhere


@dataclass(frozen=True, slots=True)
class AcceptedByAgent:
    """Returned instead of a result: an agent has accepted the work and will report its end later."""

    external_id: str | None = None


class AttemptFailedError(FoliotError):
    """A failure of an attempt for which the target knows whether and when to retry."""

    def __init__(
        self,
        message: str,
        *,
        is_permanent: bool = False,
        retry_after_s: float | None = None,
        result: Any = None,
    ) -> None:
        super().__init__(message)
        self.is_permanent = is_permanent
        """Retrying would not help. The execution fails at once, even if retries are left."""
        self.retry_after_s = retry_after_s
        """Minimum delay in seconds before the retry, as the other side asked. None: no minimum."""
        self.result = result
        """A result to store in spite of the failure, for example the response that was an error."""


class TargetRunner(Protocol):
    """Checks definitions and runs attempts of one kind of target."""

    def check(self, spec: ScheduleSpec) -> list[Problem]:
        """Return the problems of a definition with this target. Called before it is stored."""
        ...

    async def run(self, assignment: Assignment) -> Any:
        """Do the work. Returns the result, or raises the error. Cancelled to stop it.

        When a cancelled run has returned, none of its work goes on, unless it was PASSED_ON.
        """
        ...

    async def close(self) -> None:
        """Free what it holds. Called when no attempt runs any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerContext:
    """What a process offers to the runners of its targets."""

    clock: Clock
    secrets: "SecretResolver"
    guard: "AddressGuard"
    """Decides which addresses requests may go to."""
    tasks: "TaskRegistry"
    isolation: "Isolation | None" = None
    """Runs functions in separate processes. None: they run in threads."""
    http_pool: "AsyncConnectionPool | None" = None
    celery: "CeleryApp | None" = None
    """The Celery application; None: none is configured."""
    observer: "Observer"


def open_runners(context: RunnerContext) -> dict[str, TargetRunner]:
    """Return a runner for every kind of target that this process can run."""
    opened = {name: kind.open_runner(context) for name, kind in TARGETS.items()}
    return {name: runner for name, runner in opened.items() if runner is not None}


def available_targets(runners: Mapping[str, TargetRunner]) -> frozenset[str]:
    """Return the kinds of target that a process with these runners can fire and run."""
    return frozenset(name for name, kind in TARGETS.items() if kind.is_event or name in runners)
