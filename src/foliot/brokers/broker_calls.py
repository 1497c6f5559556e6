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
    address: str, failures: tuple[type[BaseException], ...], *, within_s: float = CALL_S
) -> AsyncIterator[asyncio.Timeout]:
    """Raise BrokerUnreachableError instead of these failures, and after `within_s` seconds."""
    known: tuple[type[BaseException], ...] = (*failures, OSError, TimeoutError)
    try:
        async with asyncio.timeout(within_s) as deadline:
            yield deadline
    except BrokerUnreachableError:
        raise
    except known as error:
        reason = _without_password(address, str(error).partition("\n")[0]) or type(error).__name__
        raise BrokerUnreachableError(f"the broker at {shown(address)} can't be reached: {reason}") from error


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
