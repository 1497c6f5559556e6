"""A secret is written and used, and never comes out again: in no answer, no log line, no error, no row."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from sqlalchemy import select

from foliot.api.access.access_table import ACCESS
from foliot.db.dialect import Pool
from foliot.db.tables.metadata import metadata
from foliot.instance.store import open_store
from foliot.timing.clock import SystemClock
from tests.api.answers import made, problem
from tests.api.hosts import unique, yearly
from tests.api.served import OPERATOR_KEY, SECRET_KEY, V1
from tests.cluster.processes import Node
from tests.servers import free_port
from tests.waiting import until

MARK = 'Zx9-secret/with "quotes" & ümlaut?+%'
"""Recognised in any of the forms that it may take on its way."""
FORMS = {MARK, quote(MARK), quote(MARK, safe=""), json.dumps(MARK)[1:-1], "Zx9-secret"}

TASKS = dedent(
    """
    import logging

    from foliot import Fire, Foliot

    app = Foliot()

    @app.task
    async def leak(value: str, fire: Fire) -> dict[str, object]:
        logging.getLogger("leak").warning("the value is %s", value)
        await fire.progress(0.5, f"with {value}")
        return {"value": value, value: [value]}

    @app.task(isolation="process")
    def leak_apart(value: str) -> str:
        print("the value is", value)
        return value

    @app.task
    async def fail_with(value: str) -> None:
        held = value
        raise RuntimeError(f"could not use {held}")
    """
)


class _Echo(BaseHTTPRequestHandler):
    """An agent that says back whatever it was sent; fails where its path says so."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        said = {"path": self.path, "headers": dict(self.headers), "body": self.rfile.read(length).decode()}
        body = json.dumps(said, ensure_ascii=False).encode()
        self.server.received.append(said)  # type: ignore[attr-defined]
        self.send_response(500 if "fail" in self.path else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def agent() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    server.received = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Scene:
    """A real process that was given a secret and has used it in every way there is."""

    def __init__(self, node: Node, client: httpx2.Client, agent_url: str) -> None:
        self.node = node
        self.client = client
        self._agent_url = agent_url
        self.secret = unique("secret")
        self.answers: list[httpx2.Response] = []
        self.schedules: list[str] = []
        self.executions: list[str] = []
        self.rule_id = ""
        self.notification_id = ""

    def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        self.answers.append(self.client.request(method, path, **options))
        return self.answers[-1]

    def play(self) -> None:
        reference = f"${{secret:{self.secret}}}"
        body = {"name": self.secret, "value": MARK}
        made(self.ask("POST", f"{V1}/secrets", json=body, headers={"Idempotency-Key": unique()}))
        http = {
            "kind": "http",
            "url": f"{self._agent_url}/hook/{reference}?token={reference}",
            "headers": {"Authorization": f"Bearer {reference}"},
            "body": {"key": reference, "list": [f"a {reference} b"]},
        }
        failing = {**http, "url": f"{self._agent_url}/fail/{reference}"}
        targets = [http, failing]
        targets += [
            {"kind": "function", "name": name, "args": {"value": reference}}
            for name in ("leak", "leak_apart", "fail_with")
        ]
        for target in targets:
            document = yearly(target=target, retry={"max_attempts": 2, "initial_delay_seconds": 0})
            schedule_id = made(self.ask("POST", f"{V1}/schedules", json=document))["schedule_id"]
            answer = self.ask("POST", f"{V1}/schedules/{schedule_id}/trigger")
            self.schedules.append(schedule_id)
            self.executions.append(made(answer, 202)["execution_id"])
        # Somebody is told of the failures, at an address with the secret in it, which fails too.
        rule = {
            "name": unique("rule"),
            "on": [{"kind": "failure"}],
            "to": {"kind": "slack", "url": f"{self._agent_url}/fail/{reference}"},
        }
        self.rule_id = made(self.ask("POST", f"{V1}/notifications/rules", json=rule))["rule_id"]
        told = made(self.ask("POST", f"{V1}/notifications/rules/{self.rule_id}/test"), 202)
        self.notification_id = told["notification_id"]
        until(lambda: self._was_tried(self.notification_id))
        for execution_id in self.executions:
            until(lambda path=f"{V1}/executions/{execution_id}": self._has_ended(path))  # type: ignore[misc]

    def _was_tried(self, notification_id: str) -> bool:
        return self.client.get(f"{V1}/notifications/{notification_id}").json()["error"] is not None

    def _has_ended(self, path: str) -> bool:
        return self.client.get(path).json()["status"] in ("success", "failed")


@pytest.fixture(scope="module")
def scene(
    module_url: str, tmp_path_factory: pytest.TempPathFactory, agent: ThreadingHTTPServer
) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "leaky.py").write_text(TASKS)
    port = free_port()
    settings = {
        "FOLIOT_API_PORT": str(port),
        "FOLIOT_ADMIN_KEY": OPERATOR_KEY,
        "FOLIOT_SECRET_KEY": SECRET_KEY,
        "FOLIOT_HTTP_ALLOW": "127.0.0.1",
        "FOLIOT_LOG_LEVEL": "debug",
        "PYTHONPATH": str(folder),
    }
    node = Node("up", module_url, folder, "up", "--tasks", "leaky", **settings)
    base_url = f"http://127.0.0.1:{port}"
    bearer = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    try:
        with httpx2.Client(
            base_url=base_url, headers=bearer, trust_env=False, verify=False, timeout=60
        ) as client:
            until(lambda: _is_ready(node, client))
            made_ = Scene(node, client, f"http://127.0.0.1:{agent.server_address[1]}")
            made_.play()
            yield made_
    finally:
        node.kill()


