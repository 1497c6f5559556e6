"""Three scheduler processes on eight shards: one is killed, one joins, one stops. Shares even out each time.

Afterwards every due time is decided by exactly one row.
"""

from collections import Counter

import pytest

from tests.cluster.processes import Node
from tests.cluster.scene import SECOND, WITHIN_S, Scene, tells
from tests.engine import add_all, every_second, until
from tests.ledger import assert_exact

pytestmark = pytest.mark.cluster

TTL_S = 2.0
QUICK = {
    "FOLIOT_LEASE_TTL_SECONDS": str(TTL_S),
    "FOLIOT_HEARTBEAT_SECONDS": str(TTL_S / 5),
}
SHARDS = 8
SCHEDULES = 40
CATCH_UP = {"misfire": {"policy": "fire_all"}, "overlap": {"policy": "allow"}}


async def evens_out(scene: Scene, nodes: list[Node]) -> None:
    """Wait until these lead all shards between them, none of them more than its share."""
    least, limit = SHARDS // len(nodes), -(-SHARDS // len(nodes))

    async def is_even() -> bool:
        leaders = await scene.store.overviews.leaders(ttl_s=TTL_S)
        # Instance ids are host-pid-random.
        held = Counter(
            each.instance_id.split("-")[-2] for each in leaders if each.instance_id and each.is_fresh
        )
        shares = [held[str(node.pid)] for node in nodes]
        return sum(shares) == SHARDS and all(least <= share <= limit for share in shares)

    await until(is_even, within_s=WITHIN_S)


async def test_shares_even_out_whoever_dies_joins_or_stops_and_nothing_is_lost(scene: Scene) -> None:
    await scene.store.leases.reshard(SHARDS)
    schedules = await add_all(
        scene.store, [every_second(f"s{each}", **CATCH_UP) for each in range(SCHEDULES)]
    )
    nodes = [scene.scheduler(**QUICK) for _ in range(3)]
    await evens_out(scene, nodes)

    nodes.pop(0).kill()
    await evens_out(scene, nodes)

    nodes.append(scene.scheduler(**QUICK))
    await evens_out(scene, nodes)

    stopped = nodes.pop(0)
    assert stopped.stop() == 0, stopped.told()[-2000:]
    await evens_out(scene, nodes)
    assert await tells(stopped, "lease_released")

    since = await scene.store.now()

    async def all_fire() -> bool:
        latest = [await scene.store.schedules.executions(each.schedule_id, limit=1) for each in schedules]
        return all(rows and rows[0].fire_ts > since for rows in latest)

    await until(all_fire, within_s=WITHIN_S, every_s=0.2)
    for node in nodes:
        assert node.stop() == 0, node.told()[-2000:]
    for schedule in schedules:
        assert schedule.next_fire_ts is not None
        rows = await scene.store.schedules.executions(schedule.schedule_id, limit=100_000)
        assert_exact(rows, SECOND, schedule.next_fire_ts)
