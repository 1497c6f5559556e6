"""Makes a leader write after it was deposed: the one fault that timing alone would almost never bring about.

Its heartbeats are held back while all else passes. It trusts its lease for a while yet; a transaction that it
begins then is held at its BEGIN until another leads, and goes on with its first statement.
"""

from collections.abc import Awaitable, Callable

from tests.chaos.proxy import Proxy
from tests.engine import until

HEARTBEAT = "UPDATE scheduler_lock_t"
FIRING = "INSERT INTO execution_t"
WITHIN_S = 60.0
SILENT_PART = 0.4
"""Of the TTL, before a transaction is held: so it is far from its own timeout when another leads."""


async def write_stale(
    proxy: Proxy,
    ttl_s: float,
    silent_s: Callable[[], Awaitable[float]],
    is_taken: Callable[[], Awaitable[bool]],
) -> None:
    """`proxy` is before the leader; `silent_s` is its heartbeat's age, `is_taken` whether another leads."""

    async def is_silent() -> bool:
        return await silent_s() > ttl_s * SILENT_PART

    proxy.hold_those(HEARTBEAT)
    try:
        await until(is_silent, within_s=WITHIN_S)
        catch = proxy.hold_begin(of=FIRING)
        await until(is_taken, within_s=WITHIN_S)
        catch.released.set()
    finally:
        proxy.heal()
