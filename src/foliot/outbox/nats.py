"""The relay to NATS JetStream: one stream over a subject for each topic.

The event's id is the message id, so JetStream drops what is sent again within its window (two minutes).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import nats
from nats.aio.client import Client
from nats.errors import Error, MaxPayloadError
from nats.js import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from foliot.brokers.broker_address import read_address
from foliot.model.errors import BrokerUnreachableError
from foliot.outbox.message_format import BrokerMessage, pack
from foliot.outbox.ordered_sending import CALL_S, RefusalErrors, asking, send_in_order
from foliot.outbox.publisher import SETTING, BrokerRefusedError, RelayTerm
from foliot.queries.outbox_list import OutboxMessage

STREAM = "FOLIOT_EVENTS"
SUBJECT = "foliot.events."
TOO_LARGE = 10054
"""JetStream's code for a message that is larger than the stream takes."""
_REFUSAL = RefusalErrors(of_message=(MaxPayloadError,), of_topic=(NoStreamResponseError,))


class NatsPublisher:
    name = "nats"

    def __init__(self, address: str, *, call_s: float = CALL_S) -> None:
        self._call_s = call_s
        parts = read_address(address, SETTING).parts
        self._servers = [f"{parts.scheme}://{each}" for each in parts.netloc.split(",")]
        self._client: Client | None = None
        self._stream: JetStreamContext | None = None
        self._is_closed = asyncio.Event()

    async def begin(self, term: RelayTerm) -> None:  # noqa: ARG002 - NATS has no means to refuse an earlier one
        await self.close()
        async with asking(self.name, Error, OSError, call_s=self._call_s):
            # Its own reconnecting would send again without our knowing; the relay begins anew.
            self._client = await nats.connect(
                self._servers,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=max(1, int(self._call_s)),
                error_cb=_say_nothing,
                closed_cb=self._closed,
            )
            self._is_closed.clear()
            stream = self._client.jetstream(timeout=self._call_s)
            try:
                await stream.stream_info(STREAM)
            except NotFoundError:
                await stream.add_stream(name=STREAM, subjects=[SUBJECT + ">"])
            self._stream = stream

    async def publish(self, messages: Sequence[OutboxMessage], is_trusted: Callable[[], bool]) -> int:
        if self._stream is None:
            raise BrokerUnreachableError("nats: not connected")
        packed = [pack(message) for message in messages]
        sending = asyncio.create_task(send_in_order(packed, self._send, is_trusted))
        # The client leaves those who wait for an answer waiting when the connection breaks.
        closing = asyncio.create_task(self._is_closed.wait())
        try:
            await asyncio.wait({sending, closing}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise BrokerUnreachableError("nats: the connection broke")
            return sending.result()
        finally:
            for task in (sending, closing):
                task.cancel()
            await asyncio.gather(sending, closing, return_exceptions=True)

    async def _send(self, message: BrokerMessage) -> None:
        assert self._stream is not None
        headers = {**message.headers, "Nats-Msg-Id": message.id}
        async with asking(
            self.name, Error, OSError, call_s=self._call_s, refusal=_REFUSAL, topic=message.topic
        ):
            try:
                await self._stream.publish(
                    subject_of(message.topic), message.body, stream=STREAM, headers=headers
                )
            except APIError as error:
                if error.err_code == TOO_LARGE:
                    raise BrokerRefusedError(f"nats: {error.description}", is_topic=False) from error
                raise

    async def _closed(self) -> None:
        self._is_closed.set()

    async def close(self) -> None:
        client, self._client, self._stream = self._client, None, None
        if client is not None and not client.is_closed:
            with suppress(BrokerUnreachableError):
                async with asking(self.name, Error, OSError, call_s=self._call_s):
                    await client.close()


def subject_of(topic: str) -> str:
    """A subject has no empty parts: dots that would make one are written as their code."""
    return SUBJECT + ".".join(part or "_2e_" for part in topic.split("."))


async def _say_nothing(error: Exception) -> None:
    """Ignore the error: whoever waits for an answer gets an exception."""
