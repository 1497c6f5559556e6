"""Executions carried out by real Celery workers, which Foliot sends their ids."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from foliot.brokers.celery_app import CeleryApp
from foliot.instance.runtime import Instance
from foliot.instance.spec import InstanceSpec
from foliot.instance.store import SqlStore
from foliot.model.errors import BrokerUnreachableError, SettingError
from foliot.model.execution import FINAL, Execution, Status, TriggeredBy
from foliot.model.ids import new_id
from foliot.model.policy import Priority
from foliot.planning.change import Author
from foliot.transport.celery import CeleryTransport
from foliot.transport.intervals import TransportIntervals
from foliot.transport.transport_protocol import ExecutionMessage
from tests.brokers import Broker
from tests.cluster.celery_apps import over, without_broker
from tests.cluster.celery_worker import CeleryWorker
from tests.cluster.scene import HURRIED, NEVER
from tests.conftest import OpenStore
from tests.engine import SCHEDULER, add, make_instance, quick_settings, spec, until
from tests.servers import PostgresServer

APP = "tests.cluster.celery_executing"
LEASE_S = 1.5


class Shop:
    """A database, the workers of a Celery application that work on it, and what they left behind."""

    def __init__(self, broker: Broker, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.workers: list[CeleryWorker] = []
        self._environment = {
            "CELERY_BROKER": broker.url,
            "CELERY_FOLDER": str(folder),
            "FOLIOT_DATABASE_URL": url,
            "FOLIOT_WORKER_LEASE_SECONDS": str(LEASE_S),
            "FOLIOT_TRANSPORT": "celery",
            "FOLIOT_CELERY_APP": f"{APP}:app",
        }
        self.celery = CeleryApp(over(broker.url))
        self.transport = CeleryTransport(self.celery)

    def start(self, *options: str) -> CeleryWorker:
        worker = CeleryWorker(APP, self.folder, *options, **self._environment)
        self.workers.append(worker)
        return worker

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.celery.close()

    def lines(self, execution_id: UUID) -> list[tuple[int, int]]:
        """The attempt and the process of each time it was begun."""
        log = self.folder / "runs.log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [(int(attempt), int(pid)) for each, attempt, pid in lines if UUID(each) == execution_id]

    async def publish(self, *execution_ids: UUID, queue: str = "default") -> None:
        await self.transport.publish(
            [ExecutionMessage(each, queue, Priority.MEDIUM) for each in execution_ids]
        )

    async def begun(self, execution_id: UUID) -> None:
        await until(lambda: bool(self.lines(execution_id)))


@pytest.fixture(scope="module")
def lasting_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database for all of these tests: the Celery worker that they share is bound to it."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="module")
def shop(redis_broker: Broker, lasting_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    found = Shop(redis_broker, lasting_url, tmp_path_factory.mktemp("celery"))
    try:
        found.start("--concurrency", "2", "-Q", "celery,slow_lane").ready()
        yield found
    finally:
        found.end()


@pytest.fixture
async def store(lasting_url: str, open_test_store: OpenStore) -> SqlStore:
    return await open_test_store(lasting_url)


@pytest.fixture(autouse=True)
def same_broker(redis_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The application is also loaded in this process, by the scheduler."""
    monkeypatch.setenv("CELERY_BROKER", redis_broker.url)


@asynccontextmanager
async def scheduler(url: str) -> AsyncIterator[Instance]:
    instance = Instance(
        InstanceSpec(
            quick_settings(url, transport="celery", celery_app=f"{APP}:app"),
            roles=SCHEDULER,
            transport_pace=TransportIntervals(untaken_s=1.0),
        )
    )
    await instance.start()
    try:
        yield instance
    finally:
        await instance.stop()


async def execution_of(store: SqlStore, task: str, *, queue: str = "default", **fields: Any) -> UUID:
    target = {"kind": "function", "name": task, "args": fields.pop("args", {})}
    fields = {"retry": {"max_attempts": 3, **HURRIED}, "overlap": {"policy": "allow"}, **fields}
    schedule = await add(store, spec(f"{task}-{new_id()}", NEVER, target=target, queue=queue, **fields))
    return await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())