def _is_ready(node: Node, client: httpx2.Client) -> bool:
    assert node.is_running, node.told()
    try:
        return client.get("/readyz").status_code == 200
    except httpx2.TransportError:
        return False


def shows(text: str) -> set[str]:
    return {form for form in FORMS if form in text}


# --- first, that there is something to leak --------------------------------------------------------


def test_the_secret_reached_what_it_was_meant_for(scene: Scene, agent: ThreadingHTTPServer) -> None:
    received = agent.received  # type: ignore[attr-defined]
    assert any(said["headers"].get("Authorization", "").startswith("Bearer Zx9") for said in received)
    assert any(MARK in json.loads(said["body"])["key"] for said in received)
    statuses = [
        scene.client.get(f"{V1}/executions/{execution_id}").json() for execution_id in scene.executions
    ]
    assert [each["status"] for each in statuses] == ["success", "failed", "success", "success", "failed"]
    assert "***" in json.dumps([each["result"] for each in statuses])


# --- then, that nothing does -----------------------------------------------------------------------


def test_no_answer_to_who_set_and_used_it_shows_it(scene: Scene) -> None:
    for answer in scene.answers:
        assert shows(answer.text) == set()
        assert shows(str(answer.headers)) == set()


@pytest.mark.parametrize("path", sorted(path for method, path in ACCESS if method == "GET"))
def test_no_route_that_is_read_shows_it(scene: Scene, path: str) -> None:
    if path.endswith("/stream"):
        pytest.skip("tells what the others tell")
    params = {"from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"} if "timeline" in path else None
    known = {
        "backfill_id": scene.schedules[0],
        "name": scene.secret,
        "version": "1",
        "rule_id": scene.rule_id,
        "notification_id": scene.notification_id,
    }
    for schedule_id, execution_id in zip(scene.schedules, scene.executions, strict=True):
        named = {**known, "schedule_id": schedule_id, "execution_id": execution_id}
        answer = scene.client.get(path.format(**named), params=params, follow_redirects=False)
        assert answer.status_code < 500
        assert shows(answer.text) == set()
        assert shows(str(answer.headers)) == set()
        if "{schedule_id}" not in path and "{execution_id}" not in path:
            return


def test_a_secret_is_listed_by_its_name_alone(scene: Scene) -> None:
    items = scene.client.get(f"{V1}/secrets").json()["items"]
    assert [set(each) for each in items if each["name"] == scene.secret] == [{"name", "updated_ts"}]
    assert scene.client.get(f"{V1}/secrets/{scene.secret}").status_code in (404, 405)


