"""Schedules that say events, and the outbox, as seen through the API."""

from datetime import datetime
from typing import Any

import httpx2
import pytest

from tests.api.answers import made, pointers, problem
from tests.api.hosts import Host, yearly
from tests.api.served import SCHEDULES, V1
from tests.waiting import until

DATABASES = ("postgres",)

EVENT = {"kind": "event", "event_topic": "orders", "event_type": "OrdersDue", "event_data": {"region": "eu"}}


def new_schedule(operator: httpx2.Client, **fields: Any) -> str:
    document = yearly(**{"target": EVENT, **fields})
    return f"{SCHEDULES}/{made(operator.post(SCHEDULES, json=document))['schedule_id']}"


def events_of(operator: httpx2.Client, path: str) -> list[dict[str, Any]]:
    schedule_id = path.rpartition("/")[2]
    found, after = [], 0
    while True:
        page = operator.get(f"{V1}/events", params={"after": after, "page_size": 500}).json()
        found += page["items"]
        if not page["items"]:
            return [each for each in found if each["aggregate_id"] == schedule_id]
        after = page["items"][-1]["offset"]


def test_a_due_time_is_an_event_and_its_execution_is_over(operator: httpx2.Client) -> None:
    path = new_schedule(operator, trigger={"kind": "interval", "seconds": 1})
    until(lambda: len(events_of(operator, path)) >= 2)
    operator.post(f"{path}/pause")
    first, second = events_of(operator, path)[:2]
    assert (first["event_topic"], first["event_type"]) == ("orders", "OrdersDue")
    assert (first["aggregate_version"], second["aggregate_version"]) == (1, 2)
    execution = operator.get(f"{V1}/executions/{first['id']}").json()
    assert (execution["status"], execution["attempt"]) == ("success", 1)
    assert datetime.fromisoformat(execution["fire_ts"]) == datetime.fromisoformat(first["payload"]["time"])
    assert first["payload"]["data"] == {"region": "eu"}
    assert operator.get(path).json()["last_status"] == "success"


def test_offsets_follow_one_another(operator: httpx2.Client) -> None:
    path = new_schedule(operator)
    for _ in range(3):
        assert operator.post(f"{path}/trigger").status_code == 202
    page = operator.get(f"{V1}/events", params={"page_size": 500}).json()
    offsets = [each["offset"] for each in page["items"]]
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
    assert page["last_offset"] >= offsets[-1]


def test_a_manual_run_is_an_event_with_its_arguments(operator: httpx2.Client) -> None:
    path = new_schedule(operator)
    answer = operator.post(f"{path}/trigger", json={"args": {"region": "us"}})
    execution = operator.get(answer.headers["location"]).json()
    assert (execution["status"], execution["triggered_by"]) == ("success", "api")
    [event] = events_of(operator, path)
    assert (event["id"], event["payload"]["data"]) == (execution["execution_id"], {"region": "us"})


def test_arguments_for_data_that_is_no_object_are_refused(operator: httpx2.Client) -> None:
    target = {**EVENT, "event_data": '{"specversion": "1.0", "type": "T", "data": [1]}'}
    path = new_schedule(operator, target=target)
    assert pointers(problem(operator.post(f"{path}/trigger", json={"args": {"a": 1}}), 422)) == {
        "/args": "no_arguments"
    }
    assert operator.post(f"{path}/trigger").status_code == 202


def test_a_backfill_says_an_event_for_each_of_its_times(operator: httpx2.Client) -> None:
    path = new_schedule(operator)
    body = {"from_ts": "2020-01-01T00:00:00Z", "to_ts": "2023-01-01T00:00:00Z"}
    assert operator.post(f"{path}/backfill", json=body).status_code == 202
    until(lambda: len(events_of(operator, path)) == 3)
    years = [each["payload"]["time"][:4] for each in events_of(operator, path)]
    assert years == ["2020", "2021", "2022"]


@pytest.mark.parametrize(
    "event_data", ["no JSON", "[]", '{"specversion": "2.0"}', {"token": "${secret:agent}"}, 5, None]
)
def test_data_that_is_no_event_is_refused_and_named(operator: httpx2.Client, event_data: Any) -> None:
    document = yearly(target={**EVENT, "event_data": event_data})
    answer = operator.post(SCHEDULES, json=document)
    assert all(each.startswith("/target/event_data") for each in pointers(problem(answer, 422)))


def test_kinds_say_that_events_can_be_had(operator: httpx2.Client) -> None:
    kinds = {each["name"]: each for each in operator.get(f"{V1}/kinds").json()["items"]}
    assert kinds["event"]["is_available"] is True


def test_another_host_sees_none_of_them(operator: httpx2.Client, hosts: tuple[Host, Host]) -> None:
    path = new_schedule(operator)
    operator.post(f"{path}/trigger")
    assert events_of(operator, path)
    assert events_of(hosts[1].admin, path) == []
