"""A calendar: a named set of days on which schedules that refer to it do not fire.

Structure only. `timing.calendar` checks whether countries and time zones exist, and compiles it.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_serializer,
    model_validator,
)

from foliot.model.document import Document
from foliot.model.errors import InvalidError
from foliot.model.schedule import problems_of

MAX_RANGES = 10_000
MAX_COUNTRIES = 50


class DayRange(Document):
    """Days in a row, both ends included. A single day is written as its date."""

    first: date = Field(alias="from")
    last: date = Field(alias="to")

    @classmethod
    def of(cls, first: date, last: date) -> "DayRange":
        return cls.model_validate({"from": first, "to": last})

    @model_validator(mode="before")
    @classmethod
    def _from_day(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: _day(item) if name in ("from", "to") else item for name, item in value.items()}
        day = _day(value)
        return {"from": day, "to": day}

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last < self.first:
            raise ValueError("to must not be before from")
        return self

    @model_serializer
    def _as_written(self) -> str | dict[str, str]:
        if self.first == self.last:
            return self.first.isoformat()
        return {"from": self.first.isoformat(), "to": self.last.isoformat()}


def _day(value: Any) -> date:
    if type(value) is date:
        return value
    # Only this format: ISO 8601 would also allow 2026-W01-1 and 20261224.
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        with suppress(ValueError):
            return date.fromisoformat(value)
    raise ValueError('must be a date such as "2026-12-24", or {"from": a date, "to": a date}')


def merged(ranges: Iterable[DayRange]) -> tuple[DayRange, ...]:
    """Sort day ranges and merge those that touch or overlap."""
    found: list[DayRange] = []
    for each in sorted(ranges, key=lambda each: each.first):
        # By ordinal, since the day after date.max can't be made.
        if found and each.first.toordinal() <= found[-1].last.toordinal() + 1:
            if each.last > found[-1].last:
                found[-1] = DayRange.of(found[-1].first, each.last)
        else:
            found.append(each)
    return tuple(found)


_DATE = {"type": "string", "format": "date"}
_DAYS = {
    "anyOf": [
        _DATE,
        {
            "type": "object",
            "properties": {"from": _DATE, "to": _DATE},
            "required": ["from", "to"],
            "additionalProperties": False,
        },
    ]
}
Days = Annotated[DayRange, WithJsonSchema(_DAYS)]


class CountryHolidays(Document):
    """The holidays of a country, or of a part of it."""

    country: str = Field(min_length=1, max_length=100)
    """Two letters, as in ISO 3166: DE."""
    subdivision: str | None = Field(default=None, min_length=1, max_length=100)
    """A state or province by its code, such as BY; None: only what holds in the whole country."""
    categories: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        default=(), max_length=20
    )
    """Such as public, bank, school; left out, the public ones."""


class CalendarSpec(Document):
    """A named set of excluded days. A due time on one of them is skipped."""

    name: str = Field(min_length=1, max_length=126)
    description: str = Field(default="", max_length=2000)
    timezone: str | None = None
    """Whose days these are; None: those of the trigger's time zone."""
    days: tuple[Days, ...] = Field(default=(), max_length=MAX_RANGES)
    weekdays: tuple[Annotated[int, Field(ge=1, le=7)], ...] = ()
    """Excluded every week: 1 = Monday … 7 = Sunday."""
    countries: tuple[CountryHolidays, ...] = Field(default=(), max_length=MAX_COUNTRIES)

    @field_validator("name")
    @classmethod
    def _trimmed(cls, value: str) -> str:
        if value != value.strip() or not value.isprintable():
            raise ValueError("must be printable text without spaces around it")
        if "/" in value or value in (".", ".."):
            # The name is part of a URL.
            raise ValueError("must not have a slash in it, nor be . or ..")
        return value

    @field_validator("description")
    @classmethod
    def _can_be_stored(cls, value: str) -> str:
        if "\0" in value or any("\ud800" <= each <= "\udfff" for each in value):
            raise ValueError("must be whole characters, without NUL")
        return value

    @field_validator("days")
    @classmethod
    def _merged(cls, value: tuple[DayRange, ...]) -> tuple[DayRange, ...]:
        return merged(value)

    @field_validator("weekdays")
    @classmethod
    def _some_left(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) == 7:
            raise ValueError("must leave at least one day of the week")
        return tuple(sorted(set(value)))

    @classmethod
    def parse(cls, document: Any) -> "CalendarSpec":
        """Read what a user wrote; anything wrong is an InvalidError that names each field."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise InvalidError(problems_of(error)) from None
