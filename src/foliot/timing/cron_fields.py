"""Parses cron expressions: fields, names, `@daily`, `?`, `L`, `W`, `#`, and `H`.

cronsim parses the plain grammar of a field. Parsed here is what it does not know: `?`, `15W`, and `H`. `H`
stands for a value that differs between schedules but never changes for one, so that "hourly" jobs don't all
start in the same minute.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from cronsim import CronSim, CronSimError

from foliot.model.errors import InvalidError

POINTER = "/trigger/expression"

ALIASES = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}

H_TERM = re.compile(r"H(?:\((\d{1,2})-(\d{1,2})\))?(?:/(\d{1,3}))?")
_STEPPED_RANGE = re.compile(r"([^-/]+-[^-/]+)/(\d{1,3})")
_W_TERM = re.compile(r"(\d{1,2})W")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NAMED_LAST = re.compile(f"({'|'.join(_WEEKDAYS)})L")
_ANY_TIME = datetime(2000, 1, 1)  # noqa: DTZ001


@dataclass(frozen=True, slots=True)
class CronField:
    name: str
    attribute: str
    """The attribute of cronsim's result."""
    lowest: int
    highest: int
    highest_hashed: int
    """Upper bound for `H`: a value that every month and week has."""
    right: str

    def problem(self, text: str, detail: str = "") -> InvalidError:
        return InvalidError.at(
            POINTER, "bad_cron", f'the {self.name} field "{text}" {detail or "can not be read"}', self.right
        )


FIELDS = (
    CronField("second", "seconds", 0, 59, 59, "0-59, such as 30, */10 or 0,30"),
    CronField("minute", "minutes", 0, 59, 59, "0-59, such as 30, */15, 0-29 or H"),
    CronField("hour", "hours", 0, 23, 23, "0-23, such as 9, */2, 9-17 or H(0-5)"),
    CronField("day-of-month", "days", 1, 31, 28, "1-31, such as 15, */2, L, LW, 15W or ?"),
    CronField("month", "months", 1, 12, 12, "1-12 or JAN-DEC, such as 6, */3 or JAN,JUL"),
    CronField(
        "day-of-week", "weekdays", 0, 7, 6, "0-7 (0 and 7 are Sunday) or SUN-SAT, such as 1-5, FRI#2, 5L or ?"
    ),
)


@dataclass(frozen=True, slots=True)
class CronFields:
    """A parsed cron expression: the values that each field allows."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    days: frozenset[int]
    is_last_day: bool
    """`L`: the last day of the month."""
    is_last_weekday: bool
    """`LW`: the last Monday to Friday of the month."""
    nearest_weekdays: frozenset[int]
    """`15W`: the Monday to Friday nearest to the 15th, within the month."""
    weekdays: frozenset[int]
    """0 = Sunday … 6 = Saturday."""
    nth_weekdays: frozenset[tuple[int, int]]
    """`5#2` is (5, 2)."""
    last_weekdays: frozenset[int]
    """`5L`: the last Friday of the month."""
    days_must_agree: bool
    """As in Debian's cron: if either begins with `*`, day-of-month and day-of-week must both match."""
    follows_real_time: bool
    """Whether the minute or the hour is open, so that it fires in both hours when clocks are set back."""


def normalise(expression: str) -> str:
    """Return the expression in capitals, single-spaced, with aliases such as `@daily` expanded."""
    text = " ".join(expression.split()).upper()
    return ALIASES.get(text, text)


def is_hashed(expression: str) -> bool:
    """Whether a normalised expression contains `H`, whose value depends on the schedule."""
    if "H" not in expression:
        return False
    return any(H_TERM.fullmatch(term) for part in expression.split() for term in part.split(","))


def parse(expression: str, key: str) -> CronFields:
    """Parse an expression, with the `H` of this key. Raises an InvalidError that names the field."""
    parts = _parts(expression)
    read = [_read(field, part, key if "H" in part else "") for field, part in zip(FIELDS, parts, strict=True)]
    seconds, minutes, hours, days, months, weekdays = read
    return CronFields(
        seconds=seconds.ordered,
        minutes=minutes.ordered,
        hours=hours.ordered,
        months=months.numbers,
        days=days.positive,
        is_last_day=CronSim.LAST in days.numbers,
        is_last_weekday=CronSim.LAST_WEEKDAY in days.numbers,
        nearest_weekdays=days.nearest,
        weekdays=weekdays.of_week,
        nth_weekdays=weekdays.nth,
        last_weekdays=weekdays.last,
        days_must_agree=days.is_open or weekdays.is_open,
        follows_real_time=minutes.is_open or hours.is_open,
    )