async def ended(store: SqlStore, shop: Shop, execution_id: UUID) -> Execution:
    async def is_final() -> bool:
        return (await store.executions.get(execution_id)).status in FINAL

    try:
        await until(is_final)
    except TimeoutError:
        row = await store.executions.get(execution_id)
        raise AssertionError((row, [worker.told()[-3000:] for worker in shop.workers])) from None
    return await store.executions.get(execution_id)


async def test_a_celery_worker_carries_out_what_is_fired(shop: Shop, store: SqlStore) -> None:
    execution_id = await execution_of(store, "greet", args={"name": "Ada"})
    async with scheduler(shop.url):
        row = await ended(store, shop, execution_id)
    assert (row.status, row.result, row.attempt) == (Status.SUCCESS, "hello Ada", 1)
    assert row.progress == {"fraction": 0.5, "text": "half way"}
    [(_, pid)] = shop.lines(execution_id)
    assert row.worker_id is not None
    assert row.worker_id.split("-")[-2] == str(pid)


async def test_the_example_runs_celery_targets_too_where_its_workers_are_the_transport(
    shop: Shop, store: SqlStore, redis_broker: Broker, tmp_path: Path
) -> None:
    environment = {
        "CELERY_BROKER": redis_broker.url,
        "CELERY_BACKEND": redis_broker.url,
        "FOLIOT_DATABASE_URL": shop.url,
    }
    options = ("--concurrency", "2", "-Q", "example")
    shop.workers.append(CeleryWorker("examples.celery_shop:celery", tmp_path, *options, **environment))
    target = {"kind": "celery", "task": "shop.clean", "kwargs": {"folder": "abc"}, "queue": "example"}
    fields = {"target": target, "queue": "example", "retry": {"max_attempts": 1}}
    schedule = await add(store, spec(f"clean-{new_id()}", NEVER, **fields))
    author = Author()
    execution_id = await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=author)
    await shop.publish(execution_id, queue="example")
    row = await ended(store, shop, execution_id)
    assert (row.status, row.result, row.attempt) == (Status.SUCCESS, 3, 1)
    assert shop.workers.pop().stop() == 0


@pytest.mark.parametrize("pool", ["threads", "solo"])
async def test_other_pools_than_prefork_do_as_well(shop: Shop, store: SqlStore, pool: str) -> None:
    name = f"only-{pool}"
    execution_ids = [
        await execution_of(store, "nap", queue=name),
        await execution_of(store, "greet", queue=name),
    ]
    worker = shop.start("-P", pool, "--concurrency", "2", "-Q", name)
    await shop.publish(*execution_ids, queue=name)
    rows = [await ended(store, shop, each) for each in execution_ids]
    assert [row.result for row in rows] == ["rested", "hello you"]
    assert worker.stop() == 0
    assert "Traceback" not in worker.told()


async def test_a_ticket_that_comes_twice_runs_once(shop: Shop, store: SqlStore) -> None:
    execution_id = await execution_of(store, "greet")
    await shop.publish(execution_id, execution_id)
    after = await execution_of(store, "greet")
    await shop.publish(execution_id, after)
    await ended(store, shop, execution_id)
    await ended(store, shop, after)
    assert [attempt for attempt, _ in shop.lines(execution_id)] == [1]


async def test_a_failure_is_tried_again_by_another_ticket(shop: Shop, store: SqlStore) -> None:
    execution_id = await execution_of(store, "broken")
    async with scheduler(shop.url):
        row = await ended(store, shop, execution_id)
    assert (row.status, row.attempt, row.error) == (Status.FAILED, 3, "ValueError: no good")
    assert [attempt for attempt, _ in shop.lines(execution_id)] == [1, 2, 3]


async def test_work_that_takes_too_long_is_stopped(shop: Shop, store: SqlStore) -> None:
    execution_id = await execution_of(store, "wait", timeout_seconds=0.3, retry={"max_attempts": 1})
    await shop.publish(execution_id)
    assert (await ended(store, shop, execution_id)).status is Status.TIMEOUT


