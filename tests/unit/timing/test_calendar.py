"""Which days a calendar excludes."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from foliot.model.calendar import CalendarSpec
from foliot.model.errors import InvalidError, Problem
from foliot.timing.calendar import Calendar, compile_calendar, excluded_since, is_excluded
from foliot.timing.zone import zone

BERLIN, UTC_ZONE = zone("Europe/Berlin"), zone("UTC")


def calendar(**fields: Any) -> Calendar:
    return compile_calendar(CalendarSpec.parse({"name": "holidays", **fields}))


def refused(**fields: Any) -> list[Problem]:
    with pytest.raises(InvalidError) as told:
        calendar(**fields)
    return list(told.value.problems)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def excluded(some: Calendar, first: str, last: str) -> list[str]:
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    every = (date.fromisoformat(first) + timedelta(days=number) for number in range(days))
    return [day.isoformat() for day in every if some.excludes(day)]


# --- days ----------------------------------------------------------------------------------------------


def test_an_empty_calendar_excludes_nothing() -> None:
    assert excluded(calendar(), "2026-01-01", "2026-12-31") == []


def test_single_days_and_ranges_are_excluded_with_both_their_ends() -> None:
    some = calendar(days=["2026-03-01", {"from": "2026-12-30", "to": "2027-01-02"}])
    assert excluded(some, "2026-01-01", "2027-12-31") == [
        "2026-03-01",
        "2026-12-30",
        "2026-12-31",
        "2027-01-01",
        "2027-01-02",
    ]


def test_a_range_of_years_holds_in_every_one_of_them() -> None:
    some = calendar(days=["2020-06-01", {"from": "2024-12-31", "to": "2027-01-01"}, "2030-06-01"])
    asked = ["2024-12-30", "2024-12-31", "2025-07-01", "2026-02-28", "2027-01-01", "2027-01-02"]
    assert [some.excludes(date.fromisoformat(day)) for day in asked] == [False, True, True, True, True, False]


def test_the_ends_of_the_calendar_are_no_trouble() -> None:
    some = calendar(days=[{"from": "0001-01-01", "to": "9999-12-31"}])
    assert some.excludes(date.min)
    assert some.excludes(date.max)


def test_days_of_the_week_are_excluded_every_week() -> None:
    assert excluded(calendar(weekdays=[6, 7]), "2026-03-02", "2026-03-15") == [
        "2026-03-07",
        "2026-03-08",
        "2026-03-14",
        "2026-03-15",
    ]


def test_holidays_of_a_country_are_worked_out_for_each_year() -> None:
    germany = calendar(countries=[{"country": "DE"}])
    assert [germany.excludes(date(year, 10, 3)) for year in (2025, 2026, 2060)] == [True] * 3
    assert [germany.excludes(day) for day in (date(2025, 4, 18), date(2026, 4, 3), date(2026, 4, 18))] == [
        True,
        True,
        False,
    ], "Good Friday moves"


def test_a_subdivision_and_a_category_add_their_own() -> None:
    three_kings, assumption = date(2026, 1, 6), date(2026, 8, 15)
    whole = calendar(countries=[{"country": "DE"}])
    bavaria = calendar(countries=[{"country": "DE", "subdivision": "BY"}])
    catholic = calendar(
        countries=[{"country": "DE", "subdivision": "BY", "categories": ["public", "catholic"]}]
    )
    assert [each.excludes(three_kings) for each in (whole, bavaria, catholic)] == [False, True, True]
    assert [each.excludes(assumption) for each in (whole, bavaria, catholic)] == [False, False, True]


def test_all_that_a_calendar_names_is_joined() -> None:
    some = calendar(days=["2026-05-04"], weekdays=[7], countries=[{"country": "DE"}, {"country": "FR"}])
    assert excluded(some, "2026-05-01", "2026-05-08") == [
        "2026-05-01",
        "2026-05-03",
        "2026-05-04",
        "2026-05-08",
    ]


@pytest.mark.parametrize("year", [1, 1600, 9999])
def test_a_year_without_known_holidays_has_none(year: int) -> None:
    assert not calendar(countries=[{"country": "DE"}]).excludes(date(year, 12, 25))


# --- what does not exist -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("country", "hint"),
    [
        ("de", "did you mean DE?"),
        ("DEU", "did you mean DE?"),
        ("Germny", "did you mean DE?"),
        ("United Kingdom", "did you mean GB?"),
        ("Qwxyz", "two letters, such as DE or US"),
    ],
)
def test_a_country_that_is_not_known_is_refused_with_the_nearest(country: str, hint: str) -> None:
    [problem] = refused(countries=[{"country": "FR"}, {"country": country}])
    assert (problem.pointer, problem.code, problem.hint) == (
        "/countries/1/country",
        "unknown_country",
        hint,
    )


@pytest.mark.parametrize("subdivision", ["by", "Bayern", "Bayren"])
def test_a_subdivision_that_is_not_known_is_refused_with_the_nearest(subdivision: str) -> None:
    [problem] = refused(countries=[{"country": "DE", "subdivision": subdivision}])
    assert (problem.pointer, problem.hint) == ("/countries/0/subdivision", "did you mean BY?")


def test_everything_that_does_not_exist_is_named_at_once() -> None:
    problems = refused(
        timezone="Europe/Berln",
        countries=[{"country": "Atlantis"}, {"country": "DE", "subdivision": "ZZZ", "categories": ["bank"]}],
    )
    assert [problem.pointer for problem in problems] == [
        "/timezone",
        "/countries/0/country",
        "/countries/1/subdivision",
        "/countries/1/categories/0",
    ]
    assert problems[-1].hint == "one of: catholic, public, school"


# --- instants ------------------------------------------------------------------------------------------


def test_the_day_of_an_instant_is_that_of_the_calendars_zone_else_of_the_one_given() -> None:
    day = ["2026-07-02"]
    late = at("2026-07-01T22:30")  # 00:30 of the next day in Berlin
    assert not is_excluded([calendar(days=day)], late, UTC_ZONE)
    assert is_excluded([calendar(days=day)], late, BERLIN)
    assert is_excluded([calendar(days=day, timezone="Europe/Berlin")], late, UTC_ZONE)
    assert not is_excluded([calendar(days=day, timezone="UTC")], late, BERLIN)


def test_one_calendar_of_several_is_enough() -> None:
    some = [calendar(days=["2026-07-01"]), calendar(days=["2026-07-02"])]
    asked = ["2026-07-01T12:00", "2026-07-02T12:00", "2026-07-03T12:00"]
    assert [is_excluded(some, at(text), UTC_ZONE) for text in asked] == [True, True, False]


def test_it_has_been_excluded_since_the_day_began() -> None:
    some = [calendar(days=["2026-07-02"])]
    assert excluded_since(some, at("2026-07-02T15:00"), UTC_ZONE) == at("2026-07-02T00:00")
    assert excluded_since(some, at("2026-07-02T15:00"), BERLIN) == at("2026-07-01T22:00")
    assert excluded_since(some, at("2026-07-03T00:00"), UTC_ZONE) is None


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("America/Santiago", "2026-09-06"),  # midnight is left out
        ("America/Havana", "2026-11-01"),  # 00:00 to 01:00 comes twice
        ("America/St_Johns", "2010-11-07"),  # at 00:01 the day before comes back
        ("Pacific/Apia", "2011-12-31"),  # a day is left out
    ],
)
def test_from_then_on_every_instant_was_excluded_also_where_clocks_are_changed(name: str, day: str) -> None:
    tz, some = zone(name), [calendar(days=[day])]
    midnight = at(day)
    for minutes in range(-26 * 60, 50 * 60, 7):
        instant = midnight + timedelta(minutes=minutes)
        since = excluded_since(some, instant, tz)
        assert (since is not None) == is_excluded(some, instant, tz)
        while since is not None and since <= instant:
            assert is_excluded(some, since, tz)
            since += timedelta(minutes=13)
