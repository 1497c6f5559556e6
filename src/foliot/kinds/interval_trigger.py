"""The `interval` trigger, and the SDK's `every`."""

from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, ClassVar, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from foliot.kinds.checking import MAX_CACHED, TIMEZONE, checked, countable
from foliot.model.errors import InvalidError
from foliot.model.kind import BaseTrigger, CliOption
from foliot.model.policy import Dst, DstGap, DstRepeat
from foliot.model.recurrence import Recurrence
from foliot.timing.interval import CalendarInterval, DayWalk, Elapsed, MonthWalk
from foliot.timing.zone import check_zone

MAX_FREQUENCY = 1_000_000_000


class FrequencyUnit(StrEnum):
    SECONDS = "SECONDS"
    MINUTES = "MINUTES"
    HOURS = "HOURS"
    DAYS = "DAYS"
    WEEKS = "WEEKS"
    MONTHS = "MONTHS"


_SECONDS_OF = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800}
_PARTS = (*_SECONDS_OF, "months")
_ELAPSED_S = {FrequencyUnit.SECONDS: 1, FrequencyUnit.MINUTES: 60, FrequencyUnit.HOURS: 3600}
_CALENDAR_DAYS = {FrequencyUnit.DAYS: 1, FrequencyUnit.WEEKS: 7}


class IntervalTrigger(BaseTrigger):
    """Every so often, counted from the schedule's start: `start_ts` + k × the interval.

    Seconds, minutes and hours are elapsed time. Days and longer are calendar steps in `timezone`.
    """

    display_name: ClassVar = "Interval"
    position: ClassVar = 1
    cli_options: ClassVar = (
        CliOption("--every", (), "INTERVAL", "30s, 5m, 1h30m, 1d, 1w, 1mo.", "interval"),
    )
    short_forms: ClassVar = dict.fromkeys(_PARTS, ("frequency_unit", "frequency_time"))
    counts_from_start: ClassVar = True

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
        parts = {name: value[name] for name in _PARTS if name in value}
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

    def build(self, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:  # noqa: ARG002
        anchor = countable(anchor, "/start_ts")
        tz = check_zone(self.timezone, TIMEZONE)
        elapsed_s = _ELAPSED_S.get(self.frequency_unit)
        if elapsed_s is not None:
            return _elapsed(self.frequency_time * elapsed_s, anchor)
        return _calendar(self.frequency_unit, self.frequency_time, tz, dst.gap, dst.repeat, anchor)

    def compile(self, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:
        times = self.build(dst=dst, anchor=anchor, key=key)
        if times.after(anchor) is None:
            detail = "the first step leads past the year 9999"
            raise InvalidError.at("/trigger/frequency_time", "out_of_range", detail, "a smaller number")
        return times

    def describe(self) -> str:
        unit = self.frequency_unit.value.lower().removesuffix("s")
        every = f"Every {unit}" if self.frequency_time == 1 else f"Every {self.frequency_time} {unit}s"
        return every if self.frequency_unit in _ELAPSED_S else f"{every} ({self.timezone})"

    @property
    def step(self) -> timedelta | None:
        elapsed_s = _ELAPSED_S.get(self.frequency_unit)
        return None if elapsed_s is None else timedelta(seconds=self.frequency_time * elapsed_s)


def every(
    *,
    seconds: int = 0,
    minutes: int = 0,
    hours: int = 0,
    days: int = 0,
    weeks: int = 0,
    months: int = 0,
    tz: str = "UTC",
) -> IntervalTrigger:
    """Return a trigger that fires at a fixed interval, counted from the schedule's start."""
    amounts = (seconds, minutes, hours, days, weeks, months)
    given = {name: amount for name, amount in zip(_PARTS, amounts, strict=True) if amount}
    return checked(IntervalTrigger, "/trigger", timezone=tz, **(given or {"seconds": 0}))


def _one_unit(parts: dict[str, int]) -> dict[str, Any]:
    if "months" in parts:
        if len(parts) > 1:
            raise ValueError("months can't be combined with other units: months differ in length")
        return {"frequency_unit": "MONTHS", "frequency_time": parts["months"]}
    # Days are calendar days only if no finer unit is given: 1 day 12 hours is 36 hours.
    finest = min(parts, key=lambda name: _SECONDS_OF[name], default="seconds")
    total = sum(amount * _SECONDS_OF[name] for name, amount in parts.items())
    return {"frequency_unit": finest.upper(), "frequency_time": total // _SECONDS_OF[finest]}


@lru_cache(maxsize=MAX_CACHED)
def _elapsed(seconds: int, anchor: datetime) -> Recurrence:
    return Elapsed(anchor, timedelta(seconds=seconds))


@lru_cache(maxsize=MAX_CACHED)
def _calendar(
    unit: FrequencyUnit, amount: int, tz: ZoneInfo, gap: DstGap, repeat: DstRepeat, anchor: datetime
) -> Recurrence:
    wall = anchor.astimezone(tz).replace(tzinfo=None, fold=0)
    if unit is FrequencyUnit.MONTHS:
        walls: DayWalk | MonthWalk = MonthWalk(wall, amount)
    else:
        walls = DayWalk(wall, min(amount * _CALENDAR_DAYS[unit], timedelta.max.days))
    return CalendarInterval(anchor, walls, tz, Dst(gap=gap, repeat=repeat))
