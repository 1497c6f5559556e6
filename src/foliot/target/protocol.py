"""What a target does, and what it is told about the attempt it carries out."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from foliot.model.errors import Problem
from foliot.model.schedule import ScheduleSpec

Progress = Callable[[float, str], Awaitable[None]]


async def _nowhere(_fraction: float, _text: str) -> None:
    """Progress that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Fire:
    """What the running code may know: which execution this is, and where to report progress."""

    execution_id: UUID
    """The same on every attempt: use it as an idempotency key."""
    schedule_id: UUID
    schedule_name: str
    fire_ts: datetime
    """The nominal time, not the time of starting."""
    attempt: int
    _report: Progress = field(default=_nowhere, repr=False, compare=False)

    async def progress(self, fraction: float, text: str = "") -> None:
        """Say how far the work has come: a fraction from 0 to 1, and what is being done."""
        if not 0 <= fraction <= 1:
            raise ValueError("fraction must be from 0 to 1")
        await self._report(fraction, text)


@dataclass(frozen=True, slots=True)
class Assignment:
    """An attempt to carry out."""

    fire: Fire
    spec: ScheduleSpec
    args: dict[str, Any]
    """The schedule's arguments, with those of a manual trigger over them."""


class Target(Protocol):
    kind: str

    def check(self, spec: ScheduleSpec) -> list[Problem]:
        """What is wrong with a definition that names this target; asked before it is stored."""
        ...

    async def run(self, assignment: Assignment) -> Any:
        """Do the work: what it returns is the result, what it raises the error. Cancelled to stop it."""
        ...
