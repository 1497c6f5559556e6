"""What a target does, and what it is told about the attempt it carries out."""

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from foliot.model.errors import FoliotError, Problem
from foliot.model.schedule import ScheduleSpec
from foliot.model.trace import execute_span


class LogLine(NamedTuple):
    """What the code said while it ran."""

    logged_ts: datetime
    level: str
    logger: str
    message: str


Report = Callable[[float, str], None]
"""Takes progress at once, from any thread; it is written down a moment later."""
Log = Callable[[LogLine], None]
"""Takes a line at once, from any thread; it is written down a moment later."""
KeepExternalId = Callable[[str], None]
"""Takes the id that the work has elsewhere; it is written down a moment later."""

PASSED_ON = "passed on"
"""The message of the CancelledError that stops an attempt because another is to go on with the work: what
runs elsewhere may be left to it."""
TIMED_OUT = "timed out"
"""The message of the CancelledError that stops an attempt which exceeded its timeout."""


def nowhere(*_anything: object) -> None:
    """For what nobody asked for."""


class _Done:
    """An awaitable that has nothing to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


# Not frozen: one is made for every attempt, and setting a frozen one's fields takes three times as long.
@dataclass(slots=True)
class Fire:
    """What the running code may know: which execution this is, and where to report progress."""

    execution_id: UUID
    """Equal on every attempt: use it as an idempotency key."""
    schedule_id: UUID
    schedule_name: str
    fire_ts: datetime
    """The nominal time, not the time of starting."""
    attempt: int
    _report: Report = field(default=nowhere, repr=False, compare=False)
    _traceparent: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    @property
    def traceparent(self) -> str:
        """The W3C trace context of this attempt: send it along, and what is called joins the trace."""
        if self._traceparent is None:
            return str(execute_span(self.execution_id, self.attempt))
        return self._traceparent()

    def progress(self, fraction: float, text: str = "") -> Awaitable[None]:
        """Say how far the work has come: a fraction from 0 to 1, and what is being done.

        It is told when this returns: an async function may await it, any other just calls it.
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
    """The schedule's arguments, with those of a manual trigger over them."""
    host_id: UUID
    log: Log = nowhere
    keep_external_id: KeepExternalId = nowhere


@dataclass(frozen=True, slots=True)
class AcceptedByAgent:
    """A result that is none yet: an agent has taken the work over and will report its end by itself."""

    external_id: str | None = None


class AttemptFailedError(FoliotError):
    """An attempt went wrong in a way that its target understands."""

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
        """Trying again would not help: the execution fails at once, whatever its budget."""
        self.retry_after_s = retry_after_s
        """The other side asked not to be tried sooner."""
        self.result = result
        """What there is to show all the same, such as the answer that was a refusal."""


class Target(Protocol):
    kind: str

    def check(self, spec: ScheduleSpec) -> list[Problem]:
        """What is wrong with a definition that names this target; asked before it is stored."""
        ...

    async def run(self, assignment: Assignment) -> Any:
        """Do the work: what it returns is the result, what it raises the error. Cancelled to stop it.

        When a cancelled run has returned, nothing of it goes on, unless it was PASSED_ON.
        """
        ...
