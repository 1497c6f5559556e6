"""Calendars as users write them."""

from datetime import date
from typing import Any

import pytest

from foliot.model.calendar import MAX_RANGES, CalendarSpec, DayRange
from foliot.model.errors import CalendarInUseError, FoliotError, InvalidError, Problem


def parsed(**fields: Any) -> CalendarSpec:
    return CalendarSpec.parse({"name": "holidays", **fields})


def refused(**fields: Any) -> Problem:
    with pytest.raises(InvalidError) as told:
        parsed(**fields)
    [problem] = told.value.problems
    return problem


def test_only_the_name_is_required() -> None:
    spec = parsed()
    assert (spec.timezone, spec.days, spec.weekdays, spec.countries) == (None, (), (), ())


def test_days_are_sorted_and_merged() -> None:
    days = ["2026-12-26", {"from": "2026-12-24", "to": "2026-12-25"}, "2026-01-01", "2026-12-25"]
    assert parsed(days=days).model_dump(mode="json")["days"] == [
        "2026-01-01",
        {"from": "2026-12-24", "to": "2026-12-26"},
    ]


def test_a_range_within_another_is_swallowed() -> None:
    days = [{"from": "2026-01-01", "to": "2026-12-31"}, {"from": "2026-05-01", "to": "2026-05-02"}]
    assert parsed(days=days).days == (DayRange.of(date(2026, 1, 1), date(2026, 12, 31)),)


def test_the_last_day_there_is_can_be_excluded() -> None:
    days = ["9999-12-31", "9999-12-30"]
    assert parsed(days=days).days == (DayRange.of(date(9999, 12, 30), date.max),)


def test_what_is_written_out_can_be_read_again() -> None:
    spec = parsed(
        days=["2026-12-24", {"from": "2027-01-01", "to": "2027-01-06"}],
        weekdays=[7, 6, 7],
        countries=[{"country": "DE", "subdivision": "BY", "categories": ["catholic"]}],
        timezone="Europe/Berlin",
    )
    assert spec.weekdays == (6, 7)
    assert CalendarSpec.parse(spec.model_dump(mode="json")) == spec
    assert CalendarSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    "day",
    ["24.12.2026", "2026-02-30", "20261224", "2026-W01-1", 0, 20261224, True, None, "2026-12-24T00:00", []],
)
def test_what_is_not_a_date_is_refused_where_it_stands(day: Any) -> None:
    assert refused(days=["2026-01-01", day]).pointer == "/days/1"


@pytest.mark.parametrize(
    ("days", "pointer"),
    [
        ({"from": "2026-01-02", "to": "2026-01-01"}, "/days/0"),
        ({"from": "2026-01-02"}, "/days/0/to"),
        ({"from": "2026-01-02", "to": "2026-01-03", "why": "x"}, "/days/0/why"),
        ({"from": "x", "to": "2026-01-03"}, "/days/0"),
    ],
)
def test_a_range_that_is_none_is_refused(days: dict[str, str], pointer: str) -> None:
    assert refused(days=[days]).pointer == pointer


def test_a_range_is_written_as_from_and_to_only() -> None:
    with pytest.raises(InvalidError):
        parsed(days=[{"first": "2026-01-01", "last": "2026-01-02"}])


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": ""}, "/name"),
        ({"name": " x"}, "/name"),
        ({"name": "a\nb"}, "/name"),
        ({"description": "a\0b"}, "/description"),
        ({"holidays": []}, "/holidays"),
        ({"weekdays": [0]}, "/weekdays/0"),
        ({"weekdays": [8]}, "/weekdays/0"),
        ({"weekdays": [1, 2, 3, 4, 5, 6, 7]}, "/weekdays"),
        ({"countries": [{"subdivision": "BY"}]}, "/countries/0/country"),
        ({"countries": [{"country": "DE", "state": "BY"}]}, "/countries/0/state"),
        ({"days": ["2026-01-01"] * (MAX_RANGES + 1)}, "/days"),
    ],
)
def test_anything_else_that_is_wrong_is_refused_by_its_field(fields: dict[str, Any], pointer: str) -> None:
    assert refused(**fields).pointer == pointer


def test_a_calendar_in_use_says_by_which_schedules() -> None:
    error = CalendarInUseError("holidays", ["nightly", "weekly"])
    assert isinstance(error, FoliotError)
    assert (
        str(error)
        == 'calendar "holidays" is used by "nightly", "weekly"; take it out of their calendars first'
    )
