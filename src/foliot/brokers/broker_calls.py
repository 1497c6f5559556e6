"""A timeout and one error type for every call to a broker, independent of the client library."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager
from urllib.parse import unquote, urlsplit

from foliot.model.broker import shown
from foliot.model.errors import BrokerUnreachableError

CALL_S = 5.0
"""Maximum seconds that a broker may take to answer."""


@asynccontextmanager
async def reaching(
    broker: str, failures: tuple[type[BaseException], ...], *, within_s: float = CALL_S
) -> AsyncIterator[asyncio.Timeout]:
    """Raise BrokerUnreachableError instead of these failures, and after `within_s` seconds.

    `broker` is its name or its address. Passwords are removed from the message.
    """
    known: tuple[type[BaseException], ...] = (*failures, OSError)
    try:
        async with asyncio.timeout(within_s) as deadline:
            yield deadline
    except BrokerUnreachableError:
        raise
    except TimeoutError:
        raise BrokerUnreachableError(f"{shown(broker)} did not answer within {within_s:g} s") from None
    except known as error:
        reason = _without_password(broker, shown(str(error).partition("\n")[0])) or type(error).__name__
        raise BrokerUnreachableError(f"{shown(broker)} can't be reached: {reason}") from error
    except asyncio.CancelledError:
        # Some clients cancel waiting calls when the connection breaks. Our own task was not cancelled.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise BrokerUnreachableError(f"{shown(broker)}: the connection broke") from None


async def all_of(calls: Iterable[Awaitable[object]]) -> None:
    """Wait for all calls, even if one fails. Then raise the first failure."""
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def _without_password(address: str, text: str) -> str:
    password = urlsplit(address).password
    for secret in filter(None, (password, unquote(password or ""))):
        text = text.replace(secret, "***")
    return text
