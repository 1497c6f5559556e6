"""Every route, asked by everybody: what the one table of access says is what happens."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from fastapi.routing import iter_route_contexts
from sqlalchemy import event

from foliot.access.principal import Role
from foliot.api.access.access_table import ACCESS, Access, Home, Open
from foliot.api.ui import Ui
from foliot.db.dialect import Pool
from tests.api.hosts import BAD_KEYS, Host, unique
from tests.api.served import API_ALONE, OPERATOR_KEY, V1, Served
from tests.api.valid_requests import IDS, ROUTES, VALID, Ask, send

HAPPENED = range(200, 400)
DATABASES = ("postgres",)
SERVER = {"roles": API_ALONE}
"""Without a worker: what waits goes on waiting."""


def expected(needed: Access, credential: str, *, is_home: bool) -> set[int]:
    """The statuses that the table allows for a credential of the host itself; `is_home`: the operator's."""
    is_known = credential in (*Role, "operator's key")
    match needed:
        case Open.ANYBODY | Open.PROBE:
            return set(HAPPENED)
        case Open.AGENT:
            return {401}
        case _ if not is_known:
            return {401}
        case Open.SIGNED_IN:
            return set(HAPPENED)
        case Open.KEY_HOLDER:
            return set(HAPPENED) if credential == "operator's key" else {403}
        case Home() if not is_home:
            return {403}
        case Home():
            return expected(needed.role, credential, is_home=True)
        case Role():
            role = Role.ADMIN if credential == "operator's key" else Role(credential)
            return set(HAPPENED) if role.covers(needed) else {403}
    raise AssertionError(f"{needed} is not known here")


def test_every_route_has_an_entry_in_the_table_and_every_entry_a_route(server: Served) -> None:
    found = {
        (method, context.path)
        for context in iter_route_contexts(server.app.routes)
        if not isinstance(context.original_route, Ui)
        for method in context.methods or ()
    }
    by_themselves = {("HEAD", "/"), ("HEAD", "/openapi.json")}
    """What can be read, and is not secret, can be asked for without its body."""
    assert found - by_themselves == set(ACCESS)


def test_every_route_says_how_it_is_asked_rightly() -> None:
    assert set(VALID) == set(ACCESS), "a route needs an entry in valid_requests.py"


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=IDS)
def test_the_table_decides_who_may(server: Served, hosts: tuple[Host, Host], method: str, path: str) -> None:
    needed, make = ACCESS[method, path], VALID[method, path]
    differing = []
    default, other = hosts
    of_nobody_else = {**BAD_KEYS, "operator's key": OPERATOR_KEY}
    for host, credentials in ((default, default.keys | of_nobody_else), (other, other.keys)):
        untouched = make(host)
        for credential, key in credentials.items():
            allowed = expected(needed, credential, is_home=host is default)
            ask = make(host) if 200 in allowed and method != "GET" else untouched
            if needed is Open.AGENT:
                ask = Ask(ask.named, {"json": ask.options["json"]})
            answer = send(server.by(key), method, path, ask)
            if answer.status not in allowed:
                differing.append((credential, answer.status, answer.text[:300]))
            elif answer.status in (401, 403):
                assert_is_problem(answer.status, answer.headers, answer.text)
    assert differing == []


@pytest.mark.parametrize("path", [path for _, path in ROUTES if ACCESS[_, path] is Open.AGENT])
def test_an_agent_gets_in_by_its_token_alone(server: Served, hosts: tuple[Host, Host], path: str) -> None:
    for host in hosts:
        ask = VALID["POST", path](host)
        other = VALID["POST", path](host)
        wrong = Ask(ask.named, {**ask.options, "headers": other.options["headers"]})
        assert send(server.by(None), "POST", path, wrong).status == 401
        assert send(server.by(None), "POST", path, ask).status in HAPPENED


