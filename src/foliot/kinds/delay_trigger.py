"""The `delay` trigger, and the SDK's `delay`."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field

from foliot.kinds.checking import checked
from foliot.model.kind import BaseTrigger, CliOption
from foliot.model.policy import Dst
from foliot.model.recurrence import Recurrence
from foliot.timing.duration import Duration, seconds_of
from foliot.timing.once import NoTimes

_NO_TIMES = NoTimes()


class DelayTrigger(BaseTrigger):
    """A fixed delay after the end of the last run."""

    display_name: ClassVar = "Delay after the last end"
    position: ClassVar = 5
    cli_options: ClassVar = (
        CliOption(
            "--delay", ("seconds",), "DURATION", "A fixed time after the end of the last run.", "duration"
        ),
    )
    counts_from_end: ClassVar = True

    kind: Literal["delay"] = "delay"
    seconds: float = Field(gt=0, le=1_000_000_000)

    def build(self, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:  # noqa: ARG002
        return _NO_TIMES

    def describe(self) -> str:
        amount = f"{self.seconds:.15g}"
        return f"{amount} second{'' if amount == '1' else 's'} after the last run has ended"

    @property
    def delay_s(self) -> float | None:
        return self.seconds


def delay(duration: Duration) -> DelayTrigger:
    """Return a trigger that fires a fixed time after the end of the last run."""
    return checked(DelayTrigger, seconds=seconds_of(duration, "/delay"))
