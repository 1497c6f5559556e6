"""Transport over Redis Streams: one stream per queue, and one consumer group for all workers.

A message is confirmed when Redis has answered. Whether it survives a crash of Redis depends on Redis's
settings (`appendonly yes`). A message that was received and not acknowledged stays in the group's pending
entries list. Receivers take over entries that have been there for too long. An acknowledged entry is deleted,
so a stream is only as long as its waiting messages.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from foliot.brokers.broker_calls import CALL_S, reaching
from foliot.timing.clock import Clock
from foliot.transport.broker_names import GROUP, by_urgency, in_order, place_of, read, written
from foliot.transport.transport_protocol import BrokerQueue, ExecutionDelivery, ExecutionMessage

CONSUMER = "worker"
"""One consumer name for all workers: what matters is how long an entry is held, not by whom. No names remain
of workers that are gone."""
FIELD = "id"

_FETCH = """
local left, found = tonumber(ARGV[3]), {}
for number, key in ipairs(KEYS) do
    if left < 1 then break end
    local got = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', left, 'STREAMS', key, '>')
    if got then
        for _, entry in ipairs(got[1][2]) do
            found[#found + 1] = {number, entry[1], entry[2][2]}
            left = left - 1
        end
    end
end
return found
"""
"""Fetches up to a total number of entries from several streams. COUNT applies per stream, so a single
XREADGROUP over all streams could return more entries than the worker has free slots."""


class RedisTransport:
    """The transport over Redis Streams."""

    name = "redis"

    def __init__(self, address: str, clock: Clock, *, abandoned_s: float) -> None:
        self._address = address
        self._clock = clock
        self._abandoned_s = abandoned_s
        self._checked_at = float("-inf")
        self._known: set[BrokerQueue] = set()
        self._redis = Redis.from_url(
            address,
            socket_connect_timeout=CALL_S,
            socket_timeout=CALL_S,
            retry=Retry(NoBackoff(), 0),
            client_name="foliot",
        )
        self._fetch = self._redis.register_script(_FETCH)

    async def publish(self, messages: Sequence[ExecutionMessage]) -> None:
        async with self._reaching(), self._redis.pipeline(transaction=False) as pipeline:
            for message in messages:
                pipeline.xadd(place_of(message.broker_queue), {FIELD: written(message)})
            await (pipeline.execute() if messages else self._redis.ping())

    async def receive(
        self, broker_queues: Sequence[BrokerQueue], *, limit: int, wait_s: float
    ) -> list[ExecutionDelivery]:
        ordered = in_order(broker_queues)
        async with self._reaching(within_s=CALL_S + wait_s):
            try:
                await self._make_groups(ordered)
                found = await self._abandoned(ordered, limit)
                if len(found) < limit:
                    found += await self._fetched(ordered, limit - len(found))
                if not found:
                    found = await self._first(ordered, limit, wait_s)
            except ResponseError:
                # A stream or its group was deleted. The next call creates them again.
                self._known.clear()
                raise
        return by_urgency(found)

    async def acknowledge(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        async with self._reaching(), self._redis.pipeline(transaction=True) as pipeline:
            for each in deliveries:
                _drop(pipeline, each)
            await pipeline.execute()

    async def give_back(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        async with self._reaching(), self._redis.pipeline(transaction=True) as pipeline:
            for each in deliveries:
                pipeline.xadd(place_of(each.message.broker_queue), {FIELD: written(each.message)})
                _drop(pipeline, each)
            await pipeline.execute()

    async def close(self) -> None:
        with contextlib.suppress(RedisError, OSError, TimeoutError):
            async with asyncio.timeout(CALL_S):
                await self._redis.aclose()

    def _reaching(self, within_s: float = CALL_S) -> AbstractAsyncContextManager[object]:
        return reaching(self._address, (RedisError,), within_s=within_s)

    # --- receiving --------------------------------------------------------------------------------

    async def _make_groups(self, broker_queues: Sequence[BrokerQueue]) -> None:
        for broker_queue in set(broker_queues) - self._known:
            try:
                await self._redis.xgroup_create(place_of(broker_queue), GROUP, id="0", mkstream=True)
            except ResponseError as error:
                if "BUSYGROUP" not in str(error):
                    raise
            self._known.add(broker_queue)

    async def _abandoned(self, broker_queues: Sequence[BrokerQueue], limit: int) -> list[ExecutionDelivery]:
        """Take over messages that another receiver has held for too long. Checked only now and then."""
        if self._clock.monotonic() - self._checked_at < self._abandoned_s / 3:
            return []
        found: list[ExecutionDelivery] = []
        for broker_queue in broker_queues:
            if len(found) < limit:
                _, entries, *_ = await self._redis.xautoclaim(
                    place_of(broker_queue),
                    GROUP,
                    CONSUMER,
                    min_idle_time=int(self._abandoned_s * 1000),
                    count=limit - len(found),
                )
                for entry_id, fields in entries:
                    found += await self._delivery(broker_queue, entry_id, fields[FIELD.encode()])
        if len(found) < limit:
            self._checked_at = self._clock.monotonic()
        return found

    async def _fetched(self, broker_queues: Sequence[BrokerQueue], limit: int) -> list[ExecutionDelivery]:
        keys = [place_of(broker_queue) for broker_queue in broker_queues]
        rows: Any = await self._fetch(keys=keys, args=[GROUP, CONSUMER, limit])
        found: list[ExecutionDelivery] = []
        for number, entry_id, body in rows:
            found += await self._delivery(broker_queues[number - 1], entry_id, body)
        return found

    async def _first(
        self, broker_queues: Sequence[BrokerQueue], limit: int, wait_s: float
    ) -> list[ExecutionDelivery]:
        """Wait for a message. At most one per queue arrives."""
        by_place = {place_of(broker_queue).encode(): broker_queue for broker_queue in broker_queues}
        streams: Any = dict.fromkeys(by_place, ">")
        block = max(1, int(wait_s * 1000))
        answer: Any = await self._redis.xreadgroup(GROUP, CONSUMER, streams, count=1, block=block)
        found: list[ExecutionDelivery] = []
        for place, entries in answer or ():
            for entry_id, fields in entries:
                found += await self._delivery(by_place[place], entry_id, fields[FIELD.encode()])
        found = by_urgency(found)
        if len(found) > limit:
            await self.give_back(found[limit:])
        elif found and len(found) < limit:
            found += await self._fetched(broker_queues, limit - len(found))
        return found[:limit]

    async def _delivery(
        self, broker_queue: BrokerQueue, entry_id: bytes, body: bytes
    ) -> list[ExecutionDelivery]:
        message = read(broker_queue, body)
        if message is None:
            place = place_of(broker_queue)
            await self._redis.xack(place, GROUP, entry_id)
            await self._redis.xdel(place, entry_id)
            return []
        return [ExecutionDelivery(message, entry_id)]


def _drop(pipeline: Any, delivery: ExecutionDelivery) -> None:
    place = place_of(delivery.message.broker_queue)
    pipeline.xack(place, GROUP, delivery.receipt)
    pipeline.xdel(place, delivery.receipt)
