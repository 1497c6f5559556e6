"""Transport over Kafka: one topic per queue, and one consumer group for all workers.

A message is confirmed when all in-sync replicas have it (`acks=all`). Offsets are committed explicitly, up to
the first message that is not acknowledged. So a receiver that disappears loses no message. Messages that it
had acknowledged after that offset are delivered again, and claim nothing. A partition belongs to one worker
at a time. A worker that is busy for long loses its partitions, and the leader publishes again what waits in
them.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

from foliot.brokers.broker_address import read_address
from foliot.brokers.broker_calls import CALL_S, all_of, reaching
from foliot.brokers.kafka_settings import access_of
from foliot.brokers.quiet_logs import quieten
from foliot.model.errors import BrokerUnreachableError
from foliot.timing.clock import Clock
from foliot.transport.broker_names import GROUP, by_urgency, in_order, place_of, read, written
from foliot.transport.kafka_progress import OffsetTracker
from foliot.transport.transport_protocol import SETTING, BrokerQueue, ExecutionDelivery, ExecutionMessage

PARTITIONS = 12
"""Partitions of a topic that is created here: this many workers can share a queue."""
MAX_REPLICAS = 3
PROBE_EVERY_S = 2.0
SESSION_S = 6.0
"""Seconds after which a killed worker is detected. Brokers don't accept less by default."""
BUSY_S = 30.0
"""A worker that had no free slots for this many seconds gives its partitions to others."""
_SETTLED = (0, 29, 36)
"""Error codes for: created; not authorised to create; exists already."""
quieten(
    "aiokafka",
    "aiokafka.conn",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
    "aiokafka.producer.sender",
)


