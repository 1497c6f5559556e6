"""The audit: every change says who, what, before and after, why, and by which request."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from tests.api.answers import made, pointers, problem, walk
from tests.api.hosts import Host, unique, yearly
from tests.api.served import API_ALONE, OPERATOR_KEY, SCHEDULES, V1, Served
from tests.api.valid_requests import ICAL

AUDIT = f"{V1}/audit"
DATABASES = ("postgres",)
SERVER = {"roles": API_ALONE}


@dataclass(frozen=True)
class Act:
    """A request that changes something, and what is to be read of it afterwards."""

    method: str
    path: str
    resource_id: str
    body: Any = None
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)


def _schedule(host: Host, what: str, **fields: Any) -> Act:
    schedule_id = host.schedule(name=unique("audited"), description="old")
    path = f"{SCHEDULES}/{schedule_id}"
    match what:
        case "edit":
            changed = {"before": {"description": "old"}, "after": {"description": "new"}}
            return Act("PATCH", path, schedule_id, {"description": "new"}, **changed)
        case "put":
            document = host.admin.get(path).json() | {"priority": "high"}
            changed = {"before": {"priority": "medium"}, "after": {"priority": "high"}}
            return Act("PUT", path, schedule_id, document, **changed)
        case "resume":
            made(host.admin.post(f"{path}/pause"), 200)
            return Act("POST", f"{path}/resume", schedule_id)
        case "delete":
            return Act("DELETE", path, schedule_id)
        case "restore":
            host.admin.patch(path, json={"description": "new"})
            changed = {"before": {"description": "new"}, "after": {"description": "old"}}
            return Act("POST", f"{path}/versions/1/restore", schedule_id, {}, **changed)
        case _:
            return Act("POST", f"{path}/{what}", schedule_id, {})


def _execution(host: Host, what: str) -> Act:
    execution_id = host.execution() if what == "cancel" else host.cancelled_execution()
    return Act("POST", f"{V1}/executions/{execution_id}/{what}", execution_id, {})


def _backfill(host: Host) -> Act:
    backfill_id = host.backfill()
    return Act("POST", f"{V1}/backfills/{backfill_id}/cancel", backfill_id)


def _calendar(host: Host, method: str) -> Act:
    name = host.calendar()
    body = {"days": ["2031-01-01"]} if method == "PUT" else None
    return Act(method, f"{V1}/calendars/{name}", name, body)


def _queue(_host: Host, what: str) -> Act:
    name = unique("queue")
    if what == "resume":
        made(_host.admin.post(f"{V1}/queues/{name}/pause"), 200)
    return Act("POST", f"{V1}/queues/{name}/{what}", name, {})


def _secret(host: Host) -> Act:
    name = host.secret()
    return Act("DELETE", f"{V1}/secrets/{name}", name)


def _named(kind: str, path: str, **body: Any) -> Callable[[Host], Act]:
    def make(_host: Host) -> Act:
        name = unique(kind)
        return Act("POST", path, name, {"name": name, **body})

    return make


def _key(host: Host) -> Act:
    key_id, _ = host.key()
    return Act("DELETE", f"{V1}/keys/{key_id}", key_id)


ACTS: dict[str, tuple[str, Callable[[Host], Act]]] = {
    "edit": ("schedule.edited", lambda host: _schedule(host, "edit")),
    "replace": ("schedule.edited", lambda host: _schedule(host, "put")),
    "restore": ("schedule.edited", lambda host: _schedule(host, "restore")),
    "pause": ("schedule.paused", lambda host: _schedule(host, "pause")),
    "resume": ("schedule.resumed", lambda host: _schedule(host, "resume")),
    "delete": ("schedule.deleted", lambda host: _schedule(host, "delete")),
    "cancel an execution": ("execution.cancelled", lambda host: _execution(host, "cancel")),
    "retry an execution": ("execution.retried", lambda host: _execution(host, "retry")),
    "cancel a backfill": ("backfill.cancelled", _backfill),
    "make a calendar": ("calendar.set", _named("calendar", f"{V1}/calendars", days=["2030-01-01"])),
    "import a calendar": ("calendar.set", _named("calendar", f"{V1}/calendars/import", ical=ICAL)),
    "replace a calendar": ("calendar.set", lambda host: _calendar(host, "PUT")),
    "delete a calendar": ("calendar.deleted", lambda host: _calendar(host, "DELETE")),
    "pause a queue": ("queue.paused", lambda host: _queue(host, "pause")),
    "resume a queue": ("queue.resumed", lambda host: _queue(host, "resume")),
    "set a secret": ("secret.set", _named("secret", f"{V1}/secrets", value="a value")),
    "delete a secret": ("secret.deleted", _secret),
    "revoke a key": ("key.revoked", _key),
}


def records_of(client: httpx2.Client, **params: Any) -> list[dict[str, Any]]:
    return list(walk(client, AUDIT, page_size=500, **params))


@pytest.mark.parametrize(("action", "make"), ACTS.values(), ids=ACTS)
def test_every_change_is_written_down_once_with_who_why_and_by_which_request(
    server: Served, hosts: tuple[Host, Host], action: str, make: Callable[[Host], Act]
) -> None:
    host = hosts[1]
    act, request_id = make(host), unique("request")
    headers = {"X-Request-ID": request_id, "X-Foliot-Reason": "because of the test"}
    options = {} if act.body is None else {"json": act.body}
    me = host.admin.get(f"{V1}/me").json()
    answer = host.admin.request(act.method, act.path, headers=headers, **options)
    assert answer.is_success, answer.text
    written = [each for each in records_of(host.admin, action=action) if each["request_id"] == request_id]
    [record] = written
    assert record["resource_id"] == act.resource_id
    assert record["resource_type"] == action.partition(".")[0]
    assert (record["actor"], record["credential"]) == (me["name"], me["credential"])
    assert (record["reason"], record["address"]) == ("because of the test", "127.0.0.1")
    assert record["audit_ts"].endswith("Z")
    for name, expected in (("before", act.before), ("after", act.after)):
        found = record[name] or {}
        assert {key: found.get(key) for key in expected} == expected


def test_a_new_schedule_and_its_run_are_written_down(hosts: tuple[Host, Host]) -> None:
    host = hosts[1]
    document = made(host.admin.post(SCHEDULES, json=yearly(description="whole")))
    execution = made(host.admin.post(f"{SCHEDULES}/{document['schedule_id']}/trigger"), 202)
    records = records_of(host.admin, resource_id=document["schedule_id"])
    assert [each["action"] for each in records] == ["schedule.triggered", "schedule.created"]
    assert execution["execution_id"] in str(records[0]["after"])
    assert records[1]["before"] is None
    assert records[1]["after"]["description"] == "whole"


def test_a_backfill_a_key_and_a_host_are_written_down(server: Served, hosts: tuple[Host, Host]) -> None:
    host = hosts[1]
    backfill_id, (key_id, key) = host.backfill(), host.key()
    [record] = records_of(host.admin, resource_id=backfill_id)
    assert record["action"] == "backfill.created"
    [record] = records_of(host.admin, resource_id=key_id)
    assert record["action"] == "key.created"
    assert key.split("_", 2)[2] not in str(record)
    operator = server.by(OPERATOR_KEY)
    host_id = made(operator.post(f"{V1}/hosts", json={"name": unique("host")}))["host_id"]
    [record] = records_of(operator, resource_id=host_id)
    assert (record["action"], record["actor"]) == ("host.created", "operator")


def test_each_schedule_that_is_applied_or_acted_on_in_bulk_is_written_down(hosts: tuple[Host, Host]) -> None:
    host, request_id = hosts[1], unique("request")
    documents = [yearly(), yearly()]
    headers = {"X-Request-ID": request_id}
    body = {"schedules": documents, "source": unique(), "reason": "from files"}
    applied = made(host.admin.post(f"{SCHEDULES}/apply", json=body, headers=headers), 200)
    ids = {each["schedule_id"] for each in applied["items"]}
    bulk = {"action": "pause", "schedule_ids": sorted(ids), "reason": "from files"}
    made(host.admin.post(f"{SCHEDULES}/bulk", json=bulk, headers=headers), 200)
    records = [each for each in records_of(host.admin) if each["request_id"] == request_id]
    assert sorted(each["action"] for each in records) == ["schedule.created"] * 2 + ["schedule.paused"] * 2
    assert {each["resource_id"] for each in records} == ids
    assert {each["reason"] for each in records} == {"from files"}


def test_a_reason_in_the_body_goes_over_one_in_the_header(hosts: tuple[Host, Host]) -> None:
    host = hosts[1]
    schedule_id = host.schedule()
    host.admin.post(
        f"{SCHEDULES}/{schedule_id}/pause", json={"reason": "body"}, headers={"X-Foliot-Reason": "header"}
    )
    assert records_of(host.admin, resource_id=schedule_id)[0]["reason"] == "body"


def test_a_reason_of_any_bytes_is_kept_or_cut(hosts: tuple[Host, Host]) -> None:
    host = hosts[1]
    for given in (b"x" * 5000, b"\xff\xfe", "grün".encode(), b"<script>"):
        schedule_id = host.schedule()
        path = f"{SCHEDULES}/{schedule_id}/pause"
        assert host.admin.post(path, headers={b"X-Foliot-Reason": given}).status_code == 200
        assert 0 < len(records_of(host.admin, resource_id=schedule_id)[0]["reason"]) <= 1000


def test_what_changes_nothing_is_not_written_down(server: Served, hosts: tuple[Host, Host]) -> None:
    host = hosts[1]
    path = f"{SCHEDULES}/{host.schedule()}"
    document = host.admin.get(path).json()
    before = records_of(host.admin)
    host.admin.put(path, json=document)
    host.admin.patch(path, json={})
    host.admin.post(f"{path}/resume")
    host.admin.post(f"{SCHEDULES}/preview", json={"trigger": {"kind": "interval", "hours": 1}})
    host.admin.post(f"{SCHEDULES}/apply", json={"schedules": [yearly()], "dry_run": True})
    host.admin.post(f"{SCHEDULES}/bulk", json={"action": "delete", "filter": {}, "dry_run": True})
    host.admin.patch(path, json={"description": "x"}, headers={"If-Match": '"99"'})
    host.admin.patch(path, json={"priority": "urgent"})
    host.admin.post(SCHEDULES, json=yearly(document["name"]))
    host.admin.delete(f"{V1}/keys/0123456789abcdef")
    server.by(host.keys["viewer"]).delete(path)
    server.by(hosts[0].keys["admin"]).delete(path)
    server.by(None).delete(path)
    assert records_of(host.admin) == before


@pytest.mark.parametrize(
    ("filters", "actions"),
    [
        ({"action": "schedule.paused"}, {"schedule.paused"}),
        ({"action": ["schedule.paused", "schedule.created"]}, {"schedule.paused", "schedule.created"}),
        ({"resource_type": "schedule"}, {"schedule.paused", "schedule.created", "schedule.resumed"}),
        ({"resource_type": "queue"}, set()),
        ({"actor": "nobody"}, set()),
        ({"from_ts": "2099-01-01T00:00:00Z"}, set()),
        ({"to_ts": "2020-01-01T00:00:00Z"}, set()),
    ],
)
def test_the_audit_is_filtered_by_what_is_asked_for(
    hosts: tuple[Host, Host], filters: dict[str, Any], actions: set[str]
) -> None:
    host = hosts[1]
    schedule_id = host.schedule()
    for act in ("pause", "resume"):
        host.admin.post(f"{SCHEDULES}/{schedule_id}/{act}")
    found = list(walk(host.admin, AUDIT, page_size=1, resource_id=schedule_id, **filters))
    assert {each["action"] for each in found} == actions
    times = [each["audit_ts"] for each in found]
    assert times == sorted(times, reverse=True), "latest first"


def test_an_unknown_filter_of_the_audit_is_refused(hosts: tuple[Host, Host]) -> None:
    assert pointers(problem(hosts[1].admin.get(f"{AUDIT}?host_id=x"), 400)) == {
        "/host_id": "unknown_parameter"
    }


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nobody_writes_or_erases_the_audit(server: Served, method: str) -> None:
    assert server.by(OPERATOR_KEY).request(method, AUDIT).status_code == 405
