"""A time that a user gives: with an offset, and one that every part of Foliot can reckon with."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

FIRST_YEAR, LAST_YEAR = 2, 9998


def _within_reach(value: datetime) -> datetime:
    # A zone's offset may carry a time of the first or the last year beyond what a date can be.
    try:
        year = value.astimezone(UTC).year
    except OverflowError:
        year = 0
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise ValueError(f"must lie between the years {FIRST_YEAR} and {LAST_YEAR}")
    return value


Moment = Annotated[AwareDatetime, AfterValidator(_within_reach)]
