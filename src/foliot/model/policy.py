"""The policies of a schedule and their defaults."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from foliot.model.document import Document


class Priority(StrEnum):
    """How soon an execution must start once it is ready."""

    HIGH = "high", 1.0
    MEDIUM = "medium", 5.0
    LOW = "low", 30.0

    # A plain attribute: firing reads it for every row, and a dict lookup of an enum member takes as long as
    # making the row.
    sla_s: float

    def __new__(cls, value: str, sla_s: float = 0) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.sla_s = sla_s
        return member


# A dict by text: calling the enum takes ten times as long.
_PRIORITIES = {str(each): each for each in Priority}


def priority_from(text: str) -> Priority:
    """Return the priority that a stored row names; MEDIUM if only a newer version knows it."""
    return _PRIORITIES.get(text, Priority.MEDIUM)


class MisfirePolicy(StrEnum):
    FIRE_ONCE = "fire_once"
    FIRE_ALL = "fire_all"
    SKIP = "skip"


class Misfire(Document):
    """What happens to times that are late, or of which several are due at once."""

    policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE
    grace_seconds: float = Field(default=3600, ge=0, le=10 * 366 * 86400)
    """Times later than this never fire."""
    max_catchup: int = Field(default=100, ge=1, le=10_000)
    """How many of the latest missed times `fire_all` fires."""


class OverlapPolicy(StrEnum):
    SKIP = "skip"
    QUEUE = "queue"
    CANCEL_RUNNING = "cancel_running"
    ALLOW = "allow"


class Overlap(Document):
    """What happens when a time is due while `max_instances` executions are still open."""

    policy: OverlapPolicy = OverlapPolicy.SKIP
    max_instances: int = Field(default=1, ge=1, le=10_000)
    max_queued: int = Field(default=1000, ge=1, le=10_000)
    """How many executions may be held until others end; beyond it due times are skipped."""


class RetryPolicy(Document):
    """How often and how patiently a failed attempt is tried again."""

    max_attempts: int = Field(default=3, ge=1, le=100)
    initial_delay_seconds: float = Field(default=1, ge=0, le=86400)
    multiplier: float = Field(default=2, ge=1, le=100)
    max_delay_seconds: float = Field(default=30, ge=0, le=7 * 86400)
    jitter: bool = True

    @model_validator(mode="after")
    def _cap_above_start(self) -> Self:
        if self.max_delay_seconds < self.initial_delay_seconds:
            raise ValueError("max_delay_seconds must be at least initial_delay_seconds")
        return self


class Delivery(StrEnum):
    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


class DstGap(StrEnum):
    SHIFT = "shift"
    SKIP = "skip"


class DstRepeat(StrEnum):
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Dst(Document):
    """What a fixed wall-clock time does on the days when clocks are changed."""

    gap: DstGap = DstGap.SHIFT
    repeat: DstRepeat = DstRepeat.FIRST


class Window(Document):
    """The days and hours in which due times may fire; outside they are skipped."""

    days_of_week: tuple[Annotated[int, Field(ge=1, le=7)], ...] = (1, 2, 3, 4, 5, 6, 7)
    """1 = Monday … 7 = Sunday."""
    hours_of_day: tuple[Annotated[int, Field(ge=0, le=23)], ...] = tuple(range(24))
    timezone: str = "UTC"

    @field_validator("days_of_week", "hours_of_day")
    @classmethod
    def _some_sorted(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value:
            raise ValueError("must name at least one; leave it out for all")
        return tuple(sorted(set(value)))
