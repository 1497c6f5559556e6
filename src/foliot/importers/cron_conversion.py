"""Convert cron fields of other schedulers to numbers, and to Foliot's cron syntax.

Other schedulers differ from cron in details: day and weekday must both match, 0 may be Monday, ranges may
wrap around. So a field is read by their rules. Its text is kept only if it means the same in Foliot.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from foliot.importers.import_result import LeftOutError
from foliot.model.errors import InvalidError
from foliot.timing.cron_fields import parse

LAST_DAY = -1
"""Stands for the last day of the month."""

_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_FEWEST_IN_RANGE = 3


@dataclass(frozen=True, slots=True)
class FieldRange:
    """The allowed numbers of a cron field."""

    name: str
    attribute: str
    """The attribute of Foliot's parsed expression that has the numbers."""
    low: int
    high: int

    @property
    def all(self) -> frozenset[int]:
        return frozenset(range(self.low, self.high + 1))


SECOND = FieldRange("second", "seconds", 0, 59)
MINUTE = FieldRange("minute", "minutes", 0, 59)
HOUR = FieldRange("hour", "hours", 0, 23)
DAY = FieldRange("day", "days", 1, 31)
MONTH = FieldRange("month", "months", 1, 12)
WEEKDAY = FieldRange("day_of_week", "weekdays", 0, 6)
"""0 = Sunday, as in cron."""
_IN_EXPRESSION = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


@dataclass(frozen=True, slots=True)
class CronFieldValues:
    """The numbers that a field allows, and its text in Foliot's syntax."""

    span: FieldRange
    numbers: frozenset[int]
    text: str

    @property
    def is_open(self) -> bool:
        return self.numbers >= self.span.all

    @property
    def begins_open(self) -> bool:
        return self.text.startswith("*")


def field_of(span: FieldRange, numbers: Iterable[int], text: str = "") -> CronFieldValues:
    """Return a field with these numbers. The original text is kept if it means the same in Foliot."""
    allowed = frozenset(numbers)
    if not allowed or not allowed <= span.all | {LAST_DAY}:
        raise LeftOutError(f'the {span.name} field "{text}" names no time, or one that there is not')
    # A field with all numbers is written *: cron does not treat 0-6 as open.
    keeps = bool(text) and not allowed >= span.all and _means(span, text) == allowed
    return CronFieldValues(span, allowed, text if keeps else _written(span, allowed))


def _means(span: FieldRange, text: str) -> frozenset[int] | None:
    parts = [text if each is span else "*" for each in _IN_EXPRESSION]
    try:
        read = parse(" ".join(parts), "")
    except InvalidError:
        return None
    numbers = frozenset(getattr(read, span.attribute))
    return numbers | {LAST_DAY} if span is DAY and read.is_last_day else numbers


def _written(span: FieldRange, numbers: frozenset[int]) -> str:
    if numbers >= span.all:
        return "*"
    terms: list[str] = []
    rest = sorted(numbers - {LAST_DAY})
    while rest:
        length = next((i for i, number in enumerate(rest) if number != rest[0] + i), len(rest))
        if length >= _FEWEST_IN_RANGE:
            terms.append(f"{rest[0]}-{rest[length - 1]}")
        else:
            terms += map(str, rest[:length])
        rest = rest[length:]
    if LAST_DAY in numbers:
        terms.append("L")
    return ",".join(terms)


def timing_of(fields: Mapping[FieldRange, CronFieldValues], timezone: str) -> dict[str, Any]:
    """Return timing fields of a schedule that fires if all fields match: day and weekday, unlike cron."""
    second, minute, hour, day, month, weekday = (fields[span] for span in _IN_EXPRESSION)
    # In cron one of the two is enough, unless one begins with *.
    if day.is_open or weekday.is_open or day.begins_open or weekday.begins_open:
        parts = [each.text for each in (minute, hour, day, month, weekday)]
        expression = " ".join(parts if second.numbers == {0} else [second.text, *parts])
        return {"trigger": {"kind": "cron", "expression": expression, "timezone": timezone}}
    timing: dict[str, Any] = {"trigger": {"kind": "rrule", "rule": _rule(fields), "timezone": timezone}}
    if minute.begins_open or hour.begins_open:
        # As cron does for such fields: fire whenever the clock shows a matching time.
        timing["dst"] = {"gap": "skip", "repeat": "both"}
    return timing


def _rule(fields: Mapping[FieldRange, CronFieldValues]) -> str:
    parts = ["FREQ=DAILY"]
    for span, part in ((MONTH, "BYMONTH"), (DAY, "BYMONTHDAY")):
        if not fields[span].is_open:
            parts.append(f"{part}={_list(fields[span])}")
    parts.append("BYDAY=" + ",".join(_WEEKDAYS[number] for number in sorted(fields[WEEKDAY].numbers)))
    parts += [f"BY{span.name.upper()}={_list(fields[span])}" for span in (HOUR, MINUTE, SECOND)]
    return ";".join(parts)


def _list(field: CronFieldValues) -> str:
    return ",".join(str(number) for number in sorted(field.numbers))
