"""Makes a leader write after it was deposed, a fault that random timing almost never causes.

Its heartbeats are held, everything else passes. It still trusts its lease for a while. A transaction that it
begins then is held at BEGIN until another scheduler leads, and continues with its first statement.
"""

from collections.abc import Awaitable, Callable

from tests.chaos.proxy import Proxy
from tests.engine import until

HEARTBEAT = "UPDATE scheduler_lock_t"
FIRING = "INSERT INTO execution_t"
WITHIN_S = 60.0
SILENT_PART = 0.4
"""Share of the TTL without a heartbeat before a transaction is held.

So the transaction is far from its own timeout when another scheduler leads.
"""


async def write_stale(
    proxy: Proxy,
    ttl_s: float,
    silent_s: Callable[[], Awaitable[float]],
    is_taken: Callable[[], Awaitable[bool]],
) -> None:
    """Make the leader behind `proxy` write after another has taken over.

    `silent_s` returns the age of its heartbeat in seconds, `is_taken` whether another leads.
    """

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
