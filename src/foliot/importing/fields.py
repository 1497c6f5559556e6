"""Cron as other schedulers write it: read field by field into numbers, and written as cron is written here.

They differ from cron where it is easily overlooked: day and weekday must both match, a week may begin with
Monday as 0, ranges may wrap around. So what a field means is worked out by their rules, and its text is kept
only if it means the same by ours.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from foliot.importing.found import LeftOutError
from foliot.model.errors import InvalidError
from foliot.timing.cron_fields import parse

LAST_DAY = -1
"""Among days: the last one of the month."""

_WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")
_FEWEST_IN_RANGE = 3


@dataclass(frozen=True, slots=True)
class FieldRange:
    """The numbers that a field may have."""

    name: str
    attribute: str
    """Where a parsed expression of ours keeps them."""
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
    """Which numbers a field allows, and how cron writes that here."""

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
    """A field of these numbers; how somebody else wrote it stays if it means the same here."""
    allowed = frozenset(numbers)
    if not allowed or not allowed <= span.all | {LAST_DAY}:
        raise LeftOutError(f'the {span.name} field "{text}" names no time, or one that there is not')
    # An open field is always written *: as 0-6 it would not count as left open in cron.
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
    """What of a schedule makes it fire when all fields match: day and weekday both, unlike in cron."""
    second, minute, hour, day, month, weekday = (fields[span] for span in _IN_EXPRESSION)
    # In cron either of the two is enough, unless one begins with *.
    if day.is_open or weekday.is_open or day.begins_open or weekday.begins_open:
        parts = [each.text for each in (minute, hour, day, month, weekday)]
        expression = " ".join(parts if second.numbers == {0} else [second.text, *parts])
        return {"trigger": {"kind": "cron", "expression": expression, "timezone": timezone}}
    timing: dict[str, Any] = {"trigger": {"kind": "rrule", "rule": _rule(fields), "timezone": timezone}}
    if minute.begins_open or hour.begins_open:
        # What cron does by itself then: it fires whenever the clock shows such a time.
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
