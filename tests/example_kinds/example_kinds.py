"""A trigger kind whose pauses grow, and a target kind that appends a line to a file."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from foliot.kinds.target_protocol import Assignment, RunnerContext
from foliot.model.errors import Problem
from foliot.model.kind import BaseTarget, BaseTrigger, CliOption
from foliot.model.policy import Dst
from foliot.model.schedule import ScheduleSpec


class GrowingTrigger(BaseTrigger):
    """Fires after a pause, then after longer and longer ones."""

    display_name: ClassVar = "Growing pauses"
    cli_options: ClassVar = (
        CliOption(
            "--growing", ("seconds",), "DURATION", "After this pause, then after longer ones.", "duration"
        ),
    )
    counts_from_start: ClassVar = True

    kind: Literal["growing"] = "growing"
    seconds: float = Field(gt=0, le=3600, title="First pause", description="Seconds until the first run.")
    factor: int = Field(default=2, ge=2, le=10, title="Factor", description="How much a pause grows.")

    def build(self, *, dst: Dst, anchor: datetime, key: str) -> "GrowingTimes":
        return GrowingTimes(anchor, self.seconds, self.factor)

    def describe(self) -> str:
        return f"{self.seconds:g} seconds after the start, then {self.factor} times as long each time"


class GrowingTimes:
    """The times of a GrowingTrigger, up to a thousand years."""

    def __init__(self, anchor: datetime, seconds: float, factor: int) -> None:
        self._times = []
        passed, pause = 0.0, seconds
        while passed + pause < 1000 * 365 * 86400:
            passed += pause
            pause *= factor
            self._times.append(anchor + timedelta(seconds=passed))

    def after(self, instant: datetime) -> datetime | None:
        return next((time for time in self._times if time > instant), None)

    def before(self, instant: datetime) -> datetime | None:
        return next((time for time in reversed(self._times) if time < instant), None)

    def count(self, first: datetime, last: datetime) -> int:
        return sum(first <= time <= last for time in self._times)


class AppendTarget(BaseTarget):
    """A line that is appended to a file."""

    display_name: ClassVar = "Line in a file"
    cli_options: ClassVar = (
        CliOption(
            "--append", ("path", "line"), "FILE LINE", "Append a line to a file; --arg names follow it."
        ),
    )
    arguments_field: ClassVar = "names"

    kind: Literal["append"] = "append"
    path: str = Field(min_length=1, title="File")
    line: str = Field(title="Line")
    names: dict[str, str] = Field(default_factory=dict)

    def describe(self) -> str:
        return f"append to {Path(self.path).name}"

    @classmethod
    def open_runner(cls, context: RunnerContext) -> "Appender":
        return Appender()


class Appender:
    """Runs AppendTargets."""

    def check(self, spec: ScheduleSpec) -> list[Problem]:
        target = spec.target
        assert isinstance(target, AppendTarget)
        if Path(target.path).is_absolute():
            return []
        return [Problem("/target/path", "relative", "is not an absolute path", "a path that begins with /")]

    async def run(self, assignment: Assignment) -> dict[str, Any]:
        target = assignment.spec.target
        assert isinstance(target, AppendTarget)
        words = (f"{name}={text}" for name, text in assignment.args.items())
        with Path(target.path).open("a", encoding="utf-8") as file:  # noqa: ASYNC230 - a line is short
            file.write(f"{target.line} {' '.join(words)}".strip() + "\n")
        return {"attempt": assignment.fire.attempt}

    async def close(self) -> None:
        """Do nothing: it holds nothing."""
