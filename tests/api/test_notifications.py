"""Notification rules and messages over HTTP."""

from typing import Any

import httpx2
import pytest

from tests.api.answers import made
from tests.api.hosts import Host, on_call, unique
from tests.api.served import API_ALONE, V1, Served

DATABASES = ("sqlite",)
SERVER = {"roles": API_ALONE}
"""Without a worker: what is to be sent goes on waiting."""
RULES = f"{V1}/notifications/rules"
MESSAGES = f"{V1}/notifications"


def test_a_rule_is_made_read_changed_and_deleted_by_its_version(operator: httpx2.Client) -> None:
    name = unique("rule")
    answer = operator.post(RULES, json=on_call(name, match={"labels": {"team": "pay"}}))
    rule = made(answer)
    path = f"{RULES}/{rule['rule_id']}"
    assert (answer.headers["location"], answer.headers["etag"], rule["version"]) == (path, '"1"', 1)
    assert rule["to"]["url"].endswith("${secret:slack}")
    assert (rule["enabled"], rule["muted_until_ts"]) == (True, None)
    assert operator.get(path).json() == rule

    muted = {"muted_until_ts": "2999-01-01T00:00:00Z", "match": {"labels": {"tier": "1"}}}
    patched = operator.patch(path, json=muted, headers={"If-Match": '"1"'})
    assert (patched.status_code, patched.headers["etag"]) == (200, '"2"')
    assert patched.json()["match"]["labels"] == {"team": "pay", "tier": "1"}
    stale = operator.patch(path, json=muted, headers={"If-Match": '"1"'})
    assert (stale.status_code, stale.json()["current_version"]) == (412, 2)
    assert "notification rule" in stale.json()["detail"]
    webhook = {"kind": "webhook", "url": "https://hooks.example/y", "secret": "${secret:key}"}
    assert operator.patch(path, json={"to": webhook}).json()["to"] == webhook

    # Read, edit, write.
    document = operator.get(path).json() | {"description": "changed"}
    assert operator.put(path, json=document).json()["description"] == "changed"
    changed = operator.put(path, json=document | {"version": 77})
    assert (changed.status_code, changed.json()["code"]) == (422, "read_only")
    replaced = operator.put(path, json=on_call(name)).json()
    assert (replaced["description"], replaced["match"]["labels"]) == ("", {})

    assert name in [each["name"] for each in operator.get(RULES, params={"page_size": 500}).json()["items"]]
    assert operator.delete(path, headers={"If-Match": '"1"'}).status_code == 412
    assert operator.delete(path).status_code == 204
    assert operator.get(path).status_code == 404


def test_a_name_is_taken_once_and_a_repeated_post_makes_one(operator: httpx2.Client) -> None:
    body, key = on_call(), {"Idempotency-Key": unique()}
    first = made(operator.post(RULES, json=body, headers=key))
    assert made(operator.post(RULES, json=body, headers=key))["rule_id"] == first["rule_id"]
    taken = operator.post(RULES, json=body)
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    other = made(operator.post(RULES, json=on_call()))
    assert operator.patch(f"{RULES}/{other['rule_id']}", json={"name": body["name"]}).status_code == 409


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"to": {"kind": "slack", "url": "http://169.254.169.254/latest"}}, "/to/url"),
        ({"to": {"kind": "slack", "url": "http://localhost:6379/"}}, "/to/url"),
        ({"to": {"kind": "slack", "url": "http://0x7f000001/"}}, "/to/url"),
        ({"to": {"kind": "slack", "url": "http://[::ffff:10.0.0.1]/"}}, "/to/url"),
        ({"to": {"kind": "slack", "url": "https://hooks.example/${secret:a b}"}}, "/to/url"),
        ({"to": {"kind": "webhook", "url": "https://hooks.example/", "secret": "whsec_AAAA"}}, "/to/secret"),
        ({"on": [{"kind": "failures_in_a_row", "count": 0}]}, "/on/0/count"),
        ({"on": [{"kind": "never"}]}, "/on/0"),
        ({"on": [{"kind": "failure", "every": "yes"}]}, "/on/0/every"),
        ({"enabled": "no"}, "/enabled"),
        ({"enabled": 0}, "/enabled"),
        ({"muted_until_ts": 5}, "/muted_until_ts"),
        ({"muted_until_ts": "1795190400"}, "/muted_until_ts"),
        ({"muted_until_ts": True}, "/muted_until_ts"),
        ({"host_id": "x"}, "/host_id"),
        ({"name": ""}, "/name"),
    ],
)
def test_what_can_not_be_is_a_422_that_names_the_field(
    operator: httpx2.Client, fields: dict[str, Any], pointer: str
) -> None:
    path = f"{RULES}/{made(operator.post(RULES, json=on_call()))['rule_id']}"
    for answer in (
        operator.post(RULES, json={**on_call(), **fields}),
        operator.put(path, json={**on_call(), **fields}),
        operator.patch(path, json=fields),
    ):
        assert answer.status_code == 422, answer.text
        assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]


def test_a_test_message_waits_to_be_sent_and_a_dead_one_can_be_sent_again(
    operator: httpx2.Client, host: Host
) -> None:
    rule_id = host.rule(enabled=False)
    answer = operator.post(f"{RULES}/{rule_id}/test")
    message = made(answer, 202)
    assert answer.headers["location"] == f"{MESSAGES}/{message['notification_id']}"
    assert (message["status"], message["type"], message["attempts"]) == ("pending", "test", 0)
    assert message["message"]["data"]["rule"]["rule_id"] == rule_id
    again = operator.post(f"{MESSAGES}/{message['notification_id']}/retry")
    assert (again.status_code, again.json()["errors"][0]["code"]) == (409, "not_dead")

    dead = host.dead_notification()
    listed = operator.get(MESSAGES, params={"status": ["dead"]}).json()["items"]
    assert dead in [each["notification_id"] for each in listed]
    assert {each["status"] for each in listed} == {"dead"}
    assert made(operator.post(f"{MESSAGES}/{dead}/retry"), 202)["status"] == "pending"
    of_rule = operator.get(MESSAGES, params={"rule_id": rule_id, "page_size": 1}).json()
    assert [each["notification_id"] for each in of_rule["items"]] == [message["notification_id"]]
    assert operator.get(MESSAGES, params={"status": "lost"}).status_code == 422
    assert operator.get(MESSAGES, params={"colour": "red"}).status_code == 400


def test_every_change_is_in_the_audit_without_the_value_of_a_secret(
    server: Served, operator: httpx2.Client, host: Host
) -> None:
    secret = host.secret("whsec_dGhlIHNlY3JldCB2YWx1ZSBpdHNlbGY=")
    to = {"kind": "webhook", "url": "https://hooks.example/", "secret": f"${{secret:{secret}}}"}
    rule_id = host.rule(to=to)
    operator.patch(f"{RULES}/{rule_id}", json={"enabled": False}, headers={"X-Foliot-Reason": "too loud"})
    operator.post(f"{RULES}/{rule_id}/test")
    operator.delete(f"{RULES}/{rule_id}")
    answer = operator.get(f"{V1}/audit", params={"resource_id": rule_id})
    entries = {each["action"]: each for each in answer.json()["items"]}
    assert set(entries) == {
        f"notification_rule.{each}" for each in ("created", "edited", "tested", "deleted")
    }
    assert entries["notification_rule.edited"]["after"] == {"enabled": False}
    assert entries["notification_rule.edited"]["reason"] == "too loud"
    assert "dGhlIHNlY3JldCB2YWx1ZSBpdHNlbGY" not in answer.text
