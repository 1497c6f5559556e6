"""A time that a user gives: with an offset, and one that there is in UTC too."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

_LAST = datetime.max.replace(tzinfo=UTC)
"""Which stands for a time that never comes: databases give it back as that."""


def _has_date_in_utc(value: datetime) -> datetime:
    # A zone's offset may carry a time of the first or the last year beyond what a date can be.
    try:
        is_last = value.astimezone(UTC) == _LAST
    except OverflowError:
        is_last = True
    if is_last:
        raise ValueError("must have a date in UTC too, between the years 1 and 9999")
    return value


Moment = Annotated[AwareDatetime, AfterValidator(_has_date_in_utc)]
