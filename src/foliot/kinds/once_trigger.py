"""The `once` trigger, and the SDK's `once`."""

from datetime import datetime, tzinfo
from typing import ClassVar, Literal

from foliot.kinds.checking import checked, countable
from foliot.model.errors import InvalidError
from foliot.model.kind import BaseTrigger, CliOption
from foliot.model.moment import Moment
from foliot.model.policy import Dst
from foliot.model.recurrence import Recurrence
from foliot.timing.once import Once


class OnceTrigger(BaseTrigger):
    """A single instant."""

    display_name: ClassVar = "Once"
    position: ClassVar = 3
    cli_options: ClassVar = (
        CliOption("--once", ("at",), "ISO_TIME|DURATION", "Once: at a time, or after a duration.", "instant"),
    )
    fires_once: ClassVar = True

    kind: Literal["once"] = "once"
    at: Moment

    def build(self, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:  # noqa: ARG002
        return Once(countable(self.at, "/trigger/at"))

    def describe(self) -> str:
        return f"Once, at {self.at.isoformat(sep=' ')}"

    @property
    def shown_zone(self) -> tzinfo | None:
        return self.at.tzinfo


def once(at: datetime) -> OnceTrigger:
    """Return a trigger that fires once, at the given time."""
    if not isinstance(at, datetime) or at.tzinfo is None:  # type: ignore[redundant-expr] # users err
        raise InvalidError.at("/at", "timezone", "must be a datetime with a zone", "datetime(…, tzinfo=UTC)")
    return checked(OnceTrigger, at=at)
