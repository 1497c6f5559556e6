"""Transport over NATS JetStream: a stream with `workqueue` retention; a subject and pull consumer per queue.

A message is confirmed when the stream has it on disk. Workers pull as many messages as they have free slots,
and share one consumer per queue. A message that is not acknowledged in time goes to another worker. An
acknowledged message leaves the stream. After a broken connection the next call reconnects.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType, StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import BadRequestError

from foliot.brokers.broker_calls import CALL_S, all_of, reaching
from foliot.model.broker import name_at_broker
from foliot.timing.clock import Clock
from foliot.transport.arrivals import Arrivals
from foliot.transport.broker_names import by_urgency, in_order, read, written
from foliot.transport.transport_protocol import BrokerQueue, ExecutionDelivery, ExecutionMessage

STREAM = "FOLIOT_TICKETS"
SUBJECTS = "foliot.tickets"
SILENCE_S = 0.01
"""Seconds without a message after which a fetch ends: the server does not always report the end."""
FIRST_WORD_S = 1.0
MAX_PENDING = 100_000
"""Maximum unacknowledged messages of one queue."""


class NatsTransport:
    """The transport over NATS JetStream."""

    name = "nats"

    def __init__(self, address: str, clock: Clock, *, abandoned_s: float) -> None:
        self._address = address
        self._clock = clock
        self._abandoned_s = abandoned_s
        self._client: Client | None = None
        self._stream: JetStreamContext | None = None
        self._inbox = ""
        self._consumers: set[BrokerQueue] = set()
        self._pulls: dict[str, BrokerQueue] = {}
        """Open pull requests: queues by reply subject."""
        self._waiting: dict[BrokerQueue, float] = {}
        """By queue: until when the server holds our request for the next message."""
        self._queues: dict[str, BrokerQueue] = {}
        """Queues by subject."""
        self._spoke = asyncio.Event()
        """Set when the server has sent a message."""
        self._number = 0
        self._arrivals = Arrivals(self._rest)
        self._turn = asyncio.Lock()
        self._calls: set[asyncio.Timeout] = set()

    async def publish(self, messages: Sequence[ExecutionMessage]) -> None:
        async with self._reaching():
            client, stream = await self._connected()
            await all_of(
                stream.publish(
                    _subject(each.broker_queue),
                    written(each),
                    timeout=CALL_S,
                    headers={"traceparent": each.traceparent},
                )
                for each in messages
            )
            if not messages:
                await client.flush(timeout=int(CALL_S))

    async def receive(
        self, broker_queues: Sequence[BrokerQueue], *, limit: int, wait_s: float
    ) -> list[ExecutionDelivery]:
        ordered = in_order(broker_queues)
        await self._arrivals.open()
        try:
            async with self._reaching(within_s=CALL_S + wait_s):
                await self._make_consumers(ordered)
                await self._fetch(ordered, limit)
                found = self._arrivals.take(limit)
                if not found:
                    await self._ask_for_next(ordered, wait_s)
                    await self._arrivals.wait(wait_s)
                    if self._arrivals.count:
                        # More messages often follow the first.
                        await self._fetch(ordered, limit)
                    found = self._arrivals.take(limit)
                if not found:
                    client, _ = await self._connected()
                    await client.flush(timeout=int(CALL_S))
        finally:
            self._arrivals.leave()
        return by_urgency(found)

    async def acknowledge(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        async with self._reaching():
            client, _ = await self._connected()
            for each in deliveries:
                await _message_of(each).ack()
            await client.flush(timeout=int(CALL_S))

    async def give_back(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        async with self._reaching():
            client, _ = await self._connected()
            for each in deliveries:
                await _message_of(each).nak()
            await client.flush(timeout=int(CALL_S))

    async def close(self) -> None:
        await self._arrivals.close()
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(NatsError, OSError, TimeoutError):
                async with asyncio.timeout(CALL_S):
                    await client.close()

    # --- connection -------------------------------------------------------------------------------

    @asynccontextmanager
    async def _reaching(self, within_s: float = CALL_S) -> AsyncIterator[None]:
        async with reaching(self._address, (NatsError,), within_s=within_s) as deadline:
            self._calls.add(deadline)
            try:
                yield
            finally:
                self._calls.discard(deadline)

    async def _disconnected(self) -> None:
        """End all calls: the library leaves them waiting for an answer that won't arrive."""
        if self._client is None:
            return  # closed by this process
        for deadline in self._calls:
            if not deadline.expired():
                deadline.reschedule(asyncio.get_running_loop().time())

    async def _connected(self) -> tuple[Client, JetStreamContext]:
        async with self._turn:
            if self._client is not None and self._client.is_connected and self._stream is not None:
                return self._client, self._stream
            await self.close()
            self._consumers, self._pulls, self._waiting = set(), {}, {}
            client = Client()
            await client.connect(
                self._address.split(","),
                name="foliot",
                allow_reconnect=False,
                connect_timeout=int(CALL_S),
                error_cb=_say_nothing,
                disconnected_cb=self._disconnected,
            )
            self._client = client
            stream = client.jetstream(timeout=CALL_S)
            await self._make_stream(stream)
            self._inbox = client.new_inbox()
            await client.subscribe(f"{self._inbox}.*", cb=self._arrived)
            self._stream = stream
            return client, stream

    async def _make_stream(self, stream: JetStreamContext) -> None:
        try:
            await stream.add_stream(
                StreamConfig(
                    name=STREAM,
                    subjects=[f"{SUBJECTS}.>"],
                    retention=RetentionPolicy.WORK_QUEUE,
                    storage=StorageType.FILE,
                )
            )
        except BadRequestError:
            # The stream exists with another configuration, for example replicated.
            await stream.stream_info(STREAM)

    async def _make_consumers(self, broker_queues: Sequence[BrokerQueue]) -> None:
        _, stream = await self._connected()
        for broker_queue in broker_queues:
            if broker_queue not in self._consumers:
                config = ConsumerConfig(
                    durable_name=_consumer(broker_queue),
                    filter_subject=_subject(broker_queue),
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=self._abandoned_s,
                    max_ack_pending=MAX_PENDING,
                )
                await stream.add_consumer(STREAM, config)
                self._queues[_subject(broker_queue)] = broker_queue
                self._consumers.add(broker_queue)

    # --- receiving --------------------------------------------------------------------------------

    async def _fetch(self, broker_queues: Sequence[BrokerQueue], limit: int) -> None:
        """Fetch waiting messages, one queue after another, up to `limit`."""
        for broker_queue in broker_queues:
            wanted = limit - self._arrivals.count
            if wanted < 1:
                return
            before, patience_s = self._arrivals.count, FIRST_WORD_S
            self._spoke.clear()
            place = await self._pull(broker_queue, {"batch": wanted, "no_wait": True})
            while place in self._pulls and self._arrivals.count < before + wanted:
                try:
                    async with asyncio.timeout(patience_s):
                        await self._spoke.wait()
                except TimeoutError:
                    break
                self._spoke.clear()
                if self._arrivals.count > before:
                    patience_s = SILENCE_S
            self._pulls.pop(place, None)

    async def _ask_for_next(self, broker_queues: Sequence[BrokerQueue], wait_s: float) -> None:
        now = self._clock.monotonic()
        for broker_queue in broker_queues:
            if self._waiting.get(broker_queue, now) <= now:
                self._waiting[broker_queue] = now + wait_s
                await self._pull(broker_queue, {"batch": 1, "expires": int(wait_s * 1e9)})

    async def _pull(self, broker_queue: BrokerQueue, request: dict[str, object]) -> str:
        client, _ = await self._connected()
        self._number += 1
        place = f"{self._inbox}.{self._number}"
        self._pulls[place] = broker_queue
        api = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{_consumer(broker_queue)}"
        await client.publish(api, json.dumps(request).encode(), reply=place)
        return place

    async def _arrived(self, message: Msg) -> None:
        """Handle what the server sends: a message, or a notice that a pull request has ended."""
        broker_queue = self._queues.get(message.subject)
        if broker_queue is None:
            asked = self._pulls.pop(message.subject, None)
            if asked is not None:
                self._waiting.pop(asked, None)
        else:
            # This message may have answered the waiting request, so the next receive sends a new one.
            self._waiting.pop(broker_queue, None)
            parsed = read(broker_queue, message.data)
            if parsed is None:
                await message.term()
            else:
                self._arrivals.put(ExecutionDelivery(parsed, message))
        self._spoke.set()

    async def _rest(self) -> None:
        held = self._arrivals.take(MAX_PENDING)
        if held:
            await self.give_back(held)


def _token(text: str) -> str:
    """Encode a name as one token of a subject. It is also part of a consumer's name, which has no dots."""
    return name_at_broker(text).replace(".", "_2e_")


def _subject(broker_queue: BrokerQueue) -> str:
    return f"{SUBJECTS}.{broker_queue.priority}.{_token(broker_queue.queue)}"


def _consumer(broker_queue: BrokerQueue) -> str:
    return f"foliot-{broker_queue.priority}-{_token(broker_queue.queue)}"


def _message_of(delivery: ExecutionDelivery) -> Msg:
    message: Msg = delivery.receipt
    return message


async def _say_nothing(_error: Exception) -> None:
    """Ignore errors here: the next call raises them to its caller."""
