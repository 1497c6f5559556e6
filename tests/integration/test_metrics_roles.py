"""Every role tells how it is on a port of its own: real processes, asked as Prometheus and Kubernetes ask."""

import asyncio
import signal
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from foliot.instance.spec import InstanceRole
from foliot.instance.store import SqlStore
from tests.brokers import Broker
from tests.cluster.processes import Node, Nodes
from tests.cluster.scene import tells
from tests.conftest import OpenStore
from tests.engine import add, every_second, running, until
from tests.exposition import Exported, read_exposition

WITHIN_S = 60.0
QUICK = {
    "FOLIOT_LEASE_TTL_SECONDS": "1",
    "FOLIOT_HEARTBEAT_SECONDS": "0.2",
    "FOLIOT_POLL_SECONDS": "0.1",
    "FOLIOT_WORKER_CONCURRENCY": "7",
}


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class Probed:
    """A process, and where its probes are."""

    def __init__(self, node: Node, url: str) -> None:
        self.node = node
        self.url = url

    async def get(self, path: str) -> tuple[int, str]:
        return await asyncio.to_thread(get, self.url + path)

    async def metrics(self) -> dict[str, Exported]:
        status, text = await self.get("/metrics")
        assert status == 200
        return read_exposition(text)

    async def is_ready(self) -> bool:
        return await self.get("/readyz") == (200, '{"status":"ready","problems":[]}')


async def probed(node: Node) -> Probed:
    [line] = await tells(node, "listening")
    return Probed(node, line["url"])


@pytest.fixture
async def nodes(sqlite_url: str, tmp_path: Path, open_test_store: OpenStore) -> AsyncIterator[Nodes]:
    store = await open_test_store(sqlite_url)
    await add(store, every_second("ticking", target={"kind": "function", "name": "nap"}))
    started = Nodes(sqlite_url, tmp_path, **QUICK)
    yield started
    started.end()


async def test_scheduler_worker_and_relay_serve_their_metrics_and_say_that_they_are_ready(
    nodes: Nodes, redis_broker: Broker
) -> None:
    started = [
        nodes.start("scheduler", "--metrics-port", "0"),
        nodes.start("worker", "--tasks", "tests.cluster.executing_tasks", FOLIOT_METRICS_PORT="0"),
        nodes.start("relay", "--metrics-port", "0", FOLIOT_RELAY=redis_broker.url),
    ]
    scheduler, worker, relay = [await probed(node) for node in started]
    for each in (scheduler, worker, relay):
        assert await each.get("/healthz") == (200, '{"status":"ok"}')
        await until(each.is_ready, within_s=WITHIN_S)

    async def does_its_work() -> bool:
        of_scheduler, of_worker = await scheduler.metrics(), await worker.metrics()
        return (
            of_scheduler["foliot_scheduler_fires_total"][()] > 0
            and of_scheduler["foliot_schedules_active"][()] == 1
            and of_worker["foliot_execution_status_total"]["success"] > 0
            and (await relay.metrics())["foliot_relay_is_active"][()] == 1
        )

    await until(does_its_work, within_s=WITHIN_S, every_s=0.2)
    of_scheduler, of_worker = await scheduler.metrics(), await worker.metrics()
    assert of_scheduler["foliot_scheduler_is_leader"]["0"] == 1
    assert of_scheduler["foliot_scheduler_shards"][()] == 1
    assert set(of_scheduler["foliot_queue_depth"].samples) == {
        (priority, "default") for priority in ("high", "medium", "low")
    }
    assert of_worker["foliot_worker_capacity"][()] == 7
    default = {(priority, "default"): 0 for priority in ("high", "medium", "low")}
    for shown in (of_worker, await relay.metrics()):
        assert shown["foliot_queue_depth"].samples == default, "it does not measure"
    for metrics in (of_scheduler, of_worker):
        assert metrics["process_resident_memory_bytes"][()] > 1_000_000

    taken = nodes.start("worker", "--metrics-port", scheduler.url.rpartition(":")[2])
    assert taken.ended() == 2
    assert "can't serve metrics on 127.0.0.1" in taken.told()
    assert "address already in use" in taken.told()
    for node in started:
        node.signal(signal.SIGTERM)
    assert [node.ended() for node in started] == [0, 0, 0]
    assert "Traceback" not in "".join(node.told() for node in started)


class Gate:
    """Holds up whoever calls the method that it stands before."""

    def __init__(self, holder: Any, method: str) -> None:
        self._open = asyncio.Event()
        self._open.set()
        pass_on = getattr(holder, method)

        async def passing(*arguments: Any, **options: Any) -> Any:
            await self._open.wait()
            return await pass_on(*arguments, **options)

        setattr(holder, method, passing)

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()


async def test_a_claim_loop_that_hangs_and_a_scheduler_that_fails_to_look_are_seen(
    sqlite_url: str, open_test_store: OpenStore
) -> None:
    store: SqlStore = await open_test_store(sqlite_url)
    await add(store, every_second("ticking"))
    roles = frozenset({InstanceRole.SCHEDULER, InstanceRole.WORKER})
    async with running(sqlite_url, roles=roles) as (instance, _recorder):
        assert instance.worker is not None
        claiming = Gate(instance.worker._store, "claim")
        looking = Gate(instance.store.surveys, "read_snapshot")

        async def stuck_are(*names: str) -> None:
            await until(lambda: set(instance.stuck(0.5)) == set(names))

        for gate, service in ((claiming, "worker"), (looking, "shards")):
            await stuck_are()
            gate.close()
            await stuck_are(service)
            gate.open()
        await stuck_are()


@pytest.mark.parametrize(
    ("part", "method", "service"),
    [
        ("statements", "load", "loader"),
        ("statements", "fire", "firing"),
        ("housekeeping", "rescue", "janitor.rescue"),
    ],
)
async def test_a_leader_whose_loading_firing_or_housekeeping_hangs_is_seen(
    sqlite_url: str, open_test_store: OpenStore, part: str, method: str, service: str
) -> None:
    store: SqlStore = await open_test_store(sqlite_url)
    await add(store, every_second("ticking"))
    async with running(sqlite_url) as (instance, _recorder):
        scheduler = instance.scheduler
        assert scheduler is not None
        await until(lambda: bool(scheduler.shards))
        gate = Gate(getattr(scheduler.shards[0], part), method)
        await until(lambda: not instance.stuck(0.5))
        gate.close()
        await until(lambda: set(instance.stuck(0.5)) == {service})
        gate.open()
        await until(lambda: not instance.stuck(0.5))
