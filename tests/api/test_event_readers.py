"""Who reads events and does not, what could not be handled or sent: seen in `status`, removable."""

from datetime import timedelta
from typing import Any

import httpx2

from tests.api.answers import problem
from tests.api.hosts import Host
from tests.api.served import V1

HOUR = timedelta(hours=1)


def status(client: httpx2.Client) -> dict[str, Any]:
    document: dict[str, Any] = client.get(f"{V1}/status").json()
    return document


def named(found: list[dict[str, Any]], key: str, name: str) -> dict[str, Any] | None:
    return next((each for each in found if each[key] == name), None)


def test_an_abandoned_group_is_named_and_can_be_deleted(hosts: tuple[Host, Host]) -> None:
    default, other = hosts
    group = default.event_group(seen=2 * HOUR, unread=2 * HOUR)
    found = named(status(default.admin)["event_groups"], "group", group)
    assert found is not None
    assert (found["state"], found["is_running"]) == ("abandoned", False)
    assert found["lag"] >= 1
    assert status(other.admin)["event_groups"] == [], "the log is the operator's"
    listed = named(default.admin.get(f"{V1}/events/groups?page_size=500").json()["items"], "group", group)
    assert listed is not None
    assert listed["oldest_unread_ts"] == found["oldest_unread_ts"]
    path = f"{V1}/events/groups"
    assert default.admin.delete(path, params={"group": group}).status_code == 204
    assert named(status(default.admin)["event_groups"], "group", group) is None
    assert problem(default.admin.delete(path, params={"group": group}), 404)
    audited = default.admin.get(f"{V1}/audit").json()["items"][0]
    assert (audited["action"], audited["resource_id"]) == ("event_group.deleted", group)


def test_a_group_that_runs_is_not_deleted_and_one_that_is_a_little_late_is_well(
    hosts: tuple[Host, Host],
) -> None:
    default = hosts[0]
    running = default.event_group(seen=timedelta(seconds=5), unread=2 * HOUR)
    refused = problem(default.admin.delete(f"{V1}/events/groups", params={"group": running}), 409)
    assert "runs" in str(refused)
    found = named(status(default.admin)["event_groups"], "group", running)
    assert found is not None
    assert found["state"] == "behind"
    idle = default.event_group(seen=48 * HOUR)
    assert named(status(default.admin)["event_groups"], "group", idle) is None, "it keeps nothing"


def test_a_topic_that_the_broker_refuses_is_named_and_can_be_given_up(hosts: tuple[Host, Host]) -> None:
    default = hosts[0]
    relay = default.event_relay("secret/topic", "other")
    found = named(status(default.admin)["event_relays"], "name", relay)
    assert found is not None
    assert [each["topic"] for each in found["refused_topics"]] == ["other", "secret/topic"]
    assert found["refused_topics"][0]["reason"] == "not allowed"
    path = f"{V1}/events/relays"
    assert problem(default.admin.delete(path, params={"name": relay, "topic": "third"}), 404)
    assert default.admin.delete(path, params={"name": relay, "topic": "secret/topic"}).status_code == 204
    found = named(default.admin.get(path).json()["items"], "name", relay)
    assert found is not None
    assert [each["topic"] for each in found["refused_topics"]] == ["other"]
    assert default.admin.delete(path, params={"name": relay}).status_code == 204
    assert named(default.admin.get(path).json()["items"], "name", relay) is None


def test_a_relay_that_runs_is_not_deleted(hosts: tuple[Host, Host]) -> None:
    default = hosts[0]
    relay = default.event_relay(age=timedelta(seconds=1))
    assert "runs" in str(problem(default.admin.delete(f"{V1}/events/relays", params={"name": relay}), 409))


def test_a_dead_letter_is_listed_replayed_and_deleted(hosts: tuple[Host, Host]) -> None:
    default = hosts[0]
    letters = [default.dead_letter("a"), default.dead_letter("a"), default.dead_letter("b")]
    path = f"{V1}/events/dead-letters"
    found = default.admin.get(path, params={"group": "a", "page_size": 500}).json()["items"]
    assert [each["dead_letter_id"] for each in found] == letters[:2]
    assert found[0]["events"][0]["topic"] == "orders"
    assert "private" not in str(found), "what an event says is not in the list"
    assert default.admin.post(f"{path}/{letters[0]}/replay").status_code == 202
    found = default.admin.get(path, params={"group": "a"}).json()["items"]
    assert [each["replay_requested_ts"] is not None for each in found] == [True, False]
    assert default.admin.delete(f"{path}/{letters[0]}").status_code == 204
    assert problem(default.admin.delete(f"{path}/{letters[0]}"), 404)
    assert problem(default.admin.post(f"{path}/{letters[0]}/replay"), 404)
    actions = [each["action"] for each in default.admin.get(f"{V1}/audit").json()["items"][:2]]
    assert actions == ["dead_letter.deleted", "dead_letter.replayed"]
