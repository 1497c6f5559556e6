"""The server behind the browser: all roles in one process, and tasks that a test can hold and release."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from foliot.db.rows.registry_rows import TaskRecord
from foliot.kinds.target_protocol import Fire
from tests.api.answers import made
from tests.api.hosts import unique
from tests.api.served import ALL, OPERATOR_KEY, SECRET_KEY, V1, Served
from tests.engine import registry

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script><b class=injected>${7*7}</b>"
"""Markup that would be noticed if it were rendered: as an element, a dialog, or a violation of the policy."""

_gates: dict[str, asyncio.Event] = {}


def _gate(schedule_name: str) -> asyncio.Event:
    return _gates.setdefault(schedule_name, asyncio.Event())


async def greet(name: str, times: int = 1) -> str:
    """Say hello."""
    return f"hello {name} " * times


async def fail(text: str = "as it was told to") -> None:
    """Fail, as a task."""
    raise RuntimeError(text)


async def hold(fire: Fire) -> str:
    """Be half way until somebody lets go."""
    await fire.progress(0.5, "half way")
    await _gate(fire.schedule_name).wait()
    return "let go"


async def tell(text: str, lines: int = 1) -> dict[str, str]:
    """Log a text, and return it."""
    for number in range(lines):
        logging.getLogger("story").warning("%d %s", number, text)
    return {text: text}


class WebServed(Served):
    """A server with the UI, and short methods for UI tests."""

    def let_go(self, schedule_name: str) -> None:
        """Let the `hold` tasks of a schedule end, running and future ones."""

        async def open_gate() -> None:
            _gate(schedule_name).set()

        self.run(open_gate())

    def key(self, role: str) -> str:
        document = {"name": unique(f"key-{role}"), "role": role}
        return str(made(self.by(OPERATOR_KEY).post(f"{V1}/keys", json=document))["key"])

    def cookie(self, key: str) -> str:
        """Sign in, and return the session cookie."""
        with self.client() as client:
            answer = client.post("/sign-in", json={"key": key})
            assert answer.status_code == 204, answer.text
            [value] = answer.cookies.values()
            return str(value)

    def get(self, path: str, **params: Any) -> Any:
        return made(self.by(OPERATOR_KEY).get(f"{V1}/{path}", params=params), 200)

    def post(self, path: str, document: Any = None, status: int = 201) -> Any:
        return made(self.by(OPERATOR_KEY).post(f"{V1}/{path}", json=document), status)

    def schedule(self, **fields: Any) -> dict[str, Any]:
        """Create a schedule that does not become due during a test, unless `fields` say otherwise."""
        document = {
            "name": unique("schedule"),
            "trigger": {"kind": "cron", "expression": "0 0 1 1 *"},
            "target": {"kind": "function", "name": "greet", "args": {"name": "you"}},
            **fields,
        }
        found: dict[str, Any] = self.post("schedules", document)
        return found

    def register_task(self, name: str) -> None:
        """Register a task that no running worker has, as if a former worker had it."""
        task = TaskRecord(name, "", "", "", "function", None, 60, {"type": "object"})
        self.run(self.instance.store.registry.register_tasks([task]))

    def trigger(self, schedule_id: str) -> str:
        """Trigger a schedule. Return the execution's id."""
        return str(self.post(f"schedules/{schedule_id}/trigger", status=202)["execution_id"])

    def ended(self, execution_id: str) -> dict[str, Any]:
        """Wait until the execution has ended, and return it."""

        async def wait() -> dict[str, Any]:
            async with self.async_client(OPERATOR_KEY) as client:
                while True:
                    found: dict[str, Any] = (await client.get(f"{V1}/executions/{execution_id}")).json()
                    if found["status"] not in ("pending", "running", "retrying"):
                        return found
                    await asyncio.sleep(0.05)

        return self.run(wait())

    def executed(self, times: int = 1, **fields: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Create a schedule, run it `times` times, and return it with the ended executions."""
        schedule = self.schedule(**{"overlap": {"policy": "allow", "max_instances": 100}, **fields})
        ids = [self.trigger(schedule["schedule_id"]) for _ in range(times)]
        return schedule, [self.ended(each) for each in ids]


@contextmanager
def web_served(url: str, **settings: Any) -> Iterator[WebServed]:
    options: dict[str, Any] = {
        "admin_key": OPERATOR_KEY,
        "secret_key": SECRET_KEY,
        "rate_limit": "off",
        "rate_limit_anonymous": "off",
        # Long leases, which a busy machine does not lose. Otherwise pages could show that there is no leader.
        "lease_ttl_seconds": 20,
        "worker_lease_seconds": 20,
    }
    served = WebServed(url, roles=ALL, tasks=registry(greet, fail, hold, tell), **(options | settings))
    served.serve()
    try:
        served.start()
        yield served
    finally:
        for gate in _gates:
            served.let_go(gate)
        _gates.clear()
        served.close()
    assert served.bugs == []
