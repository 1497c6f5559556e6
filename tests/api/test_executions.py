"""Executions over REST: what is told of them, how they are found, and commands them."""

import uuid
from datetime import datetime
from typing import Any

import httpx2
import pytest

from foliot.model.trace import trace_id_text
from tests.api.answers import made, pointers, problem, walk
from tests.api.hosts import unique, yearly
from tests.api.served import OPERATOR_KEY, V1, Served
from tests.waiting import until

DATABASES = ("postgres",)

EXECUTIONS = f"{V1}/executions"
FIELDS = {
    "execution_id",
    "schedule_id",
    "schedule_name",
    "aggregate_version",
    "fire_ts",
    "missed_count",
    "missed_from_ts",
    "status",
    "reason",
    "triggered_by",
    "triggered_by_user",
    "scheduler_instance_id",
    "external_id",
    "attempt",
    "queue",
    "priority",
    "ready_ts",
    "started_ts",
    "ended_ts",
    "duration_seconds",
    "progress",
    "result",
    "error",
    "traceback",
    "worker_id",
    "trace_id",
}


def make(operator: httpx2.Client, task: str = "noop", args: Any = None, **fields: Any) -> str:
    target = {"kind": "function", "name": task, "args": args or {}}
    document = made(operator.post(f"{V1}/schedules", json=yearly(target=target, **fields)))
    return str(document["schedule_id"])


def trigger(operator: httpx2.Client, schedule_id: str) -> str:
    return str(operator.post(f"{V1}/schedules/{schedule_id}/trigger").headers["location"])


def until_status(operator: httpx2.Client, location: str, *statuses: str) -> dict[str, Any]:
    until(lambda: operator.get(location).json()["status"] in statuses)
    document: dict[str, Any] = operator.get(location).json()
    return document


@pytest.fixture
def waiting(operator: httpx2.Client) -> str:
    """One that no worker takes: its queue is paused."""
    queue = unique("queue")
    operator.post(f"{V1}/queues/{queue}/pause")
    return trigger(operator, make(operator, queue=queue))


def test_an_execution_tells_all_that_was_promised(operator: httpx2.Client) -> None:
    # The first execution of a server is slow to start and to end: its statements are not prepared yet.
    until_status(operator, trigger(operator, make(operator)), "success")
    schedule_id = make(operator, priority="high")
    document = until_status(operator, trigger(operator, schedule_id), "success")
    assert set(document) >= FIELDS
    assert document["schedule_id"] == schedule_id
    assert (document["priority"], document["queue"], document["attempt"]) == ("high", "default", 1)
    assert (document["aggregate_version"], document["missed_count"]) == (1, 0)
    started, ended = (datetime.fromisoformat(document[name]) for name in ("started_ts", "ended_ts"))
    assert document["duration_seconds"] == pytest.approx((ended - started).total_seconds(), abs=0.5)
    assert document["worker_id"]
    assert document["trace_id"] == trace_id_text(uuid.UUID(document["execution_id"]))


def test_a_failure_tells_the_error_and_every_attempt(operator: httpx2.Client) -> None:
    retry = {"max_attempts": 2, "initial_delay_seconds": 0, "max_delay_seconds": 0}
    location = trigger(operator, make(operator, "fail", retry=retry))
    document = until_status(operator, location, "failed")
    assert "as it was told to" in document["error"]
    assert "RuntimeError" in document["traceback"]
    attempts = operator.get(f"{location}/attempts").json()
    assert attempts["next_page_token"] == ""
    assert [(each["attempt"], each["status"]) for each in attempts["items"]] == [(1, "failed"), (2, "failed")]
    assert all("as it was told to" in each["error"] for each in attempts["items"])


def test_what_the_code_logged_is_read_line_by_line_and_page_by_page(operator: httpx2.Client) -> None:
    location = trigger(operator, make(operator, "tell", {"lines": 7}))
    until_status(operator, location, "success")
    until(lambda: len(operator.get(f"{location}/logs").json()["items"]) == 7)
    lines = list(walk(operator, f"{location}/logs", page_size=3))
    assert [each["message"] for each in lines] == [f"line {number} <b>&</b>" for number in range(7)]
    assert {(each["level"].lower(), each["logger"], each["attempt"]) for each in lines} == {
        ("warning", "story", 1)
    }


