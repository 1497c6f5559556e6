"""Schedules over REST, promise by promise."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.store.schema import host_t
from tests.api.hosts import made, unique, yearly
from tests.api.served import OPERATOR_KEY, V1, Served
from tests.api.waiting import until

SCHEDULES = f"{V1}/schedules"

READ_ONLY: dict[str, Any] = {
    "schedule_id": str(uuid4()),
    "host_id": str(uuid4()),
    "state": "error",
    "next_run_ts": "2099-01-01T00:00:00Z",
    "next_fire_ts": "2099-01-01T00:00:00Z",
    "last_run_ts": "2020-01-01T00:00:00Z",
    "last_status": "success",
    "paused": True,
    "pause_reason": "because",
    "paused_until_ts": "2099-01-01T00:00:00Z",
    "run_count": 7,
    "aggregate_version": 7,
    "managed_by": "code",
    "created_by": "somebody",
    "created_ts": "2020-01-01T00:00:00Z",
    "updated_by": "somebody",
    "updated_ts": "2020-01-01T00:00:00Z",
}
"""Each with a value that a new schedule does not have."""
INTERNAL = ("epoch", "shard", "slot", "deleted_ts", "event_seq", "effective_ts", "schedule_name")


@pytest.fixture
def definition() -> dict[str, Any]:
    return yearly()


@pytest.fixture
def schedule(operator: httpx2.Client, definition: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = made(operator.post(SCHEDULES, json=definition))
    return document


@pytest.fixture
def path(schedule: dict[str, Any]) -> str:
    return f"{SCHEDULES}/{schedule['schedule_id']}"


def problem(answer: httpx2.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert document["detail"]
    assert document["request_id"] == answer.headers["x-request-id"]
    for each in document.get("errors", ()):
        assert set(each) == {"pointer", "code", "detail", "hint"}
    return document


def pointers(document: dict[str, Any]) -> dict[str, str]:
    return {each["pointer"]: each["code"] for each in document.get("errors", ())}


# --- making ----------------------------------------------------------------------------------------


def test_a_schedule_that_is_made_is_answered_with_its_address_and_its_etag(
    operator: httpx2.Client, definition: dict[str, Any]
) -> None:
    answer = operator.post(SCHEDULES, json=definition)
    document = made(answer)
    assert answer.headers["location"] == f"{SCHEDULES}/{document['schedule_id']}"
    assert answer.headers["etag"] == f'"{document["aggregate_version"]}"'
    read = operator.get(answer.headers["location"])
    assert (read.json(), read.headers["etag"]) == (document, answer.headers["etag"])


def test_name_trigger_and_target_are_enough_and_the_rest_has_its_documented_default(
    schedule: dict[str, Any],
) -> None:
    documented = {
        "description": "",
        "active": True,
        "priority": "medium",
        "queue": "default",
        "start_ts": None,
        "end_ts": None,
        "max_runs": None,
        "timeout_seconds": 300,
        "misfire": {"policy": "fire_once", "grace_seconds": 3600, "max_catchup": 100},
        "overlap": {"policy": "skip", "max_instances": 1},
        "delivery": "at_least_once",
        "dst": {"gap": "shift", "repeat": "first"},
        "labels": {},
        "window": None,
        "calendars": [],
        "jitter_seconds": 0,
        "state": "active",
        "paused": False,
        "run_count": 0,
        "aggregate_version": 1,
        "managed_by": "api",
        "created_by": "operator",
    }
    assert {name: schedule[name] for name in documented} == documented
    retry = {"max_attempts": 3, "initial_delay_seconds": 1, "multiplier": 2, "max_delay_seconds": 30}
    assert schedule["retry"].items() >= retry.items()
    assert set(READ_ONLY) <= set(schedule)


@pytest.mark.parametrize("missing", ["name", "trigger", "target"])
def test_what_is_required_is_asked_for_by_name(
    operator: httpx2.Client, definition: dict[str, Any], missing: str
) -> None:
    del definition[missing]
    assert pointers(problem(operator.post(SCHEDULES, json=definition), 422)) == {f"/{missing}": "missing"}


def test_the_example_of_the_interface_is_accepted_as_it_stands(operator: httpx2.Client) -> None:
    document = {
        "name": unique("nightly-report"),
        "description": "",
        "active": True,
        "priority": "medium",
        "queue": "default",
        "trigger": {"kind": "cron", "expression": "0 2 * * *", "timezone": "Europe/Berlin"},
        "target": {
            "kind": "http",
            "method": "POST",
            "url": "https://agent.example/run",
            "headers": {"Authorization": "Bearer ${secret:agent_token}"},
            "body": {"report": "daily"},
        },
        "start_ts": None,
        "end_ts": None,
        "max_runs": None,
        "timeout_seconds": 300,
        "misfire": {"policy": "fire_once", "grace_seconds": 3600, "max_catchup": 100},
        "overlap": {"policy": "skip", "max_instances": 1},
        "retry": {
            "max_attempts": 3,
            "initial_delay_seconds": 1,
            "multiplier": 2,
            "max_delay_seconds": 30,
        },
        "delivery": "at_least_once",
        "dst": {"gap": "shift", "repeat": "first"},
        "labels": {"team": "pay"},
        "window": {
            "days_of_week": [1, 2, 3, 4, 5],
            "hours_of_day": [9, 10, 11],
            "timezone": "Europe/Berlin",
        },
        "calendars": [],
        "jitter_seconds": 0,
    }
    answer = made(operator.post(SCHEDULES, json=document))
    document["retry"] = answer["retry"]
    document["target"]["expected_status"] = None  # type: ignore[index]
    assert {name: answer[name] for name in document} == document


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            {"kind": "interval", "hours": 1, "minutes": 30},
            {"kind": "interval", "frequency_unit": "MINUTES", "frequency_time": 90},
        ),
        (
            {"kind": "interval", "frequency_unit": "MINUTES", "frequency_time": 5, "timezone": "UTC"},
            {"frequency_unit": "MINUTES", "frequency_time": 5},
        ),
        ({"kind": "cron", "fields": {"hour": "*/2", "minute": "0"}}, {"expression": "0 */2 * * *"}),
        ({"kind": "cron", "expression": "30 0 2 * * *"}, {"expression": "30 0 2 * * *"}),
        ({"kind": "cron", "expression": "@daily"}, {"timezone": "UTC"}),
        ({"kind": "rrule", "rule": "FREQ=MONTHLY;BYDAY=-1FR", "timezone": "Europe/Berlin"}, {}),
        ({"kind": "delay", "seconds": 30}, {"seconds": 30}),
    ],
)
def test_every_spelling_of_a_trigger_is_taken_and_normalised(
    operator: httpx2.Client, given: dict[str, Any], kept: dict[str, Any]
) -> None:
    document = made(operator.post(SCHEDULES, json=yearly(trigger=given)))
    assert document["trigger"].items() >= kept.items()


def test_a_single_time_that_is_past_is_taken_within_its_grace_and_refused_beyond(
    operator: httpx2.Client,
) -> None:
    def once(ago: timedelta) -> httpx2.Response:
        at = (datetime.now(UTC) - ago).isoformat()
        return operator.post(SCHEDULES, json=yearly(trigger={"kind": "once", "at": at}))

    made(once(timedelta(minutes=50)))
    assert pointers(problem(once(timedelta(minutes=70)), 422)) == {"/trigger/at": "in_the_past"}


def test_a_taken_name_is_a_conflict_until_its_holder_is_deleted(
    operator: httpx2.Client, definition: dict[str, Any], path: str
) -> None:
    assert problem(operator.post(SCHEDULES, json=definition), 409)["code"] == "name_taken"
    assert operator.delete(path).status_code == 204
    made(operator.post(SCHEDULES, json=definition))


def test_renaming_to_a_taken_name_is_a_conflict(operator: httpx2.Client, path: str) -> None:
    taken = made(operator.post(SCHEDULES, json=yearly()))["name"]
    assert problem(operator.patch(path, json={"name": taken}), 409)["code"] == "name_taken"


@pytest.mark.parametrize("field", [*READ_ONLY, *INTERNAL])
def test_a_field_that_only_foliot_sets_is_refused_in_a_new_schedule(
    operator: httpx2.Client, definition: dict[str, Any], field: str
) -> None:
    answer = operator.post(SCHEDULES, json={**definition, field: READ_ONLY.get(field, 1)})
    assert f"/{field}" in pointers(problem(answer, 422))


@pytest.mark.parametrize(
    ("pointer", "change"),
    [
        ("/colour", {"colour": "red"}),
        ("/trigger/colour", {"trigger": {"kind": "interval", "hours": 1, "colour": "red"}}),
        ("/target/colour", {"target": {"kind": "function", "name": "noop", "colour": "red"}}),
        ("/misfire/colour", {"misfire": {"colour": "red"}}),
        ("/overlap/colour", {"overlap": {"colour": "red"}}),
        ("/retry/colour", {"retry": {"colour": "red"}}),
        ("/dst/colour", {"dst": {"colour": "red"}}),
        ("/window/colour", {"window": {"colour": "red"}}),
    ],
)
def test_an_unknown_field_is_refused_and_named_wherever_it_stands(
    operator: httpx2.Client, path: str, pointer: str, change: dict[str, Any]
) -> None:
    for answer in (
        operator.post(SCHEDULES, json={**yearly(), **change}),
        operator.put(path, json={**yearly(), **change}),
        operator.patch(path, json=change),
    ):
        assert pointer in pointers(problem(answer, 422))


def test_every_field_that_is_wrong_is_named_at_once(operator: httpx2.Client) -> None:
    document = yearly(priority="urgent", timeout_seconds=-1, queue="no spaces", max_runs=0)
    found = pointers(problem(operator.post(SCHEDULES, json=document), 422))
    assert set(found) == {"/priority", "/timeout_seconds", "/queue", "/max_runs"}


@pytest.mark.parametrize(
    ("target", "pointer"),
    [
        ({"kind": "function", "name": "os.system"}, "/target/name"),
        ({"kind": "function", "name": "nop"}, "/target/name"),
        ({"kind": "function", "name": "greet"}, "/target/args/name"),
        ({"kind": "function", "name": "greet", "args": {"name": "x", "times": "y"}}, "/target/args/times"),
        ({"kind": "function", "name": "noop", "args": {"x": 1}}, "/target/args/x"),
        ({"kind": "http", "url": "ftp://example.com/"}, "/target/url"),
        ({"kind": "sundial"}, "/target"),
    ],
)
def test_a_target_that_could_not_be_carried_out_is_refused_when_it_is_saved(
    operator: httpx2.Client, target: dict[str, Any], pointer: str
) -> None:
    assert pointer in pointers(problem(operator.post(SCHEDULES, json=yearly(target=target)), 422))


# --- changing --------------------------------------------------------------------------------------


def test_what_was_read_can_be_edited_and_written_back_whole(
    operator: httpx2.Client, schedule: dict[str, Any], path: str
) -> None:
    for method in ("PUT", "PATCH"):
        same = operator.request(method, path, json=schedule)
        assert same.status_code == 200, same.text
        assert same.json() == schedule, "nothing was said, so nothing has changed"
    edited = operator.put(path, json={**schedule, "description": "edited"})
    assert edited.status_code == 200, edited.text
    assert edited.json()["description"] == "edited"
    assert edited.json()["aggregate_version"] == schedule["aggregate_version"] + 1
    assert edited.headers["etag"] == f'"{schedule["aggregate_version"] + 1}"'


@pytest.mark.parametrize("field", READ_ONLY)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_changed_read_only_field_is_refused_as_such(
    operator: httpx2.Client, schedule: dict[str, Any], path: str, method: str, field: str
) -> None:
    assert schedule[field] != READ_ONLY[field]
    whole = schedule if method == "PUT" else {}
    document = problem(operator.request(method, path, json={**whole, field: READ_ONLY[field]}), 422)
    assert document["code"] == "read_only"
    assert pointers(document) == {f"/{field}": "read_only"}


def test_times_may_come_back_in_another_spelling(
    operator: httpx2.Client, schedule: dict[str, Any], path: str
) -> None:
    moved = datetime.fromisoformat(schedule["created_ts"]).astimezone().isoformat()
    assert operator.put(path, json={**schedule, "created_ts": moved}).status_code == 200


def test_a_schedule_that_fired_between_reading_and_writing_can_still_be_written_back(
    operator: httpx2.Client,
) -> None:
    trigger = {"kind": "interval", "seconds": 1}
    document = made(operator.post(SCHEDULES, json=yearly(trigger=trigger)))
    path = f"{SCHEDULES}/{document['schedule_id']}"

    def has_fired() -> bool:
        now = operator.get(path).json()
        return bool(now["run_count"] >= document["run_count"] + 2 and now["last_status"] == "success")

    until(has_fired)
    first = operator.put(path, json={**document, "description": "written back"})
    assert first.status_code == 200, first.text
    document = operator.get(path).json()
    until(has_fired)
    answer = operator.put(path, json={**document, "description": "and again"})
    assert answer.status_code == 200, answer.text
    assert operator.delete(path).status_code == 204


def test_internal_fields_are_refused_in_a_change_as_well(operator: httpx2.Client, path: str) -> None:
    for field in INTERNAL:
        assert f"/{field}" in pointers(problem(operator.patch(path, json={field: 1}), 422))
        assert f"/{field}" in pointers(problem(operator.put(path, json={**yearly(), field: 1}), 422))


def test_a_put_gives_what_it_leaves_out_its_default(operator: httpx2.Client) -> None:
    document = made(operator.post(SCHEDULES, json=yearly(priority="high", labels={"team": "pay"})))
    path = f"{SCHEDULES}/{document['schedule_id']}"
    replaced = operator.put(path, json=yearly(document["name"])).json()
    assert (replaced["priority"], replaced["labels"]) == ("medium", {})


@pytest.mark.parametrize("media", ["application/merge-patch+json", "application/json"])
def test_a_patch_changes_what_it_names_and_null_gives_the_default(
    operator: httpx2.Client, media: str
) -> None:
    labels = {"team": "pay", "tier": "gold"}
    document = made(operator.post(SCHEDULES, json=yearly(priority="high", labels=labels, max_runs=5)))
    path = f"{SCHEDULES}/{document['schedule_id']}"
    answer = operator.patch(
        path,
        content=b'{"labels": {"tier": null, "zone": "eu"}, "max_runs": null, "retry": {"max_attempts": 9}}',
        headers={"Content-Type": media},
    )
    assert answer.status_code == 200, answer.text
    changed = answer.json()
    assert changed["labels"] == {"team": "pay", "zone": "eu"}
    assert (changed["max_runs"], changed["priority"]) == (None, "high")
    assert changed["retry"] == {**document["retry"], "max_attempts": 9}


def test_a_patch_to_another_kind_of_trigger_or_target_takes_nothing_of_the_old_one_along(
    operator: httpx2.Client, path: str
) -> None:
    target = {"kind": "http", "url": "https://example.com/"}
    answer = operator.patch(path, json={"trigger": {"kind": "interval", "hours": 1}, "target": target})
    assert answer.status_code == 200, answer.text
    assert answer.json()["trigger"]["kind"] == "interval"
    again = operator.patch(path, json={"trigger": {"minutes": 5}})
    assert again.status_code == 200, again.text
    assert again.json()["trigger"]["frequency_time"] == 5


@pytest.mark.parametrize("body", [b"[]", b"5", b'"x"', b"", b"null"])
def test_a_change_is_an_object(operator: httpx2.Client, path: str, body: bytes) -> None:
    for method in ("PUT", "PATCH"):
        answer = operator.request(method, path, content=body, headers={"Content-Type": "application/json"})
        problem(answer, 422)


# --- versions --------------------------------------------------------------------------------------

Change = Callable[[httpx2.Client, str, dict[str, str]], httpx2.Response]
CHANGES: dict[str, Change] = {
    "put": lambda client, path, headers: client.put(path, json=yearly(), headers=headers),
    "patch": lambda client, path, headers: client.patch(path, json={"description": "x"}, headers=headers),
    "pause": lambda client, path, headers: client.post(f"{path}/pause", headers=headers),
    "resume": lambda client, path, headers: client.post(f"{path}/resume", headers=headers),
    "restore": lambda client, path, headers: client.post(f"{path}/versions/1/restore", headers=headers),
    "delete": lambda client, path, headers: client.delete(path, headers=headers),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("stale", ['"1"', 'W/"1"', '"0"', '"nonsense"', '"1", "0"', '""', "1"])
def test_a_change_made_for_another_version_is_refused_and_told_the_current_one(
    operator: httpx2.Client, path: str, change: Change, stale: str
) -> None:
    current = operator.patch(path, json={"description": "by somebody else"})
    answer = change(operator, path, {"If-Match": stale})
    document = problem(answer, 412)
    assert document["code"] == "stale_version"
    assert document["current_version"] == current.json()["aggregate_version"]
    assert answer.headers["etag"] == current.headers["etag"]
    assert operator.get(path).json() == current.json()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_made_for_the_current_version_is_made(
    operator: httpx2.Client, path: str, change: Change
) -> None:
    etag = operator.get(path).headers["etag"]
    assert change(operator, path, {"If-Match": etag}).is_success
    assert change(operator, path, {"If-Match": "*"}).status_code in (200, 404)


def test_every_change_is_a_version_with_its_author_and_reason(
    operator: httpx2.Client, schedule: dict[str, Any], path: str
) -> None:
    operator.patch(path, json={"description": "second"}, headers={"X-Foliot-Reason": "typo"})
    operator.post(f"{path}/pause", json={"reason": "moving"})
    operator.post(f"{path}/resume")
    versions = operator.get(f"{path}/versions").json()["items"]
    assert [each["aggregate_version"] for each in versions] == [4, 3, 2, 1]
    assert [each["change"] for each in versions] == ["resumed", "paused", "edited", "created"]
    assert [each["author"] for each in versions] == ["operator"] * 4
    assert [each["reason"] for each in versions][1:3] == ["moving", "typo"]
    second = operator.get(f"{path}/versions/2").json()
    assert second["changes"] == [{"pointer": "/description", "before": "", "after": "second"}]
    assert operator.get(f"{path}/versions/2?against=2").json()["changes"] == []
    assert operator.get(f"{path}/versions/5").status_code == 404
    restored = operator.post(f"{path}/versions/1/restore").json()
    assert (restored["description"], restored["aggregate_version"]) == (schedule["description"], 5)


def test_versions_are_read_a_page_at_a_time(operator: httpx2.Client, path: str) -> None:
    for number in range(6):
        operator.patch(path, json={"description": str(number)})
    assert [each["aggregate_version"] for each in walk(operator, f"{path}/versions", page_size=2)] == [
        7,
        6,
        5,
        4,
        3,
        2,
        1,
    ]


# --- deleting --------------------------------------------------------------------------------------


def test_a_deleted_schedule_is_gone_from_everywhere_but_its_history(
    operator: httpx2.Client, schedule: dict[str, Any], path: str
) -> None:
    execution_id = made(operator.post(f"{path}/trigger"), 202)["execution_id"]
    assert operator.delete(path).status_code == 204
    assert operator.get(path).status_code == 404
    assert operator.delete(path).status_code == 404
    for act in ("pause", "resume", "trigger"):
        assert operator.post(f"{path}/{act}").status_code == 404
    listed = operator.get(SCHEDULES, params={"name": schedule["name"]}).json()
    assert listed == {"items": [], "next_page_token": ""}
    assert operator.get(f"{V1}/executions/{execution_id}").status_code == 200
    found = operator.get(f"{V1}/executions", params={"schedule_id": schedule["schedule_id"]}).json()
    assert [each["execution_id"] for each in found["items"]] == [execution_id]


# --- pausing ---------------------------------------------------------------------------------------


def test_a_pause_is_shown_with_its_reason_and_its_end_and_lifted_by_resume(
    operator: httpx2.Client, path: str
) -> None:
    until_ts = "2031-06-01T12:00:00+02:00"
    answer = operator.post(f"{path}/pause", json={"reason": "moving", "until_ts": until_ts})
    paused = made(answer, 200)
    assert answer.headers["etag"] == '"2"'
    assert (paused["state"], paused["paused"], paused["pause_reason"]) == ("paused", True, "moving")
    assert datetime.fromisoformat(paused["paused_until_ts"]) == datetime.fromisoformat(until_ts)
    assert datetime.fromisoformat(paused["next_fire_ts"]) == datetime(2032, 1, 1, tzinfo=UTC)
    again = operator.post(f"{path}/pause", json={"reason": "still moving"}).json()
    assert (again["paused"], again["pause_reason"], again["paused_until_ts"]) == (True, "still moving", None)
    assert again["next_fire_ts"] is None
    resumed = operator.post(f"{path}/resume").json()
    assert (resumed["state"], resumed["paused"]) == ("active", False)
    assert (resumed["pause_reason"], resumed["paused_until_ts"]) == (None, None)
    assert resumed["next_fire_ts"] is not None


def test_pausing_or_resuming_twice_is_no_toggle(operator: httpx2.Client, path: str) -> None:
    for act, is_paused in (("pause", True), ("pause", True), ("resume", False), ("resume", False)):
        assert operator.post(f"{path}/{act}").json()["paused"] is is_paused
    assert operator.get(path).json()["aggregate_version"] == 3, "what changes nothing makes no version"


def test_a_pause_that_would_be_over_already_is_refused(operator: httpx2.Client, path: str) -> None:
    answer = operator.post(f"{path}/pause", json={"until_ts": "2020-01-01T00:00:00Z"})
    assert pointers(problem(answer, 422)) == {"/until_ts": "in_the_past"}


def test_a_definition_that_is_written_anew_lifts_no_pause(
    operator: httpx2.Client, definition: dict[str, Any], path: str
) -> None:
    operator.post(f"{path}/pause")
    assert operator.put(path, json={**definition, "description": "new"}).json()["paused"] is True


# --- running ---------------------------------------------------------------------------------------


def test_a_trigger_is_accepted_with_the_address_of_its_execution(
    operator: httpx2.Client, schedule: dict[str, Any], path: str
) -> None:
    answer = operator.post(f"{path}/trigger")
    execution = made(answer, 202)
    assert answer.headers["location"] == f"{V1}/executions/{execution['execution_id']}"
    assert (execution["triggered_by"], execution["triggered_by_user"]) == ("api", "operator")
    until(lambda: operator.get(answer.headers["location"]).json()["status"] == "success")
    ended = operator.get(answer.headers["location"]).json()
    assert (ended["result"], ended["attempt"], ended["schedule_name"]) == ("done", 1, schedule["name"])
    after = operator.get(path).json()
    assert after["next_fire_ts"] == schedule["next_fire_ts"], "its own times are not moved"
    assert after["last_status"] == "success"


def test_a_trigger_takes_arguments_over_those_of_the_schedule(operator: httpx2.Client) -> None:
    target = {"kind": "function", "name": "greet", "args": {"name": "you", "times": 2}}
    document = made(operator.post(SCHEDULES, json=yearly(target=target)))
    path = f"{SCHEDULES}/{document['schedule_id']}/trigger"
    answer = operator.post(path, json={"args": {"name": "me"}})
    assert made(answer, 202)["args"] == {"name": "me"}
    until(lambda: operator.get(answer.headers["location"]).json()["status"] == "success")
    assert operator.get(answer.headers["location"]).json()["result"] == "hello me hello me "
    assert pointers(problem(operator.post(path, json={"args": {"nmae": "me"}}), 422)).keys() == {"/args/nmae"}


def test_a_paused_schedule_can_be_triggered(operator: httpx2.Client, path: str) -> None:
    operator.post(f"{path}/pause")
    location = operator.post(f"{path}/trigger").headers["location"]
    until(lambda: operator.get(location).json()["status"] == "success")
    assert operator.get(path).json()["paused"] is True


def test_a_backfill_is_accepted_with_its_address_and_runs_the_times_of_its_range(
    operator: httpx2.Client, schedule: dict[str, Any], path: str
) -> None:
    times = {"from_ts": "2020-01-01T00:00:00Z", "to_ts": "2023-01-01T00:00:00Z"}
    answer = operator.post(f"{path}/backfill", json=times)
    backfill = made(answer, 202)
    assert answer.headers["location"] == f"{V1}/backfills/{backfill['backfill_id']}"
    assert backfill["total_count"] == 3
    until(lambda: operator.get(answer.headers["location"]).json()["ended_count"] == 3)
    rows = operator.get(f"{path}/executions", params={"triggered_by": "backfill"}).json()["items"]
    assert [row["fire_ts"][:10] for row in rows] == ["2022-01-01", "2021-01-01", "2020-01-01"]
    listed = operator.get(f"{path}/backfills").json()["items"]
    assert [each["backfill_id"] for each in listed] == [backfill["backfill_id"]]


@pytest.mark.parametrize(
    ("times", "pointer"),
    [
        ({}, "/from_ts"),
        ({"from_ts": "2021-01-01T00:00:00Z", "to_ts": "2020-01-01T00:00:00Z"}, "/to_ts"),
        ({"from_ts": "2021-01-01T00:00:00", "to_ts": "2022-01-01T00:00:00Z"}, "/from_ts"),
        ({"from_ts": "2021-01-01T00:00:00Z", "to_ts": "2099-01-01T00:00:00Z"}, "/to_ts"),
        ({"from_ts": "yesterday", "to_ts": "2022-01-01T00:00:00Z"}, "/from_ts"),
    ],
)
def test_a_backfill_of_no_range_is_refused(
    operator: httpx2.Client, path: str, times: dict[str, str], pointer: str
) -> None:
    assert pointer in pointers(problem(operator.post(f"{path}/backfill", json=times), 422))


# --- looking ahead and back ------------------------------------------------------------------------


def test_a_preview_tells_the_times_with_their_offsets_and_stores_nothing(operator: httpx2.Client) -> None:
    before = operator.get(f"{V1}/audit", params={"page_size": 1}).json()["items"]
    answer = operator.post(
        f"{SCHEDULES}/preview",
        json={
            "trigger": {"kind": "cron", "expression": "30 2 * * *", "timezone": "Europe/Berlin"},
            "n": 3,
            "from_ts": "2026-03-27T12:00:00Z",
        },
    )
    document = made(answer, 200)
    assert document["fires"] == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    assert "Europe/Berlin" in document["description"]
    assert document["warnings"], "a time in the gap is worth a word"
    assert operator.get(f"{V1}/audit", params={"page_size": 1}).json()["items"] == before


def test_a_preview_has_ten_times_unless_told_otherwise(operator: httpx2.Client) -> None:
    trigger = {"kind": "interval", "minutes": 5}
    assert len(operator.post(f"{SCHEDULES}/preview", json={"trigger": trigger}).json()["fires"]) == 10
    for n in (0, -1, 10**9, "many"):
        answer = operator.post(f"{SCHEDULES}/preview", json={"trigger": trigger, "n": n})
        assert pointers(problem(answer, 422)).keys() == {"/n"}


def test_fires_are_fired_skipped_with_the_reason_or_planned(operator: httpx2.Client) -> None:
    trigger = {"kind": "interval", "seconds": 1}
    document = made(operator.post(SCHEDULES, json=yearly(trigger=trigger)))
    path = f"{SCHEDULES}/{document['schedule_id']}"

    def past() -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = operator.get(f"{path}/fires").json()["items"]
        return [each for each in items if each["state"] != "planned"]

    until(lambda: len(past()) >= 1)
    operator.patch(path, json={"calendars": [_every_day(operator)]})
    until(lambda: any(each["state"] == "skipped" for each in past()))
    items = operator.get(f"{path}/fires", params={"n": 5}).json()["items"]
    states = [each["state"] for each in items]
    assert states == sorted(states, key=("fired", "skipped", "planned").index)
    for each in items:
        assert set(each) >= {"fire_ts", "state", "reason", "execution_id"}
        assert (each["execution_id"] is None) is (each["state"] == "planned")
        if each["state"] == "skipped":
            assert each["reason"] == "calendar"
    times = [datetime.fromisoformat(each["fire_ts"]) for each in items]
    assert times == sorted(set(times))
    last_past = next(each["fire_ts"] for each in reversed(items) if each["state"] != "planned")
    only_past = operator.get(f"{path}/fires", params={"to": last_past}).json()["items"]
    assert last_past not in [each["fire_ts"] for each in only_past]
    assert operator.delete(path).status_code == 204


def _every_day(operator: httpx2.Client) -> str:
    """A calendar that takes out all the days on which this runs."""
    name, today = unique("calendar"), datetime.now(UTC).date()
    days = [str(today + timedelta(days=number)) for number in (-1, 0, 1)]
    made(operator.post(f"{V1}/calendars", json={"name": name, "days": days}))
    return name


def test_planned_times_may_be_asked_for_by_range(operator: httpx2.Client, path: str) -> None:
    span = {"from": "2040-01-01T00:00:00Z", "to": "2043-01-01T00:00:00Z"}
    items = operator.get(f"{path}/fires", params={**span, "n": 100}).json()["items"]
    assert [(each["fire_ts"][:4], each["state"]) for each in items] == [
        ("2040", "planned"),
        ("2041", "planned"),
        ("2042", "planned"),
    ]


def test_the_kinds_say_what_a_form_needs(operator: httpx2.Client) -> None:
    items = operator.get(f"{V1}/kinds").json()["items"]
    assert {each["name"] for each in items} >= {"interval", "cron", "once", "rrule", "delay"}
    assert {each["name"] for each in items} >= {"function", "http", "event", "celery"}
    for each in items:
        assert each["display_name"]
        assert each["description"]
        assert each["schema"]["type"] == "object"


# --- lists -----------------------------------------------------------------------------------------


def walk(client: httpx2.Client, path: str, **params: Any) -> Iterator[dict[str, Any]]:
    """Every item of a list, page by page."""
    token = ""
    while True:
        answer = client.get(path, params={**params, "page_token": token})
        assert answer.status_code == 200, answer.text
        assert set(answer.json()) == {"items", "next_page_token"}
        yield from answer.json()["items"]
        token = answer.json()["next_page_token"]
        if not token:
            return


def names(answer: httpx2.Response) -> set[str]:
    assert answer.status_code == 200, answer.text
    return {each["name"] for each in answer.json()["items"]}


def test_an_empty_list_is_an_empty_list(operator: httpx2.Client) -> None:
    answer = operator.get(SCHEDULES, params={"name": unique()})
    assert answer.json() == {"items": [], "next_page_token": ""}


@pytest.fixture(scope="module")
def some(server: Served) -> dict[str, dict[str, Any]]:
    """Schedules that differ in everything one may filter by, in a queue of their own."""
    operator = server.by(OPERATOR_KEY)
    mark = unique("filter")
    calendar = unique("calendar")
    made(operator.post(f"{V1}/calendars", json={"name": calendar, "days": ["2030-01-01"]}))
    http = {"kind": "http", "url": "https://example.com/"}
    documents = {
        "plain": yearly(f"{mark}-plain", queue=mark),
        "high": yearly(f"{mark}-high", queue=mark, priority="high", labels={"team": "pay", "tier": "gold"}),
        "low": yearly(f"{mark}-low", queue=mark, priority="low", active=False, labels={"team": "pay"}),
        "http": yearly(f"{mark}-http", queue=mark, target=http, description="Über 100%_sure"),
        "apart": yearly(f"{mark}-apart", queue=f"{mark}.2", calendars=[calendar]),
        "failed": yearly(f"{mark}-failed", queue=mark, target={"kind": "function", "name": "fail"}),
    }
    documents["failed"]["retry"] = {"max_attempts": 1}
    found = {name: made(operator.post(SCHEDULES, json=document)) for name, document in documents.items()}
    for name, status in (("plain", "success"), ("failed", "failed")):
        location = operator.post(f"{SCHEDULES}/{found[name]['schedule_id']}/trigger").headers["location"]
        until(lambda location=location, status=status: operator.get(location).json()["status"] == status)  # type: ignore[misc]
    made(operator.post(f"{SCHEDULES}/{found['apart']['schedule_id']}/pause"), 200)
    return found


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("name={mark}-plain", {"plain"}),
        ("name={mark}-plain&name={mark}-low", {"plain", "low"}),
        ("name={mark}-none", set()),
        ("q={mark}", {"plain", "high", "low", "http", "apart", "failed"}),
        ("q={upper}-P", {"plain"}),
        ("queue={mark}&q=100%25_s", {"http"}),
        ("queue={mark}&q=100_", set()),
        ("queue={mark}", {"plain", "high", "low", "http", "failed"}),
        ("queue={mark}&queue={mark}.2", {"plain", "high", "low", "http", "apart", "failed"}),
        ("queue={mark}&active=false", {"low"}),
        ("queue={mark}&active=true", {"plain", "high", "http", "failed"}),
        ("queue={mark}&priority=high", {"high"}),
        ("queue={mark}&priority=high&priority=low", {"high", "low"}),
        ("queue={mark}&target=http", {"http"}),
        ("queue={mark}&target=http&target=function", {"plain", "high", "low", "http", "failed"}),
        ("queue={mark}&last_status=success", {"plain"}),
        ("queue={mark}&last_status=success&last_status=failed", {"plain", "failed"}),
        ("q={mark}&state=paused", {"apart"}),
        ("q={mark}&state=paused&state=inactive", {"apart", "low"}),
        ("queue={mark}&label=team:pay", {"high", "low"}),
        ("queue={mark}&label=team:pay&label=tier:gold", {"high"}),
        ("queue={mark}&managed_by=api", {"plain", "high", "low", "http", "failed"}),
        ("queue={mark}&managed_by=code", set()),
        ("calendar={calendar}", {"apart"}),
        ("queue={mark}&priority=high&active=false", set()),
    ],
)
def test_filters_narrow_the_list_and_a_repeated_one_means_any_of_its_values(
    operator: httpx2.Client, some: dict[str, dict[str, Any]], filters: str, expected: set[str]
) -> None:
    mark = some["plain"]["queue"]
    asked = filters.format(mark=mark, upper=mark.upper(), calendar=some["apart"]["calendars"][0])
    assert names(operator.get(f"{SCHEDULES}?{asked}")) == {f"{mark}-{each}" for each in expected}


@pytest.mark.parametrize(
    "wrong",
    ["priority=urgent", "active=perhaps", "target=sundial", "last_status=fine", "label=nocolon", "sort=size"],
)
def test_a_filter_with_a_value_that_there_is_not_is_refused(operator: httpx2.Client, wrong: str) -> None:
    [pointer] = pointers(problem(operator.get(f"{SCHEDULES}?{wrong}"), 422))
    assert pointer.split("/")[1] == wrong.partition("=")[0]


def test_an_unknown_filter_is_refused_and_told_the_known_ones(operator: httpx2.Client) -> None:
    document = problem(operator.get(f"{SCHEDULES}?colour=red&nmae=x"), 400)
    assert document["code"] == "unknown_parameter"
    assert pointers(document) == {"/colour": "unknown_parameter", "/nmae": "unknown_parameter"}
    assert "queue" in document["errors"][0]["hint"]


def test_a_page_has_fifty_items_and_at_most_five_hundred(server: Served, operator: httpx2.Client) -> None:
    mark, now = unique("!"), datetime.now(UTC)  # first in order of name

    async def work(connection: AsyncConnection) -> None:
        rows = [
            {"host_id": uuid4(), "host_name": f"{mark}-{number:03}", "created_ts": now}
            for number in range(501)
        ]
        await connection.execute(insert(host_t), rows)

    server.write(work)
    first = operator.get(f"{V1}/hosts").json()
    assert len(first["items"]) == 50
    assert first["next_page_token"]
    largest = operator.get(f"{V1}/hosts", params={"page_size": 500}).json()
    assert [each["name"] for each in largest["items"]] == [f"{mark}-{number:03}" for number in range(500)]
    last = operator.get(f"{V1}/hosts", params={"page_token": largest["next_page_token"]}).json()
    assert last["items"][0]["name"] == f"{mark}-500"
    for size in ("0", "501", "-1", "many", "1e2", "99999999999999999999"):
        for path in ("hosts", "schedules", "executions", "events"):
            answer = operator.get(f"{V1}/{path}", params={"page_size": size})
            assert pointers(problem(answer, 422)).keys() == {"/page_size"}


def test_fifty_schedules_make_a_page(operator: httpx2.Client) -> None:
    mark = unique("page")
    documents = [yearly(f"{mark}-{number:03}", queue=mark) for number in range(51)]
    applied = operator.post(f"{SCHEDULES}/apply", json={"schedules": documents, "source": mark})
    assert made(applied, 200)["counts"]["create"] == 51
    first = operator.get(SCHEDULES, params={"queue": mark}).json()
    assert [each["name"] for each in first["items"]] == [each["name"] for each in documents[:50]]
    second = operator.get(SCHEDULES, params={"queue": mark, "page_token": first["next_page_token"]}).json()
    assert [each["name"] for each in second["items"]] == [documents[50]["name"]]
    assert second["next_page_token"] == ""


SORTS = [
    sign + sort
    for sort in ("name", "next_run_ts", "created_ts", "updated_ts", "last_run_ts")
    for sign in "- "
]


@pytest.mark.parametrize("sort", [sort.strip() for sort in SORTS])
def test_pages_repeat_and_hide_nothing_while_rows_come_and_go(operator: httpx2.Client, sort: str) -> None:
    mark = unique("walk")

    def make(number: int, label: str) -> str:
        # Some have no next time, and sort by nothing.
        document = yearly(f"{mark}-{number:03}-{label}", queue=mark, active=number % 3 != 0)
        return str(made(operator.post(SCHEDULES, json=document))["schedule_id"])

    staying = [make(number, "stays") for number in range(0, 24, 2)]
    going = [make(number, "goes") for number in range(1, 24, 2)]
    seen: list[str] = []
    for each in walk(operator, SCHEDULES, queue=mark, sort=sort, page_size=4):
        seen.append(each["schedule_id"])
        if len(seen) % 4 == 0 and going:
            # One that was listed already, one that was not, and the one that the next page goes on behind.
            for gone in {going[0], going[-1], *(set(seen[-1:]) & set(going))}:
                going.remove(gone)
                assert operator.delete(f"{SCHEDULES}/{gone}").status_code == 204
            make(100 + len(seen), "comes")
    assert len(seen) == len(set(seen)), "nothing twice"
    assert set(staying) <= set(seen), "nothing hidden"


@pytest.mark.parametrize(
    "sort", ["name", "-name", "created_ts", "-created_ts", "next_run_ts", "-next_run_ts"]
)
def test_lists_are_in_the_order_asked_for_and_what_has_nothing_to_sort_by_comes_last(
    operator: httpx2.Client, some: dict[str, dict[str, Any]], sort: str
) -> None:
    found = list(walk(operator, SCHEDULES, queue=some["plain"]["queue"], sort=sort, page_size=2))
    values = [each[sort.removeprefix("-")] for each in found]
    known = [value for value in values if value is not None]
    assert values == [*sorted(known, reverse=sort.startswith("-")), *[None] * (len(values) - len(known))]
    assert len(found) == 5


def test_a_token_of_another_list_or_order_is_refused(operator: httpx2.Client) -> None:
    token = operator.get(SCHEDULES, params={"page_size": 1}).json()["next_page_token"]
    for params in ({"sort": "created_ts"}, {"sort": "-name"}):
        answer = operator.get(SCHEDULES, params={**params, "page_token": token})
        assert pointers(problem(answer, 422)).keys() == {"/page_token"}
    assert operator.get(f"{V1}/executions", params={"page_token": token}).status_code == 422
    assert operator.get(f"{V1}/audit", params={"page_token": token}).status_code == 422


# --- many at once ----------------------------------------------------------------------------------


def test_a_bulk_act_shows_first_what_it_would_do_and_keeps_to_the_number_it_was_told(
    operator: httpx2.Client,
) -> None:
    queue = unique("bulk")
    for _ in range(3):
        made(operator.post(SCHEDULES, json=yearly(queue=queue)))
    body = {"action": "pause", "filter": {"queue": [queue]}, "reason": "maintenance"}
    shown = made(operator.post(f"{SCHEDULES}/bulk", json={**body, "dry_run": True}), 200)
    assert (shown["matched"], shown["done"], len(shown["items"])) == (3, 0, 3)
    answer = operator.post(f"{SCHEDULES}/bulk", json={**body, "expected_count": 2})
    assert problem(answer, 409)["code"] == "conflict"
    listed = operator.get(SCHEDULES, params={"queue": queue}).json()["items"]
    assert [each["paused"] for each in listed] == [False] * 3
    done = made(operator.post(f"{SCHEDULES}/bulk", json={**body, "expected_count": 3}), 200)
    assert (done["matched"], done["done"], done["failed"]) == (3, 3, 0)
    listed = operator.get(SCHEDULES, params={"queue": queue}).json()["items"]
    assert {each["pause_reason"] for each in listed} == {"maintenance"}


def test_a_bulk_act_needs_either_ids_or_a_filter(operator: httpx2.Client) -> None:
    for both in ({}, {"schedule_ids": [], "filter": {}}):
        problem(operator.post(f"{SCHEDULES}/bulk", json={"action": "delete", **both}), 422)


def test_one_that_fails_in_a_bulk_act_stops_no_other(operator: httpx2.Client, path: str) -> None:
    own, missing = path.rpartition("/")[2], str(uuid4())
    done = made(
        operator.post(f"{SCHEDULES}/bulk", json={"action": "pause", "schedule_ids": [missing, own]}), 200
    )
    assert (done["done"], done["failed"]) == (1, 1)
    assert {each["id"]: each["code"] for each in done["items"]} == {missing: "not_found", own: None}
    assert operator.get(path).json()["paused"] is True


def test_applying_files_creates_updates_and_prunes_only_what_is_the_sources_own(
    operator: httpx2.Client,
) -> None:
    source, names_ = unique("source"), [unique("applied") for _ in range(3)]
    foreign = made(operator.post(SCHEDULES, json=yearly()))

    def apply(*documents: dict[str, Any], **options: Any) -> dict[str, Any]:
        body = {"schedules": documents, "source": source, **options}
        return made(operator.post(f"{SCHEDULES}/apply", json=body), 200)  # type: ignore[no-any-return]

    plan = apply(*map(yearly, names_), dry_run=True)
    assert (plan["dry_run"], plan["counts"]["create"]) == (True, 3)
    assert not operator.get(SCHEDULES, params={"name": names_}).json()["items"]
    assert apply(*map(yearly, names_))["counts"]["create"] == 3
    assert apply(*map(yearly, names_))["counts"]["unchanged"] == 3
    changed = apply(yearly(names_[0], priority="high"), yearly(names_[1]))
    actions = {each["name"]: each["action"] for each in changed["items"]}
    assert actions == {names_[0]: "update", names_[1]: "unchanged"}
    assert changed["items"][0]["changes"] == [{"pointer": "/priority", "before": "medium", "after": "high"}]
    pruned = apply(yearly(names_[0], priority="high"), prune=True)
    assert pruned["counts"]["delete"] == 2
    assert operator.get(f"{SCHEDULES}/{foreign['schedule_id']}").status_code == 200
    left = operator.get(SCHEDULES, params={"name": names_}).json()["items"]
    assert [(each["name"], each["managed_by"]) for each in left] == [(names_[0], "file")]


def test_applying_checks_everything_before_it_changes_anything(operator: httpx2.Client) -> None:
    good, bad = yearly(), yearly(target={"kind": "function", "name": "unheard_of"})
    answer = operator.post(f"{SCHEDULES}/apply", json={"schedules": [good, bad]})
    assert pointers(problem(answer, 422)).keys() == {"/schedules/1/target/name"}
    assert not operator.get(SCHEDULES, params={"name": good["name"]}).json()["items"]


def test_a_schedule_of_another_source_is_a_conflict_unless_it_is_adopted(operator: httpx2.Client) -> None:
    document = yearly()
    apply = f"{SCHEDULES}/apply"
    made(operator.post(apply, json={"schedules": [document], "source": "one"}), 200)
    changed = {**document, "description": "other"}
    answer = operator.post(apply, json={"schedules": [changed], "source": "two"})
    assert problem(answer, 409)["code"] == "conflict"
    body = {"schedules": [changed], "source": "two", "adopt": True}
    assert made(operator.post(apply, json=body), 200)["counts"]["update"] == 1
    [found] = operator.get(SCHEDULES, params={"name": document["name"]}).json()["items"]
    assert (found["description"], found["managed_source"]) == ("other", "two")
