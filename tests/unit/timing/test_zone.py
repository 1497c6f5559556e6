from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from foliot.model.errors import InvalidError
from foliot.model.policy import Dst, DstGap, DstRepeat
from foliot.timing.zone import check_zone, instants_of, zone

BERLIN = zone("Europe/Berlin")
wall = datetime.fromisoformat


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def instants(at: str, tz: ZoneInfo, gap: str = "shift", repeat: str = "first") -> list[datetime]:
    return list(instants_of(wall(at), tz, Dst(gap=DstGap(gap), repeat=DstRepeat(repeat))))


def test_an_ordinary_time_is_one_instant() -> None:
    assert instants("2026-07-01T02:30", BERLIN) == [utc("2026-07-01T00:30")]


def test_a_time_in_the_gap_moves_to_the_first_instant_after_it_or_is_left_out() -> None:
    assert instants("2026-03-29T02:30", BERLIN, gap="shift") == [utc("2026-03-29T01:00")]
    assert instants("2026-03-29T02:30", BERLIN, gap="skip") == []


def test_a_repeated_time_is_the_first_the_second_or_both() -> None:
    first, second = utc("2026-10-25T00:30"), utc("2026-10-25T01:30")
    assert instants("2026-10-25T02:30", BERLIN, repeat="first") == [first]
    assert instants("2026-10-25T02:30", BERLIN, repeat="second") == [second]
    assert instants("2026-10-25T02:30", BERLIN, repeat="both") == [first, second]


def test_a_missing_midnight_moves_to_one_o_clock() -> None:
    assert instants("2026-09-06T00:00", zone("America/Santiago")) == [utc("2026-09-06T04:00")]


def test_a_missing_day_moves_to_the_next_even_over_the_turn_of_the_year() -> None:
    assert instants("2011-12-30T12:00", zone("Pacific/Apia")) == [utc("2011-12-30T10:00")]
    assert instants("1994-12-31T23:59", zone("Pacific/Kiritimati")) == [utc("1994-12-31T10:00")]


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"])
def test_zones_of_the_database_are_taken(name: str) -> None:
    assert check_zone(name, "/trigger/timezone").key == name


@pytest.mark.parametrize(
    "name",
    ["", "localtime", "posixrules", "Factory", "Europe", "../../etc/passwd", "/etc/localtime", "posix/UTC",
     "right/Europe/Berlin", "Europe/Berlin\0", "Europe/Berlin ", "CET-1CEST", "x" * 5000, "tzdata.zi"],
)  # fmt: skip
def test_anything_else_is_refused_at_its_place(name: str) -> None:
    with pytest.raises(InvalidError) as caught:
        check_zone(name, "/window/timezone")
    problem = caught.value.problems[0]
    assert (problem.pointer, problem.code) == ("/window/timezone", "unknown_timezone")
    assert len(problem.detail) < 200


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Berln", "Europe/Berlin"),
        ("America/New York", "America/New_York"),
    ],
)
def test_a_misspelt_zone_gets_a_suggestion(wrong: str, right: str) -> None:
    with pytest.raises(InvalidError, match=f"did you mean {right}"):
        check_zone(wrong, "/trigger/timezone")
