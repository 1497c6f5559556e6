"""Transport over RabbitMQ: a durable queue per queue and priority, a quorum queue where the server has them.

A message is confirmed when the queue has it on disk. Messages are fetched one by one, exactly as many as
there is room for, so that none waits with a worker that is busy; while nothing is there, a consumer with a
prefetch of one waits at each queue, so that the first is pushed at once. A receiver that vanishes closes its
connection, and RabbitMQ puts back what it had.

A quorum queue that was made less than a second before its only node was killed may stay without a leader for
good (RabbitMQ 3.10): whoever asks it waits in vain. Then the broker counts as away, and the database carries
everything, until somebody deletes that queue.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import AMQPError, ChannelClosed, ChannelInvalidStateError

from foliot.brokers.broker_calls import CALL_S, all_of, reaching
from foliot.brokers.quiet_logs import quieten
from foliot.model.errors import BrokerUnreachableError
from foliot.transport.arrivals import Arrivals
from foliot.transport.broker_names import by_urgency, in_order, place_of, read, written
from foliot.transport.transport_protocol import BrokerQueue, ExecutionDelivery, ExecutionMessage

MAX_AT_ONCE = 200
"""Fetched in one call: each takes a round trip."""
HEARTBEAT_S = 10
_FAILURES = (AMQPError, ChannelInvalidStateError, RuntimeError)
"""The library says RuntimeError for connections that are closed while it uses them."""
quieten("aiormq.connection")


class RabbitTransport:
    name = "rabbitmq"

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: AbstractConnection | None = None
        self._is_broken = False
        self._out: AbstractChannel | None = None
        self._in: AbstractChannel | None = None
        self._declared: set[BrokerQueue] = set()
        self._queues: dict[BrokerQueue, AbstractQueue] = {}
        self._consumers: dict[BrokerQueue, str] = {}
        self._arrivals = Arrivals(self._rest)
        self._turn = asyncio.Lock()

    async def publish(self, messages: Sequence[ExecutionMessage]) -> None:
        async with self._connecting():
            out, _ = await self._connected()
            if not messages:
                await self._ask()
            for broker_queue in {message.broker_queue for message in messages} - self._declared:
                await self._declare(broker_queue)
            exchange = out.default_exchange
            try:
                await all_of(
                    exchange.publish(_message(each), place_of(each.broker_queue)) for each in messages
                )
            except AMQPError:
                # Perhaps somebody deleted a queue: they are looked at again.
                self._declared.clear()
                raise

    async def receive(
        self, broker_queues: Sequence[BrokerQueue], *, limit: int, wait_s: float
    ) -> list[ExecutionDelivery]:
        limit = min(limit, MAX_AT_ONCE)
        await self._arrivals.open()
        try:
            async with self._connecting(CALL_S + wait_s):
                queues = await self._open(broker_queues)
                found = self._arrivals.take(limit)
                found += await self._fetch(queues, limit - len(found))
                if not found:
                    await self._consume(queues)
                    await self._arrivals.wait(wait_s)
                    found = self._arrivals.take(limit)
                    if found:
                        found += await self._fetch(queues, limit - len(found))
                    elif any(queue.channel.is_closed for queue in queues.values()):
                        raise ConnectionResetError("the connection was lost")
        finally:
            self._arrivals.leave()
        return by_urgency(found)

    async def acknowledge(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        async with self._reaching():
            for each in deliveries:
                await _message_of(each).ack()

    async def give_back(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        async with self._reaching():
            for each in deliveries:
                await _message_of(each).nack(requeue=True)

    async def close(self) -> None:
        await self._arrivals.close()
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_FAILURES, OSError, TimeoutError):
                async with asyncio.timeout(CALL_S):
                    await connection.close()

    # --- connection -------------------------------------------------------------------------------

    def _reaching(self, within_s: float = CALL_S) -> AbstractAsyncContextManager[object]:
        return reaching(self._address, _FAILURES, within_s=within_s)

    @asynccontextmanager
    async def _connecting(self, within_s: float = CALL_S) -> AsyncIterator[None]:
        """Limit a call in time, and reconnect when it fails. The state of a channel is not to be relied
        on: a channel on which a call has timed out takes no other, and yet counts as open."""
        try:
            async with self._reaching(within_s):
                yield
        except BrokerUnreachableError:
            self._is_broken = True
            raise

    async def _connected(self) -> tuple[AbstractChannel, AbstractChannel]:
        """A channel to publish on and one to receive on; made anew if anything of the old is closed."""
        async with self._turn:
            out, incoming = self._out, self._in
            if out and incoming and not self._is_broken and not out.is_closed and not incoming.is_closed:
                return out, incoming
            await self.close()
            self._is_broken = False
            self._declared, self._queues, self._consumers = set(), {}, {}
            connection = await aio_pika.connect(
                self._address, timeout=CALL_S, heartbeat=HEARTBEAT_S, client_properties={"product": "foliot"}
            )
            self._connection = connection
            self._out = out = await connection.channel(publisher_confirms=True, on_return_raises=True)
            self._in = incoming = await connection.channel(publisher_confirms=False)
            await incoming.set_qos(prefetch_count=1)
            return out, incoming

    async def _ask(self) -> None:
        """A round trip: a connection that is open here may be long gone there."""
        assert self._connection is not None
        channel = await self._connection.channel(publisher_confirms=False)
        await channel.close()

    async def _declare(self, broker_queue: BrokerQueue) -> None:
        """Make its queue: a quorum queue, or what the server has; one that is there stays what it is."""
        connection = self._connection
        assert connection is not None
        for arguments in ({"x-queue-type": "quorum"}, None):
            # A refusal closes the channel that it was asked on.
            channel = await connection.channel(publisher_confirms=False)
            try:
                await channel.declare_queue(place_of(broker_queue), durable=True, arguments=arguments)  # type: ignore[arg-type]
            except ChannelClosed:
                if arguments is None:
                    raise
            else:
                self._declared.add(broker_queue)
                await channel.close()
                return

    # --- receiving --------------------------------------------------------------------------------

    async def _open(self, broker_queues: Sequence[BrokerQueue]) -> dict[BrokerQueue, AbstractQueue]:
        """Return the queues, the most urgent first. Stop consuming from all others."""
        _, incoming = await self._connected()
        for broker_queue in set(broker_queues) - self._declared:
            await self._declare(broker_queue)
        for broker_queue in set(broker_queues) - self._queues.keys():
            self._queues[broker_queue] = await incoming.get_queue(place_of(broker_queue), ensure=False)
        await self._end(self._consumers.keys() - set(broker_queues))
        return {broker_queue: self._queues[broker_queue] for broker_queue in in_order(broker_queues)}

    async def _fetch(self, queues: dict[BrokerQueue, AbstractQueue], limit: int) -> list[ExecutionDelivery]:
        found: list[ExecutionDelivery] = []
        for broker_queue, queue in queues.items():
            while len(found) < limit:
                message = await queue.get(fail=False, timeout=None)
                if message is None:
                    break
                found += await self._delivery(broker_queue, message)
        return found

    async def _consume(self, queues: dict[BrokerQueue, AbstractQueue]) -> None:
        for broker_queue, queue in queues.items():
            if broker_queue not in self._consumers:

                async def arrived(
                    message: AbstractIncomingMessage, broker_queue: BrokerQueue = broker_queue
                ) -> None:
                    for delivery in await self._delivery(broker_queue, message):
                        self._arrivals.put(delivery)

                self._consumers[broker_queue] = await queue.consume(arrived)

    async def _end(self, broker_queues: Iterable[BrokerQueue]) -> None:
        for broker_queue in list(broker_queues):
            await self._queues[broker_queue].cancel(self._consumers.pop(broker_queue))

    async def _delivery(
        self, broker_queue: BrokerQueue, message: AbstractIncomingMessage
    ) -> list[ExecutionDelivery]:
        parsed = read(broker_queue, message.body)
        if parsed is None:
            await message.ack()
            return []
        return [ExecutionDelivery(parsed, message)]

    async def _rest(self) -> None:
        """Nobody receives: let others have what was pushed to us."""
        async with self._connecting():
            await self._end(self._consumers)
            await self.give_back(self._arrivals.take(self._arrivals.count))


def _message(message: ExecutionMessage) -> aio_pika.Message:
    return aio_pika.Message(
        written(message),
        headers={"traceparent": message.traceparent},
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
    )


def _message_of(delivery: ExecutionDelivery) -> AbstractIncomingMessage:
    message: AbstractIncomingMessage = delivery.receipt
    return message
