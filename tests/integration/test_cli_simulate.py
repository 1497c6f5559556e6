"""`foliot simulate` against a real server: schedules go on from where they stand."""

import json
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foliot.cli import main
from foliot.model.error_codes import Exit
from tests.api.served import API_ALONE, OPERATOR_KEY, SCHEDULES, Served, served


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name in [name for name in os.environ if name.startswith("FOLIOT_")]:
        monkeypatch.delenv(name)
    with served(f"sqlite:///{tmp_path / 'foliot.db'}", roles=API_ALONE) as made:
        monkeypatch.setenv("FOLIOT_URL", made.url)
        monkeypatch.setenv("FOLIOT_KEY", OPERATOR_KEY)
        yield made


def created(server: Served, name: str) -> dict[str, Any]:
    document = {
        "name": name,
        "trigger": {"kind": "interval", "hours": 1},
        "target": {"kind": "function", "name": "noop"},
        "max_runs": 3,
    }
    answer = server.by(OPERATOR_KEY).post(SCHEDULES, json=document)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_a_schedule_goes_on_from_its_next_time_and_an_outage_holds_it_up(
    server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    first = datetime.fromisoformat(created(server, "hourly")["next_fire_ts"])
    hour = timedelta(hours=1)
    outage = f"{(first + 0.5 * hour).isoformat()}/{(first + 1.25 * hour).isoformat()}"
    assert main(["simulate", "hourly", "--to", "10h", "--outage", outage, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [datetime.fromisoformat(each["fire_ts"]) - first for each in found] == [0 * hour, hour, 2 * hour]
    late = [datetime.fromisoformat(each["decided_ts"]) - first for each in found]
    assert late == [0 * hour, 1.25 * hour, 2 * hour]


def test_all_are_simulated_and_what_is_paused_says_so(
    server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    created(server, "one")
    paused = created(server, "two")["schedule_id"]
    assert server.by(OPERATOR_KEY).post(f"{SCHEDULES}/{paused}/pause", json={}).status_code == 200
    assert main(["simulate", "-o", "json"]) == 0
    told = capsys.readouterr()
    assert {each["schedule"] for each in json.loads(told.out)} == {"one"}
    assert "two is paused" in told.err
    assert main(["simulate", "three"]) == Exit.NOT_FOUND
