"""The cluster through the API: what it shows, and what operators do to it."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx2
import pytest

from foliot.db.rows.registry_rows import TaskRecord
from tests.api.answers import made, problem
from tests.api.hosts import unique, yearly
from tests.api.served import ALL, SCHEDULES, V1, Served
from tests.waiting import until

SERVER = {"roles": ALL, "lease_ttl_seconds": 20, "heartbeat_seconds": 0.3}
"""With leases that a busy machine does not lose: nothing here waits for one to run out."""
CLUSTER = f"{V1}/cluster"


def cluster(operator: httpx2.Client) -> dict[str, Any]:
    document: dict[str, Any] = made(operator.get(CLUSTER), 200)
    return document


def is_led(operator: httpx2.Client, count: int) -> bool:
    shards = cluster(operator)["shards"]
    return len(shards) == count and all(each["is_fresh"] for each in shards)


@pytest.fixture
def me(server: Served, operator: httpx2.Client) -> str:
    instance_id = server.instance.instance_id
    until(lambda: any(each["instance_id"] == instance_id for each in cluster(operator)["instances"]))
    return instance_id


@pytest.fixture(autouse=True)
def _as_it_was(operator: httpx2.Client, me: str) -> Iterator[None]:
    yield
    made(operator.post(f"{V1}/instances/{me}/resume"), 200)
    made(operator.post(f"{CLUSTER}/reshard", json={"shards": 1}), 200)
    until(lambda: is_led(operator, 1))


def last_audited(operator: httpx2.Client, action: str) -> dict[str, Any]:
    record: dict[str, Any] = operator.get(f"{V1}/audit", params={"action": action}).json()["items"][0]
    return record


def test_the_cluster_shows_shards_instances_and_who_decides(operator: httpx2.Client, me: str) -> None:
    until(lambda: is_led(operator, 1))
    document = cluster(operator)
    [shard] = document["shards"]
    assert (shard["shard"], shard["instance_id"]) == (0, me)
    assert shard["epoch"] >= 1
    assert [(each["instance_id"], each["is_draining"]) for each in document["instances"]] == [(me, False)]
    assert document["lease_providers"] == []
    assert document["overdue"]["oldest"] is None


def test_the_number_of_shards_is_changed_while_everything_runs(operator: httpx2.Client, me: str) -> None:
    until(lambda: is_led(operator, 1))
    epoch = cluster(operator)["shards"][0]["epoch"]
    asked = {"shards": 4, "reason": "more to do"}
    done = made(operator.post(f"{CLUSTER}/reshard", json=asked), 200)
    assert done == {"shards": 4, "shards_before": 1}
    until(lambda: is_led(operator, 4))
    assert all(each["epoch"] > epoch for each in cluster(operator)["shards"])
    assert made(operator.get(f"{V1}/instances"), 200)["items"][0]["leads"] == [0, 1, 2, 3]
    record = last_audited(operator, "cluster.resharded")
    assert (record["before"], record["after"]) == ({"shards": 1}, {"shards": 4})
    assert record["reason"] == "more to do"
    again = made(operator.post(f"{CLUSTER}/reshard", json={"shards": 4}), 200)
    assert again == {"shards": 4, "shards_before": 4}
    assert last_audited(operator, "cluster.resharded")["audit_id"] == record["audit_id"]


@pytest.mark.parametrize("shards", [0, -1, 1025, 1.5, True, "8", None])
def test_a_number_of_shards_that_can_not_be_is_refused(operator: httpx2.Client, shards: Any) -> None:
    problem(operator.post(f"{CLUSTER}/reshard", json={"shards": shards}), 422)


def test_a_drained_worker_claims_no_more_until_it_is_resumed(
    server: Served, operator: httpx2.Client, me: str
) -> None:
    worker = server.instance.worker
    assert worker is not None
    drained = made(operator.post(f"{V1}/instances/{me}/drain", json={"reason": "disk"}), 200)
    assert (drained["instance_id"], drained["is_draining"]) == (me, True)
    assert [each["is_draining"] for each in cluster(operator)["instances"]] == [True]
    until(lambda: worker.is_draining)
    record = last_audited(operator, "instance.drained")
    assert (record["resource_id"], record["reason"]) == (me, "disk")
    schedule = made(operator.post(SCHEDULES, json=yearly()))
    path = f"{SCHEDULES}/{schedule['schedule_id']}/trigger"
    # A task that nobody else would run: as the only worker drains, it is known to none that claims.
    until(lambda: "noop" in [each["task"] for each in cluster(operator)["unknown_tasks"]])
    execution = f"{V1}/executions/{made(operator.post(path), 202)['execution_id']}"
    assert server.run(worker.step()) is None
    assert operator.get(execution).json()["status"] == "pending"
    assert made(operator.post(f"{V1}/instances/{me}/resume"), 200)["is_draining"] is False
    until(lambda: operator.get(execution).json()["status"] == "success")
    assert last_audited(operator, "instance.resumed")["resource_id"] == me


def test_what_a_drained_worker_runs_it_goes_on_running(
    server: Served, operator: httpx2.Client, me: str
) -> None:
    worker = server.instance.worker
    assert worker is not None
    schedule = made(operator.post(SCHEDULES, json=yearly(target={"kind": "function", "name": "linger"})))
    path = f"{SCHEDULES}/{schedule['schedule_id']}/trigger"
    execution_id = made(operator.post(path), 202)["execution_id"]
    until(lambda: UUID(execution_id) in worker.running)
    made(operator.post(f"{V1}/instances/{me}/drain"), 200)
    until(lambda: worker.is_draining)
    execution = operator.get(f"{V1}/executions/{execution_id}").json()
    assert (execution["status"], execution["attempt"]) == ("running", 1)
    assert UUID(execution_id) in worker.running
    made(operator.post(f"{V1}/executions/{execution_id}/cancel"), 202)
    until(lambda: operator.get(f"{V1}/executions/{execution_id}").json()["status"] == "cancelled")


def test_status_counts_the_workers_that_take_work(operator: httpx2.Client, me: str) -> None:
    def workers() -> Any:
        return made(operator.get(f"{V1}/status"), 200)["workers"]

    assert workers() == {"taking_work": 1, "draining": 0}
    made(operator.post(f"{V1}/instances/{me}/drain"), 200)
    assert workers() == {"taking_work": 0, "draining": 1}


def test_the_timeline_tells_of_each_schedule_bin_by_bin(operator: httpx2.Client) -> None:
    name = unique("hourly")
    schedule = made(
        operator.post(SCHEDULES, json=yearly(name, trigger={"kind": "cron", "expression": "0 * * * *"}))
    )
    path = f"{SCHEDULES}/{schedule['schedule_id']}"
    execution_id = made(operator.post(f"{path}/trigger"), 202)["execution_id"]
    until(lambda: operator.get(f"{V1}/executions/{execution_id}").json()["status"] == "success")
    timeline = made(operator.get(f"{V1}/timeline", params={"bins": 24}), 200)
    [row] = [each for each in timeline["schedules"] if each["name"] == name]
    assert len(row["planned_counts"]) == len(row["counts"]) == len(timeline["bins"])
    assert sum(row["planned_counts"]) == timeline["planned_by_schedule"][schedule["schedule_id"]] >= 11
    assert row["counts_by_status"] == {"success": row["counts"]}
    assert sum(row["counts"]) == 1


def test_who_is_not_there_can_not_be_drained(operator: httpx2.Client) -> None:
    for act in ("drain", "resume"):
        problem(operator.post(f"{V1}/instances/{unique()}/{act}"), 404)


def test_a_task_that_no_live_worker_knows_is_told_in_status_and_cluster(
    server: Served, operator: httpx2.Client
) -> None:
    made(operator.post(SCHEDULES, json=yearly("known-to-somebody")))
    name = unique("schedule")
    # A worker had it once.
    task = TaskRecord("nobody.knows.this", "", "", "", "function", None, 60, {"type": "object"})
    server.run(server.instance.store.registry.register_tasks([task]))
    definition = yearly(name, target={"kind": "function", "name": "nobody.knows.this"})
    schedule = made(operator.post(SCHEDULES, json=definition))
    told = {"task": "nobody.knows.this", "schedule_count": 1, "schedule_name": name}
    for path in (CLUSTER, f"{V1}/status"):
        assert told in made(operator.get(path), 200)["unknown_tasks"]
        assert "noop" not in [each["task"] for each in made(operator.get(path), 200)["unknown_tasks"]]
    made(operator.post(f"{SCHEDULES}/{schedule['schedule_id']}/pause"), 200)
    assert told not in cluster(operator)["unknown_tasks"]
