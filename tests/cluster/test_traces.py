"""One execution, followed by its trace id through every process that has a part in it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest

from foliot.model.execution import Status
from tests.cluster.agent import Agent
from tests.cluster.scene import HURRIED, NEVER, WITHIN_S, Scene, is_of, told
from tests.collector import Collector, Span, collecting
from tests.engine import until
from tests.servers import free_port

pytestmark = pytest.mark.cluster

KEY = "k" * 40
CALLER = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
TRACEPARENT = f"00-{CALLER[0]}-{CALLER[1]}-01"
SOON_SENT = {"OTEL_BSP_SCHEDULE_DELAY": "100"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


class Api:
    """A `foliot api`, as its users see it."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def is_up(self) -> bool:
        try:
            return (await self._client.get("/readyz")).status_code == 200
        except httpx2.TransportError:
            return False

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self._client.post(f"/api/v1/{path}", json=body, headers={"traceparent": TRACEPARENT})
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document

    async def ended(self, schedule_id: str) -> dict[str, Any]:
        """The only execution of a schedule, once it is over."""
        found: list[dict[str, Any]] = []

        async def is_over() -> bool:
            answer = await self._client.get("/api/v1/executions", params={"schedule_id": schedule_id})
            found[:] = [each for each in answer.json()["items"] if each["ended_ts"] is not None]
            return bool(found)

        await until(is_over, within_s=WITHIN_S)
        [execution] = found
        return execution


async def whole(collector: Collector, trace_id: str, count: int) -> dict[str, list[Span]]:
    """The spans of a trace by name, when so many have come; each of them comes once."""
    await until(lambda: len(collector.spans(trace_id)) >= count, within_s=WITHIN_S)
    spans = sorted(collector.spans(trace_id), key=lambda span: span.start_ns)
    assert len({span.span_id for span in spans}) == len(spans) == count
    assert all(span.start_ns <= span.end_ns for span in spans)
    return {name: [span for span in spans if span.name == name] for name in {span.name for span in spans}}


def document(name: str, url: str, **fields: Any) -> dict[str, Any]:
    target = {"kind": "http", "method": "POST", "url": url}
    return {"name": name, "target": target, "retry": {"max_attempts": 2, **HURRIED}, **fields}


