"""Schedules over REST: making, reading, changing and deleting them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.api.answers import made, pointers, problem
from tests.api.hosts import unique, yearly
from tests.api.served import SCHEDULES, V1
from tests.waiting import until

DATABASES = ("sqlite",)

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
        "overlap": {"policy": "skip", "max_instances": 1, "max_queued": 1000},
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
    document["overlap"]["max_queued"] = 1000  # type: ignore[index]
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


def test_pointers_are_json_pointers(operator: httpx2.Client) -> None:
    answer = operator.post(SCHEDULES, json=yearly(labels={"a/b": 5, "c~d": 6}))
    assert pointers(problem(answer, 422)).keys() == {"/labels/a~1b", "/labels/c~0d"}


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


def test_several_changed_read_only_fields_are_refused_with_the_promised_code(operator: httpx2.Client) -> None:
    document = made(operator.post(SCHEDULES, json=yearly()))
    body = {**document, "run_count": 7, "aggregate_version": 9}
    answer = operator.put(f"{SCHEDULES}/{document['schedule_id']}", json=body)
    assert problem(answer, 422)["code"] == "read_only"


def test_a_schedule_whose_pause_ended_between_reading_and_writing_can_be_written_back(
    operator: httpx2.Client,
) -> None:
    path = f"{SCHEDULES}/{made(operator.post(SCHEDULES, json=yearly()))['schedule_id']}"
    until_ts = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    document = operator.post(f"{path}/pause", json={"until_ts": until_ts, "reason": "x"}).json()
    until(lambda: not operator.get(path).json()["paused"])
    answer = operator.put(path, json={**document, "description": "written back"})
    assert answer.status_code == 200, answer.text


def test_a_delay_whose_run_ended_between_reading_and_writing_can_be_written_back(
    operator: httpx2.Client,
) -> None:
    queue = unique("queue")
    operator.post(f"{V1}/queues/{queue}/pause")
    document = yearly(trigger={"kind": "delay", "seconds": 1}, queue=queue)
    path = f"{SCHEDULES}/{made(operator.post(SCHEDULES, json=document))['schedule_id']}"
    until(lambda: operator.get(path).json()["next_run_ts"] is None)
    document = operator.get(path).json()
    operator.patch(path, json={})
    operator.post(f"{V1}/queues/{queue}/resume")
    until(lambda: operator.get(path).json()["next_run_ts"] is not None)
    operator.post(f"{V1}/queues/{queue}/pause")
    answer = operator.put(path, json={**document, "description": "written back"})
    assert answer.status_code == 200, answer.text


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
