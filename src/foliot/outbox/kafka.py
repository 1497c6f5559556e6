"""Publishes events to Kafka: topics keep their names, the key is the aggregate, each batch is a transaction.

The transactional id belongs to the outbox. When a term begins, the broker refuses what an earlier producer
with that id still sends, and aborts its open transaction. A batch is committed as a whole, so readers with
`read_committed` never see a part of it. Without transactions (`?transactions=off`) the producer is
idempotent, and sends the next message of an aggregate when the previous one is confirmed.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    NoError,
    PolicyViolationError,
    RecordListTooLargeError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from foliot.brokers.broker_address import read_address
from foliot.brokers.kafka_settings import access_of
from foliot.model.errors import BrokerUnreachableError
from foliot.outbox.message_format import BrokerMessage, cut, pack
from foliot.outbox.ordered_sending import CALL_S, RefusalErrors, asking, send_in_order
from foliot.outbox.publisher import SETTING, RelayTerm
from foliot.queries.outbox_list import OutboxMessage
from foliot.transport.kafka import has_controller

OPTIONS = ("transactions", "partitions")
"""Address options that only the relay reads."""
TRANSACTIONAL_ID = "foliot-relay-"
MAX_MESSAGES = 500
MAX_BYTES = 4_000_000
"""Maximum bytes per transaction: it is confirmed as a whole or not at all, so it must end in time."""
BEGIN_S = 30.0
"""Longer than other calls: a cluster creates its transaction log when the first producer asks for it."""
PARTITIONS = 3
REPLICAS = 3
# aiokafka raises AssertionError for a producer in a wrong state, even if the broker changed the state.
_ERRORS = (KafkaError, OSError, AssertionError)
_REFUSAL = RefusalErrors(
    of_message=(MessageSizeTooLargeError, RecordListTooLargeError),
    of_topic=(
        ClusterAuthorizationFailedError,
        InvalidTopicError,
        PolicyViolationError,
        TopicAuthorizationFailedError,
    ),
)
# aiokafka logs every try, ten a second while a broker is away. The relay reports each of its own.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


class KafkaPublisher:
    """Publishes to `kafka://[user:password@]host:port[,host:port]`. Options: `?tls=on`,
    `?sasl=SCRAM-SHA-512`, `?transactions=off`, and `?partitions=N` for topics that the broker does not create
    by itself."""

    name = "kafka"

    def __init__(self, address: str, *, call_s: float = CALL_S) -> None:
        self._call_s = call_s
        read = read_address(address, SETTING, *OPTIONS)
        self._is_transactional = read.is_on("transactions", default=True)
        self._partitions = read.number("partitions") or PARTITIONS
        self._access = access_of(read)
        self._producer: AIOKafkaProducer | None = None
        self._topics: set[str] = set()
        self._limit = MAX_MESSAGES

    async def begin(self, term: RelayTerm) -> None:
        await self.close()
        transactional_id = TRANSACTIONAL_ID + term.outbox if self._is_transactional else None
        self._producer = AIOKafkaProducer(
            **self._access,
            acks="all",
            enable_idempotence=True,
            transactional_id=transactional_id,
            request_timeout_ms=int(self._call_s * 1000),
            max_batch_size=131_072,
            max_request_size=MAX_BYTES * 4,
        )
        async with asking(self.name, *_ERRORS, call_s=BEGIN_S):
            await self._producer.start()

    async def publish(self, messages: Sequence[OutboxMessage], is_trusted: Callable[[], bool]) -> int:
        if self._producer is None:
            raise BrokerUnreachableError("kafka: not connected")
        packed = [pack(message) for message in messages]
        for topic in {each.topic for each in packed} - self._topics:
            await self._find(self._producer, topic)
        if not self._is_transactional:
            return await send_in_order(packed, self._send, is_trusted)
        first = next(cut(packed, self._limit, MAX_BYTES), [])
        # A refused message aborts its transaction. Smaller transactions let the messages before it through.
        attempted, self._limit = self._limit, max(1, self._limit // 2)
        count = await self._commit(self._producer, first, is_trusted)
        self._limit = min(MAX_MESSAGES, attempted * 2)
        return count

    async def _commit(
        self, producer: AIOKafkaProducer, messages: Sequence[BrokerMessage], is_trusted: Callable[[], bool]
    ) -> int:
        async with asking(self.name, *_ERRORS, call_s=self._call_s, refusal=_REFUSAL):
            await producer.begin_transaction()
            sent: list[asyncio.Future[Any]] = []
            for message in messages:
                if not is_trusted():
                    break
                sent.append(await producer.send(message.topic, **_record(message)))
                sent[-1].add_done_callback(_retrieve_exception)
            await asyncio.gather(*sent)
            if not is_trusted():
                await producer.abort_transaction()
                return 0
            await producer.commit_transaction()
        return len(sent)

    async def _send(self, message: BrokerMessage) -> None:
        assert self._producer is not None
        async with asking(self.name, *_ERRORS, call_s=self._call_s, refusal=_REFUSAL, topic=message.topic):
            await self._producer.send_and_wait(message.topic, **_record(message))

    async def _find(self, producer: AIOKafkaProducer, topic: str) -> None:
        """Make sure that a topic exists. Asking for it creates it on some brokers; on others, create it
        here."""
        try:
            async with asking(self.name, *_ERRORS, call_s=self._call_s / 2):
                await producer.partitions_for(topic)
        except BrokerUnreachableError:
            await self._make(topic)
            async with asking(self.name, *_ERRORS, call_s=self._call_s, refusal=_REFUSAL, topic=topic):
                await producer.partitions_for(topic)
        self._topics.add(topic)

    async def _make(self, topic: str) -> None:
        async with asking(self.name, *_ERRORS, call_s=self._call_s, refusal=_REFUSAL, topic=topic):
            admin = AIOKafkaAdminClient(**self._access, request_timeout_ms=int(self._call_s * 1000))
            try:
                await admin.start()
                cluster = await admin.describe_cluster()
                if not has_controller(cluster):
                    raise KafkaError("there is no controller that could make topics")
                replicas = min(REPLICAS, max(1, len(cluster["brokers"])))
                answer = await admin.create_topics([NewTopic(topic, self._partitions, replicas)])
                for _topic, code, *_message in answer.topic_errors:
                    if code not in (NoError.errno, TopicAlreadyExistsError.errno):
                        raise for_code(code)(topic)
            finally:
                await admin.close()

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        self._topics.clear()
        if producer is not None:
            await _discard(producer)


async def _discard(producer: AIOKafkaProducer) -> None:
    """Discard a producer without waiting for unconfirmed messages: they are sent again anyway.

    While its broker is away, a producer keeps retrying, and its own `stop` waits for that. So its sender task
    is cancelled first, repeatedly: when cancelled it first ends what it began, which may need another cancel.
    """
    producer._message_accumulator.fail_all(KafkaError("the producer was discarded"))
    sender = producer._sender.sender_task
    while sender is not None and not sender.done():
        sender.cancel()
        await asyncio.wait({sender}, timeout=0.1)
    with suppress(BrokerUnreachableError):
        async with asking("kafka", *_ERRORS):
            await producer.stop()


def _retrieve_exception(sent: asyncio.Future[Any]) -> None:
    """Retrieve the exception, so that asyncio does not log it as never retrieved."""
    if not sent.cancelled():
        sent.exception()


def _record(message: BrokerMessage) -> dict[str, Any]:
    return {
        "key": message.key.encode(),
        "value": message.body,
        "headers": [(name, value.encode()) for name, value in message.headers.items()],
    }
