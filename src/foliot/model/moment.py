"""A time from a user: it must have an offset, and must also exist in UTC."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

_LAST = datetime.max.replace(tzinfo=UTC)
"""Databases use this value for a time that never comes."""


def _has_date_in_utc(value: datetime) -> datetime:
    # In the first or last year, the conversion to UTC may leave the range of dates.
    try:
        is_last = value.astimezone(UTC) == _LAST
    except OverflowError:
        is_last = True
    if is_last:
        raise ValueError("must have a date in UTC too, between the years 1 and 9999")
    return value


Moment = Annotated[AwareDatetime, AfterValidator(_has_date_in_utc)]
