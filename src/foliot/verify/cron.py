"""Parse a cron expression and compute its times.

It goes day by day: does the day match, and which times does it have. `H` stands for a number derived from the
schedule's id. The formula is promised to users, so it is implemented here a second time.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from zoneinfo import ZoneInfo

from foliot.verify.wall_times import DAY, REAL_TIME, DstRules, on_day

_NICKNAMES = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_HASHED = re.compile(r"H(?:\((\d+)-(\d+)\))?(?:/(\d+))?")


class UnsupportedExpressionError(Exception):
    """The checker does not support this expression, so it can't check it."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    max_hashed: int
    names: tuple[str, ...] = ()
    first_name: int = 0


_FIELDS = (
    _Field("second", 0, 59, 59),
    _Field("minute", 0, 59, 59),
    _Field("hour", 0, 23, 23),
    _Field("day-of-month", 1, 31, 28),
    _Field("month", 1, 12, 12, _MONTHS, 1),
    _Field("day-of-week", 0, 7, 6, _WEEKDAYS, 0),
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed cron expression."""

    times: tuple[timedelta, ...]
    """The times on a matching day, in order."""
    months: frozenset[int]
    days: tuple[str, ...]
    weekdays: tuple[str, ...]
    key: str
    must_agree: bool
    """Whether day of month and day of week must both match, because one of them is open (`*`, `?`, `H/n`)."""
    follows_real_time: bool

    def has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_date = any(_is_month_day(term, day, self.key) for term in self.days)
        by_weekday = any(_is_weekday(term, day, self.key) for term in self.weekdays)
        return (by_date and by_weekday) if self.must_agree else (by_date or by_weekday)


@lru_cache(maxsize=256)
def read_expression(text: str, key: str) -> Expression:
    """Parse a cron expression. Raises UnsupportedExpressionError."""
    spelled = " ".join(text.upper().split())
    parts = _NICKNAMES.get(spelled, spelled).split()
    if len(parts) == 5:
        parts.insert(0, "0")
    if len(parts) != 6:
        raise UnsupportedExpressionError(f"cron expression {text!r}")
    try:
        second, minute, hour = (
            sorted(_numbers(part, field, key)) for part, field in zip(parts[:3], _FIELDS[:3], strict=True)
        )
        read = Expression(
            times=tuple(
                timedelta(hours=hours, minutes=minutes, seconds=seconds)
                for hours in hour
                for minutes in minute
                for seconds in second
            ),
            months=frozenset(_numbers(parts[4], _FIELDS[4], key)),
            days=tuple(parts[3].split(",")),
            weekdays=tuple(parts[5].split(",")),
            key=key,
            must_agree=_is_open(parts[3]) or _is_open(parts[5]),
            follows_real_time=_is_open(parts[1]) or _is_open(parts[2]),
        )
        # An invalid term fails on any day.
        for day in (date(2026, 2, 28), date(2028, 1, 31)):
            _ = [_is_month_day(term, day, key) for term in read.days]
            _ = [_is_weekday(term, day, key) for term in read.weekdays]
    except (ValueError, KeyError) as error:
        raise UnsupportedExpressionError(f"cron expression {text!r}") from error
    return read


def cron_times(
    read: Expression, zone: ZoneInfo, changes: DstRules, first: datetime, last: datetime
) -> Iterator[datetime]:
    """Yield its times from first to last, both included, in order."""
    if read.follows_real_time:
        changes = REAL_TIME
    day = first.astimezone(zone).date() - DAY
    end = last.astimezone(zone).date() + DAY
    latest = first - timedelta(microseconds=1)
    while day <= end:
        if read.has(day):
            for instant in on_day(day, read.times, zone, changes, first, last):
                # A clock change across midnight may yield times of two days twice or in the wrong order.
                if latest < instant:
                    latest = instant
                    yield instant
        day += DAY


def _is_open(part: str) -> bool:
    return part.startswith(("*", "H/")) or part == "?"


def _numbers(part: str, field: _Field, key: str) -> set[int]:
    found: set[int] = set()
    for term in part.split(","):
        found |= _numbers_of(term, field, key)
    return found


def _numbers_of(term: str, field: _Field, key: str) -> set[int]:
    hashed = _HASHED.fullmatch(term)
    if hashed:
        return _hashed(hashed, field, key)
    body, slash, step = term.partition("/")
    if body in ("*", "?"):
        low, high = field.low, field.high
    elif "-" in body:
        low, high = (_number(end, field) for end in body.split("-"))
    else:
        low = _number(body, field)
        high = field.high if slash else low
    if not (field.low <= low <= high <= field.high):
        raise ValueError(term)
    return set(range(low, high + 1, int(step) if slash else 1))


def _number(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names.index(text) + field.first_name
    return int(text)


def _hashed(term: re.Match[str], field: _Field, key: str) -> set[int]:
    low, high = (field.low, field.max_hashed) if term[1] is None else (int(term[1]), int(term[2]))
    digest = blake2b(f"{key} {field.name}".encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    size = high - low + 1
    if term[3] is None:
        return {low + number % size}
    step = int(term[3])
    return set(range(low + number % min(step, size), high + 1, step))


def _length(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _working_days(day: date) -> list[int]:
    return [number for number in range(1, _length(day) + 1) if day.replace(day=number).weekday() < 5]


def _is_month_day(term: str, day: date, key: str) -> bool:
    if term == "L":
        return day.day == _length(day)
    if term == "LW":
        return day.day == _working_days(day)[-1]
    if term.endswith("W"):
        wanted = int(term[:-1])
        if wanted > _length(day):
            return False
        return day.day == min(_working_days(day), key=lambda number: abs(number - wanted))
    return day.day in _numbers_of(term, _FIELDS[3], key)


def _is_weekday(term: str, day: date, key: str) -> bool:
    field = _FIELDS[5]
    weekday = day.isoweekday() % 7
    if len(term) > 1 and term.endswith("L"):
        return _number(term[:-1], field) % 7 == weekday and day.day + 7 > _length(day)
    if "#" in term:
        wanted, nth = term.split("#")
        return _number(wanted, field) % 7 == weekday and (day.day + 6) // 7 == int(nth)
    return weekday in {number % 7 for number in _numbers_of(term, field, key)}
