"""Sends messages of one aggregate one by one, and those of different aggregates in parallel."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from foliot.brokers.broker_calls import reaching
from foliot.model.broker import shown
from foliot.outbox.message_format import BrokerMessage
from foliot.outbox.publisher import BrokerRefusedError

CALL_S = 10.0
"""Maximum seconds for a broker's answer. Independent of the lease's TTL: heartbeats don't wait for it."""
GRACE_S = 1.0
"""Seconds to wait for other confirmations after one has failed. Unconfirmed messages are sent again."""

Send = Callable[[BrokerMessage], Awaitable[None]]


class RefusalErrors(NamedTuple):
    """The exceptions by which a client library reports that the broker refuses something."""

    of_message: tuple[type[BaseException], ...] = ()
    of_topic: tuple[type[BaseException], ...] = ()


NOTHING = RefusalErrors()


@asynccontextmanager
async def asking(
    broker: str,
    *errors: type[BaseException],
    call_s: float = CALL_S,
    refusal: RefusalErrors = NOTHING,
    topic: str | None = None,
) -> AsyncIterator[None]:
    """Do what `reaching` does; raise BrokerRefusedError for a refusal. `topic`: what the call is about."""
    async with reaching(broker, errors, within_s=call_s):
        try:
            yield
        except (*refusal.of_message, *refusal.of_topic) as error:
            is_topic = not isinstance(error, refusal.of_message)
            reason = f"{broker}: {shown(str(error)) or type(error).__name__}"
            raise BrokerRefusedError(reason, is_topic=is_topic, topic=topic if is_topic else None) from error


async def send_in_order(messages: Sequence[BrokerMessage], send: Send, is_trusted: Callable[[], bool]) -> int:
    """Send messages; return how many, from the first on, are confirmed. If none is, raise the first error.

    `send` returns when the broker has confirmed. Only then the next message of the same aggregate is sent. So
    a message never arrives for the first time before one that precedes it in its aggregate, even if messages
    are lost or refused, or a replaced relay still has one in flight.
    """
    chains: dict[str, list[int]] = {}
    for position, message in enumerate(messages):
        chains.setdefault(message.key, []).append(position)
    confirmed = bytearray(len(messages))
    errors: list[Exception] = []
    has_failed = asyncio.Event()

    async def send_chain(positions: Sequence[int]) -> None:
        for position in positions:
            if errors or not is_trusted():
                return
            try:
                await send(messages[position])
            except Exception as error:
                errors.append(error)
                has_failed.set()
                return
            confirmed[position] = 1

    sending = asyncio.gather(*(send_chain(positions) for positions in chains.values()))
    failing = asyncio.create_task(has_failed.wait())
    try:
        either: list[asyncio.Future[Any]] = [sending, failing]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({sending}, timeout=GRACE_S)
    finally:
        failing.cancel()
        sending.cancel()
        await asyncio.gather(sending, failing, return_exceptions=True)
    first_missing = confirmed.find(0)
    count = len(messages) if first_missing < 0 else first_missing
    if not count and errors:
        # Prefer a refusal: other errors may only follow from the connection that it broke.
        raise next((each for each in errors if isinstance(each, BrokerRefusedError)), errors[0])
    return count
