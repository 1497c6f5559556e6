"""The `cron` trigger, and the SDK's `cron`."""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, ClassVar, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from foliot.kinds.checking import MAX_CACHED, TIMEZONE, checked, warn_of_short_months
from foliot.model.errors import InvalidError
from foliot.model.kind import BaseTrigger, CliOption, PreviewWarning
from foliot.model.policy import Dst, DstGap, DstRepeat
from foliot.model.recurrence import Recurrence
from foliot.timing.cron import cron_times
from foliot.timing.cron_fields import H_TERM, POINTER, is_hashed, normalise, parse
from foliot.timing.wall import REAL_TIME
from foliot.timing.zone import check_zone

_FIELDS = ("second", "minute", "hour", "day", "month", "day_of_week")
_UNITS = ("second", "minute", "hour", "day", "month", "weekday")
_STEPPED = (("second", 60, "minute"), ("minute", 60, "hour"), ("hour", 24, "day"))


class CronTrigger(BaseTrigger):
    """A cron expression: 5 fields, or 6 with seconds first, or `@daily` and its kin."""

    display_name: ClassVar = "Cron"
    position: ClassVar = 2
    cli_options: ClassVar = (CliOption("--cron", ("expression",), "EXPRESSION", 'Such as "0 2 * * *".'),)
    short_forms: ClassVar = {"fields": ("expression",)}
    spread_hint: ClassVar = "H in place of the minute"

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
            raise ValueError(f"fields must be an object with some of: {', '.join(_FIELDS)}")
        for name, text in fields.items():
            if name not in _FIELDS:
                raise ValueError(f"fields has no {name!r}; it may have: {', '.join(_FIELDS)}")
            if isinstance(text, bool) or not isinstance(text, str | int) or not str(text).strip():
                raise ValueError(f'fields.{name} must be text such as "*/2"')
            if len(str(text).split()) != 1:
                raise ValueError(f"fields.{name} must be a single cron field without spaces")
        rest = {name: item for name, item in value.items() if name != "fields"}
        return {**rest, "expression": _expression(fields)}

    def build(self, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:  # noqa: ARG002
        tz = check_zone(self.timezone, TIMEZONE)
        expression = normalise(self.expression)
        return _cron(expression, key if is_hashed(expression) else "", tz, dst.gap, dst.repeat)

    def compile(self, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:
        times = self.build(dst=dst, anchor=anchor, key=key)
        if times.after(anchor) is None:
            # A day that exists may still never fire: if its only time is in a gap each year, and is skipped.
            detail = "this expression never fires: the clock is set forward over its only times"
            hint = "choose another time of day, or let dst.gap be shift"
            raise InvalidError.at(POINTER, "never_fires", detail, hint)
        return times

    def describe(self) -> str:
        return f"{_in_words(self.expression)} ({self.timezone})"

    def warnings(self, start: datetime, key: str | None) -> Iterator[PreviewWarning]:  # noqa: ARG002
        expression = normalise(self.expression)
        if key is None and is_hashed(expression):
            text = (
                "H depends on the schedule: these times are an example; give its name or its id for its own"
            )
            yield PreviewWarning("hash_unknown", text)
        yield from _warnings(expression, key or "preview")

    def follows_real_time(self, key: str) -> bool:
        return parse(self.expression, key).follows_real_time

    @property
    def is_shared(self) -> bool:
        return "H" not in self.expression.upper()


def cron(expression: str, tz: str = "UTC") -> CronTrigger:
    """Return a trigger for a cron expression: 5 fields, 6 with seconds first, or an alias as `@daily`."""
    return checked(CronTrigger, expression=expression, timezone=tz)


def _expression(fields: dict[str, str | int]) -> str:
    # Fields finer than the finest given one are 0 (an hour alone means on the hour), the others are open.
    finest = min(_FIELDS.index(name) for name in fields)
    parts = [
        str(fields.get(name, "0" if index < min(finest, 3) else "*")).strip()
        for index, name in enumerate(_FIELDS)
    ]
    return " ".join(parts if "second" in fields else parts[1:])


@lru_cache(maxsize=MAX_CACHED)
def _cron(expression: str, key: str, tz: ZoneInfo, gap: DstGap, repeat: DstRepeat) -> Recurrence:
    fields, policy = parse(expression, key), Dst(gap=gap, repeat=repeat)
    if policy != REAL_TIME and (tz.key == "UTC" or fields.follows_real_time):
        # The policy makes no difference here, so all policies share one recurrence.
        return _cron(expression, key, tz, REAL_TIME.gap, REAL_TIME.repeat)
    return cron_times(fields, tz, policy)


# --- warnings -------------------------------------------------------------------------------------------


def _warnings(expression: str, key: str) -> Iterator[PreviewWarning]:
    parts = expression.split()
    fields = parse(expression, key)
    day, weekday = parts[-3], parts[-1]
    if not fields.days_must_agree:
        text = (
            "day-of-month and day-of-week are both set: it fires when either matches, not only when both do"
        )
        yield PreviewWarning("either_day", text)
    elif day not in ("*", "?") and weekday not in ("*", "?"):
        text = "day-of-month and day-of-week are both set, one of them from *: it fires only when both match"
        yield PreviewWarning("both_days", text)
    if not day.startswith("*"):
        yield from warn_of_short_months(fields.days | fields.nearest_weekdays, fields.months, "L")
    if parts[-5] == "*" and len(fields.hours) == 1 and not is_hashed(parts[-4]):
        text = f"fires in every minute of hour {fields.hours[0]}; with 0 for the minute it fires once"
        yield PreviewWarning("every_minute", text)
    for part, (unit, size, whole) in zip(parts[-4::-1], reversed(_STEPPED), strict=False):
        step = re.fullmatch(r"\*/(\d+)", part)
        if step is not None and size % int(step[1]):
            last = (size - 1) // int(step[1]) * int(step[1])
            text = f"{part} begins anew every {whole}: {unit} {last} is followed by {unit} 0"
            yield PreviewWarning("uneven_step", text)
    if re.fullmatch(r"\*/([2-9]|\d\d+)", day):
        text = f"{day} begins anew every month: after its last day comes day 1, however long ago that was"
        yield PreviewWarning("uneven_step", text)


# --- description ----------------------------------------------------------------------------------------


def _in_words(expression: str) -> str:
    parts = normalise(expression).split()
    days = _days(parts)
    if is_hashed(" ".join(parts[:-3])):
        # The library does not know H, a value that differs between schedules.
        times = ", ".join(
            _field(part, unit) for part, unit in zip(parts[:-3], _UNITS[-len(parts) :], strict=False)
        )
        return f"At {times}{days}" if times.startswith("a") else times[:1].upper() + times[1:] + days
    return _library([*parts[:-3], "*", "*", "*"]).removeprefix(", ") + days


def _days(parts: list[str]) -> str:
    """Describe the day and month fields, with a comma before; empty if all are open."""
    day, month, weekday = parts[-3:]
    is_listed_special = any("," in part and any(sign in part for sign in "LW#") for part in (day, weekday))
    if is_listed_special or is_hashed(" ".join(parts[-3:])):
        phrases = [_field(part, unit) for part, unit in zip(parts[-3:], _UNITS[-3:], strict=True)]
        return "".join(f", {phrase}" for phrase in phrases if phrase)
    words = _library(["0", "0", day, month, weekday]).removeprefix("At 00:00")
    if day.startswith("*") or weekday.startswith("*"):
        # The library reads every pair of day fields as alternatives.
        words = words.replace(", or ", ", and only ")
    return words


def _library(parts: list[str]) -> str:
    return _described(" ".join(parts))


@lru_cache(maxsize=4_096)
def _described(expression: str) -> str:
    try:
        return str(_descriptor()(expression).get_full_description())
    except Exception:  # it can't read some rare forms; then the expression itself is shown
        return f", cron {expression}"


def _field(part: str, unit: str) -> str:
    if part in ("*", "?"):
        return f"every {unit}" if unit in ("second", "minute", "hour") else ""
    if part.startswith("*/"):
        return f"every {part[2:]} {unit}s"
    return " and ".join(_term(term, unit) for term in part.split(","))


def _term(term: str, unit: str) -> str:
    read = H_TERM.fullmatch(term)
    if read is None:
        return f"{unit} {term}"
    within = f" from {read[1]} to {read[2]}" if read[1] is not None else ""
    if read[3] is not None:
        return f"every {read[3]} {unit}s{within} with an offset of its own"
    return f"{'an' if unit == 'hour' else 'a'} {unit} of its own{within}"


@cache
def _descriptor() -> Any:
    """Return the library's class, with its texts cached. It reads them for each expression, in 0.5 ms."""
    from cron_descriptor import ExpressionDescriptor, Options
    from cron_descriptor.ExpressionParser import ExpressionParser
    from cron_descriptor.GetText import GetText

    options = Options(use_24hour_time_format=True, locale_code="en_GB")
    texts = GetText(options.locale_code)

    class Descriptor(ExpressionDescriptor):  # type: ignore[misc]
        def __init__(self, expression: str) -> None:
            self._expression = expression
            self._options = options
            self.get_text = texts
            self._expression_parts = ExpressionParser(expression, options).parse()

    return Descriptor
