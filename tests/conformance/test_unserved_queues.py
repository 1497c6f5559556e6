"""Queues with waiting work that no live worker serves."""

from typing import Any

import pytest
from sqlalchemy import event, update
from tests.conformance.suites.scene import Scene

from foliot.cli.process.checks import Level, check_queues
from foliot.db.dialect import Pool
from foliot.db.rows.registry_rows import InstanceRecord
from foliot.db.tables.cluster import instance_t
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.queries import unserved_queues
from foliot.queries.unserved_queues import UnservedQueue


def worker(name: str, queues: tuple[str, ...] | None, **fields: Any) -> InstanceRecord:
    given: dict[str, Any] = {"hostname": "here", "pid": 1, "roles": ("worker",), "version": "1", **fields}
    return InstanceRecord(instance_id=name, queues=queues, **{"known_tasks": ("work",), **given})


async def wait_in(scene: Scene, queue: str, count: int = 1) -> None:
    """Executions that are ready in a queue."""
    schedule = await scene.add(name=f"of-{queue}", queue=queue, overlap={"policy": "allow"})
    for _ in range(count):
        await scene.trigger(schedule)


async def found(scene: Scene) -> dict[str, int]:
    overview = await scene.store.overviews.of_host(DEFAULT_HOST_ID)
    anywhere = await scene.store.overviews.unserved_queues_anywhere()
    assert list(anywhere) == list(overview.unserved_queues)
    return {each.queue: each.waiting for each in overview.unserved_queues}


async def test_a_queue_with_work_that_no_worker_serves_is_named_with_how_much_waits(scene: Scene) -> None:
    await scene.store.registry.heartbeat(worker("one", ("default",)))
    await wait_in(scene, "default")
    await wait_in(scene, "reports", 3)
    await scene.add(name="nothing waits here", queue="empty")
    assert await found(scene) == {"reports": 3}
    [unserved] = (await scene.store.overviews.of_host(DEFAULT_HOST_ID)).unserved_queues
    assert unserved.oldest_ready_ts <= await scene.now()


async def test_a_worker_of_all_queues_serves_every_queue(scene: Scene) -> None:
    await wait_in(scene, "reports")
    assert await found(scene) == {"reports": 1}
    await scene.store.registry.heartbeat(worker("all", None))
    assert await found(scene) == {}


async def test_who_drains_or_is_gone_or_is_no_worker_serves_nothing(scene: Scene) -> None:
    await wait_in(scene, "reports")
    await scene.store.registry.heartbeat(worker("api", None, known_tasks=None, roles=("api",)))
    await scene.store.registry.heartbeat(worker("draining", None))
    await scene.store.registry.heartbeat(worker("gone", None))
    await scene.execute(
        update(instance_t).where(instance_t.c.instance_id == "draining").values(draining=True)
    )
    long_ago = scene.store.database.dialect.plus(scene.store.database.dialect.now(), -3600)
    await scene.execute(
        update(instance_t).where(instance_t.c.instance_id == "gone").values(last_heartbeat=long_ago)
    )
    assert await found(scene) == {"reports": 1}


async def test_what_celery_carries_is_left_to_its_own_workers(scene: Scene) -> None:
    await wait_in(scene, "reports")
    celery = {each: {"kind": "celery", "address": None, "state": "up"} for each in ("high", "medium", "low")}
    scheduler = worker("leader", None, known_tasks=None, roles=("scheduler",), transports=celery)
    await scene.store.registry.heartbeat(scheduler)
    assert await found(scene) == {}


async def test_the_first_twenty_are_named_in_order_and_counts_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unserved_queues, "MAX_COUNTED", 2)
    await wait_in(scene, "q00", 5)
    for number in range(1, 23):
        await wait_in(scene, f"q{number:02}")
    named = await found(scene)
    assert list(named) == [f"q{number:02}" for number in range(20)]
    assert named["q00"] == 2


async def test_where_a_worker_serves_all_no_execution_is_read(scene: Scene) -> None:
    await wait_in(scene, "reports")
    await scene.store.registry.heartbeat(worker("all", None))
    issued: list[str] = []

    def listen(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        issued.append(statement)

    engine = scene.store.database.engine(Pool.API).sync_engine
    event.listen(engine, "before_cursor_execute", listen)
    await scene.store.overviews.unserved_queues_anywhere()
    event.remove(engine, "before_cursor_execute", listen)
    assert issued
    assert not [each for each in issued if "execution_t" in each]


async def test_doctor_names_the_queues_and_what_to_do(scene: Scene) -> None:
    now = await scene.now()
    finding = check_queues([UnservedQueue("mail", 1000, now), UnservedQueue("reports", 1, now)])
    assert (finding.level, finding.check) == (Level.WARN, "queues")
    assert finding.detail == "no live worker serves mail (1000 waiting), reports (1 waiting)"
    assert "--queues" in finding.advice
    assert check_queues([]).level is Level.OK
