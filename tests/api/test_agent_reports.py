"""What agents report is redacted by the secrets that they were sent, whatever became of those since."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

import httpx2
import pytest
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.commands.agents import WITHHELD
from foliot.db.tables.executions import sent_secret_t
from foliot.model.redaction import HIDDEN
from tests.api.answers import made
from tests.api.hosts import unique, yearly
from tests.api.served import OPERATOR_KEY, V1, Served

OLD, NEW = "the-value-that-was-sent", "the-value-of-today"
SERVER = {"http_allow": "127.0.0.0/8", "public_url": "http://foliot.test"}
WAIT_S = 60


class Agent(ThreadingHTTPServer):
    """Answers 202, and remembers the headers that it was sent."""

    def __init__(self) -> None:
        asked: Queue[dict[str, str]] = Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", "0")))
                asked.put({name.lower(): value for name, value in self.headers.items()})
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = asked


@pytest.fixture
def agent() -> Iterator[Agent]:
    with Agent() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Attempt:
    """An attempt that the agent was given, with a secret in it."""

    def __init__(self, server: Served, agent: Agent, value: str = OLD) -> None:
        self.server = server
        self.operator = server.by(OPERATOR_KEY)
        self.secret = unique("secret")
        self.set(value)
        document = yearly(
            target={
                "kind": "http",
                "url": f"http://127.0.0.1:{agent.server_port}/",
                "headers": {"X-Api-Key": f"${{secret:{self.secret}}}"},
            },
            retry={"max_attempts": 1},
        )
        schedule_id = made(self.operator.post(f"{V1}/schedules", json=document))["schedule_id"]
        trigger = self.operator.post(f"{V1}/schedules/{schedule_id}/trigger")
        self.execution_id: str = made(trigger, 202)["execution_id"]
        headers = agent.asked.get(timeout=WAIT_S)
        assert headers["x-api-key"] == value
        self.token = headers["x-foliot-token"]

    def set(self, value: str) -> None:
        made(self.operator.post(f"{V1}/secrets", json={"name": self.secret, "value": value}))

    def delete(self) -> None:
        assert self.operator.delete(f"{V1}/secrets/{self.secret}").status_code == 204

    def report(self, what: str, body: dict[str, Any], token: str | None = None) -> httpx2.Response:
        headers = {"X-Foliot-Token": token or self.token}
        return self.server.by(None).post(
            f"{V1}/executions/{self.execution_id}/{what}", json=body, headers=headers
        )

    def progress(self) -> str:
        """The text that a viewer reads after the agent has reported the old value."""
        assert self.report("progress", {"fraction": 0.5, "text": f"used {OLD}"}).status_code == 204
        return str(self.read()["progress"]["text"])

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = self.operator.get(f"{V1}/executions/{self.execution_id}").json()
        return found


def test_a_rotated_secret_is_redacted_by_the_value_that_was_sent(server: Served, agent: Agent) -> None:
    attempt = Attempt(server, agent)
    attempt.set(NEW)
    assert attempt.progress() == f"used {HIDDEN}"
    body = {"status": "failed", "error": f"{OLD} is refused", "result": {"key": OLD, OLD: [1]}}
    assert attempt.report("complete", body).json()["status"] == "failed"
    told = attempt.read()
    assert (told["error"], told["result"]) == (f"{HIDDEN} is refused", {"key": HIDDEN, HIDDEN: [1]})
    assert OLD not in json.dumps(told)


def test_a_deleted_secret_is_redacted(server: Served, agent: Agent) -> None:
    attempt = Attempt(server, agent)
    attempt.delete()
    assert attempt.progress() == f"used {HIDDEN}"


def test_what_the_database_keeps_of_them_can_not_be_read_from_it(server: Served, agent: Agent) -> None:
    attempt = Attempt(server, agent)
    _, key = attempt.token.split(".")

    async def dump(connection: AsyncConnection) -> str:
        return repr((await connection.execute(select(sent_secret_t))).all())

    stored = server.write(dump)
    assert attempt.execution_id.replace("-", "") in stored.replace("-", "")
    assert OLD not in stored
    assert key not in stored


@pytest.mark.parametrize("spoil", ["row", "token"])
def test_where_they_can_not_be_read_the_status_counts_and_the_text_is_not_kept(
    server: Served, agent: Agent, spoil: str
) -> None:
    attempt = Attempt(server, agent)
    if spoil == "row":

        async def change(connection: AsyncConnection) -> None:
            await connection.execute(update(sent_secret_t).values(sealed="gAAAAA"))

        server.write(change)
    else:
        # As of a worker of an earlier version.
        attempt.token = attempt.token.partition(".")[0]
    assert attempt.progress() == WITHHELD
    body = {"status": "success", "result": {"key": OLD}, "error": OLD}
    assert attempt.report("complete", body).json()["status"] == "success"
    told = attempt.read()
    assert (told["status"], told["result"], told["error"]) == ("success", WITHHELD, WITHHELD)


def test_a_report_without_text_needs_no_notice(server: Served, agent: Agent) -> None:
    attempt = Attempt(server, agent)
    attempt.token = attempt.token.partition(".")[0]
    assert attempt.report("complete", {"status": "success"}).status_code == 200
    told = attempt.read()
    assert (told["status"], told["result"], told["error"]) == ("success", None, None)


def test_another_key_in_the_token_opens_nothing(server: Served, agent: Agent) -> None:
    attempt = Attempt(server, agent)
    proof = attempt.token.partition(".")[0]
    for key in ("A" * 43, "=", ".", "x" * 1000):
        report = attempt.report("progress", {"fraction": 0, "text": OLD}, f"{proof}.{key}")
        assert report.status_code == 204
        assert attempt.read()["progress"]["text"] == WITHHELD


def test_they_are_forgotten_when_the_execution_has_ended(server: Served, agent: Agent) -> None:
    open_one, ended = Attempt(server, agent), Attempt(server, agent)
    ended.report("complete", {"status": "success"})

    async def count(connection: AsyncConnection) -> int:
        found: int = (await connection.execute(select(func.count()).select_from(sent_secret_t))).scalar_one()
        return found

    removed = server.run(server.instance.store.agents.prune_sent(limit=1))
    assert removed == 1
    while server.run(server.instance.store.agents.prune_sent(limit=1)):
        pass
    assert server.write(count) >= 1
    assert open_one.progress() == f"used {HIDDEN}"