def assert_is_problem(status: int, headers: httpx2.Headers, text: str) -> None:
    assert headers["content-type"] == "application/problem+json"
    document = json.loads(text)
    assert document["status"] == status
    assert document["request_id"] == headers["x-request-id"]
    assert ("www-authenticate" in headers) is (status == 401)


# --- what is another host's ------------------------------------------------------------------------

_UNKNOWN: dict[str, Any] = {
    "schedule_id": lambda: str(uuid4()),
    "execution_id": lambda: str(uuid4()),
    "backfill_id": lambda: str(uuid4()),
    "key_id": lambda: uuid4().hex[:16],
    "rule_id": lambda: str(uuid4()),
    "notification_id": lambda: str(uuid4()),
    "name": unique,
}
SHARED = {
    f"{V1}/task-functions/{{name}}",
    f"{V1}/instances/{{instance_id}}/drain",
    f"{V1}/instances/{{instance_id}}/resume",
    f"{V1}/events/dead-letters/{{dead_letter_id}}",
    f"{V1}/events/dead-letters/{{dead_letter_id}}/replay",
}
"""What all hosts have in common."""
OWN_BY_NAME = {f"{V1}/queues/{{name}}/pause", f"{V1}/queues/{{name}}/resume"}
"""A name is a place of its own in every host, and need not exist."""
ABOUT_ONE = [
    (method, path)
    for method, path in ROUTES
    if "{" in path and path not in SHARED | OWN_BY_NAME and ACCESS[method, path] is not Open.AGENT
]