def test_the_audit_says_that_it_was_set_and_not_to_what(scene: Scene) -> None:
    [record] = scene.client.get(f"{V1}/audit", params={"resource_id": scene.secret}).json()["items"]
    assert (record["action"], record["actor"]) == ("secret.set", "operator")
    assert shows(json.dumps(record, ensure_ascii=False)) == set()


@pytest.mark.parametrize(
    "body",
    [
        {"name": "no spaces", "value": MARK},
        {"name": "ok", "value": MARK, "extra": 1},
        {"name": "ok", "value": [MARK]},
        {"name": "ok", "value": {"a": MARK}},
        {"name": "ok", "value": MARK * 2000},
        {"name": MARK, "value": MARK},
        {"name": "ok", "value": MARK + "\0"},
        {"name": 5, "value": MARK},
        {"value": MARK},
    ],
    ids=range(9),
)
def test_a_secret_that_is_refused_is_not_said_back(scene: Scene, body: dict[str, Any]) -> None:
    answer = scene.client.post(f"{V1}/secrets", json=body)
    problem(answer, 422)
    assert shows(answer.text) == set()
    raw = json.dumps(body, ensure_ascii=False).encode()
    as_json = {b"Content-Type": b"application/json"}
    for content, headers in (
        (raw, {b"Content-Type": b"text/plain"}),
        (raw[:-1], as_json),
        (raw, {**as_json, b"Idempotency-Key": b"\xff"}),
    ):
        answer = scene.client.post(f"{V1}/secrets", content=content, headers=headers)
        assert 400 <= answer.status_code < 500
        assert shows(answer.text) == set()


def test_what_is_exported_holds_the_reference_and_not_the_value(scene: Scene) -> None:
    for schedule_id in scene.schedules:
        document = scene.client.get(f"{V1}/schedules/{schedule_id}")
        assert f"${{secret:{scene.secret}}}" in document.text
        assert shows(document.text) == set()


async def test_no_row_of_the_database_holds_it(scene: Scene, module_url: str) -> None:
    store = open_store(module_url, clock=SystemClock())
    try:
        found = {}
        async with store.database.read(Pool.API) as connection:
            for table in metadata.sorted_tables:
                rows = (await connection.execute(select(table))).all()
                text = "\n".join(str(tuple(row)) for row in rows)
                if shows(text) or OPERATOR_KEY in text or SECRET_KEY in text:
                    found[table.name] = shows(text)
        assert found == {}
    finally:
        await store.close()


def test_no_file_of_the_database_holds_it(scene: Scene, module_url: str) -> None:
    if not module_url.startswith("sqlite"):
        pytest.skip("its files are PostgreSQL's")
    path = Path(module_url.removeprefix("sqlite:///"))
    for file in path.parent.glob(f"{path.name}*"):
        content = file.read_bytes()
        assert [form for form in FORMS if form.encode() in content] == []


def test_keys_are_shown_once_and_kept_nowhere(scene: Scene) -> None:
    document = made(scene.client.post(f"{V1}/keys", json={"name": unique("key"), "role": "admin"}))
    secret = document["key"].split("_", 2)[2]
    assert scene.client.get(f"{V1}/me", headers={"Authorization": f"Bearer {document['key']}"}).is_success
    refused = scene.client.get(f"{V1}/me", headers={"Authorization": f"Bearer {document['key']}x"})
    assert refused.status_code == 401
    for path in ("keys?page_size=500", "audit?page_size=500", "instances", "status"):
        assert secret not in scene.client.get(f"{V1}/{path}").text
    assert scene.client.post("/sign-in", json={"key": document["key"]}).status_code == 204
    assert secret not in refused.text
    assert secret not in scene.node.told()


def test_nothing_that_was_logged_shows_it(scene: Scene) -> None:
    """Last: by now everything was tried, at level debug."""
    told = scene.node.told()
    assert "execution_failed" in told
    assert shows(told) == set()
    assert OPERATOR_KEY not in told
    assert SECRET_KEY not in told
    assert "Traceback" not in told