def test_what_ended_badly_is_tried_again_when_asked(operator: httpx2.Client) -> None:
    location = trigger(operator, make(operator, "fail", retry={"max_attempts": 1}))
    until_status(operator, location, "failed")
    retried = made(operator.post(f"{location}/retry", json={"reason": "again"}), 202)
    assert retried["status"] in ("pending", "retrying")
    until(lambda: operator.get(location).json()["attempt"] == 2)
    assert until_status(operator, location, "failed")["execution_id"] == retried["execution_id"]


def test_what_succeeded_is_neither_tried_again_nor_cancelled(operator: httpx2.Client) -> None:
    location = trigger(operator, make(operator))
    until_status(operator, location, "success")
    for act in ("retry", "cancel"):
        assert problem(operator.post(f"{location}/{act}"), 409)["code"] == "illegal_transition"


def test_what_waits_is_cancelled_at_once(operator: httpx2.Client, waiting: str) -> None:
    cancelled = made(operator.post(f"{waiting}/cancel"), 202)
    assert cancelled["status"] == "cancelled"
    assert problem(operator.post(f"{waiting}/cancel"), 409)["code"] == "illegal_transition"


def test_what_runs_is_stopped_soon(operator: httpx2.Client) -> None:
    location = trigger(operator, make(operator, "linger", retry={"max_attempts": 1}))
    until_status(operator, location, "running")
    answer = made(operator.post(f"{location}/cancel"), 202)
    assert answer["cancel_requested"] or answer["status"] == "cancelled"
    until_status(operator, location, "cancelled")


def test_a_reason_is_text_and_nothing_else_is_taken(operator: httpx2.Client, waiting: str) -> None:
    for act in ("retry", "cancel"):
        assert pointers(problem(operator.post(f"{waiting}/{act}", json={"reason": 5}), 422)) == {
            "/reason": "string_type"
        }
        assert pointers(problem(operator.post(f"{waiting}/{act}", json={"attempt": 5}), 422)) == {
            "/attempt": "extra_forbidden"
        }


@pytest.mark.parametrize("what", ["", "/attempts", "/logs", "/retry", "/cancel"])
def test_an_execution_that_there_is_not_is_not_found(operator: httpx2.Client, what: str) -> None:
    method = "POST" if what in ("/retry", "/cancel") else "GET"
    for execution_id in (str(uuid.uuid4()), "nonsense", "0", "00000000-0000-0000-0000-000000000000"):
        assert problem(operator.request(method, f"{EXECUTIONS}/{execution_id}{what}"), 404)["code"] == (
            "not_found"
        )


# --- lists -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def some(server: Served) -> dict[str, str]:
    """Executions that differ in everything one may filter by; all in queues of their own."""
    operator = server.by(OPERATOR_KEY)
    queue = unique("queue")
    plain, failing = make(operator, queue=queue), make(operator, "fail", queue=queue)
    operator.patch(f"{V1}/schedules/{failing}", json={"retry": {"max_attempts": 1}})
    held = f"{queue}.held"
    operator.post(f"{V1}/queues/{held}/pause")
    waiting = make(operator, queue=held)
    found = {"queue": queue, "held": held, "plain": plain, "failing": failing, "waiting": waiting}
    for name, schedule_id in (("success", plain), ("failed", failing), ("pending", waiting)):
        location = trigger(operator, schedule_id)
        until_status(operator, location, name)
        found[name] = location.rpartition("/")[2]
    times = {"from_ts": "2020-01-01T00:00:00Z", "to_ts": "2022-01-01T00:00:00Z"}
    backfill = operator.post(f"{V1}/schedules/{plain}/backfill", json=times).headers["location"]
    until(lambda: operator.get(backfill).json()["ended_count"] == 2)
    rows = operator.get(EXECUTIONS, params={"schedule_id": plain, "triggered_by": "backfill"}).json()["items"]
    for row in rows:
        found[row["fire_ts"][:4]] = row["execution_id"]
    return found


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("queue={queue}", {"success", "failed", "2020", "2021"}),
        ("queue={queue}&queue={held}", {"success", "failed", "2020", "2021", "pending"}),
        ("schedule_id={plain}", {"success", "2020", "2021"}),
        ("schedule_id={plain}&schedule_id={waiting}", {"success", "2020", "2021", "pending"}),
        ("queue={queue}&status=failed", {"failed"}),
        ("queue={queue}&queue={held}&status=failed&status=pending", {"failed", "pending"}),
        ("queue={queue}&triggered_by=api", {"success", "failed"}),
        ("queue={queue}&triggered_by=backfill", {"2020", "2021"}),
        ("queue={queue}&triggered_by=api&triggered_by=backfill", {"success", "failed", "2020", "2021"}),
        ("queue={queue}&triggered_by=scheduler", set()),
        ("queue={queue}&fire_from=2021-01-01T00:00:00Z&fire_to=2022-01-01T00:00:00Z", {"2021"}),
        ("schedule_id={plain}&fire_from=2020-01-01T00:00:00Z&fire_to=2021-01-01T00:00:00Z", {"2020"}),
        ("schedule_id={plain}&fire_to=2021-01-01T00:00:00.000001Z", {"2020", "2021"}),
        ("queue={queue}&status=skipped", set()),
    ],
)
def test_filters_narrow_the_list_and_a_repeated_one_means_any_of_its_values(
    operator: httpx2.Client, some: dict[str, str], filters: str, expected: set[str]
) -> None:
    found = [each["execution_id"] for each in walk_url(operator, filters.format(**some))]
    assert sorted(found) == sorted(some[name] for name in expected)


