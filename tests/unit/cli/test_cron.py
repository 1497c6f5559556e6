"""`foliot cron explain`."""

import json
from typing import Any

import pytest

from foliot.cli import main


def _explain(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["cron", "explain", *arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_expression_is_told_in_words_with_its_next_times(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["cron", "explain", "0 7 * * mon", "--tz", "Europe/Paris", "-n", "2", "--from", "2026-06-01"])
    told = capsys.readouterr()
    assert code == 0
    assert told.out.splitlines() == [
        "At 07:00, only on Monday (Europe/Paris)",
        "2026-06-01T07:00:00+02:00  Mon",
        "2026-06-08T07:00:00+02:00  Mon",
    ]
    assert told.err == ""


def test_a_start_without_offset_is_of_the_zone_and_itself_included(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = _explain(capsys, "0 * * * *", "--tz", "Asia/Tokyo", "-n", "1", "--from", "2026-06-01T09:00")
    assert told["fires"] == ["2026-06-01T09:00:00+09:00"]


def test_a_start_with_an_offset_is_that_instant(capsys: pytest.CaptureFixture[str]) -> None:
    told = _explain(capsys, "0 * * * *", "--tz", "Asia/Tokyo", "-n", "1", "--from", "2026-06-01T00:30Z")
    assert told["fires"] == ["2026-06-01T10:00:00+09:00"]


def test_without_a_start_the_times_are_to_come_and_ten(capsys: pytest.CaptureFixture[str]) -> None:
    told = _explain(capsys, "*/15 * * * * *")
    assert len(told["fires"]) == 10
    assert told["fires"] == sorted(told["fires"])
    assert told["warnings"] == []


def test_a_time_that_the_clocks_leave_out_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    told = _explain(capsys, "30 2 * * *", "--tz", "Europe/Berlin", "-n", "3", "--from", "2026-03-28")
    assert told["fires"][1] == "2026-03-29T03:00:00+02:00"
    [warning] = told["warnings"]
    assert warning.startswith("2026-03-29T02:30:00 is left out by the clocks that day")
    assert warning.endswith("fires at 2026-03-29T03:00:00+02:00 instead")


def test_a_time_that_comes_twice_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    told = _explain(capsys, "30 2 * * *", "--tz", "Europe/Berlin", "-n", "3", "--from", "2026-10-24")
    assert told["fires"][1] == "2026-10-25T02:30:00+02:00"
    assert told["warnings"] == [
        "2026-10-25T02:30:00 comes twice that day and fires the first time only: at 2026-10-25T02:30:00+02:00"
    ]


def test_an_expression_that_follows_real_time_is_not_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    told = _explain(capsys, "*/30 * * * *", "--tz", "Europe/Berlin", "-n", "8", "--from", "2026-10-25")
    assert len(set(told["fires"])) == 8
    assert told["warnings"] == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["61 * * * *"], "minute field"),
        (["* * 0 * *"], "day-of-month field"),
        (["* * *"], "5 fields"),
        ([""], "expression"),
        (["0 0 30 2 *"], "never fires"),
        (["@daily", "--tz", "Europe/Berln"], "did you mean Europe/Berlin?"),
        (["@daily", "--from", "gestern"], "gestern"),
        (["@daily", "-n", "0"], "-n"),
    ],
)
def test_wrong_input_is_a_usage_error_that_names_what_is_wrong(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cron", "explain", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert named in told.err
