"""What a schedule leaves out comes from its task function, on every way in."""

from typing import Any

import httpx2
import pytest

from foliot.db.rows.registry_rows import TaskRecord
from tests.api.answers import made
from tests.api.hosts import unique, yearly
from tests.api.served import SCHEDULES, V1, Served

SERVER: dict[str, Any] = {}
TASK = TaskRecord(
    "send_report",
    "Send report",
    "",
    "app.send_report",
    "async_function",
    "reports",
    600.0,
    {"type": "object"},
    default_retry={"max_attempts": 6, "initial_delay_seconds": 2},
)
"""Of a worker elsewhere: this process knows what the worker wrote to the registry, and no more."""
PLAIN = TaskRecord("plain", "Plain", "", "app.plain", "async_function", None, 300.0, {"type": "object"})
TARGET = {"kind": "function", "name": "send_report"}


@pytest.fixture(autouse=True)
def _registered(server: Served) -> None:
    server.run(server.instance.store.registry.register_tasks([TASK, PLAIN]))


def taken(document: dict[str, Any]) -> tuple[str, float, int, float]:
    retry = document["retry"]
    return (
        document["queue"],
        document["timeout_seconds"],
        retry["max_attempts"],
        retry["initial_delay_seconds"],
    )


OF_TASK = ("reports", 600, 6, 2)
USUAL = ("default", 300, 3, 1)


def path_of(document: dict[str, Any]) -> str:
    return f"{SCHEDULES}/{document['schedule_id']}"


def test_a_post_takes_from_the_task_what_it_leaves_out(operator: httpx2.Client) -> None:
    assert taken(made(operator.post(SCHEDULES, json=yearly(target=TARGET)))) == OF_TASK


def test_a_post_keeps_what_it_gives(operator: httpx2.Client) -> None:
    given = yearly(target=TARGET, queue="default", timeout_seconds=300, retry={"max_attempts": 1})
    assert taken(made(operator.post(SCHEDULES, json=given))) == ("default", 300, 1, 2)


def test_a_put_fills_in_anew_and_a_patch_keeps_what_it_does_not_name(operator: httpx2.Client) -> None:
    given = yearly(target=TARGET, queue="mail", timeout_seconds=60, retry={"max_attempts": 1})
    path = path_of(made(operator.post(SCHEDULES, json=given)))
    patched = made(operator.patch(path, json={"description": "changed"}), 200)
    assert taken(patched) == ("mail", 60, 1, 2)
    short = {name: given[name] for name in ("name", "trigger", "target")}
    assert taken(made(operator.put(path, json=short), 200)) == OF_TASK


def test_a_patch_to_another_task_keeps_what_is_stored_and_null_takes_it_from_the_task(
    operator: httpx2.Client,
) -> None:
    path = path_of(made(operator.post(SCHEDULES, json=yearly(target={"kind": "function", "name": "plain"}))))
    moved = made(operator.patch(path, json={"target": TARGET}), 200)
    assert taken(moved) == USUAL
    asked = {"queue": None, "timeout_seconds": None, "retry": None}
    assert taken(made(operator.patch(path, json=asked), 200)) == OF_TASK


def test_applied_twice_nothing_differs(operator: httpx2.Client) -> None:
    name = unique("applied")
    files = {"schedules": [yearly(name, target=TARGET)], "source": name}
    first = made(operator.post(f"{SCHEDULES}/apply", json=files), 200)
    assert [each["action"] for each in first["items"]] == ["create"]
    [listed] = made(operator.get(SCHEDULES, params={"name": name}), 200)["items"]
    assert taken(listed) == OF_TASK
    again = made(operator.post(f"{SCHEDULES}/apply", json={**files, "dry_run": True}), 200)
    assert [(each["action"], each["changes"]) for each in again["items"]] == [("unchanged", [])]


def test_a_task_function_shows_what_schedules_take_from_it(operator: httpx2.Client) -> None:
    shown = made(operator.get(f"{V1}/task-functions/send_report"), 200)
    assert (shown["queue"], shown["default_timeout_seconds"]) == ("reports", 600)
    assert shown["default_retry"]["max_attempts"] == 6
    assert made(operator.get(f"{V1}/task-functions/plain"), 200)["default_retry"] is None
