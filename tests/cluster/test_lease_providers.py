"""Schedulers whose leases have a witness: leaders are killed, and etcd or Redis goes away and comes back.

A killed leader is followed, with the witness and without it. That the witness goes away or comes back changes
no leader. Afterwards every due time is decided by exactly one row.
"""

from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import func, select

from foliot.db.dialect import Pool
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.executions import execution_t
from foliot.model.schedule import Schedule
from tests.brokers import Broker
from tests.cluster.scene import SECOND, WITHIN_S, Scene, told
from tests.engine import add, every_second, until
from tests.etcd import EtcdCluster
from tests.ledger import assert_exact

pytestmark = pytest.mark.cluster

LOST, REACHED = "lease_provider_lost", "lease_provider_reached"


class Schedulers:
    """The scheduler processes of one database, and who of them leads."""

    def __init__(self, scene: Scene, schedule: Schedule, **settings: str) -> None:
        self._scene = scene
        self._schedule = schedule
        times = {"FOLIOT_LEASE_TTL_SECONDS": "3", "FOLIOT_HEARTBEAT_SECONDS": "0.5"}
        self.nodes = [scene.scheduler(**times, **settings) for _ in range(3)]

    async def all_tell(self, event: str, times: int) -> None:
        def have_told() -> bool:
            return all(len(told(node, event)) >= times for node in self.nodes)

        await until(have_told, within_s=WITHIN_S)

    async def status_says(self, away: int) -> None:
        """So many of the live schedulers get no answer from the witness, by what they registered."""
        live = len(self.nodes)

        async def is_said() -> bool:
            found = await self._scene.store.registry_list.lease_providers()
            return [each.away_count for each in found] == [away] and found[0].instance_count >= live

        await until(is_said, within_s=WITHIN_S)

    def none_tells(self, event: str) -> None:
        assert [line for node in self.nodes for line in told(node, event)] == []

    async def leader(self) -> tuple[str, int]:
        """Who leads, by the row, and under which epoch."""
        async with self._scene.store.database.read(Pool.LEASE) as connection:
            row = (await connection.execute(select(scheduler_lock_t))).one()
        return row.instance_id, row.epoch

    async def fires(self, more: int, *, not_by: str = "") -> None:
        """Wait until so many more due times are decided, by others than this instance."""
        count = select(func.count()).where(execution_t.c.scheduler_instance_id != not_by)

        async def decided() -> int:
            async with self._scene.store.database.read(Pool.API) as connection:
                return int((await connection.execute(count)).scalar_one())

        enough = await decided() + more

        async def are_enough() -> bool:
            return await decided() >= enough

        await until(are_enough, within_s=WITHIN_S)

    async def kill_leader(self) -> None:
        """Another leads and fires, under the next epoch."""
        killed, epoch = await self.leader()
        [node] = [each for each in self.nodes if killed.split("-")[-2] == str(each.pid)]
        node.kill()
        self.nodes.remove(node)
        await self.fires(1, not_by=killed)
        follower, next_epoch = await self.leader()
        assert follower != killed
        assert next_epoch == epoch + 1

    async def stays_the_same(self, happening: Callable[[], Awaitable[None]]) -> None:
        """While this happens, and while another time is fired, one instance leads."""
        before = await self.leader()
        await happening()
        await self.fires(1)
        assert await self.leader() == before

    async def end(self) -> None:
        for node in self.nodes:
            assert node.stop() == 0, node.told()[-2000:]
        rows = await self._scene.store.schedules.executions(self._schedule.schedule_id, limit=10_000)
        assert self._schedule.next_fire_ts is not None
        assert_exact(rows, SECOND, self._schedule.next_fire_ts)


async def schedulers(scene: Scene, **settings: str) -> Schedulers:
    # Times missed while nobody led are all made good, each by a row of its own.
    policies = {"misfire": {"policy": "fire_all"}, "overlap": {"policy": "allow"}}
    found = Schedulers(scene, await add(scene.store, every_second("ticks", **policies)), **settings)
    await found.all_tell(REACHED, 1)
    await found.fires(1)
    return found


async def test_redis_goes_and_comes_back_and_leaders_are_killed_meanwhile(
    scene: Scene, redis_broker: Broker
) -> None:
    found = await schedulers(scene, FOLIOT_LEASE_PROVIDER="redis", FOLIOT_REDIS_URL=redis_broker.url)
    await found.kill_leader()

    async def lost() -> None:
        redis_broker.stop()
        await found.all_tell(LOST, 1)
        await found.status_says(away=len(found.nodes))

    async def back() -> None:
        redis_broker.start()
        await found.all_tell(REACHED, 2)
        await found.status_says(away=0)

    try:
        await found.stays_the_same(lost)
        await found.stays_the_same(back)
        redis_broker.stop()
        await found.kill_leader()
    finally:
        redis_broker.start()
    await found.end()


async def test_etcd_loses_a_node_and_then_its_majority_and_a_leader_is_killed_meanwhile(
    scene: Scene, etcd_cluster: EtcdCluster
) -> None:
    found = await schedulers(scene, FOLIOT_LEASE_PROVIDER="etcd", FOLIOT_ETCD_URL=etcd_cluster.url)

    async def one_node_killed() -> None:
        etcd_cluster.stop([0])

    async def majority_lost() -> None:
        etcd_cluster.stop([1])
        await found.all_tell(LOST, 1)

    async def back() -> None:
        etcd_cluster.start()
        await found.all_tell(REACHED, 2)

    try:
        await found.stays_the_same(one_node_killed)
        await found.kill_leader()
        # Together longer than it takes to call a witness away.
        await found.fires(2)
        found.none_tells(LOST)
        await found.stays_the_same(majority_lost)
        await found.stays_the_same(back)
    finally:
        etcd_cluster.start()
    await found.end()