class KafkaTransport:
    """The transport over `kafka://[user:password@]host:port[,host:port]`. Options: `?tls=on`,
    `?sasl=SCRAM-SHA-512`."""

    name = "kafka"

    def __init__(self, address: str, clock: Clock) -> None:
        self._address = address
        self._access = {**access_of(read_address(address, SETTING)), "client_id": "foliot"}
        self._clock = clock
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._queues: dict[str, BrokerQueue] = {}
        """Queues by subscribed topic."""
        self._made: set[str] = set()
        self._progress: dict[TopicPartition, OffsetTracker] = {}
        self._probed_at = float("-inf")
        self._turn = asyncio.Lock()

    async def publish(self, messages: Sequence[ExecutionMessage]) -> None:
        try:
            async with self._reaching():
                await self._publish(messages)
        except BrokerUnreachableError:
            # Make the next receive probe the broker at once.
            self._probed_at = float("-inf")
            raise

    async def _publish(self, messages: Sequence[ExecutionMessage]) -> None:
        producer = await self._producing()
        if not messages:
            await producer.client.fetch_all_metadata()
            return
        await self._make_topics({place_of(message.broker_queue) for message in messages})
        sent = [
            await producer.send(
                place_of(each.broker_queue),
                written(each),
                headers=[("traceparent", each.traceparent.encode())],
            )
            for each in messages
        ]
        await all_of(sent)

    async def receive(
        self, broker_queues: Sequence[BrokerQueue], *, limit: int, wait_s: float
    ) -> list[ExecutionDelivery]:
        async with self._reaching(within_s=CALL_S + wait_s):
            consumer = await self._consuming(broker_queues)
            found = await self._fetch(consumer, broker_queues, limit)
            if not found:
                first = await consumer.getmany(timeout_ms=int(wait_s * 1000), max_records=1)
                found = self._deliveries(first)
                if found and len(found) < limit:
                    found += await self._fetch(consumer, broker_queues, limit - len(found))
            if not found:
                await self._probe(consumer)
        return by_urgency(found)

    async def acknowledge(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        if self._consumer is None:
            return
        for each in deliveries:
            progress, offset = each.receipt
            progress.done(offset)
        moved = {where: at.position for where, at in self._progress.items() if at.has_moved}
        if not moved:
            return
        async with self._reaching():
            # A reassigned partition is committed by its new owner, which receives these messages again.
            with contextlib.suppress(CommitFailedError, IllegalStateError):
                await self._consumer.commit(moved)
            for where in moved:
                if where in self._progress:
                    self._progress[where].committed(moved[where])

    async def give_back(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        """Append the messages to the topic again and acknowledge the old ones: Kafka has no requeue."""
        await self.publish([each.message for each in deliveries])
        await self.acknowledge(deliveries)

    async def close(self) -> None:
        parts = [part for part in (self._consumer, self._producer) if part is not None]
        self._consumer = self._producer = None
        for part in parts:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                async with asyncio.timeout(CALL_S):
                    await part.stop()

    # --- connection -------------------------------------------------------------------------------

    def _reaching(self, within_s: float = CALL_S) -> AbstractAsyncContextManager[object]:
        return reaching(self._address, (KafkaError,), within_s=within_s)

    async def _producing(self) -> AIOKafkaProducer:
        async with self._turn:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    **self._access,
                    acks="all",
                    request_timeout_ms=int(CALL_S * 1000 * 0.8),
                    metadata_max_age_ms=60_000,
                )
                await _started(producer)
                self._producer = producer
            return self._producer

    async def _consuming(self, broker_queues: Sequence[BrokerQueue]) -> AIOKafkaConsumer:
        topics = {place_of(broker_queue): broker_queue for broker_queue in broker_queues}
        await self._make_topics(set(topics))
        async with self._turn:
            if self._consumer is None:
                consumer = AIOKafkaConsumer(
                    **self._access,
                    group_id=GROUP,
                    enable_auto_commit=False,
                    auto_offset_reset="earliest",
                    session_timeout_ms=int(SESSION_S * 1000),
                    heartbeat_interval_ms=int(SESSION_S * 1000 / 5),
                    max_poll_interval_ms=int(BUSY_S * 1000),
                    metadata_max_age_ms=60_000,
                )
                await _started(consumer)
                self._consumer, self._queues = consumer, {}
            if topics.keys() != self._queues.keys():
                self._queues = topics
                self._consumer.subscribe(sorted(topics), listener=_Forgetting(self._progress))
            return self._consumer

    async def _make_topics(self, topics: set[str]) -> None:
        missing = topics - self._made
        if not missing:
            return
        admin = AIOKafkaAdminClient(**self._access, request_timeout_ms=int(CALL_S * 1000))
        try:
            await admin.start()
            cluster = await admin.describe_cluster()
            if not has_controller(cluster):
                return  # they may exist already; otherwise their use will fail
            replicas = min(MAX_REPLICAS, max(1, len(cluster["brokers"])))
            new = [NewTopic(topic, PARTITIONS, replicas) for topic in sorted(missing)]
            answer = await admin.create_topics(new)
        finally:
            await admin.close()
        # A topic that we may not create may exist already. Otherwise its use will fail.
        self._made |= {topic for topic, code, *_ in answer.topic_errors if code in _SETTLED}

    async def _probe(self, consumer: AIOKafkaConsumer) -> None:
        """Raise if the broker can't be reached: the library does not. It returns no messages and retries."""
        now = self._clock.monotonic()
        if now - self._probed_at >= PROBE_EVERY_S:
            await consumer.topics()
            self._probed_at = now

    # --- receiving --------------------------------------------------------------------------------

    async def _fetch(
        self, consumer: AIOKafkaConsumer, broker_queues: Sequence[BrokerQueue], limit: int
    ) -> list[ExecutionDelivery]:
        """Return messages that are already fetched, the most urgent queues first."""
        assigned = consumer.assignment()
        found: list[ExecutionDelivery] = []
        for broker_queue in in_order(broker_queues):
            mine = [each for each in assigned if each.topic == place_of(broker_queue)]
            if mine and len(found) < limit:
                got = await consumer.getmany(*mine, timeout_ms=0, max_records=limit - len(found))
                found += self._deliveries(got)
        return found

    def _deliveries(self, records: Mapping[TopicPartition, Sequence[Any]]) -> list[ExecutionDelivery]:
        found = []
        for where, batch in records.items():
            progress = self._progress.setdefault(where, OffsetTracker())
            for record in batch:
                progress.given(record.offset)
                message = read(self._queues[where.topic], record.value or b"")
                if message is None:
                    progress.done(record.offset)
                else:
                    found.append(ExecutionDelivery(message, (progress, record.offset)))
        return found


class _Forgetting(ConsumerRebalanceListener):  # type: ignore[misc]
    """Forgets the offsets of revoked partitions. If one comes back, it starts at the last commit."""

    def __init__(self, progress: dict[TopicPartition, OffsetTracker]) -> None:
        self._progress = progress

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        for where in revoked:
            self._progress.pop(where, None)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None: ...


async def _started(part: Any) -> None:
    try:
        await part.start()
    except BaseException:
        await part.stop()
        raise


def has_controller(cluster: Mapping[str, Any]) -> bool:
    """Return whether the cluster has a controller, which creates topics. aiokafka assumes that there is one,
    and fails if there is none."""
    return cluster["controller_id"] in {broker["node_id"] for broker in cluster["brokers"]}
