"""When a schedule fires: the five kinds of trigger, as users write them.

Structure only. `planning.admit` checks whether a trigger makes sense (the zone exists, the expression fires
at some time) by compiling it.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from foliot.model.document import Document
from foliot.model.moment import Moment

MAX_FREQUENCY = 1_000_000_000


class FrequencyUnit(StrEnum):
    SECONDS = "SECONDS"
    MINUTES = "MINUTES"
    HOURS = "HOURS"
    DAYS = "DAYS"
    WEEKS = "WEEKS"
    MONTHS = "MONTHS"


_SECONDS_OF = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}


class IntervalTrigger(Document):
    """Every so often, counted from the schedule's start: `start_ts` + k × the interval.

    Seconds, minutes and hours are elapsed time. Days and longer are calendar steps in `timezone`.
    """

    kind: Literal["interval"] = "interval"
    frequency_unit: FrequencyUnit
    frequency_time: int = Field(ge=1, le=MAX_FREQUENCY)
    timezone: str = "UTC"

    @model_validator(mode="before")
    @classmethod
    def _from_parts(cls, value: Any) -> Any:
        """Accept `{"hours": 1, "minutes": 30}` too, and convert it to one unit and one number."""
        if not isinstance(value, dict):
            return value
        parts = {name: value[name] for name in (*_SECONDS_OF, "months") if name in value}
        if not parts:
            return value
        if "frequency_unit" in value or "frequency_time" in value:
            raise ValueError("give either frequency_unit and frequency_time, or hours, minutes, …; not both")
        for name, amount in parts.items():
            if not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
                # "field" makes `problems_of` point at the part, not at the whole trigger.
                raise PydanticCustomError("number_type", "must be a whole number, 0 or more", {"field": name})
        rest = {name: item for name, item in value.items() if name not in parts}
        return {**rest, **_one_unit({name: amount for name, amount in parts.items() if amount})}


def _one_unit(parts: dict[str, int]) -> dict[str, Any]:
    if "months" in parts:
        if len(parts) > 1:
            raise ValueError("months can't be combined with other units: months differ in length")
        return {"frequency_unit": "MONTHS", "frequency_time": parts["months"]}
    # Days are calendar days only if no finer unit is given: 1 day 12 hours is 36 hours.
    finest = min(parts, key=lambda name: _SECONDS_OF[name], default="seconds")
    total = sum(amount * _SECONDS_OF[name] for name, amount in parts.items())
    return {"frequency_unit": finest.upper(), "frequency_time": total // _SECONDS_OF[finest]}


_CRON_FIELDS = ("second", "minute", "hour", "day", "month", "day_of_week")


class CronTrigger(Document):
    """A cron expression: 5 fields, or 6 with seconds first, or `@daily` and its kin."""

    kind: Literal["cron"] = "cron"
    expression: str = Field(min_length=1, max_length=500)
    timezone: str = "UTC"

    @model_validator(mode="before")
    @classmethod
    def _from_fields(cls, value: Any) -> Any:
        """Accept `{"fields": {"hour": "*/2", "minute": "0"}}` too, and convert it to an expression."""
        if not isinstance(value, dict) or "fields" not in value:
            return value
        if "expression" in value:
            raise ValueError("give either an expression or fields, not both")
        fields = value["fields"]
        if not isinstance(fields, dict) or not fields:
            raise ValueError(f"fields must be an object with some of: {', '.join(_CRON_FIELDS)}")
        for name, text in fields.items():
            if name not in _CRON_FIELDS:
                raise ValueError(f"fields has no {name!r}; it may have: {', '.join(_CRON_FIELDS)}")
            if isinstance(text, bool) or not isinstance(text, str | int) or not str(text).strip():
                raise ValueError(f'fields.{name} must be text such as "*/2"')
            if len(str(text).split()) != 1:
                raise ValueError(f"fields.{name} must be a single cron field without spaces")
        rest = {name: item for name, item in value.items() if name != "fields"}
        return {**rest, "expression": _expression(fields)}


def _expression(fields: dict[str, str | int]) -> str:
    # Fields finer than the finest given one are 0 (an hour alone means on the hour), the others are open.
    finest = min(_CRON_FIELDS.index(name) for name in fields)
    parts = [
        str(fields.get(name, "0" if index < min(finest, 3) else "*")).strip()
        for index, name in enumerate(_CRON_FIELDS)
    ]
    return " ".join(parts if "second" in fields else parts[1:])


class OnceTrigger(Document):
    """A single instant."""

    kind: Literal["once"] = "once"
    at: Moment


class RRuleTrigger(Document):
    """An RFC 5545 recurrence rule; its DTSTART is the schedule's start, in `timezone`."""

    kind: Literal["rrule"] = "rrule"
    rule: str = Field(min_length=1, max_length=1000)
    timezone: str = "UTC"


class DelayTrigger(Document):
    """A fixed delay after the end of the last run."""

    kind: Literal["delay"] = "delay"
    seconds: float = Field(gt=0, le=MAX_FREQUENCY)


Trigger = Annotated[
    IntervalTrigger | CronTrigger | OnceTrigger | RRuleTrigger | DelayTrigger,
    Field(discriminator="kind"),
]
