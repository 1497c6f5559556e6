"""Tickets over NATS JetStream: one stream with `workqueue` retention, a subject and a pull consumer per lane.

A ticket is confirmed when the stream has it on disk. Workers pull as many tickets as they have free slots,
and share one consumer per lane. A ticket that is not acknowledged in time goes to another worker. An
acknowledged ticket leaves the stream. After a broken connection the next call reconnects.
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
from foliot.transport.transport_protocol import BrokerQueue, ReceivedTicket, Ticket

STREAM = "FOLIOT_TICKETS"
SUBJECTS = "foliot.tickets"
SILENCE_S = 0.01
"""Seconds without a message after which a fetch ends: the server does not always report the end."""
FIRST_WORD_S = 1.0
MAX_PENDING = 100_000
"""Maximum unacknowledged tickets of one lane."""


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
        """Open pull requests: lanes by reply subject."""
        self._waiting: dict[BrokerQueue, float] = {}
        """By lane: until when the server holds our request for the next ticket."""
        self._lanes: dict[str, BrokerQueue] = {}
        """Lanes by subject."""
        self._spoke = asyncio.Event()
        """Set when the server has sent a message."""
        self._number = 0
        self._arrivals = Arrivals(self._rest)
        self._turn = asyncio.Lock()
        self._calls: set[asyncio.Timeout] = set()

    async def publish(self, tickets: Sequence[Ticket]) -> None:
        async with self._reaching():
            client, stream = await self._connected()
            await all_of(
                stream.publish(
                    _subject(each.lane),
                    written(each),
                    timeout=CALL_S,
                    headers={"traceparent": each.traceparent},
                )
                for each in tickets
            )
            if not tickets:
                await client.flush(timeout=int(CALL_S))

    async def receive(
        self, lanes: Sequence[BrokerQueue], *, most: int, wait_s: float
    ) -> list[ReceivedTicket]:
        ordered = in_order(lanes)
        await self._arrivals.open()
        try:
            async with self._reaching(within_s=CALL_S + wait_s):
                await self._make_consumers(ordered)
                await self._fetch(ordered, most)
                found = self._arrivals.take(most)
                if not found:
                    await self._ask_for_next(ordered, wait_s)
                    await self._arrivals.wait(wait_s)
                    if self._arrivals.count:
                        # More tickets often follow the first.
                        await self._fetch(ordered, most)
                    found = self._arrivals.take(most)
                if not found:
                    client, _ = await self._connected()
                    await client.flush(timeout=int(CALL_S))
        finally:
            self._arrivals.leave()
        return by_urgency(found)

    async def acknowledge(self, deliveries: Sequence[ReceivedTicket]) -> None:
        async with self._reaching():
            client, _ = await self._connected()
            for each in deliveries:
                await _message_of(each).ack()
            await client.flush(timeout=int(CALL_S))

    async def give_back(self, deliveries: Sequence[ReceivedTicket]) -> None:
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

    async def _make_consumers(self, lanes: Sequence[BrokerQueue]) -> None:
        _, stream = await self._connected()
        for lane in lanes:
            if lane not in self._consumers:
                config = ConsumerConfig(
                    durable_name=_consumer(lane),
                    filter_subject=_subject(lane),
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=self._abandoned_s,
                    max_ack_pending=MAX_PENDING,
                )
                await stream.add_consumer(STREAM, config)
                self._lanes[_subject(lane)] = lane
                self._consumers.add(lane)

    # --- receiving --------------------------------------------------------------------------------

    async def _fetch(self, lanes: Sequence[BrokerQueue], most: int) -> None:
        """Fetch waiting tickets, lane by lane, up to `most`."""
        for lane in lanes:
            wanted = most - self._arrivals.count
            if wanted < 1:
                return
            before, patience_s = self._arrivals.count, FIRST_WORD_S
            self._spoke.clear()
            place = await self._pull(lane, {"batch": wanted, "no_wait": True})
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

    async def _ask_for_next(self, lanes: Sequence[BrokerQueue], wait_s: float) -> None:
        now = self._clock.monotonic()
        for lane in lanes:
            if self._waiting.get(lane, now) <= now:
                self._waiting[lane] = now + wait_s
                await self._pull(lane, {"batch": 1, "expires": int(wait_s * 1e9)})

    async def _pull(self, lane: BrokerQueue, request: dict[str, object]) -> str:
        client, _ = await self._connected()
        self._number += 1
        place = f"{self._inbox}.{self._number}"
        self._pulls[place] = lane
        api = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{_consumer(lane)}"
        await client.publish(api, json.dumps(request).encode(), reply=place)
        return place

    async def _arrived(self, message: Msg) -> None:
        """Handle a message: a ticket, or a notice that a pull request has ended."""
        lane = self._lanes.get(message.subject)
        if lane is None:
            asked = self._pulls.pop(message.subject, None)
            if asked is not None:
                self._waiting.pop(asked, None)
        else:
            # This ticket may have answered the waiting request, so the next receive sends a new one.
            self._waiting.pop(lane, None)
            ticket = read(lane, message.data)
            if ticket is None:
                await message.term()
            else:
                self._arrivals.put(ReceivedTicket(ticket, message))
        self._spoke.set()

    async def _rest(self) -> None:
        held = self._arrivals.take(MAX_PENDING)
        if held:
            await self.give_back(held)


def _token(text: str) -> str:
    """Encode a name as one token of a subject. It is also part of a consumer's name, which has no dots."""
    return name_at_broker(text).replace(".", "_2e_")


def _subject(lane: BrokerQueue) -> str:
    return f"{SUBJECTS}.{lane.priority}.{_token(lane.queue)}"


def _consumer(lane: BrokerQueue) -> str:
    return f"foliot-{lane.priority}-{_token(lane.queue)}"


def _message_of(delivery: ReceivedTicket) -> Msg:
    message: Msg = delivery.receipt
    return message


async def _say_nothing(_error: Exception) -> None:
    """Ignore errors here: the next call raises them to its caller."""
