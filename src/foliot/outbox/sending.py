"""Sending one message after the other of each aggregate, and many aggregates at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from foliot.model.broker import shown
from foliot.outbox.parcel import Parcel
from foliot.outbox.protocol import BrokerRefusedError
from foliot.transport.protocol import BrokerUnreachableError

CALL_S = 10.0
"""How long a broker may take to answer. Heartbeats don't wait for it: it has nothing to do with the TTL."""
GRACE_S = 1.0
"""How long others may still be confirmed when one was not: whatever is then in doubt is sent again."""

Send = Callable[[Parcel], Awaitable[None]]


class RefusalErrors(NamedTuple):
    """How a client says that a broker refuses something."""

    of_message: tuple[type[BaseException], ...] = ()
    of_topic: tuple[type[BaseException], ...] = ()

    def error_of(self, error: BaseException, reason: str, topic: str | None) -> BrokerRefusedError | None:
        if isinstance(error, self.of_message):
            return BrokerRefusedError(reason, is_topic=False)
        return (
            BrokerRefusedError(reason, is_topic=True, topic=topic)
            if isinstance(error, self.of_topic)
            else None
        )


NOTHING = RefusalErrors()


@asynccontextmanager
async def asking(
    broker: str,
    *errors: type[BaseException],
    call_s: float = CALL_S,
    refusal: RefusalErrors = NOTHING,
    topic: str | None = None,
) -> AsyncIterator[None]:
    """A call to the broker: whatever goes wrong with it is BrokerUnreachableError, and it ends in time.

    A refusal is RefusedError. `topic` is what the call is about.
    """
    try:
        async with asyncio.timeout(call_s):
            yield
    except TimeoutError:
        raise BrokerUnreachableError(f"{broker} did not answer within {call_s:g} s") from None
    except errors as error:
        reason = f"{broker}: {shown(str(error)) or type(error).__name__}"
        raise (refusal.error_of(error, reason, topic) or BrokerUnreachableError(reason)) from error
    except asyncio.CancelledError:
        # Some clients cancel what waits for an answer when the connection breaks. Nobody cancelled us.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise BrokerUnreachableError(f"{broker}: the connection broke") from None


async def send_in_order(parcels: Sequence[Parcel], send: Send, is_trusted: Callable[[], bool]) -> int:
    """How many from the first on were sent; raises what was raised first if that is none.

    `send` returns when the broker has confirmed. The next of an aggregate is sent after that, so whatever is
    lost or refused, no message of an aggregate arrives for the first time before one that it follows: not
    even when a relay that was replaced still has one under way.
    """
    chains: dict[str, list[int]] = {}
    for position, parcel in enumerate(parcels):
        chains.setdefault(parcel.key, []).append(position)
    confirmed = bytearray(len(parcels))
    errors: list[Exception] = []
    has_failed = asyncio.Event()

    async def send_chain(positions: Sequence[int]) -> None:
        for position in positions:
            if errors or not is_trusted():
                return
            try:
                await send(parcels[position])
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
    count = len(parcels) if first_missing < 0 else first_missing
    if not count and errors:
        # A refusal says more than the connection that broke by it.
        raise next((each for each in errors if isinstance(each, BrokerRefusedError)), errors[0])
    return count
