"""What Kafka's answers about a topic mean for the relay."""

from typing import Any, cast

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError

from foliot.model.errors import BrokerUnreachableError
from foliot.outbox.kafka import KafkaPublisher
from foliot.outbox.publisher import BrokerRefusedError


class Producer:
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def partitions_for(self, topic: str) -> Any:
        raise self._error


class Publisher(KafkaPublisher):
    """Its cluster answers that the topic exists when it is to be made."""

    async def _make(self, topic: str) -> None:
        pass


async def find(error: Exception) -> None:
    await Publisher("kafka://127.0.0.1:9")._find(cast("AIOKafkaProducer", Producer(error)), "orders")


async def test_an_existing_topic_without_rights_to_it_is_refused() -> None:
    with pytest.raises(BrokerRefusedError) as caught:
        await find(TopicAuthorizationFailedError("orders"))
    assert (caught.value.is_topic, caught.value.topic) == (True, "orders")


async def test_a_broker_that_is_away_refuses_nothing() -> None:
    with pytest.raises(BrokerUnreachableError) as caught:
        await find(KafkaConnectionError("away"))
    assert not isinstance(caught.value, BrokerRefusedError)
