"""Publishes events to RabbitMQ: a durable topic exchange, the topic as routing key, publisher confirms.

Before the first message of a topic, a durable queue is bound for it, so that nothing is dropped before the
first consumer exists. A message that no queue takes is returned (mandatory) and not confirmed.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import aio_pika
from aio_pika.abc import AbstractConnection, AbstractExchange
from aio_pika.exceptions import (
    AMQPError,
    ChannelInvalidStateError,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    DeliveryError,
)
from aiormq.exceptions import ChannelAccessRefused

from foliot.brokers.broker_address import read_address
from foliot.model.errors import BrokerUnreachableError
from foliot.outbox.message_format import CONTENT_TYPE, BrokerMessage, pack
from foliot.outbox.ordered_sending import CALL_S, RefusalErrors, asking, send_in_order
from foliot.outbox.publisher import SETTING, RelayTerm
from foliot.queries.outbox_list import OutboxMessage

EXCHANGE = "foliot.events"
QUEUE = "foliot.events."
SETTLE_S = 6.0
"""Seconds to wait between creating a quorum queue and its first message.

RabbitMQ records new queues on disk every 5 s. If a single node is killed before that, the queue comes back
without its confirmed messages, and never confirms anything again (seen with 3.10).
"""
_REFUSAL = RefusalErrors(
    # The server closes the channel like this for a message that is too large.
    of_message=(ChannelPreconditionFailed,),
    # No queue takes it, or the queue is full.
    of_topic=(ChannelAccessRefused, DeliveryError),
)
_QUEUE_REFUSAL = RefusalErrors(of_topic=(ChannelAccessRefused, ChannelPreconditionFailed))
_ERRORS = (AMQPError, ChannelInvalidStateError, OSError)


class RabbitPublisher:
    """Publishes to RabbitMQ. `?queues=off` declares no queues: then bind your own before the first event."""

    name = "rabbitmq"

    def __init__(self, address: str, *, call_s: float = CALL_S, settle_s: float = SETTLE_S) -> None:
        self._call_s = call_s
        self._settle_s = settle_s
        read = read_address(address, SETTING, "queues")
        self._address = read.url
        self._makes_queues = read.is_on("queues", default=True)
        self._connection: AbstractConnection | None = None
        self._exchange: AbstractExchange | None = None
        self._bound: set[str] = set()

    async def begin(self, term: RelayTerm) -> None:  # noqa: ARG002 - it has no means to refuse an earlier one
        await self.close()
        async with asking(self.name, *_ERRORS, call_s=self._call_s):
            self._connection = await aio_pika.connect(self._address, timeout=self._call_s)
            channel = await self._connection.channel(publisher_confirms=True, on_return_raises=True)
            self._exchange = await channel.declare_exchange(
                EXCHANGE, aio_pika.ExchangeType.TOPIC, durable=True
            )

    async def publish(self, messages: Sequence[OutboxMessage], is_trusted: Callable[[], bool]) -> int:
        if self._exchange is None:
            raise BrokerUnreachableError("rabbitmq: not connected")
        packed = [pack(message) for message in messages]
        if self._makes_queues:
            await self._bind_all({each.topic for each in packed} - self._bound)
        return await send_in_order(packed, self._send, is_trusted)

    async def _send(self, packed: BrokerMessage) -> None:
        assert self._exchange is not None
        message = aio_pika.Message(
            packed.body,
            headers={name: value for name, value in packed.headers.items() if name != "content-type"},
            content_type=CONTENT_TYPE,
            message_id=packed.id,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        async with asking(self.name, *_ERRORS, call_s=self._call_s, refusal=_REFUSAL, topic=packed.topic):
            await self._exchange.publish(message, packed.topic, mandatory=True)

    async def _bind_all(self, topics: set[str]) -> None:
        has_made = False
        for topic in topics:
            assert self._connection is not None
            async with asking(self.name, *_ERRORS, call_s=self._call_s, refusal=_QUEUE_REFUSAL, topic=topic):
                has_made |= await self._bind(self._connection, topic)
        if has_made:
            await asyncio.sleep(self._settle_s)
        self._bound |= topics

    async def _bind(self, connection: AbstractConnection, topic: str) -> bool:
        """Bind a topic's queue; return whether a quorum queue was created. A refusal closes the channel, so
        each request has its own."""
        try:
            async with connection.channel() as channel:
                queue = await channel.declare_queue(QUEUE + topic, passive=True)
                await queue.bind(EXCHANGE, topic)
            return False
        except ChannelNotFoundEntity:
            return await self._make(connection, topic)

    async def _make(self, connection: AbstractConnection, topic: str) -> bool:
        try:
            async with connection.channel() as channel:
                quorum: dict[str, Any] = {"x-queue-type": "quorum"}
                queue = await channel.declare_queue(QUEUE + topic, durable=True, arguments=quorum)
                await queue.bind(EXCHANGE, topic)
            return True
        except ChannelPreconditionFailed:  # the server has no quorum queues
            async with connection.channel() as channel:
                queue = await channel.declare_queue(QUEUE + topic, durable=True)
                await queue.bind(EXCHANGE, topic)
            return False

    async def close(self) -> None:
        connection, self._connection, self._exchange = self._connection, None, None
        self._bound.clear()
        if connection is not None and not connection.is_closed:
            with suppress(BrokerUnreachableError):
                async with asking(self.name, *_ERRORS, call_s=self._call_s):
                    await connection.close()
