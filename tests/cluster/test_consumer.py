"""Consumers under kill -9: every event's work is done once, and in order."""

import asyncio
from collections import Counter
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.rows.event_rows import write_events
from foliot.model.ids import new_id
from foliot.outbox.partitions import partition_of
from tests.brokers import Broker
from tests.cluster.processes import Node
from tests.cluster.scene import WITHIN_S, Scene
from tests.conformance.suites.consumer_scene import event_at
from tests.engine import until

pytestmark = pytest.mark.cluster

KILLS = 3
MIN_EVENTS = 100
"""Events that each of them handles before it is killed, in batches of a few."""
ORDERS = 12
"""Aggregates, each of a host of its own."""
NOTED = (
    "CREATE TABLE noted (place bigserial PRIMARY KEY, event_id text, aggregate_id text, "
    "aggregate_version bigint, pid int)"
)


class Load:
    """Writes transactions of three events each, as quickly as it can, until it is told to stop."""

    def __init__(self, scene: Scene, topic: str) -> None:
        self.written: list[UUID] = []
        self._topic = topic
        self._scene = scene
        self._hosts = [new_id() for _ in range(ORDERS)]
        self._versions = [0] * ORDERS
        self._is_stopping = False

    async def run(self) -> None:
        database, turn = self._scene.store.database, 0
        while not self._is_stopping:
            now = await self._scene.store.now()
            events = []
            for order in ((turn + each) % ORDERS for each in range(3)):
                self._versions[order] += 1
                name, version = f"order-{order}", self._versions[order]
                events.append(event_at(now, name, version, host_id=self._hosts[order], topic=self._topic))
            turn += 3

            async def work(connection: AsyncConnection, events: list = events) -> None:  # type: ignore[type-arg]
                await write_events(connection, database.dialect, events)

            await database.write(Pool.WORK, work)
            self.written += [each.id for each in events]
            # What is being killed is to be behind, and not for ever.
            await until(lambda: self._is_stopping or self._is_near(), within_s=WITHIN_S, every_s=0.005)

    async def _is_near(self) -> bool:
        return len(self.written) - await noted_count(self._scene) < 300

    def stop(self) -> None:
        self._is_stopping = True


async def noted_count(scene: Scene) -> int:
    async with scene.store.database.read(Pool.API) as connection:
        found: int = (await connection.execute(text("SELECT count(*) FROM noted"))).scalar_one()
        return found


@pytest.mark.parametrize("source", ["database", "kafka"])
async def test_consumers_killed_again_and_again_do_every_events_work_once_and_in_order(
    request: pytest.FixtureRequest, scene: Scene, source: str
) -> None:
    topic = f"orders-{uuid4().hex}"
    settings = {"CONSUMER_TOPIC": topic}
    if source == "kafka":
        broker: Broker = request.getfixturevalue("kafka_broker")
        is_real = bool(getattr(broker, "is_real", False))
        settings["CONSUMER_SOURCE"] = broker.url
        # What stands in for Kafka knows no transactions.
        address = broker.url if is_real else f"{broker.url}?transactions=off"
        scene.nodes.start("relay", FOLIOT_RELAY=address)

    def start() -> Node:
        return scene.nodes.start("worker", "--tasks", "tests.cluster.consumer_tasks", **settings)

    async with scene.store.database.engine(Pool.API).begin() as connection:
        await connection.execute(text(NOTED))
    load = Load(scene, topic)
    writing = asyncio.create_task(load.run())
    nodes = [start(), start()]
    killed = []
    for number in range(KILLS):
        victim = nodes[number % 2]

        async def is_at_work(pid: int = victim.pid) -> bool:
            """It has handled many, and somebody is in the midst of others."""
            mine = text("SELECT count(*) FROM noted WHERE pid = :pid")
            async with scene.store.database.read(Pool.API) as connection:
                has_worked = (await connection.execute(mine, {"pid": pid})).scalar_one() >= MIN_EVENTS
            return has_worked and await scene.has_session("Timeout", "INSERT INTO noted")

        await until(is_at_work, within_s=WITHIN_S, every_s=0.005)
        victim.kill()
        killed.append(victim.pid)
        if number < KILLS - 1:
            nodes[number % 2] = start()
    load.stop()
    await writing

    async def is_done() -> bool:
        return await noted_count(scene) >= len(load.written)

    await until(is_done, within_s=WITHIN_S)
    assert nodes[KILLS % 2].stop() == 0
    async with scene.store.database.read(Pool.API) as connection:
        rows = (await connection.execute(text("SELECT * FROM noted ORDER BY place"))).all()
        letters = (await connection.execute(text("SELECT count(*) FROM dead_letter_queue"))).scalar_one()
    counts = Counter(UUID(row.event_id) for row in rows)
    assert set(counts) == set(load.written)
    assert set(counts.values()) == {1}
    for name in {row.aggregate_id for row in rows}:
        versions = [row.aggregate_version for row in rows if row.aggregate_id == name]
        assert versions == list(range(1, len(versions) + 1))
    assert letters == 0
    assert {row.pid for row in rows} >= set(killed), "each of them had done a part"
    assert len({partition_of(host, 4) for host in load._hosts}) > 1
