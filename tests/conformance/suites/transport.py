"""Conformance suite for transports: each message goes to one receiver and is kept until acknowledged.

Timeouts only prevent hanging tests. A test waits for messages that must arrive. To prove that a message does
not arrive, it publishes a later one and receives once more after that.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID, uuid4

import pytest

from foliot.model.errors import BrokerUnreachableError
from foliot.model.policy import Priority
from foliot.transport.transport_protocol import BrokerQueue, ExecutionDelivery, ExecutionMessage, Transport

WITHIN_S = 90.0
AGAIN_WITHIN_S = 60.0
"""How many seconds a restarted broker may take until it works."""


ABANDONED_S = 1.0
LONG_S = 600.0


class TransportScene(Protocol):
    """A broker and transports to it. Each test has its own queue."""

    queue: str

    def open(self, *, abandoned_s: float = ABANDONED_S) -> Transport:
        """Open a transport as another process would. It is closed after the test.

        `abandoned_s`: after this many seconds, its receivers are considered gone.
        """
        ...

    def stop_broker(self) -> None:
        """Kill the broker."""
        ...

    def start_broker(self) -> None: ...


def messages_of(
    scene: TransportScene, count: int, priority: Priority = Priority.HIGH
) -> list[ExecutionMessage]:
    return [ExecutionMessage(uuid4(), scene.queue, priority) for _ in range(count)]


def lanes_of(scene: TransportScene) -> list[BrokerQueue]:
    return [BrokerQueue(scene.queue, priority) for priority in reversed(Priority)]


def ids(found: Iterable[ExecutionMessage | ExecutionDelivery]) -> set[UUID]:
    return {(each.message if isinstance(each, ExecutionDelivery) else each).execution_id for each in found}


async def received(
    scene: TransportScene, transport: Transport, count: int, *, limit: int = 100
) -> list[ExecutionDelivery]:
    """Receive `count` messages. Raise TimeoutError if they do not arrive in time."""
    found: list[ExecutionDelivery] = []
    async with asyncio.timeout(WITHIN_S):
        while len(found) < count:
            found += await transport.receive(
                lanes_of(scene), limit=min(limit, count - len(found)), wait_s=0.5
            )
    return found


async def nothing_but(
    scene: TransportScene, transport: Transport, marker: Sequence[ExecutionMessage]
) -> None:
    """Publish the marker messages, and assert that nothing else arrives."""
    await transport.publish(marker)
    found = await received(scene, transport, len(marker))
    await transport.acknowledge(found)
    found += await transport.receive(lanes_of(scene), limit=100, wait_s=0.3)
    assert ids(found) == ids(marker)


async def nothing_is_left(scene: TransportScene, transport: Transport) -> None:
    """Assert that no message arrives, even after the time in which abandoned ones are delivered again."""
    now = asyncio.get_running_loop().time
    ends = now() + 2 * ABANDONED_S
    while now() < ends:
        assert await transport.receive(lanes_of(scene), limit=100, wait_s=0.3) == []


async def _received_until_it_fails(scene: TransportScene, transport: Transport) -> list[ExecutionDelivery]:
    """Receive until the broker is unreachable; messages that arrived earlier may still be received."""
    found: list[ExecutionDelivery] = []
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                found += await transport.receive(lanes_of(scene), limit=1, wait_s=0.1)
            except BrokerUnreachableError:
                return found


async def _publish_as_soon_as_it_works(transport: Transport, messages: Sequence[ExecutionMessage]) -> None:
    while True:
        try:
            return await transport.publish(messages)
        except BrokerUnreachableError:
            await asyncio.sleep(0.1)


class TransportConformance:
    """Tests for a transport. Fixture: `transport_scene`."""

    async def test_a_ticket_arrives_as_it_was_published(self, transport_scene: TransportScene) -> None:
        leader, worker = transport_scene.open(), transport_scene.open()
        messages = [ExecutionMessage(uuid4(), transport_scene.queue, priority) for priority in Priority]
        await leader.publish(messages)
        found = await received(transport_scene, worker, 3)
        assert {each.message for each in found} == set(messages)
        await worker.acknowledge(found)

    async def test_receiving_waits_for_the_first(self, transport_scene: TransportScene) -> None:
        leader, worker = transport_scene.open(), transport_scene.open()
        waiting = asyncio.create_task(received(transport_scene, worker, 1))
        messages = messages_of(transport_scene, 1)
        await leader.publish(messages)
        found = await waiting
        assert ids(found) == ids(messages)
        await worker.acknowledge(found)

    async def test_with_nothing_to_receive_it_comes_back_empty(self, transport_scene: TransportScene) -> None:
        worker = transport_scene.open()
        assert await worker.receive(lanes_of(transport_scene), limit=10, wait_s=0.1) == []

    async def test_no_more_than_asked_for(self, transport_scene: TransportScene) -> None:
        leader, worker = transport_scene.open(), transport_scene.open()
        messages = messages_of(transport_scene, 10)
        await leader.publish(messages)
        found: list[ExecutionDelivery] = []
        while len(found) < 10:
            batch = await worker.receive(lanes_of(transport_scene), limit=3, wait_s=0.5)
            assert len(batch) <= 3
            await worker.acknowledge(batch)
            found += batch
        assert ids(found) == ids(messages)
        assert len(found) == 10

    async def test_the_most_urgent_priority_comes_first(self, transport_scene: TransportScene) -> None:
        leader, worker = transport_scene.open(), transport_scene.open()
        # Some brokers keep the order of priorities only for a receiver that they already know.
        await nothing_but(transport_scene, worker, messages_of(transport_scene, 1))
        for priority in reversed(Priority):
            await leader.publish(messages_of(transport_scene, 4, priority))
        found: list[ExecutionDelivery] = []
        async with asyncio.timeout(WITHIN_S):
            while len(found) < 12:
                batch = await worker.receive(lanes_of(transport_scene), limit=12 - len(found), wait_s=0.5)
                order = [list(Priority).index(each.message.priority) for each in batch]
                assert order == sorted(order)
                found += batch
        await worker.acknowledge(found)

    async def test_each_ticket_goes_to_one_of_several(self, transport_scene: TransportScene) -> None:
        leader = transport_scene.open()
        workers = [transport_scene.open() for _ in range(3)]
        messages = messages_of(transport_scene, 60)
        seen: list[UUID] = []

        async def work(worker: Transport) -> None:
            while len(seen) < len(messages):
                batch = await worker.receive(lanes_of(transport_scene), limit=7, wait_s=0.2)
                await worker.acknowledge(batch)
                seen.extend(each.message.execution_id for each in batch)

        await leader.publish(messages)
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*map(work, workers))
        assert set(seen) == ids(messages)

    async def test_what_was_acknowledged_does_not_come_again(self, transport_scene: TransportScene) -> None:
        leader, worker = transport_scene.open(), transport_scene.open()
        await leader.publish(messages_of(transport_scene, 20))
        await worker.acknowledge(await received(transport_scene, worker, 20))
        await worker.close()
        other = transport_scene.open()
        await nothing_but(transport_scene, other, messages_of(transport_scene, 3))
        await nothing_is_left(transport_scene, other)

    async def test_what_was_given_back_comes_again_at_once(self, transport_scene: TransportScene) -> None:
        leader, worker = (transport_scene.open(abandoned_s=LONG_S) for _ in range(2))
        messages = messages_of(transport_scene, 5)
        await leader.publish(messages)
        found = await received(transport_scene, worker, 5)
        await worker.acknowledge(found[:2])
        await worker.give_back(found[2:])
        again = await received(transport_scene, worker, 3)
        assert ids(again) == ids(found[2:])
        await worker.acknowledge(again)

    async def test_what_a_receiver_left_behind_goes_to_another(self, transport_scene: TransportScene) -> None:
        leader, doomed = transport_scene.open(), transport_scene.open()
        messages = messages_of(transport_scene, 6)
        await leader.publish(messages)
        found = await received(transport_scene, doomed, 6)
        await doomed.acknowledge(found[:2])
        await doomed.close()
        left = ids(found[2:])
        other, seen = transport_scene.open(), set[UUID]()
        async with asyncio.timeout(WITHIN_S):
            while not left <= seen:
                batch = await other.receive(lanes_of(transport_scene), limit=10, wait_s=0.5)
                await other.acknowledge(batch)
                seen |= ids(batch)
        assert seen <= ids(messages)

    async def test_a_lane_that_was_not_asked_for_is_left_alone(self, transport_scene: TransportScene) -> None:
        leader, worker, other = (transport_scene.open() for _ in range(3))
        high, low = (messages_of(transport_scene, 2, each) for each in (Priority.HIGH, Priority.LOW))
        await leader.publish([*low, *high])
        only = [BrokerQueue(transport_scene.queue, Priority.HIGH)]
        found: list[ExecutionDelivery] = []
        async with asyncio.timeout(WITHIN_S):
            while len(found) < 2:
                found += await worker.receive(only, limit=10, wait_s=0.5)
        assert ids(found) == ids(high)
        await worker.acknowledge(found)
        await worker.close()
        rest = await received(transport_scene, other, 2)
        assert ids(rest) == ids(low)
        await other.acknowledge(rest)

    async def test_asking_whether_it_is_there_publishes_nothing(
        self, transport_scene: TransportScene
    ) -> None:
        leader, worker = transport_scene.open(), transport_scene.open()
        await leader.publish([])
        await nothing_but(transport_scene, worker, messages_of(transport_scene, 1))

    async def test_what_was_confirmed_survives_a_crash_of_the_broker(
        self, transport_scene: TransportScene
    ) -> None:
        leader, worker = transport_scene.open(), transport_scene.open()
        await nothing_but(transport_scene, worker, messages_of(transport_scene, 1))
        messages = messages_of(transport_scene, 20)
        await leader.publish(messages)
        transport_scene.stop_broker()
        try:
            with pytest.raises(BrokerUnreachableError):
                await leader.publish(messages_of(transport_scene, 1, Priority.LOW))
            seen = ids(await _received_until_it_fails(transport_scene, worker))
        finally:
            transport_scene.start_broker()
        async with asyncio.timeout(AGAIN_WITHIN_S):
            while not ids(messages) <= seen:
                try:
                    batch = await worker.receive(lanes_of(transport_scene), limit=10, wait_s=0.5)
                    seen |= ids(batch)
                    await worker.acknowledge(batch)
                except BrokerUnreachableError:
                    await asyncio.sleep(0.1)
            await _publish_as_soon_as_it_works(leader, messages_of(transport_scene, 1))
