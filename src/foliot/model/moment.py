"""A time that a user gives: with an offset, and one that there is in UTC too."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime


def _has_date_in_utc(value: datetime) -> datetime:
    # A zone's offset may carry a time of the first or the last year beyond what a date can be.
    try:
        value.astimezone(UTC)
    except OverflowError:
        raise ValueError("must have a date in UTC too, between the years 1 and 9999") from None
    return value


Moment = Annotated[AwareDatetime, AfterValidator(_has_date_in_utc)]
