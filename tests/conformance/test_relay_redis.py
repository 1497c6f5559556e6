"""The relay to a real Redis."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from tests.brokers import Broker
from tests.conformance.suites.relay import (
    RelayConformance,
    always,
    assert_delivered,
    messages_of,
)
from tests.relay_scenes import RedisScene

from foliot.model.errors import BrokerUnreachableError
from foliot.outbox.publisher import RelayTerm, TermOverError
from foliot.outbox.redis import RedisPublisher


@pytest.fixture
async def relay_scene(redis_broker: Broker) -> AsyncIterator[RedisScene]:
    async with Redis.from_url(redis_broker.url) as redis:
        yield RedisScene(redis_broker, redis)


class TestRedis(RelayConformance):
    """Streams."""

    async def test_a_term_that_is_over_can_not_begin_again(self, relay_scene: RedisScene) -> None:
        one, two = relay_scene.publisher(), relay_scene.publisher()
        await two.begin(RelayTerm("d", 5))
        with pytest.raises(TermOverError) as refused:
            await one.begin(RelayTerm("d", 4))
        assert refused.value.seen == 5
        await one.close()
        await two.close()

    async def test_a_server_that_hangs_is_given_up_and_begun_with_anew(
        self, relay_scene: RedisScene, topic: str
    ) -> None:
        publisher = RedisPublisher(relay_scene.broker.url, call_s=0.3)
        messages = messages_of(topic, 3, aggregates=1)
        await publisher.begin(RelayTerm("a", 1))
        await relay_scene.redis.client_pause(1000)
        with pytest.raises(BrokerUnreachableError):
            await publisher.publish(messages, always)
        careful = relay_scene.publisher()
        await careful.begin(RelayTerm("a", 1))
        assert await careful.publish(messages, always) == 3
        assert_delivered(await relay_scene.received(topic), messages)
        await publisher.close()
        await careful.close()

    async def test_streams_are_trimmed_where_it_is_asked_for(
        self, relay_scene: RedisScene, topic: str
    ) -> None:
        publisher = relay_scene.publisher("?maxlen=100")
        await publisher.begin(RelayTerm("a", 1))
        messages = messages_of(topic, 1000)
        assert await publisher.publish(messages, always) == 1000
        received = await relay_scene.received(topic)
        # Approximately: Redis drops whole nodes of its tree, of 100 entries each.
        assert 100 <= len(received) < 400
        assert received[-1].message_id == str(messages[-1].id)
        await publisher.close()
