"""`foliot simulate` with schedules from files."""

import json
from pathlib import Path
from typing import Any

import pytest

from foliot.cli import main
from foliot.model.error_codes import Exit

FILE = """
name: nightly
trigger: {kind: cron, expression: "30 2 * * *", timezone: Europe/Berlin}
target: {kind: function, name: report}
---
name: hourly
trigger: {kind: cron, expression: "0 * * * *", timezone: UTC}
target: {kind: function, name: report}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "schedules.yaml"
    path.write_text(FILE)
    return str(path)


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["simulate", *arguments, "-o", "json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_decisions_of_all_schedules_are_told_in_order(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    span = ("--from", "2026-03-28T22:30+00:00", "--to", "2026-03-29T02:30+00:00")
    outage = ("--outage", "2026-03-29T00:30+00:00/2026-03-29T02:15+00:00")
    found = simulated(capsys, "-f", file, *span, *outage)
    told = [(each["schedule"], each["decided_ts"][11:16], each["missed_count"]) for each in found]
    # Half past two does not exist that night in Berlin: it is three, and more than an hour late at 02:15 UTC.
    assert told == [
        ("hourly", "23:00", 0),
        ("hourly", "00:00", 0),
        ("hourly", "02:15", 1),
        ("nightly", "02:15", 0),
    ]
    assert [each["reason"] for each in found] == [None, None, None, "misfire"]
    assert [each["fires"] for each in found] == [True, True, True, False]


def test_a_table_is_for_people_and_says_when_there_is_more(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "-f", file, "--from", "2026-03-28T22:30+00:00", "-n", "2"]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 3
    assert "hourly" in told.out
    assert "fires" in told.out
    assert "more" in told.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--outage", "2026-03-29"), "--outage"),
        (("--outage", "2026-03-29/2026-03-28"), "--outage"),
        (("--from", "never"), "--from"),
        (("--from", "2026-03-29", "--to", "2026-03-28"), "--to"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    file: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], named: str
) -> None:
    assert main(["simulate", "-f", file, *arguments]) == Exit.USAGE
    assert named in capsys.readouterr().err
