"""Agents that take the work over, with real processes: who may report, and what becomes of who does not."""

import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address
from typing import Any
from uuid import UUID

import httpx2
import pytest

from foliot.model.execution import Status
from foliot.planning.change import Author
from tests.cluster.agent import Agent
from tests.cluster.processes import Node
from tests.cluster.scene import SECOND, WITHIN_S, Scene
from tests.engine import until
from tests.servers import free_port

pytestmark = pytest.mark.cluster


@pytest.fixture
async def callbacks() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=WITHIN_S) as client:
        yield client


def start_up(scene: Scene) -> Node:
    port = str(free_port())
    return scene.nodes.start("up", FOLIOT_API_PORT=port, FOLIOT_PUBLIC_URL=f"http://127.0.0.1:{port}")


async def taken_over(scene: Scene, agent: Agent, execution_id: UUID, attempt: int = 1) -> tuple[str, str]:
    """Wait until the worker has noted that it is the agent's; where to report, and by which token."""

    async def is_remote() -> bool:
        row = await scene.row(execution_id)
        return row.is_remote and row.attempt == attempt

    await until(is_remote, within_s=WITHIN_S)
    request = agent.requests(execution_id)[-1]
    assert request.attempt == attempt
    assert request.callback is not None
    assert request.token is not None
    return request.callback, request.token


async def report(
    client: httpx2.AsyncClient, callback: str, verb: str, token: str, body: dict[str, Any]
) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    answer = await client.post(f"{callback}/{verb}", json=body, headers=headers)
    return answer.status_code


SUCCESS = {"status": "success", "result": {"rows": 3}}
HALF = {"fraction": 0.5, "text": "half way"}


async def test_an_agent_that_took_the_work_over_reports_by_its_token_and_by_no_other(
    scene: Scene, agent: Agent, callbacks: httpx2.AsyncClient
) -> None:
    start_up(scene)
    schedule = await scene.schedule_for(agent.url("/later"))
    execution_id, another = [await scene.trigger(schedule) for _ in range(2)]
    callback, token = await taken_over(scene, agent, execution_id)
    _, foreign = await taken_over(scene, agent, another)
    for wrong in ("wrong", foreign, token[:-1]):
        assert await report(callbacks, callback, "progress", wrong, HALF) == 401
        assert await report(callbacks, callback, "complete", wrong, SUCCESS) == 401
    row = await scene.row(execution_id)
    assert (row.status, row.progress, row.external_id) == (Status.RUNNING, None, "job-1")

    assert await report(callbacks, callback, "progress", token, HALF) == 204
    row = await scene.row(execution_id)
    assert (row.status, row.progress) == (Status.RUNNING, HALF)
    assert await report(callbacks, callback, "complete", token, SUCCESS) == 200
    row = await scene.row(execution_id)
    assert (row.status, row.result, row.attempt) == (Status.SUCCESS, {"rows": 3}, 1)
    assert len(agent.requests(execution_id)) == 1


async def test_the_token_of_an_earlier_attempt_is_worth_nothing(
    scene: Scene, agent: Agent, callbacks: httpx2.AsyncClient
) -> None:
    start_up(scene)
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/later")))
    callback, first = await taken_over(scene, agent, execution_id)
    failed = {"status": "failed", "error": "no"}
    assert await report(callbacks, callback, "complete", first, failed) == 200
    _, second = await taken_over(scene, agent, execution_id, attempt=2)
    assert await report(callbacks, callback, "progress", first, HALF) == 401
    assert await report(callbacks, callback, "complete", first, SUCCESS) == 401
    row = await scene.row(execution_id)
    assert (row.status, row.progress, row.attempt) == (Status.RUNNING, None, 2)
    assert await report(callbacks, callback, "complete", second, SUCCESS) == 200
    assert (await scene.row(execution_id)).status is Status.SUCCESS


async def test_an_agent_that_never_reports_has_timed_out_and_is_not_heard_any_more(
    scene: Scene, agent: Agent, callbacks: httpx2.AsyncClient
) -> None:
    start_up(scene)
    fields = {"timeout_seconds": 2, "retry": {"max_attempts": 1}}
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/later"), **fields))
    callback, token = await taken_over(scene, agent, execution_id)
    row = await scene.stands(execution_id, Status.TIMEOUT)
    assert row.started_ts is not None
    assert row.ended_ts is not None
    assert row.ended_ts - row.started_ts >= 2 * SECOND
    assert await report(callbacks, callback, "complete", token, SUCCESS) == 409
    assert await scene.row(execution_id) == row
    assert [each.attempt for each in agent.requests(execution_id)] == [1]


async def test_an_agent_that_reports_the_end_before_it_answers_is_believed(
    scene: Scene, agent: Agent
) -> None:
    """The worker's note that the agent has taken it over comes too late, and must not open it again."""
    node = start_up(scene)
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/hasty")))
    await scene.stands(execution_id, Status.SUCCESS)
    await until(lambda: agent.requests(execution_id)[0].is_answered, within_s=WITHIN_S)
    # What has ended is written down before a clean end, and the note is part of that.
    assert node.stop() == 0, node.told()[-2000:]
    row = await scene.row(execution_id)
    assert (row.status, row.attempt, row.result) == (Status.SUCCESS, 1, "done before it was accepted")
    assert (row.is_remote, row.lease_until) == (False, None)


async def test_a_name_that_leads_to_this_machine_is_refused_when_connecting(
    scene: Scene, agent: Agent
) -> None:
    """Faults 31 and 32: nothing in the name tells where it leads, so only resolving it can."""
    host = socket.gethostname()
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host, agent.port, type=socket.SOCK_STREAM)}
    except OSError:
        pytest.skip("this machine's own name has no address")
    if not all(ip_address(each).is_private and "." in each for each in found):
        pytest.skip("this machine's own name does not lead to internal addresses alone")
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/run", host)))
    guarded = scene.worker(FOLIOT_HTTP_ALLOW="")
    row = await scene.stands(execution_id, Status.FAILED)
    assert (row.attempt, agent.requests(execution_id)) == (1, [])
    assert row.error is not None
    assert f"{host} is an internal address" in row.error
    guarded.stop()

    # Allowed, the same request arrives: it was the guard that kept it from the agent.
    await scene.store.executions.retry(execution_id, author=Author("ann"))
    scene.worker(FOLIOT_HTTP_ALLOW=",".join(sorted(found)))
    await scene.stands(execution_id, Status.SUCCESS)
    assert len(agent.requests(execution_id)) == 1
