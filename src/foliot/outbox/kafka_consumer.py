"""Runs event handlers for events that a relay has published to Kafka.

Kafka's consumer group assigns the partitions. An offset is committed to Kafka after COMMIT in the database.
So a message may be delivered again, after a crash in between or when a partition is reassigned. The id of
every event is written to `consumed_event_t` in the handler's transaction. An event whose id is there already
is skipped. If another consumer is handling it, this one waits. Ids are kept for a week.

Adjacent messages of one transaction are handled together. Kafka spreads a transaction over topics and
partitions, so it may arrive in parts.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.brokers.broker_address import read_address
from foliot.brokers.kafka_settings import access_of
from foliot.model.delivery_events import EventsConsumed
from foliot.model.errors import BrokerUnreachableError
from foliot.model.event import Observer
from foliot.outbox.claims_sql import ConsumerClaim, end_claim
from foliot.outbox.consumer_registration import ConsumerRegistration, give_up_crashed
from foliot.outbox.consumers_sql import Consumers, forget_consumed, mark_consumed
from foliot.outbox.handler_calls import Delivered, HandlerCaller, HandlerFailure, PendingTransaction
from foliot.outbox.handlers import ConsumerSpec
from foliot.outbox.message_format import topic_at_broker
from foliot.outbox.message_parser import ParsedMessage, ReceivedMessage, instant_of_millis, unpack
from foliot.service import Wake
from foliot.timing.clock import Clock

RELAY_OPTIONS = ("transactions", "partitions")
"""Options that are ignored here, so that relay and consumer can use the same address."""
WAIT_S = 1.0
"""Seconds that a step waits for the first message."""
CALL_S = 10.0
NEW_TOPICS_MS = 10_000
"""Milliseconds until a topic is noticed that did not exist when the consumer started."""
MIN_POLL_INTERVAL_MS = 300_000


class _Batch(NamedTuple):
    delivered: Delivered
    waiting: Sequence[PendingTransaction]


class KafkaConsumer:
    """A service that runs one handler as a member of the Kafka consumer group of the same name."""

    def __init__(self, spec: ConsumerSpec, consumers: Consumers, clock: Clock, observer: Observer) -> None:
        assert spec.topics is not None
        self.name = f"consumer {spec.group}"
        self.wake = Wake()
        self._spec = spec
        self._topics = {topic_at_broker(topic): topic for topic in spec.topics}
        self._access = access_of(
            read_address(spec.source, f"the source of group {spec.group}", *RELAY_OPTIONS)
        )
        self._consumers = consumers
        self._clock = clock
        self._observer = observer
        self._presence = ConsumerRegistration(spec, consumers, clock)
        self._delivering = HandlerCaller(spec, consumers.dialect, clock, observer)
        self._consumer: AIOKafkaConsumer | None = None

    async def step(self) -> float | None:
        """Handle the next messages, waiting up to a second for them."""
        await self._presence.keep()
        consumer = await self._connected()
        try:
            found = await consumer.getmany(timeout_ms=int(WAIT_S * 1000), max_records=self._spec.batch)
        except KafkaError as error:
            await self.close()
            raise BrokerUnreachableError(f"kafka: {error}") from error
        for partition, records in found.items():
            try:
                await self._handle(consumer, partition, records)
            except BaseException:
                # Fetch again what was fetched and not handled.
                _go_back(consumer, found)
                raise
        return 0

    async def close(self) -> None:
        await self._presence.close()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaError, TimeoutError):
                async with asyncio.timeout(CALL_S):
                    await consumer.stop()

    async def _connected(self) -> AIOKafkaConsumer:
        if self._consumer is not None:
            return self._consumer
        longest_ms = int(self._spec.timeout_s * (self._spec.max_attempts + 1) * 1000)
        consumer = AIOKafkaConsumer(
            *self._topics,
            **self._access,
            group_id=self._spec.group,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset=self._spec.start,
            metadata_max_age_ms=NEW_TOPICS_MS,
            max_poll_interval_ms=max(MIN_POLL_INTERVAL_MS, longest_ms),
        )
        try:
            async with asyncio.timeout(CALL_S):
                await consumer.start()
        except (KafkaError, TimeoutError, OSError) as error:
            with suppress(Exception):
                await consumer.stop()
            raise BrokerUnreachableError(f"kafka: {error or type(error).__name__}") from error
        self._consumer = consumer
        return consumer

    async def _handle(
        self, consumer: AIOKafkaConsumer, partition: TopicPartition, records: Sequence[ConsumerRecord]
    ) -> None:
        began = self._clock.monotonic()
        claim = await self._consumers.claim_elsewhere(
            self._spec.group,
            f"{partition.topic}/{partition.partition}",
            records[0].offset,
            owner=self._presence.owner,
            reach=records[-1].offset - records[0].offset + 1,
        )
        taken = records[:1] if claim.is_careful else records
        waiting = give_up_crashed(list(self._waiting(taken)), claim, self._spec.max_attempts)
        async with self._presence.handling(claim):
            try:
                batch = await self._consumers.transact(
                    lambda connection: self._deliver(connection, partition.partition, waiting, claim),
                    idle_s=self._delivering.idle_s,
                )
            except Exception as error:
                self._delivering.note_broken(error)
                raise
        self._delivering.forget(batch.waiting)
        end = batch.delivered.end or waiting[-1].end
        # If the partition was reassigned or the broker is away, the events come again and are skipped.
        with suppress(KafkaError, TimeoutError):
            if end <= records[-1].offset:
                consumer.seek(partition, end)
            async with asyncio.timeout(CALL_S):
                await consumer.commit({partition: end})
        self._observer.notify(
            EventsConsumed(
                self._spec.group,
                partition.partition,
                batch.delivered.handled,
                batch.delivered.dead,
                self._clock.monotonic() - began,
            )
        )

    async def _deliver(
        self,
        connection: AsyncConnection,
        partition: int,
        waiting: Sequence[PendingTransaction],
        claim: ConsumerClaim,
    ) -> _Batch:
        dialect, group = self._consumers.dialect, self._spec.group
        ids = [event.id for each in waiting for event in each.events]
        fresh = await mark_consumed(connection, dialect, group, ids)
        todo = list(_fresh_only(waiting, set(fresh)))
        delivered = await self._delivering.deliver(connection, partition, todo)
        if delivered.end is not None:
            left = [
                event.id
                for each in todo
                for event, end in zip(each.events, each.ends, strict=True)
                if end > delivered.end
            ]
            await forget_consumed(connection, dialect, group, left)
        await end_claim(connection, group, claim.place)
        return _Batch(delivered, waiting)

    def _waiting(self, records: Sequence[ConsumerRecord]) -> Iterator[PendingTransaction]:
        read = [(record, unpack(self._arrived(record))) for record in records]
        for _, group in groupby(read, key=lambda each: (each[1].transaction_id, each[1].error)):
            together = list(group)
            unpacked: ParsedMessage = together[0][1]
            yield PendingTransaction(
                unpacked.transaction_id,
                tuple(each.event for _, each in together),
                tuple(record.offset + 1 for record, _ in together),
                None if unpacked.error is None else HandlerFailure(unpacked.error, None),
            )

    def _arrived(self, record: ConsumerRecord) -> ReceivedMessage:
        return ReceivedMessage(
            self._topics[record.topic],
            record.partition,
            record.offset,
            instant_of_millis(record.timestamp),
            {name: value.decode(errors="replace") for name, value in record.headers},
            record.value or b"",
        )


def _fresh_only(waiting: Sequence[PendingTransaction], fresh: set[UUID]) -> Iterator[PendingTransaction]:
    for each in waiting:
        kept = []
        for event, end in zip(each.events, each.ends, strict=True):
            if event.id in fresh:
                fresh.remove(event.id)  # it may come twice in one batch
                kept.append((event, end))
        if kept:
            yield each._replace(
                events=tuple(kept_event for kept_event, _ in kept), ends=tuple(e for _, e in kept)
            )


def _go_back(consumer: AIOKafkaConsumer, found: dict[TopicPartition, list[ConsumerRecord]]) -> None:
    for partition, records in found.items():
        with suppress(KafkaError):  # it was reassigned
            consumer.seek(partition, records[0].offset)
