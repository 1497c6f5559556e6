"""Relays and brokers killed while events are fired: every event arrives, in order, and once by its id."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select

from foliot.db.dialect import Pool
from foliot.db.tables.events import outbox_message_t, relay_t
from tests.brokers import Broker
from tests.cluster.processes import Node
from tests.cluster.scene import WITHIN_S, Scene
from tests.conformance.suites.relay import RelayScene, message_of, write
from tests.engine import add, every_second, until
from tests.relay_scenes import RELAY_SCENES

pytestmark = pytest.mark.cluster

TTL_S = 1.0
SCHEDULES = 30
AGGREGATES = 20
BATCH = 200
MAX_WAITING = 2_000
"""So many are always under way, and no more: what is measured is not how quick a relay is."""
ROUNDS = ("stop", "broker", "kill")


class Relays:
    """Two of them, and which of the two is active."""

    def __init__(self, scene: Scene, address: str) -> None:
        self._scene = scene
        self._settings = {
            "FOLIOT_RELAY": address,
            "FOLIOT_LEASE_TTL_SECONDS": str(TTL_S),
            "FOLIOT_HEARTBEAT_SECONDS": str(TTL_S / 5),
        }
        self.nodes = [self.start(), self.start()]

    def start(self) -> Node:
        return self._scene.nodes.start("relay", **self._settings)

    async def row(self) -> Any:
        async with self._scene.store.database.read(Pool.LEASE) as connection:
            return (await connection.execute(select(relay_t))).one_or_none()

    async def active(self, *, after: int = 0) -> tuple[Node, int]:
        """The one that holds the lease since an epoch after this one, and that epoch."""
        found: list[tuple[Node, int]] = []

        async def is_led() -> bool:
            row = await self.row()
            if row is not None and row.epoch > after:
                # Instance ids are host-pid-random.
                pid = row.instance_id.split("-")[-2:-1]
                found[:] = [(node, row.epoch) for node in self.nodes if pid == [str(node.pid)]]
            return bool(found)

        await until(is_led, within_s=WITHIN_S)
        return found[0]

    async def ships(self) -> None:
        """Wait until the offset has moved by more than a batch."""
        enough = (await self.row()).next_offset + 500

        async def has_moved() -> bool:
            row = await self.row()
            return bool(row.next_offset > enough)

        await until(has_moved, within_s=WITHIN_S)


async def lag(scene: Scene) -> int:
    """Asked as one who has no lease, which changes nothing."""
    return (await scene.store.relays.renew("nobody", 0)).lag


@asynccontextmanager
async def load(scene: Scene, topic: str) -> AsyncIterator[None]:
    """Events one batch after the other, so that there is always something under way."""
    is_over = asyncio.Event()

    async def wants_more() -> bool:
        return is_over.is_set() or await lag(scene) <= MAX_WAITING

    async def write_on() -> None:
        offset = 0
        while not is_over.is_set():
            batch = range(offset, offset + BATCH)
            messages = [
                message_of(topic, f"load-{each % AGGREGATES}", each // AGGREGATES + 1, each) for each in batch
            ]
            await write(scene.store, messages)
            offset += BATCH
            await until(wants_more, within_s=WITHIN_S)

    writing = asyncio.create_task(write_on())
    try:
        yield
    finally:
        is_over.set()
        await writing


@pytest.mark.parametrize("broker_name", RELAY_SCENES)
async def test_relays_and_brokers_killed_under_load_lose_nothing_and_keep_the_order(
    request: pytest.FixtureRequest, scene: Scene, broker_name: str
) -> None:
    broker: Broker = request.getfixturevalue(f"{broker_name}_broker")
    async with RELAY_SCENES[broker_name](broker) as relay_scene:
        topic = f"orders-{uuid4().hex}"
        await _under_faults(scene, relay_scene, broker, topic)
        await _assert_all_arrived(scene, relay_scene, topic)


async def _under_faults(scene: Scene, relay_scene: RelayScene, broker: Broker, topic: str) -> None:
    target = {"kind": "event", "event_topic": topic, "event_type": "OrdersDue"}
    for number in range(SCHEDULES):
        await add(scene.store, every_second(f"event-{number}", target=target))
    scheduler = scene.scheduler()
    has_transactions = broker.name != "kafka" or relay_scene.refuses_earlier_terms
    relays = Relays(scene, broker.url if has_transactions else f"{broker.url}?transactions=off")
    node, epoch = await relays.active()
    async with load(scene, topic):
        for fault in ROUNDS:
            await relays.ships()
            if fault == "kill":
                node.kill()
                relays.nodes.remove(node)
                relays.nodes.append(relays.start())
                node, epoch = await relays.active(after=epoch)
            elif fault == "stop":
                node.signal(signal.SIGSTOP)
                stopped = node
                node, epoch = await relays.active(after=epoch)
                await relays.ships()
                # It wakes up in the middle of what it did, and believes that it is still the active one.
                stopped.signal(signal.SIGCONT)
            elif relay_scene.can_be_killed:
                await asyncio.to_thread(relay_scene.kill)
                await asyncio.to_thread(relay_scene.start)
        await relays.ships()
    assert scheduler.stop() == 0

    async def is_all_shipped() -> bool:
        return await lag(scene) == 0

    await until(is_all_shipped, within_s=WITHIN_S)
    node, _epoch = await relays.active()
    assert node.stop() == 0


async def _assert_all_arrived(scene: Scene, relay_scene: RelayScene, topic: str) -> None:
    async with scene.store.database.read(Pool.API) as connection:
        table = outbox_message_t
        rows = (
            await connection.execute(select(table.c.id, table.c.aggregate_id).order_by(table.c.c_offset))
        ).all()
    assert len({row.aggregate_id for row in rows}) == SCHEDULES + AGGREGATES
    received = await relay_scene.received(topic)
    arrived = Counter(each.message_id for each in received)
    assert set(arrived) == {str(row.id) for row in rows}
    if relay_scene.refuses_earlier_terms:
        # A relay that was replaced adds nothing more, so only what was in doubt comes twice.
        assert sum(arrived.values()) - len(arrived) <= len(ROUNDS) * 500
    latest: dict[str, int] = {}
    seen: set[str] = set()
    for each in received:
        if each.message_id not in seen:
            seen.add(each.message_id)
            aggregate_id = each.headers["aggregate_id"]
            version = int(each.headers["aggregate_version"])
            assert version == latest.get(aggregate_id, 0) + 1
            latest[aggregate_id] = version
