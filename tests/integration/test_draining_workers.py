"""A worker that drains takes on nothing more, and is not counted as if it did."""

import asyncio

from foliot.db.dialect import Pool
from foliot.instance.spec import InstanceRole
from foliot.instance.store import SqlStore
from foliot.model.execution import TriggeredBy
from foliot.planning.change import Author
from foliot.queries.unknown_tasks import unknown_tasks
from tests.engine import add, make_instance, registry, spec, until

LATER = {"kind": "interval", "seconds": 3600}


async def _unknown(store: SqlStore) -> list[str]:
    async with store.database.read(Pool.API) as connection:
        return [each.task for each in await unknown_tasks(connection, store.database.dialect)]


async def test_a_worker_that_stops_is_not_counted_while_it_finishes_its_work(
    store: SqlStore, database_url: str
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def linger() -> None:
        """Run until the test says so."""
        begun.set()
        await may_end.wait()

    worker, _ = make_instance(database_url, roles=frozenset({InstanceRole.WORKER}), tasks=registry(linger))
    await worker.start()
    schedule = await add(store, spec("lingering", LATER, target={"kind": "function", "name": "linger"}))
    await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())
    await asyncio.wait_for(begun.wait(), 60)
    assert (await store.registry_list.task("linger")).worker_count == 1
    assert await _unknown(store) == []
    stopping = asyncio.create_task(worker.stop())

    async def is_told() -> bool:
        [instance] = await store.registry_list.instances(lease_ttl_s=60)
        return instance.is_live and instance.is_draining

    await until(is_told)
    assert (await store.registry_list.task("linger")).worker_count == 0
    assert await _unknown(store) == ["linger"]
    assert not stopping.done()
    may_end.set()
    await asyncio.wait_for(stopping, 60)
    assert await store.registry_list.instances(lease_ttl_s=60) == []
