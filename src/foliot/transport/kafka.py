"""Tickets over Kafka: a topic per lane, one consumer group that all workers belong to.

A ticket is confirmed when all replicas in sync have it (`acks=all`). Offsets are committed by hand, up to the
first ticket that was not acknowledged yet, so a receiver that vanishes leaves nothing unseen; what it had
acknowledged behind a gap comes again, and claims nothing. A partition belongs to one worker at a time: a
worker that is busy for long is taken its partitions away, and the leader publishes again what waits.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

from foliot.timing.clock import Clock
from foliot.transport.address import read_address
from foliot.transport.kafka_access import access_of
from foliot.transport.kafka_progress import OffsetTracker
from foliot.transport.places import GROUP, by_urgency, in_order, place_of, read, written
from foliot.transport.protocol import SETTING, BrokerQueue, BrokerUnreachableError, ReceivedTicket, Ticket
from foliot.transport.quiet import quieten
from foliot.transport.reaching import CALL_S, all_of, reaching

PARTITIONS = 12
"""Of a topic that is made here: so many workers can share a lane."""
MAX_REPLICAS = 3
PROBE_EVERY_S = 2.0
SESSION_S = 6.0
"""A worker that was killed is missed after so long; brokers take no less by default."""
BUSY_S = 30.0
"""A worker that has had no room for so long lets others have its partitions."""
_SETTLED = (0, 29, 36)
"""Made; not ours to make; there already."""
quieten(
    "aiokafka",
    "aiokafka.conn",
    "aiokafka.consumer.fetcher",
    "aiokafka.consumer.group_coordinator",
    "aiokafka.producer.sender",
)


class KafkaTransport:
    """`kafka://[user:password@]host:port[,host:port]`, with `?tls=on` and `?sasl=SCRAM-SHA-512`."""

    name = "kafka"

    def __init__(self, address: str, clock: Clock) -> None:
        self._address = address
        self._access = {**access_of(read_address(address, SETTING)), "client_id": "foliot"}
        self._clock = clock
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._lanes: dict[str, BrokerQueue] = {}
        """By the topics that are subscribed to."""
        self._made: set[str] = set()
        self._progress: dict[TopicPartition, OffsetTracker] = {}
        self._probed_at = float("-inf")
        self._turn = asyncio.Lock()

    async def publish(self, tickets: Sequence[Ticket]) -> None:
        try:
            async with self._reaching():
                await self._publish(tickets)
        except BrokerUnreachableError:
            # Whoever receives is not to find out by itself.
            self._probed_at = float("-inf")
            raise

    async def _publish(self, tickets: Sequence[Ticket]) -> None:
        producer = await self._producing()
        if not tickets:
            await producer.client.fetch_all_metadata()
            return
        await self._make_topics({place_of(ticket.lane) for ticket in tickets})
        sent = [
            await producer.send(
                place_of(each.lane),
                written(each),
                headers=[("traceparent", each.traceparent.encode())],
            )
            for each in tickets
        ]
        await all_of(sent)

    async def receive(
        self, lanes: Sequence[BrokerQueue], *, most: int, wait_s: float
    ) -> list[ReceivedTicket]:
        async with self._reaching(within_s=CALL_S + wait_s):
            consumer = await self._consuming(lanes)
            found = await self._fetch(consumer, lanes, most)
            if not found:
                first = await consumer.getmany(timeout_ms=int(wait_s * 1000), max_records=1)
                found = self._deliveries(first)
                if found and len(found) < most:
                    found += await self._fetch(consumer, lanes, most - len(found))
            if not found:
                await self._probe(consumer)
        return by_urgency(found)

    async def acknowledge(self, deliveries: Sequence[ReceivedTicket]) -> None:
        if self._consumer is None:
            return
        for each in deliveries:
            progress, offset = each.receipt
            progress.done(offset)
        moved = {where: at.position for where, at in self._progress.items() if at.has_moved}
        if not moved:
            return
        async with self._reaching():
            # Partitions that are another's now are its to commit; it sees these tickets again.
            with contextlib.suppress(CommitFailedError, IllegalStateError):
                await self._consumer.commit(moved)
            for where in moved:
                if where in self._progress:
                    self._progress[where].committed(moved[where])

    async def give_back(self, deliveries: Sequence[ReceivedTicket]) -> None:
        """A log takes nothing back: they are written again, at its end."""
        await self.publish([each.ticket for each in deliveries])
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

    async def _consuming(self, lanes: Sequence[BrokerQueue]) -> AIOKafkaConsumer:
        topics = {place_of(lane): lane for lane in lanes}
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
                self._consumer, self._lanes = consumer, {}
            if topics.keys() != self._lanes.keys():
                self._lanes = topics
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
                return  # they may be there already: who uses them will see
            replicas = min(MAX_REPLICAS, max(1, len(cluster["brokers"])))
            new = [NewTopic(topic, PARTITIONS, replicas) for topic in sorted(missing)]
            answer = await admin.create_topics(new)
        finally:
            await admin.close()
        # One that we may not make may be there already: who uses it will see.
        self._made |= {topic for topic, code, *_ in answer.topic_errors if code in _SETTLED}

    async def _probe(self, consumer: AIOKafkaConsumer) -> None:
        """The library tells nobody that it can't reach the broker: it finds nothing, and tries again."""
        now = self._clock.monotonic()
        if now - self._probed_at >= PROBE_EVERY_S:
            await consumer.topics()
            self._probed_at = now

    # --- receiving --------------------------------------------------------------------------------

    async def _fetch(
        self, consumer: AIOKafkaConsumer, lanes: Sequence[BrokerQueue], most: int
    ) -> list[ReceivedTicket]:
        """What is here already, the most urgent lanes first."""
        assigned = consumer.assignment()
        found: list[ReceivedTicket] = []
        for lane in in_order(lanes):
            mine = [each for each in assigned if each.topic == place_of(lane)]
            if mine and len(found) < most:
                got = await consumer.getmany(*mine, timeout_ms=0, max_records=most - len(found))
                found += self._deliveries(got)
        return found

    def _deliveries(self, records: Mapping[TopicPartition, Sequence[Any]]) -> list[ReceivedTicket]:
        found = []
        for where, batch in records.items():
            progress = self._progress.setdefault(where, OffsetTracker())
            for record in batch:
                progress.given(record.offset)
                ticket = read(self._lanes[where.topic], record.value or b"")
                if ticket is None:
                    progress.done(record.offset)
                else:
                    found.append(ReceivedTicket(ticket, (progress, record.offset)))
        return found


class _Forgetting(ConsumerRebalanceListener):  # type: ignore[misc]
    """Partitions change hands: those that come back begin again where the last commit was."""

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
    """Whether anybody could make a topic now, by what the cluster says of itself. aiokafka takes it for
    granted, and stumbles while there is nobody."""
    return cluster["controller_id"] in {broker["node_id"] for broker in cluster["brokers"]}
