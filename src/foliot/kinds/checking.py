"""Checks that several kinds share."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from foliot.model.document import Document
from foliot.model.errors import InvalidError, Problem
from foliot.model.kind import PreviewWarning
from foliot.model.schedule import problems_of
from foliot.timing.zone import HIGHEST, LOWEST, naive_utc

TIMEZONE = "/trigger/timezone"
MAX_CACHED = 32_768
"""Maximum number of compiled recurrences of a kind that are cached.

Triggers with the same meaning share one, so a million schedules at `@daily` hold one. The cache key contains
only what the recurrence depends on.
"""
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_LENGTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}

D = TypeVar("D", bound=Document)


def checked(document: type[D], pointer: str = "", /, **fields: Any) -> D:
    """Return a document with these fields. Raises an InvalidError that names each wrong one."""
    try:
        return document(**fields)
    except ValidationError as error:
        problems = problems_of(error)
        raise InvalidError(
            [Problem(pointer + each.pointer, each.code, each.detail, each.hint) for each in problems]
        ) from None


def countable(instant: datetime, pointer: str) -> datetime:
    """Return the instant. Raises InvalidError if times can't be counted from it."""
    if LOWEST <= naive_utc(instant) < HIGHEST:
        return instant
    raise InvalidError.at(pointer, "out_of_range", "is too far from now to count from", "a year below 9999")


def warn_of_short_months(days: Iterable[int], months: Iterable[int], better: str) -> Iterator[PreviewWarning]:
    """Warn about days that some months don't have. `better` is how to write the last day of a month."""
    known = frozenset(days)
    # A day right after another listed day belongs to a range, which may well end with the month.
    for day in sorted(day for day in known if day > 28 and day - 1 not in known):
        short = [
            month for month in sorted(months) if _LENGTHS.get(month, 31) < day or (month, day) == (2, 29)
        ]
        if short:
            names = ", ".join(_MONTHS[month - 1] for month in short)
            except_leap = " except in leap years" if day == 29 else ""
            text = f"there is no day {day} in {names}{except_leap}; {better} is the last day of a month"
            yield PreviewWarning("short_months", text)
