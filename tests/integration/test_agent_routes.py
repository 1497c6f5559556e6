"""What agents may send, and what they are told when it is wrong."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from foliot.api.access.gate import Gate
from foliot.api.access.rate_limits import MemoryRates, RateKind, RateLimiter
from foliot.api.app import make_app
from foliot.api.routes.agents import MAX_BYTES, agent_routes
from foliot.instance.runtime import Instance
from foliot.instance.store import SqlStore
from foliot.model.attempt import Claim
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.planning.change import Author
from foliot.telemetry.health.metrics_page import MetricsPage
from foliot.timing.clock import SystemClock
from tests.engine import add, make_instance, spec

LATER = {"kind": "interval", "seconds": 3600}
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For strangers: each of them only reads the attempt, which the other tests do on both databases."""


@pytest.fixture
async def instance(store: SqlStore, database_url: str) -> AsyncIterator[Instance]:
    made, _ = make_instance(database_url, roles=frozenset())
    await made.connect()
    yield made
    await made.disconnect()


@pytest.fixture
async def client(instance: Instance) -> AsyncIterator[httpx2.AsyncClient]:
    async def no_problems() -> list[str]:
        return []

    nobody: Any = None  # agents have tokens of their own
    limiter = RateLimiter(MemoryRates(SystemClock()), dict.fromkeys(RateKind))
    gate = Gate(nobody, limiter, nobody, nobody, lambda: True)
    routes = agent_routes(instance.commands.agents, instance.tokens)
    app = make_app(
        no_problems,
        MetricsPage(CollectorRegistry()),
        gate,
        [routes],
        lambda _error, _request_id: None,
        lambda _answer: None,
    )
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://foliot") as made:
        yield made


async def running(store: SqlStore) -> Claim:
    """An execution that an agent has taken over."""
    schedule = await add(store, spec("agent", LATER))
    await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())
    [claim] = await store.work.claim("worker", [(DEFAULT_HOST_ID, "default")], limit=1, lease_s=60)
    assert (await store.work.accept("worker", claim, lease_s=300, external_id="7")).is_open
    return claim


async def token_for(instance: Instance, claim: Claim) -> dict[str, str]:
    token = (await instance.tokens()).token(claim.execution_id, claim.attempt)
    return {"Authorization": f"Bearer {token}"}


async def test_an_agent_reports_its_progress_and_its_end(
    store: SqlStore, instance: Instance, client: httpx2.AsyncClient
) -> None:
    claim = await running(store)
    path, headers = f"/api/v1/executions/{claim.execution_id}", await token_for(instance, claim)
    told = await client.post(f"{path}/progress", json={"fraction": 0.5, "text": "half\0way"}, headers=headers)
    assert told.status_code == 204
    row = await store.executions.get(claim.execution_id)
    assert row.progress == {"fraction": 0.5, "text": "half\ufffdway"}
    done = await client.post(
        f"{path}/complete", json={"status": "success", "result": {"rows": 3}}, headers=headers
    )
    assert (done.status_code, done.json()["status"]) == (200, "success")
    row = await store.executions.get(claim.execution_id)
    assert (row.status, row.result) == (Status.SUCCESS, {"rows": 3})
    again = await client.post(f"{path}/complete", json={"status": "failed"}, headers=headers)
    assert (again.status_code, again.json()["code"]) == (409, "illegal_transition")


async def test_a_failure_that_an_agent_reports_is_tried_again_by_policy(
    store: SqlStore, instance: Instance, client: httpx2.AsyncClient
) -> None:
    claim = await running(store)
    answer = await client.post(
        f"/api/v1/executions/{claim.execution_id}/complete",
        json={"status": "failed", "error": "disk full"},
        headers=await token_for(instance, claim),
    )
    assert (answer.status_code, answer.json()["status"]) == (200, "retrying")


@ON_SQLITE
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic eDp5"}]
)
async def test_nobody_reports_without_the_token(
    store: SqlStore, client: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    claim = await running(store)
    path = f"/api/v1/executions/{claim.execution_id}/complete"
    answer = await client.post(path, json={"status": "success"}, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert (await store.executions.get(claim.execution_id)).status is Status.RUNNING


@ON_SQLITE
@pytest.mark.parametrize("action", ["progress", "complete"])
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer nonsense"}, {"X-Foliot-Token": "nonsense"}], ids=str
)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"x" * (MAX_BYTES + 1)], ids=len)
async def test_a_stranger_gets_401_whatever_the_body_is(
    store: SqlStore, client: httpx2.AsyncClient, action: str, headers: dict[str, str], body: bytes
) -> None:
    claim = await running(store)
    path = f"/api/v1/executions/{claim.execution_id}/{action}"
    answer = await client.post(path, content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "bad_token")


@ON_SQLITE
@pytest.mark.parametrize("action", ["progress", "complete"])
async def test_nothing_of_the_body_is_read_before_the_token_is_checked(
    store: SqlStore, client: httpx2.AsyncClient, action: str
) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(4):
            read += 1
            yield b"x" * 1024

    claim = await running(store)
    path = f"/api/v1/executions/{claim.execution_id}/{action}"
    answer = await client.post(path, content=body(), headers={"X-Foliot-Token": "nonsense"})
    assert (answer.status_code, read) == (401, 0)


async def test_a_token_of_another_attempt_is_worth_nothing(
    store: SqlStore, instance: Instance, client: httpx2.AsyncClient
) -> None:
    claim = await running(store)
    earlier = claim._replace(attempt=claim.attempt - 1)
    path = f"/api/v1/executions/{claim.execution_id}/complete"
    answer = await client.post(path, json={"status": "success"}, headers=await token_for(instance, earlier))
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"\xff\xfe", 422),
        (b"[" * 100_000, 422),
        (b'{"status": "sucess"}', 422),
        (b'{"status": "success", "epoch": 1}', 422),
        (b'{"status": "success", "result": NaN}', 200),
        (b'{"status": "success", "result": 1e999}', 200),
        (b'{"status": "success", "result": "a\\u0000b"}', 200),
        (b'{"status": "success", "result": "' + b"x" * MAX_BYTES + b'"}', 413),
    ],
)
async def test_whatever_a_body_is_the_answer_is_clear(
    store: SqlStore, instance: Instance, client: httpx2.AsyncClient, body: bytes, status: int
) -> None:
    claim = await running(store)
    answer = await client.post(
        f"/api/v1/executions/{claim.execution_id}/complete",
        content=body,
        headers=await token_for(instance, claim),
    )
    assert answer.status_code == status, answer.text
    if status != 200:
        assert answer.json()["detail"]


async def test_an_unknown_execution_is_not_found(client: httpx2.AsyncClient) -> None:
    path = f"/api/v1/executions/{uuid4()}/progress"
    answer = await client.post(path, json={"fraction": 1}, headers={"X-Foliot-Token": "x"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
