"""Foliot's own functions: shown, and neither scheduled nor switched off by anybody."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from foliot import Foliot, every
from foliot.cli import main
from foliot.model.errors import InvalidError
from tests.api.answers import made, problem
from tests.api.hosts import unique, yearly
from tests.api.served import OPERATOR_KEY, SCHEDULES, V1, Served

NAME = "foliot.prune_history"
TARGET = {"kind": "function", "name": NAME}


def refusal(answer: httpx2.Response, pointer: str) -> None:
    [error] = problem(answer, 422)["errors"]
    assert (error["pointer"], error["code"]) == (pointer, "system_task")


def test_a_schedule_of_a_system_function_is_refused(
    operator: httpx2.Client, path: str, definition: dict[str, Any]
) -> None:
    refusal(operator.post(SCHEDULES, json=yearly(target=TARGET)), "/target/name")
    merge = {"Content-Type": "application/merge-patch+json"}
    patch = json.dumps({"target": TARGET})
    refusal(operator.patch(path, content=patch, headers=merge), "/target/name")
    refusal(operator.put(path, json=definition | {"target": TARGET}), "/target/name")


def test_applied_files_can_not_name_one(
    server: Served, operator: httpx2.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = yearly(target=TARGET)
    for dry_run in (True, False):
        body = {"schedules": [document], "source": unique("source"), "dry_run": dry_run}
        refusal(operator.post(f"{SCHEDULES}/apply", json=body), "/schedules/0/target/name")
    file = tmp_path / "schedule.json"
    file.write_text(json.dumps(document))
    monkeypatch.setenv("FOLIOT_URL", server.url)
    monkeypatch.setenv("FOLIOT_KEY", OPERATOR_KEY)
    assert main(["schedule", "apply", "-f", str(file)]) == 2
    assert operator.get(SCHEDULES, params={"name": document["name"]}).json()["items"] == []


def test_code_can_not_declare_one() -> None:
    app = Foliot("memory")

    async def own() -> None:
        """Of the user's own, under a name of Foliot's."""

    task = app.task(name=NAME)(own)
    with pytest.raises(InvalidError, match=r"target\.name"):
        app.schedule("mine", task, when=every(hours=1))


@pytest.mark.parametrize("is_active", [True, False])
def test_switching_one_is_refused(operator: httpx2.Client, is_active: bool) -> None:
    told = problem(operator.patch(f"{V1}/task-functions/{NAME}", json={"is_active": is_active}), 409)
    assert told["errors"][0]["code"] == "system_task"
    assert made(operator.get(f"{V1}/task-functions/{NAME}"), 200)["is_active"] is True