def _parts(expression: str) -> list[str]:
    text = normalise(expression)
    if not text.isascii():
        raise InvalidError.at(
            POINTER, "bad_cron", "a cron expression is plain ASCII", "such as 0 9 * * MON-FRI"
        )
    if text.startswith("@"):
        known = ", ".join(alias.lower() for alias in ALIASES)
        if text == "@REBOOT":
            detail = "@reboot is no time: a schedule does not belong to a machine that boots"
        else:
            detail = f'"{expression.strip()}" is not known'
        raise InvalidError.at(POINTER, "bad_cron", detail, f"one of: {known}")
    parts = text.split()
    if len(parts) == 5:
        parts.insert(0, "0")
    if len(parts) != 6:
        raise InvalidError.at(
            POINTER,
            "bad_cron",
            f"a cron expression has 5 fields, or 6 with seconds first; this one has {len(parts)}",
            "minute hour day-of-month month day-of-week, such as 0 9 * * MON-FRI",
        )
    return parts


Item = int | tuple[int, int]


@lru_cache(maxsize=8192)
def _read(field: CronField, part: str, key: str) -> "_Read":
    # Cached per field: a million different expressions consist of a few hundred different fields, and
    # parsing one costs as much as finding fifty fire times.
    terms = _Terms(set(), set())
    for term in part.split(","):
        terms.add(field, part, term, key)
    numbers = _numbers(terms.values)
    on_weekdays = [item for item in terms.values if isinstance(item, tuple)]
    return _Read(
        is_open=part.startswith(("*", "H/")) or part == "?",
        numbers=numbers,
        ordered=tuple(sorted(numbers)),
        positive=frozenset(number for number in numbers if number > 0),
        nearest=frozenset(terms.nearest),
        of_week=frozenset(number % 7 for number in numbers),
        nth=frozenset((day % 7, nth) for day, nth in on_weekdays if nth != CronSim.LAST),
        last=frozenset(day % 7 for day, nth in on_weekdays if nth == CronSim.LAST),
    )


class _Read(NamedTuple):
    """A parsed field, with everything that any field can mean."""

    is_open: bool
    """Whether it begins with `*` or an equivalent: `?` or `H/15`."""
    numbers: frozenset[int]
    ordered: tuple[int, ...]
    positive: frozenset[int]
    nearest: frozenset[int]
    of_week: frozenset[int]
    nth: frozenset[tuple[int, int]]
    last: frozenset[int]


@dataclass(slots=True)
class _Terms:
    """The values of all terms of one field."""

    values: set[Item]
    nearest: set[int]

    def add(self, field: CronField, part: str, term: str, key: str) -> None:
        if term == "?":
            if field.attribute not in ("days", "weekdays") or part != "?":
                raise field.problem(part, "can not be read: ? stands alone, for a day field left open")
            term = "*"
        elif hashed := H_TERM.fullmatch(term):
            self.values.update(_hashed(field, part, hashed, key))
            return
        elif stepped := _STEPPED_RANGE.fullmatch(term):
            # cronsim reads a range of one value, such as 5-5/2, as 5/2: from 5 to the end.
            if int(stepped[2]) == 0:
                raise field.problem(part, "has a step of 0")
            numbers = sorted(_numbers(_plain(field, part, stepped[1])))
            self.values.update(numbers[:: int(stepped[2])])
            return
        elif field.attribute == "days" and (nearest := _W_TERM.fullmatch(term)):
            if not 1 <= int(nearest[1]) <= 31:
                raise field.problem(part)
            self.nearest.add(int(nearest[1]))
            return
        elif field.attribute == "weekdays" and (named := _NAMED_LAST.fullmatch(term)):
            term = f"{_WEEKDAYS.index(named[1])}L"
        elif not term or (term.startswith("L") and "/" in term):
            raise field.problem(part)
        self.values.update(_plain(field, part, term))


def _plain(field: CronField, part: str, term: str) -> set[Item]:
    parts = ["*"] * 6
    parts[FIELDS.index(field)] = term
    try:
        return set(getattr(CronSim(" ".join(parts), _ANY_TIME), field.attribute))
    except CronSimError:
        raise field.problem(part) from None


def _hashed(field: CronField, part: str, term: re.Match[str], key: str) -> Iterable[int]:
    low, high = field.lowest, field.highest_hashed
    if term[1] is not None:
        low, high = int(term[1]), int(term[2])
        if not field.lowest <= low <= high <= field.highest:
            raise field.problem(
                part, f"has a range outside {field.lowest}-{field.highest}, or one that ends early"
            )
    number = int.from_bytes(blake2b(f"{key} {field.name}".encode(), digest_size=8).digest(), "big")
    size = high - low + 1
    if term[3] is None:
        return (low + number % size,)
    step = int(term[3])
    if step == 0:
        raise field.problem(part, "has a step of 0")
    return range(low + number % min(step, size), high + 1, step)


def _numbers(values: set[Item]) -> frozenset[int]:
    return frozenset(value for value in values if isinstance(value, int))
