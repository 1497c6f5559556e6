"""Tasks of a Celery application as targets: a real Celery worker, with Redis as broker and result backend."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from foliot.brokers.celery_app import CeleryApp, CeleryCall, TaskState
from foliot.commands.admission import DefinitionChecker
from foliot.instance.runtime import Instance
from foliot.instance.store import SqlStore
from foliot.kinds.celery_target import task_id_of
from foliot.model.execution import FINAL, Execution, Status, TriggeredBy
from foliot.model.ids import new_id
from foliot.model.policy import Priority
from foliot.planning.change import Author
from tests.brokers import Broker
from tests.cluster.celery_apps import over, without_backend
from tests.cluster.celery_worker import CeleryWorker
from tests.cluster.processes import Node
from tests.cluster.scene import HURRIED, NEVER
from tests.conftest import OpenStore
from tests.engine import WORKER, add, running, spec, until

pytestmark = pytest.mark.filterwarnings(
    # Of Celery's Redis backend, which any recent redis-py tells.
    "ignore:Call to deprecated setex:DeprecationWarning"
)
APP = "tests.cluster.celery_app"
LEASE_S = 1.5


class Shop:
    """A Celery application with one worker, and what its tasks left behind."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.environment = {
            "CELERY_BROKER": broker.url,
            "CELERY_BACKEND": broker.url,
            "CELERY_FOLDER": str(folder),
        }
        self.worker = self.start()

    def start(self) -> CeleryWorker:
        return CeleryWorker(APP, self.folder, "--concurrency", "2", **self.environment)

    def all_runs(self) -> int:
        log = self.folder / "celery.log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def runs(self, task_id: str) -> list[int]:
        """The process of each time it was begun."""
        log = self.folder / "celery.log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [int(pid) for each, pid in lines if each == task_id]

    def go(self) -> None:
        (self.folder / "go").touch()


