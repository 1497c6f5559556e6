"""A schedule over time: pausing it, running it now or for the past, and its fire times."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.tables.access import idempotency_t
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.instant import EPOCH
from foliot.model.schedule import ScheduleSpec
from foliot.planning.change import Author, create
from tests.api.answers import made, pointers, problem
from tests.api.hosts import unique, yearly
from tests.api.served import SCHEDULES, V1, Served
from tests.waiting import until

DATABASES = ("postgres",)

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


def test_beyond_max_queued_a_manual_run_is_refused_and_says_why(
    operator: httpx2.Client, definition: dict[str, Any]
) -> None:
    overlap = {"policy": "queue", "max_queued": 2}
    document = {**definition, "name": unique("full"), "queue": "nobody-serves-it", "overlap": overlap}
    schedule = made(operator.post(SCHEDULES, json=document))
    assert schedule["overlap"] == {**overlap, "max_instances": 1}
    path = f"{SCHEDULES}/{schedule['schedule_id']}"
    for _ in range(3):
        made(operator.post(f"{path}/trigger"), 202)
    refused = problem(operator.post(f"{path}/trigger"), 409)
    assert refused["code"] == "queue_full"
    assert "max_queued" in refused["detail"]


@pytest.mark.parametrize("count", [0, -1, 10_001, "many", 1.5])
def test_a_max_queued_that_makes_no_sense_is_refused(
    operator: httpx2.Client, definition: dict[str, Any], count: object
) -> None:
    document = {**definition, "name": unique("wrong"), "overlap": {"max_queued": count}}
    refused = problem(operator.post(SCHEDULES, json=document), 422)
    assert list(pointers(refused)) == ["/overlap/max_queued"]


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


HASHED = {"kind": "cron", "expression": "H H * * *", "timezone": "Europe/Berlin"}


def previewed(operator: httpx2.Client, **asked: Any) -> list[datetime]:
    document = made(operator.post(f"{SCHEDULES}/preview", json={"trigger": HASHED, "n": 3, **asked}), 200)
    assert not [each for each in document["details"] if each["code"] == "hash_unknown"]
    return [datetime.fromisoformat(each) for each in document["fires"]]


def planned(operator: httpx2.Client, schedule_id: str) -> list[datetime]:
    items = made(operator.get(f"{SCHEDULES}/{schedule_id}/fires", params={"n": 3}), 200)["items"]
    return [datetime.fromisoformat(each["fire_ts"]) for each in items]


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "the first try"}], ids=["", "by key"])
def test_the_times_of_h_are_previewed_as_the_saved_schedule_fires(
    operator: httpx2.Client, headers: dict[str, str]
) -> None:
    name = unique("hashed")
    before = previewed(operator, name=name)
    document = yearly(name, trigger=HASHED)
    if headers:
        headers = {"Idempotency-Key": f"create {name}"}
    schedule_id = made(operator.post(SCHEDULES, json=document, headers=headers))["schedule_id"]
    assert planned(operator, schedule_id) == before
    assert previewed(operator, schedule_id=schedule_id) == before, "while it is edited"
    renamed = made(operator.patch(f"{SCHEDULES}/{schedule_id}", json={"name": unique("renamed")}), 200)
    assert planned(operator, schedule_id) == before
    assert previewed(operator, name=renamed["name"]) == before, "a known name is that schedule's"


def test_a_schedule_made_by_code_fires_at_the_previewed_times_of_h(operator: httpx2.Client) -> None:
    name = unique("hashed")
    before = previewed(operator, name=name)
    answer = operator.post(
        f"{SCHEDULES}/apply", json={"schedules": [yearly(name, trigger=HASHED)], "source": name}
    )
    assert made(answer, 200)
    [listed] = operator.get(SCHEDULES, params={"q": name}).json()["items"]
    assert planned(operator, listed["schedule_id"]) == before


def test_a_schedule_with_an_id_of_an_older_version_keeps_its_times_of_h(
    operator: httpx2.Client, server: Served
) -> None:
    spec, schedule_id = ScheduleSpec.parse(yearly(trigger=HASHED)), new_id()

    async def make() -> None:
        await server.instance.store.schedules.create(
            lambda now: create(
                spec, host_id=DEFAULT_HOST_ID, now=now, author=Author("test"), schedule_id=schedule_id
            ),
            Author("test"),
        )

    server.run(make())
    expected = spec.trigger.build(dst=spec.dst, anchor=EPOCH, key=str(schedule_id))
    [first, *_] = planned(operator, str(schedule_id))
    assert first == expected.after(datetime.now(UTC))
    assert previewed(operator, schedule_id=str(schedule_id))[0] == first
    assert previewed(operator, name=spec.name)[0] == first


def test_a_preview_of_h_without_name_and_id_says_that_it_is_an_example(operator: httpx2.Client) -> None:
    document = made(operator.post(f"{SCHEDULES}/preview", json={"trigger": HASHED}), 200)
    assert "hash_unknown" in [each["code"] for each in document["details"]]


def test_fires_from_a_time_after_the_end_are_refused(operator: httpx2.Client, path: str) -> None:
    span = {"from": "2030-01-02T00:00:00Z", "to": "2030-01-01T00:00:00Z"}
    refused = problem(operator.get(f"{path}/fires", params=span), 422)
    assert pointers(refused).keys() == {"/from"}
    equal = {"from": span["to"], "to": span["to"]}
    assert made(operator.get(f"{path}/fires", params=equal), 200)["items"] == []


def test_a_number_of_many_digits_is_refused_by_the_name_of_its_field(operator: httpx2.Client) -> None:
    document = json.dumps(yearly(timeout_seconds=0)).replace(
        '"timeout_seconds": 0', f'"timeout_seconds": {"9" * 40}'
    )
    answer = operator.post(SCHEDULES, content=document, headers={"Content-Type": "application/json"})
    assert pointers(problem(answer, 422)) == {"/timeout_seconds": "number_too_large"}


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


def test_a_preview_with_a_calendar_that_there_is_not_says_so(operator: httpx2.Client) -> None:
    body = {"trigger": {"kind": "interval", "hours": 1}, "calendars": ["unheard-of"]}
    answer = operator.post(f"{SCHEDULES}/preview", json=body)
    assert answer.status_code == 422 or answer.json()["warnings"]


def test_nothing_is_kept_for_the_idempotency_key_of_a_preview(
    operator: httpx2.Client, server: Served
) -> None:
    headers = {"Idempotency-Key": unique("key")}
    asked = {"trigger": {"kind": "interval", "hours": 1}, "n": 1000}
    for n in (1000, 10):
        answer = operator.post(f"{SCHEDULES}/preview", json={**asked, "n": n}, headers=headers)
        assert len(made(answer, 200)["fires"]) == n
        assert "idempotency-replayed" not in answer.headers

    async def rows(connection: AsyncConnection) -> int:
        query = select(idempotency_t).where(idempotency_t.c.key == headers["Idempotency-Key"])
        return len((await connection.execute(query)).all())

    assert server.write(rows) == 0