class Statements:
    """What a request asks the database for, as a measure of the time that it takes."""

    def __init__(self, server: Served) -> None:
        self._server = server
        self._engine = server.instance.store.database.engine(Pool.API).sync_engine
        self.texts: list[str] = []

    def _note(self, _connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        number = _task_number()
        if number is not None and number > self._since:
            self.texts.append(text)

    def __enter__(self) -> "Statements":
        async def number() -> int:
            return _task_number() or 0

        # What was begun before may still ask for something: streams look now and then who listens.
        self._since = self._server.run(number())
        event.listen(self._engine, "before_cursor_execute", self._note)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(self._engine, "before_cursor_execute", self._note)


def _task_number() -> int | None:
    """Tasks of requests are numbered in their names; those of services have names of their own."""
    task = asyncio.current_task()
    name = "" if task is None else task.get_name()
    return int(name.removeprefix("Task-")) if name.startswith("Task-") else None


@pytest.mark.parametrize(
    ("method", "path"), ABOUT_ONE, ids=[f"{method} {path}" for method, path in ABOUT_ONE]
)
def test_what_is_another_hosts_is_as_if_it_were_not_there(
    server: Served, hosts: tuple[Host, Host], method: str, path: str
) -> None:
    default, other = hosts
    askers = [(default, other.keys["admin"]), (other, default.keys["admin"]), (other, OPERATOR_KEY)]
    for owner, key in askers:
        foreign = VALID[method, path](owner)
        name = next(each for each in foreign.named if each != "version")
        nowhere = Ask({**foreign.named, name: _UNKNOWN[name]()}, foreign.options)
        answers, statements = [], []
        client = server.by(key)
        send(client, "GET", f"{V1}/me", Ask())  # its use is noted once a minute
        for ask in (foreign, nowhere):
            with Statements(server) as asked:
                answer = send(client, method, path, ask)
            if method == "PUT" and "calendars" in path:
                # A name is free in every host: it made one of its own.
                assert answer.status == 200
                continue
            assert answer.status == 404, answer.text
            document = json.loads(answer.text.replace(ask.named[name], "the id"))
            document.pop("request_id")
            answers.append((document, sorted(answer.headers)))
            statements.append(asked.texts)
        assert answers[:1] == answers[1:]
        assert statements[:1] == statements[1:]


def test_nothing_done_in_another_host_reaches_this_one(server: Served, hosts: tuple[Host, Host]) -> None:
    default, other = hosts
    calendar, queue = default.calendar(), unique("queue")
    assert other.admin.put(f"{V1}/calendars/{calendar}", json={"days": ["2031-12-24"]}).status_code == 200
    assert other.admin.post(f"{V1}/queues/{queue}/pause").status_code == 200
    assert default.admin.get(f"{V1}/calendars/{calendar}").json()["days"] == ["2030-01-01"]
    assert default.admin.post(f"{V1}/queues/{queue}/resume").json()["paused"] is False
    paused = [each["name"] for each in default.admin.get(f"{V1}/queues").json()["items"] if each["paused"]]
    assert queue not in paused


LISTS = [
    (method, path)
    for method, path in ROUTES
    if method == "GET"
    and "{" not in path
    and path.startswith(V1)
    and ACCESS[method, path] is not Open.KEY_HOLDER
    and not isinstance(ACCESS[method, path], Home)  # other hosts get a 403
]
OF_THE_CLUSTER = {f"{V1}/kinds", f"{V1}/task-functions", f"{V1}/instances", f"{V1}/stream"}


@pytest.mark.parametrize("path", [path for _, path in LISTS if path not in OF_THE_CLUSTER])
def test_lists_hold_nothing_of_another_host(server: Served, hosts: tuple[Host, Host], path: str) -> None:
    default, other = hosts
    marks = [default.calendar(), default.secret(), default.key()[0], default.execution(), default.backfill()]
    marks += [default.rule(), default.dead_notification()]
    name = unique("of-default")
    marks += [name, default.schedule(name=name, queue=name), str(default.host_id)]
    ask = VALID["GET", path](other)
    answer = send(server.by(other.keys["admin"]), "GET", path, ask)
    assert answer.status == 200
    assert [mark for mark in marks if mark in answer.text] == []


def test_only_the_operators_key_makes_keys_for_another_host(server: Served, hosts: tuple[Host, Host]) -> None:
    default, other = hosts
    for maker, target in ((default, other), (other, default)):
        document = {"name": "escape", "role": "viewer", "host_id": str(target.host_id)}
        answer = maker.admin.post(f"{V1}/keys", json=document)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    operator = server.by(OPERATOR_KEY)
    document = {"name": "let in", "role": "viewer", "host_id": str(other.host_id)}
    key = operator.post(f"{V1}/keys", json=document).json()["key"]
    assert operator.post(f"{V1}/keys", json={**document, "host_id": str(uuid4())}).status_code == 404
    assert server.by(key).get(f"{V1}/me").json()["host_id"] == str(other.host_id)


def test_an_operator_in_bulk_may_not_delete_what_it_may_not_delete_one_by_one(
    server: Served, hosts: tuple[Host, Host]
) -> None:
    default, _ = hosts
    schedule_id = default.schedule()
    body = {"action": "delete", "schedule_ids": [schedule_id]}
    answer = server.by(default.keys["operator"]).post(f"{V1}/schedules/bulk", json=body)
    assert answer.status_code == 403
    assert default.admin.get(f"{V1}/schedules/{schedule_id}").status_code == 200


def test_a_bulk_act_on_another_hosts_ids_finds_nothing(server: Served, hosts: tuple[Host, Host]) -> None:
    default, other = hosts
    schedule_id, execution_id = default.schedule(), default.execution()
    for what, ids, action in (
        ("schedules", {"schedule_ids": [schedule_id]}, "pause"),
        ("executions", {"execution_ids": [execution_id]}, "cancel"),
    ):
        answer = other.admin.post(f"{V1}/{what}/bulk", json={"action": action, **ids}).json()
        assert (answer["done"], answer["failed"]) == (0, 1)
        assert answer["items"][0]["code"] == "not_found"
    assert default.admin.get(f"{V1}/schedules/{schedule_id}").json()["paused"] is False
    assert default.admin.get(f"{V1}/executions/{execution_id}").json()["status"] == "pending"