@pytest.fixture(scope="module")
def module_shop(redis_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    found = Shop(redis_broker, tmp_path_factory.mktemp("celery"))
    before = {name: os.environ.get(name) for name in found.environment}
    os.environ.update(found.environment)  # the application is also used in this process
    try:
        found.worker.ready()
        yield found
    finally:
        found.worker.kill()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture
def shop(module_shop: Shop) -> Shop:
    (module_shop.folder / "go").unlink(missing_ok=True)
    return module_shop


@pytest.fixture
async def store(postgres_url: str, open_test_store: OpenStore) -> SqlStore:
    return await open_test_store(postgres_url)


@asynccontextmanager
async def foliot_worker(url: str, **settings: Any) -> AsyncIterator[Instance]:
    options = {"celery_app": f"{APP}:app", "worker_lease_seconds": LEASE_S, **settings}
    async with running(url, roles=WORKER, **options) as (instance, _):
        yield instance


async def execution_of(store: SqlStore, task: str, *, given: Any = None, **fields: Any) -> UUID:
    target = {"kind": "celery", "task": f"{APP}.{task}", **fields.pop("target", {})}
    fields = {"retry": {"max_attempts": 3, **HURRIED}, "overlap": {"policy": "allow"}, **fields}
    schedule = await add(store, spec(task, NEVER, target=target, **fields))
    return await store.schedules.trigger(
        schedule.schedule_id, by=TriggeredBy.API, author=Author(), args=given
    )


async def ended(store: SqlStore, execution_id: UUID) -> Execution:
    async def is_final() -> bool:
        return (await store.executions.get(execution_id)).status in FINAL

    await until(is_final)
    return await store.executions.get(execution_id)


async def test_the_result_of_a_task_is_the_result_of_the_execution(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    target = {"args": [40], "kwargs": {"note": "from the schedule"}}
    execution_id = await execution_of(store, "add", target=target, given={"note": "by hand"})
    async with foliot_worker(postgres_url):
        row = await ended(store, execution_id)
    assert (row.status, row.result) == (Status.SUCCESS, {"sum": 42, "note": "by hand"})
    assert row.external_id == task_id_of(execution_id, 1)
    assert len(shop.runs(row.external_id)) == 1


async def test_a_failure_brings_celerys_traceback_and_is_tried_again_as_another_task(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    execution_id = await execution_of(store, "broken", retry={"max_attempts": 2, **HURRIED})
    async with foliot_worker(postgres_url):
        row = await ended(store, execution_id)
    assert (row.status, row.attempt, row.error) == (Status.FAILED, 2, "ValueError: no good")
    assert row.traceback is not None
    assert 'raise ValueError(f"{word} good")' in row.traceback
    assert [len(shop.runs(task_id_of(execution_id, attempt))) for attempt in (1, 2)] == [1, 1]


async def test_progress_is_seen_while_the_task_runs_and_its_id_as_well(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    execution_id = await execution_of(store, "wait_for_go")
    async with foliot_worker(postgres_url):

        async def is_half_way() -> bool:
            row = await store.executions.get(execution_id)
            return row.progress == {"fraction": 0.5, "text": "half way"} and row.external_id is not None

        await until(is_half_way)
        row = await store.executions.get(execution_id)
        assert (row.status, row.external_id) == (Status.RUNNING, task_id_of(execution_id, 1))
        shop.go()
        row = await ended(store, execution_id)
    assert (row.status, row.result) == (Status.SUCCESS, "went")


async def begun(shop: Shop, execution_id: UUID, attempt: int = 1) -> None:
    await until(lambda: bool(shop.runs(task_id_of(execution_id, attempt))))


async def gone(pid: int) -> None:
    await until(lambda: not Path(f"/proc/{pid}").exists())


async def test_a_cancel_ends_the_celery_task(shop: Shop, store: SqlStore, postgres_url: str) -> None:
    execution_id = await execution_of(store, "wait_for_go")
    async with foliot_worker(postgres_url):
        await begun(shop, execution_id)
        await store.executions.cancel(execution_id, Author())
        row = await ended(store, execution_id)
        assert row.status is Status.CANCELLED
        [pid] = shop.runs(task_id_of(execution_id, 1))
        await gone(pid)


async def test_a_timeout_ends_the_celery_task_and_the_next_attempt_sends_another(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    execution_id = await execution_of(
        store, "wait_for_go", timeout_seconds=2, retry={"max_attempts": 2, **HURRIED}
    )
    tasks = [task_id_of(execution_id, attempt) for attempt in (1, 2)]
    async with foliot_worker(postgres_url):
        row = await ended(store, execution_id)
        assert (row.status, row.attempt, row.external_id) == (Status.TIMEOUT, 2, tasks[1])
        # One that the machine was too slow to begin in time was revoked, and does not begin any more.
        runs = [shop.runs(task) for task in tasks]
        assert max(len(each) for each in runs) == 1
        for pid in (pid for each in runs for pid in each):
            await gone(pid)


async def test_a_worker_that_stops_leaves_the_task_to_the_next(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    execution_id = await execution_of(store, "wait_for_go")
    async with foliot_worker(postgres_url, stop_grace_seconds=0):
        await begun(shop, execution_id)
    async with foliot_worker(postgres_url):
        await until_claimed_again(store, execution_id)
        shop.go()
        row = await ended(store, execution_id)
    assert (row.status, row.attempt, row.result) == (Status.SUCCESS, 2, "went")
    assert row.external_id == task_id_of(execution_id, 1)
    assert [len(shop.runs(task_id_of(execution_id, attempt))) for attempt in (1, 2)] == [1, 0]


async def until_claimed_again(store: SqlStore, execution_id: UUID) -> None:
    async def is_claimed() -> bool:
        row = await store.executions.get(execution_id)
        return row.status is Status.RUNNING and row.attempt == 2 and row.external_id is not None

    await until(is_claimed)


async def test_without_a_result_backend_what_the_broker_took_is_a_success(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    without_backend.conf.broker_url = shop.broker.url
    execution_id = await execution_of(store, "add", target={"args": [1]})
    async with foliot_worker(postgres_url, celery_app="tests.cluster.celery_apps:without_backend"):
        row = await ended(store, execution_id)
    task_id = task_id_of(execution_id, 1)
    assert (row.status, row.result) == (Status.SUCCESS, {"task_id": task_id, "followed": False})
    await begun(shop, execution_id)


async def test_a_broker_that_is_away_is_a_failure_that_is_tried_again(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    execution_id = await execution_of(
        store, "add", target={"args": [1]}, retry={"max_attempts": 2, **HURRIED}
    )
    async with foliot_worker(postgres_url, celery_app="tests.cluster.celery_apps:without_broker"):
        row = await ended(store, execution_id)
    assert (row.status, row.attempt) == (Status.FAILED, 2)
    assert row.error is not None
    assert "Celery's broker has not taken it" in row.error


async def test_secrets_reach_the_task_and_nobody_else(
    shop: Shop, store: SqlStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_SECRET_VALUE_WORD", "hunter2hunter2")
    execution_id = await execution_of(
        store,
        "broken",
        target={"kwargs": {"word": "${secret:word}"}},
        retry={"max_attempts": 1, **HURRIED},
    )
    async with foliot_worker(postgres_url):
        row = await ended(store, execution_id)
    assert row.error == "ValueError: *** good"
    assert row.traceback is not None
    assert "hunter2" not in row.traceback


async def test_a_schedule_is_refused_where_no_application_is_known(
    store: SqlStore, postgres_url: str
) -> None:
    definition = spec("no", NEVER, target={"kind": "celery", "task": "proj.clean"})
    async with running(postgres_url, roles=WORKER) as (instance, _):
        check = await DefinitionChecker(store.database, runners=instance.runners).checker(definition)
        [problem] = check(definition)
    assert (problem.pointer, problem.code) == ("/target/kind", "unavailable")
    assert "FOLIOT_CELERY_APP" in problem.hint


async def test_a_task_whose_foliot_worker_was_killed_is_followed_by_the_next_and_runs_once(
    shop: Shop, store: SqlStore, postgres_url: str, tmp_path: Path
) -> None:
    settings = {
        "FOLIOT_CELERY_APP": f"{APP}:app",
        "FOLIOT_WORKER_LEASE_SECONDS": str(LEASE_S),
        "FOLIOT_POLL_SECONDS": "0.2",
    }
    execution_id = await execution_of(store, "wait_for_go")
    node = Node("worker", postgres_url, tmp_path, "worker", **settings)
    try:
        await begun(shop, execution_id)
    finally:
        node.kill()
    async with running(postgres_url), foliot_worker(postgres_url):
        await until_claimed_again(store, execution_id)
        shop.go()
        row = await ended(store, execution_id)
    assert (row.status, row.attempt, row.result) == (Status.SUCCESS, 2, "went")
    assert [len(shop.runs(task_id_of(execution_id, attempt))) for attempt in (1, 2)] == [1, 0]


async def test_a_task_that_had_not_begun_when_its_worker_left_does_not_run_beside_the_next(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    one_at_a_time = CeleryWorker(APP, shop.folder, "-Q", "later", "--concurrency", "1", **shop.environment)
    one_at_a_time.ready()
    try:
        async with foliot_worker(postgres_url, stop_grace_seconds=0):
            in_the_way = await execution_of(store, "wait_for_go", target={"queue": "later"})
            await begun(shop, in_the_way)
            execution_id = await execution_of(store, "add", target={"args": [1], "queue": "later"})
            await until_external_id(store, execution_id)
        async with foliot_worker(postgres_url):
            await until_claimed_again(store, execution_id)
            shop.go()
            row = await ended(store, execution_id)
    finally:
        one_at_a_time.kill()
    assert (row.status, row.attempt, row.error) == (Status.SUCCESS, 2, None)
    assert [len(shop.runs(task_id_of(execution_id, attempt))) for attempt in (1, 2)] == [0, 1]


async def until_external_id(store: SqlStore, execution_id: UUID) -> None:
    async def is_known() -> bool:
        return (await store.executions.get(execution_id)).external_id is not None

    await until(is_known)


async def test_a_result_backend_that_was_away_is_asked_again(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    execution_id = await execution_of(store, "wait_for_go")
    async with foliot_worker(postgres_url):
        await begun(shop, execution_id)
        shop.broker.stop()
        try:

            async def is_told() -> bool:
                lines = await store.executions.logs(execution_id)
                return any("result backend can't be read" in line.message for line in lines)

            await until(is_told)
        finally:
            shop.broker.start()
        shop.go()
        row = await ended(store, execution_id)
    assert (row.status, row.attempt, row.result) == (Status.SUCCESS, 1, "went")


async def test_a_task_that_died_with_its_celery_worker_is_given_up_after_the_timeout(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    """To the result backend it runs for ever."""
    options = ("-Q", "doomed", "--concurrency", "1")
    worker = CeleryWorker(APP, shop.folder, *options, **shop.environment)
    execution_id = await execution_of(
        store,
        "wait_for_go",
        target={"queue": "doomed"},
        timeout_seconds=3,
        retry={"max_attempts": 6, **HURRIED},
    )
    async with foliot_worker(postgres_url):
        await until_external_id(store, execution_id)
        await until(lambda: bool(_begun_attempts(shop, execution_id)))
        worker.kill()
        shop.go()
        [lost] = _begun_attempts(shop, execution_id)
        worker = CeleryWorker(APP, shop.folder, *options, **shop.environment)
        try:
            row = await ended(store, execution_id)
        finally:
            worker.kill()
    assert (row.status, row.result) == (Status.SUCCESS, "went")
    assert row.attempt > lost
    lines = await store.executions.logs(execution_id)
    assert not [line for line in lines if "goes on with" in line.message]


def _begun_attempts(shop: Shop, execution_id: UUID) -> list[int]:
    return [attempt for attempt in range(1, 7) if shop.runs(task_id_of(execution_id, attempt))]


async def test_every_execution_ends_once_though_the_celery_worker_is_killed_in_the_middle(
    shop: Shop, store: SqlStore, postgres_url: str
) -> None:
    target = {"kind": "celery", "task": f"{APP}.nap", "kwargs": {"seconds": 0.3}}
    schedule = await add(
        store,
        spec(
            "naps",
            NEVER,
            target=target,
            timeout_seconds=4,
            overlap={"policy": "allow"},
            retry={"max_attempts": 5, **HURRIED},
        ),
    )
    before = shop.all_runs()
    async with running(postgres_url), foliot_worker(postgres_url):
        for _ in range(8):
            await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())
        await until(lambda: shop.all_runs() >= before + 3)
        shop.worker.kill()
        shop.worker = shop.start()

        async def all_ended() -> bool:
            rows = await store.schedules.executions(schedule.schedule_id)
            return all(row.status in FINAL for row in rows)

        await until(all_ended)
    rows = await store.schedules.executions(schedule.schedule_id)
    assert [(row.status, row.result) for row in rows] == [(Status.SUCCESS, "rested")] * 8, [
        row.error for row in rows
    ]


async def test_rabbitmq_may_be_celerys_broker(
    redis_broker: Broker, rabbitmq_broker: Broker, tmp_path: Path
) -> None:
    worker = CeleryWorker(
        APP,
        tmp_path,
        *("--concurrency", "1"),
        CELERY_BROKER=rabbitmq_broker.url,
        CELERY_BACKEND=redis_broker.url,
        CELERY_FOLDER=str(tmp_path),
    )
    celery = CeleryApp(over(rabbitmq_broker.url, redis_broker.url))
    quick, slow = (
        CeleryCall(f"{APP}.{task}", str(new_id()), args, priority=Priority.HIGH, expires_s=60)
        for task, args in (("add", [40]), ("wait_for_go", []))
    )
    try:
        await celery.send([quick, slow])

        async def is_working() -> bool:
            return (await celery.state(slow.task_id)).name == "PROGRESS"

        await until(is_working)
        assert await celery.state(quick.task_id) == TaskState("SUCCESS", {"sum": 42, "note": ""})
        [_, pid] = (tmp_path / "celery.log").read_text().splitlines()[-1].split()
        await celery.revoke(slow.task_id)
        await gone(int(pid))
        assert (await celery.state(slow.task_id)).name == "REVOKED"
    finally:
        celery.close()
        worker.kill()