async def test_a_plain_function_that_takes_too_long_is_ended_with_its_process(
    shop: Shop, store: SqlStore
) -> None:
    execution_id = await execution_of(
        store, "nap", args={"seconds": 60}, timeout_seconds=0.3, retry={"max_attempts": 1}
    )
    await shop.publish(execution_id)
    assert (await ended(store, shop, execution_id)).status is Status.TIMEOUT
    [(_, pid)] = shop.lines(execution_id)
    await until(lambda: not Path(f"/proc/{pid}").exists())
    after = [await execution_of(store, "greet") for _ in range(4)]
    await shop.publish(*after)
    assert {(await ended(store, shop, each)).status for each in after} == {Status.SUCCESS}


async def test_work_may_take_longer_than_celerys_own_time_limit(shop: Shop, store: SqlStore) -> None:
    """The application has one of two seconds."""
    execution_id = await execution_of(store, "nap", args={"seconds": 3}, retry={"max_attempts": 1})
    await shop.publish(execution_id)
    assert (await ended(store, shop, execution_id)).result == "rested"


async def test_a_cancel_stops_what_runs(shop: Shop, store: SqlStore) -> None:
    execution_id = await execution_of(store, "wait")
    await shop.publish(execution_id)
    await shop.begun(execution_id)
    await store.executions.cancel(execution_id, Author())
    assert (await ended(store, shop, execution_id)).status is Status.CANCELLED


async def test_what_was_cancelled_before_its_ticket_came_is_not_begun(shop: Shop, store: SqlStore) -> None:
    execution_id = await execution_of(store, "greet")
    await store.executions.cancel(execution_id, Author())
    after = await execution_of(store, "greet")
    await shop.publish(execution_id, after)
    await ended(store, shop, after)
    assert shop.lines(execution_id) == []


async def test_a_queue_goes_where_the_application_says(shop: Shop, store: SqlStore) -> None:
    """`reports` to `slow_lane`, which a worker serves; none serves `reports`."""
    execution_id = await execution_of(store, "greet", queue="reports")
    async with scheduler(shop.url):
        assert (await ended(store, shop, execution_id)).status is Status.SUCCESS


async def test_a_queue_is_served_from_its_first_execution_on(shop: Shop, store: SqlStore) -> None:
    """Nobody sends the message again here, and the worker has just read which queues there are."""
    before = [await execution_of(store, "greet") for _ in range(4)]
    await shop.publish(*before)
    for each in before:
        await ended(store, shop, each)
    execution_id = await execution_of(store, "greet", queue="slow_lane")
    await shop.publish(execution_id, queue="slow_lane")
    assert (await ended(store, shop, execution_id)).status is Status.SUCCESS


async def test_every_execution_is_settled_once_though_the_celery_worker_is_killed_in_the_middle(
    shop: Shop, store: SqlStore
) -> None:
    options = ("--concurrency", "3", "-Q", "perilous")
    doomed = shop.start(*options)
    execution_ids = [await execution_of(store, "nap", queue="perilous") for _ in range(10)]
    async with scheduler(shop.url):
        await until(lambda: sum(bool(shop.lines(each)) for each in execution_ids) >= 3)
        doomed.kill()
        shop.start(*options)
        rows = [await ended(store, shop, each) for each in execution_ids]
    assert [(row.status, row.result) for row in rows] == [(Status.SUCCESS, "rested")] * 10
    attempts = {each: [attempt for attempt, _ in shop.lines(each)] for each in execution_ids}
    assert all(begun == sorted(set(begun)) for begun in attempts.values()), attempts
    assert max(row.attempt for row in rows) > 1, "nothing was in the middle"


async def test_a_broker_that_is_away_is_told(shop: Shop) -> None:
    transport = CeleryTransport(CeleryApp(without_broker))
    for messages in ([ExecutionMessage(new_id(), "default", Priority.HIGH)], []):
        with pytest.raises(BrokerUnreachableError):
            await transport.publish(messages)
    await shop.transport.publish([])


def test_the_transport_needs_to_know_the_application(lasting_url: str) -> None:
    with pytest.raises(SettingError, match="FOLIOT_CELERY_APP"):
        make_instance(lasting_url, transport="celery")