async def test_an_execution_is_one_trace_through_api_scheduler_worker_and_agent(
    scene: Scene, agent: Agent, collector: Collector
) -> None:
    port = free_port()
    traced = {"FOLIOT_OTLP_ENDPOINT": collector.url, **SOON_SENT}
    scheduler, worker = scene.scheduler(**traced), scene.nodes.start("worker", **traced)
    scene.nodes.start("api", FOLIOT_ADMIN_KEY=KEY, FOLIOT_API_PORT=str(port), **traced)
    credential = {"Authorization": f"Bearer {KEY}"}
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers=credential, trust_env=False, timeout=WITHIN_S
    ) as client:
        api = Api(client)
        await until(api.is_up, within_s=WITHIN_S)

        # By its schedule.
        soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
        once = document("once", agent.url("/run"), trigger={"kind": "once", "at": soon})
        schedule = await api.post("schedules", once)
        execution = await api.ended(schedule["schedule_id"])
        assert execution["status"] == "success"
        spans = await whole(collector, execution["trace_id"], 3)
        [fire], [execute], [settle] = spans["fire"], spans["execute"], spans["settle"]
        assert (fire.parent_id, execute.parent_id, settle.parent_id) == ("", fire.span_id, execute.span_id)
        roles = [span.service["foliot.roles"] for span in (fire, execute, settle)]
        assert roles == [["scheduler"], ["worker"], ["worker"]]
        assert {span.service["service.name"] for span in (fire, execute, settle)} == {"foliot"}
        [asked] = [
            request.traceparent
            for request in agent.requests(UUID(execution["execution_id"]))
            if request.traceparent is not None
        ]
        assert asked == f"00-{execution['trace_id']}-{execute.span_id}-01"

        # Linked to what made the schedule, which is linked to the caller.
        [link] = fire.links
        await until(lambda: bool(collector.spans(link[0], "create")), within_s=WITHIN_S)
        [create] = collector.spans(link[0], "create")
        assert create.context == link
        assert (create.links, create.service["foliot.roles"]) == ([CALLER], ["api"])

        # The attributes of both designs that ask for them.
        ids = {"schedule.id": schedule["schedule_id"], "schedule.name": "once"}
        of_execution = {**ids, "execution.id": execution["execution_id"]}
        assert create.attributes.items() >= {**ids, "schedule.change": "created"}.items()
        instance = fire.service["service.instance.id"]
        assert fire.attributes.items() >= {**of_execution, "scheduler.id": instance}.items()
        assert (fire.attributes["execution.queue"], fire.attributes["schedule.version"]) == ("default", 1)
        ran_by = {**of_execution, "worker.id": execution["worker_id"], "execution.attempt": 1}
        assert execute.attributes.items() >= {**ran_by, "execution.result": "success"}.items()
        assert settle.attributes.items() >= {**ran_by, "execution.status": "success"}.items()
        assert settle.attributes["execution.duration_seconds"] > 0
        [line] = told(scheduler, "execution_triggered")
        assert line["trace_id"] == execution["trace_id"]
        assert (line["schedule_name"], line["schedule_id"]) == ("once", schedule["schedule_id"])
        assert (line["execution_id"], line["instance_id"]) == (execution["execution_id"], instance)
        assert datetime.fromisoformat(line["fire_time"]) == datetime.fromisoformat(soon)

        # By hand, within the caller's trace.
        never = await api.post("schedules", document("by-hand", agent.url("/run"), trigger=NEVER))
        await api.post(f"schedules/{never['schedule_id']}/trigger", {})
        execution = await api.ended(never["schedule_id"])
        assert execution["trace_id"] == CALLER[0]
        spans = await whole(collector, CALLER[0], 3)
        [fire], [execute] = spans["fire"], spans["execute"]
        assert (fire.parent_id, fire.service["foliot.roles"]) == (CALLER[1], ["api"])
        assert execute.parent_id == fire.span_id
        [request] = agent.requests(UUID(execution["execution_id"]))
        assert request.traceparent == f"00-{CALLER[0]}-{execute.span_id}-01"

        # One that fails, and is tried again.
        nowhere = f"http://127.0.0.1:{free_port()}/run"
        failing = document("failing", f"{nowhere}?token=s3cret", trigger={"kind": "once", "at": soon})
        schedule = await api.post("schedules", failing)
        execution = await api.ended(schedule["schedule_id"])
        spans = await whole(collector, execution["trace_id"], 5)
        assert [span.attributes["execution.attempt"] for span in spans["execute"]] == [1, 2]
        assert {span.parent_id for span in spans["execute"]} == {spans["fire"][0].span_id}
        for span in spans["execute"]:
            assert span.error is not None
            assert "can't be reached" in span.error
            assert (span.attributes["execution.result"], span.attributes["agent.url"]) == ("failed", nowhere)
        statuses = [span.attributes["execution.status"] for span in spans["settle"]]
        assert statuses == ["retrying", "failed"]
        assert all(span.error is None for span in spans["settle"])
        [line] = told(worker, "execution_failed")
        assert (line["execution_id"], line["attempt"]) == (execution["execution_id"], 2)
        assert (line["agent_url"], line["trace_id"]) == (nowhere, execution["trace_id"])
        assert line["error"] == execution["error"]
        assert "s3cret" not in json.dumps([span._asdict() for span in collector.spans()]) + worker.told()


async def test_spans_that_a_task_function_makes_join_the_trace_of_its_execution(
    scene: Scene, collector: Collector
) -> None:
    worker = scene.nodes.start(
        "worker",
        "--tasks",
        "tests.cluster.traced_tasks",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        OTEL_SERVICE_NAME="our-workers",
        OTEL_BSP_SCHEDULE_DELAY="600000",
    )
    tasks = ("on_the_loop", "in_a_thread", "in_a_process")
    ids = [await scene.trigger(await scene.schedule_of(task)) for task in tasks]
    rows = [await scene.stands(execution_id, Status.SUCCESS) for execution_id in ids]
    # What waits to be sent leaves with the process.
    assert worker.stop() == 0
    for row in rows:
        assert is_of(row, worker)
        spans = await whole(collector, row.trace_id, 3)
        [own], [execute], [_settle] = spans["own"], spans["execute"], spans["settle"]
        assert own.parent_id == execute.span_id
        assert row.result == f"00-{row.trace_id}-{execute.span_id}-01"
        assert (own.service["service.name"], execute.service["service.name"]) == (
            "application",
            "our-workers",
        )
