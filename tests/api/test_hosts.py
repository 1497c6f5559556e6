"""Hosts and who is let into them: the operator's key, API keys, and tokens of an issuer."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx2
import jwt
import pytest

from foliot.access.principal import Role
from foliot.model.ids import DEFAULT_HOST_ID
from tests.api.answers import made, pointers, problem, walk
from tests.api.hosts import Host, unique, yearly
from tests.api.served import API_ALONE, OPERATOR_KEY, SCHEDULES, V1, Served, served

JWT_SECRET = "a-secret-of-the-issuer-that-is-long-enough-for-any-hash-0123456789"
ISSUER, AUDIENCE = "https://issuer.example", "foliot"


# --- hosts -----------------------------------------------------------------------------------------
DATABASES = ("sqlite",)
SERVER = {
    "roles": API_ALONE,
    "jwt_secret": JWT_SECRET,
    "jwt_issuer": ISSUER,
    "jwt_audience": AUDIENCE,
}


def test_a_host_is_made_once_under_a_name_and_listed(operator: httpx2.Client) -> None:
    name = unique("host")
    answer = operator.post(f"{V1}/hosts", json={"name": name})
    document = made(answer)
    assert answer.headers["location"]
    assert (document["name"], set(document)) == (name, {"host_id", "name", "created_ts"})
    assert problem(operator.post(f"{V1}/hosts", json={"name": name}), 409)["code"] == "name_taken"
    listed = list(walk(operator, f"{V1}/hosts", page_size=2))
    assert document in listed
    assert str(DEFAULT_HOST_ID) in {each["host_id"] for each in listed}
    assert [each["name"] for each in listed] == sorted(each["name"] for each in listed)


@pytest.mark.parametrize("name", ["", " x", "x" * 127, "a\nb", 5, None])
def test_a_host_has_a_proper_name(operator: httpx2.Client, name: object) -> None:
    assert pointers(problem(operator.post(f"{V1}/hosts", json={"name": name}), 422)).keys() == {"/name"}


def test_hosts_may_use_the_same_names_for_their_own_things(hosts: tuple[Host, Host]) -> None:
    name = unique("same")
    ids = {made(host.admin.post(SCHEDULES, json=yearly(name)))["schedule_id"] for host in hosts}
    assert len(ids) == 2
    for host in hosts:
        [found] = host.admin.get(SCHEDULES, params={"name": name}).json()["items"]
        assert found["host_id"] == str(host.host_id)


def test_a_new_host_has_nothing(operator: httpx2.Client, server: Served) -> None:
    host_id = made(operator.post(f"{V1}/hosts", json={"name": unique("host")}))["host_id"]
    key = {"name": "first", "role": "admin", "host_id": host_id}
    admin = server.by(made(operator.post(f"{V1}/keys", json=key))["key"])
    for path in ("schedules", "executions", "calendars", "secrets", "queues", "events"):
        document = made(admin.get(f"{V1}/{path}"), 200)
        assert (document["items"], document["next_page_token"]) == ([], "")
    assert [each["name"] for each in admin.get(f"{V1}/keys").json()["items"]] == ["first"]


def test_the_operators_key_is_an_admin_of_the_default_host(operator: httpx2.Client) -> None:
    me = operator.get(f"{V1}/me").json()
    assert (me["host_id"], me["role"], me["is_operator"]) == (str(DEFAULT_HOST_ID), "admin", True)
    assert OPERATOR_KEY not in json.dumps(me)


# --- keys ------------------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_then_only_named(server: Served, hosts: tuple[Host, Host]) -> None:
    host = hosts[1]
    name = unique("key")
    answer = host.admin.post(f"{V1}/keys", json={"name": name, "role": "operator"})
    document = made(answer)
    assert answer.headers["location"] == f"{V1}/keys/{document['key_id']}"
    me = server.by(document["key"]).get(f"{V1}/me").json()
    assert (me["name"], me["role"], me["host_id"]) == (name, "operator", str(host.host_id))
    [listed] = [each for each in walk(host.admin, f"{V1}/keys") if each["name"] == name]
    assert set(listed) == set(document) - {"key"}
    assert listed["last_used_ts"] is not None
    everything = json.dumps(list(walk(host.admin, f"{V1}/keys")))
    assert document["key"] not in everything
    assert document["key"].split("_", 2)[2] not in everything


def test_a_revoked_key_is_worth_nothing_at_once_and_stays_listed(
    server: Served, hosts: tuple[Host, Host]
) -> None:
    host = hosts[1]
    key_id, key = host.key(Role.ADMIN)
    assert server.by(key).get(f"{V1}/me").status_code == 200
    assert host.admin.delete(f"{V1}/keys/{key_id}").status_code == 204
    problem(server.by(key).get(f"{V1}/me"), 401)
    [listed] = [each for each in walk(host.admin, f"{V1}/keys") if each["key_id"] == key_id]
    assert listed["revoked_ts"] is not None
    again = host.admin.delete(f"{V1}/keys/{key_id}")
    assert again.status_code == 204
    assert [each for each in walk(host.admin, f"{V1}/keys") if each["key_id"] == key_id] == [listed]


def test_a_key_is_revoked_for_every_instance_at_once(
    server: Served, module_url: str, hosts: tuple[Host, Host]
) -> None:
    host = hosts[1]
    key_id, key = host.key()
    with served(module_url, roles=API_ALONE) as other:
        assert other.by(key).get(f"{V1}/me").status_code == 200
        assert host.admin.delete(f"{V1}/keys/{key_id}").status_code == 204
        problem(other.by(key).get(f"{V1}/me"), 401)


def test_a_key_works_until_it_expires(server: Served, hosts: tuple[Host, Host]) -> None:
    host = hosts[1]
    expires_ts = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    key_id, key = host.key(expires_ts=expires_ts)
    assert server.by(key).get(f"{V1}/me").status_code == 200
    host.expire(key_id)
    problem(server.by(key).get(f"{V1}/me"), 401)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"role": "root"}, "/role"),
        ({"role": None}, "/role"),
        ({"name": ""}, "/name"),
        ({"name": "a\nb"}, "/name"),
        ({"expires_ts": "2020-01-01T00:00:00Z"}, "/expires_ts"),
        ({"expires_ts": "2099-01-01T00:00:00"}, "/expires_ts"),
        ({"host_id": "nonsense"}, "/host_id"),
        ({"is_operator": True}, "/is_operator"),
        ({"key": "flt_0123456789abcdef_" + "A" * 43}, "/key"),
        ({"key_id": "0123456789abcdef"}, "/key_id"),
    ],
)
def test_a_key_that_means_nothing_is_not_made(
    hosts: tuple[Host, Host], change: dict[str, Any], pointer: str
) -> None:
    body = {"name": "k", "role": "viewer", **change}
    assert pointers(problem(hosts[1].admin.post(f"{V1}/keys", json=body), 422)).keys() == {pointer}


# --- tokens ----------------------------------------------------------------------------------------


def claims(**changes: Any) -> dict[str, Any]:
    made_ = {
        "sub": "alice",
        "role": "editor",
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": datetime.now(UTC) + timedelta(hours=1),
    } | changes
    return {name: value for name, value in made_.items() if value is not None}


def signed(key: str = JWT_SECRET, algorithm: str = "HS256", **changes: Any) -> str:
    return jwt.encode(claims(**changes), key, algorithm)


def unsigned(**changes: Any) -> str:
    parts = [{"alg": "none", "typ": "JWT"}, claims(exp=4_000_000_000, **changes)]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, ""])


def test_a_token_lets_its_subject_into_its_host_with_its_role(
    server: Served, hosts: tuple[Host, Host]
) -> None:
    default, other = hosts
    for host, own in ((default, {}), (other, {"host_id": str(other.host_id)})):
        client = server.by(signed(**own))
        me = made(client.get(f"{V1}/me"), 200)
        assert (me["name"], me["role"], me["kind"]) == ("alice", "editor", "jwt")
        assert (me["host_id"], me["is_operator"]) == (str(host.host_id), False)
        document = made(client.post(SCHEDULES, json=yearly()))
        assert (document["created_by"], document["managed_by"]) == ("alice", "api")
        problem(client.get(f"{V1}/keys"), 403)
        problem(client.get(f"{V1}/hosts"), 403)
    stranger = server.by(signed(role="admin", host_id=str(other.host_id)))
    problem(stranger.get(f"{SCHEDULES}/{default.schedule()}"), 404)


def test_a_token_of_an_admin_is_not_the_operators_key(server: Served) -> None:
    admin = server.by(signed(role="admin"))
    assert admin.get(f"{V1}/keys").status_code == 200
    problem(admin.post(f"{V1}/hosts", json={"name": unique()}), 403)
    problem(admin.post(f"{V1}/secrets/rotate"), 403)


REFUSED = {
    "no signature": unsigned,
    "another secret": lambda: signed("another-secret-of-nobody-0123456789abcdef"),
    "another algorithm of the same family": lambda: signed(algorithm="HS512"),
    "expired": lambda: signed(exp=datetime.now(UTC) - timedelta(seconds=1)),
    "no end": lambda: signed(exp=None),
    "no subject": lambda: signed(sub=None),
    "no role": lambda: signed(role=None),
    "a role that there is not": lambda: signed(role="root"),
    "no audience": lambda: signed(aud=None),
    "another audience": lambda: signed(aud="others"),
    "no issuer": lambda: signed(iss=None),
    "another issuer": lambda: signed(iss="https://evil.example"),
    "not valid yet": lambda: signed(nbf=datetime.now(UTC) + timedelta(hours=1)),
    "a host that there is not": lambda: signed(host_id=str(uuid4())),
    "a host that is no host": lambda: signed(host_id="default"),
    "changed": lambda: signed()[:-2] + "AA",
    "cut": lambda: signed().rpartition(".")[0],
    "very long": lambda: signed(sub="x" * 20_000),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_a_token_that_is_wrong_in_any_way_lets_nobody_in_and_is_not_told_why(
    server: Served, make: Any
) -> None:
    answer = server.by(None).get(f"{V1}/me", headers={"Authorization": f"Bearer {make()}"})
    document = problem(answer, 401)
    plain = server.by(None).get(f"{V1}/me").json()
    assert {**document, "request_id": ""} == {**plain, "request_id": ""}


def test_a_token_signs_no_browser_in(server: Served) -> None:
    answer = server.by(None).post("/sign-in", json={"key": signed()})
    assert answer.status_code in (401, 403, 422)
    assert "set-cookie" not in answer.headers


def test_where_tokens_are_off_none_is_taken(module_url: str) -> None:
    with served(module_url, roles=API_ALONE) as server:
        for token in (signed(), unsigned()):
            problem(server.by(token).get(f"{V1}/me"), 401)