def walk_url(operator: httpx2.Client, query: str) -> list[dict[str, Any]]:
    """As `walk`, with a query that repeats parameters; two at a time."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        document = made(operator.get(f"{EXECUTIONS}?{query}&page_size=2&page_token={token}"), 200)
        found += document["items"]
        token = document["next_page_token"]
        if not token:
            return found


def test_a_schedules_own_list_is_the_same_as_the_list_for_it(
    operator: httpx2.Client, some: dict[str, str]
) -> None:
    own = operator.get(f"{V1}/schedules/{some['plain']}/executions").json()
    assert own == operator.get(EXECUTIONS, params={"schedule_id": some["plain"]}).json()
    times = [each["fire_ts"] for each in own["items"]]
    assert times == sorted(times, reverse=True), "latest first"


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ("status=fine", 422),
        ("triggered_by=me", 422),
        ("schedule_id=nonsense", 422),
        ("fire_from=yesterday", 422),
        ("fire_from=2020-01-01T00:00:00", 422),
        ("queue=no%20spaces", 422),
        ("attempt=1", 400),
        ("page=2", 400),
    ],
)
def test_a_filter_that_is_wrong_or_unknown_is_refused_and_named(
    operator: httpx2.Client, wrong: str, status: int
) -> None:
    [pointer] = pointers(problem(operator.get(f"{EXECUTIONS}?{wrong}"), status))
    assert pointer.split("/")[1] == wrong.partition("=")[0]


def test_pages_repeat_and_hide_nothing_while_executions_come(operator: httpx2.Client) -> None:
    queue = unique("queue")
    operator.post(f"{V1}/queues/{queue}/pause")
    schedule_id = make(operator, queue=queue)
    there = [trigger(operator, schedule_id).rpartition("/")[2] for _ in range(11)]
    for params in ({"queue": queue}, {"schedule_id": schedule_id}, {"status": "pending", "queue": queue}):
        seen = []
        for each in walk(operator, EXECUTIONS, page_size=3, **params):
            seen.append(each["execution_id"])
            if len(seen) % 3 == 0 and len(seen) < 10:
                trigger(operator, schedule_id)
        assert len(seen) == len(set(seen))
        assert set(there) <= set(seen)


def test_many_executions_are_cancelled_and_tried_again_at_once(operator: httpx2.Client) -> None:
    queue = unique("queue")
    operator.post(f"{V1}/queues/{queue}/pause")
    schedule_id = make(operator, queue=queue)
    for _ in range(3):
        trigger(operator, schedule_id)
    bulk, wanted = f"{EXECUTIONS}/bulk", {"filter": {"queue": [queue]}}
    shown = made(operator.post(bulk, json={"action": "cancel", **wanted, "dry_run": True}), 200)
    assert (shown["matched"], shown["done"]) == (3, 0)
    answer = operator.post(bulk, json={"action": "cancel", **wanted, "expected_count": 4})
    assert problem(answer, 409)["code"] == "conflict"
    done = made(operator.post(bulk, json={"action": "cancel", **wanted, "expected_count": 3}), 200)
    assert (done["done"], done["failed"]) == (3, 0)
    again = made(operator.post(bulk, json={"action": "cancel", **wanted}), 200)
    assert {each["code"] for each in again["items"]} == {"illegal_transition"}
    retried = made(operator.post(bulk, json={"action": "retry", **wanted}), 200)
    assert retried["done"] == 3
    rows = operator.get(EXECUTIONS, params={"queue": queue}).json()["items"]
    assert {row["status"] for row in rows} <= {"pending", "retrying"}
