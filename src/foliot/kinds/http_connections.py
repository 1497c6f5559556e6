"""HTTP connections that lead only to addresses that the address guard allows.

A name is resolved once, all its addresses are checked, and the connection goes to one of exactly these
addresses. There is no second lookup that could return something else. TLS still verifies the name. Proxies
and Unix sockets are never used, even if the environment configures them.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import httpcore2
import httpx2

from foliot.access.address_guard import AddressGuard
from foliot.blocking_calls import in_thread

CONNECT_TIMEOUT_S = 10.0
KEEP_ALIVE_S = 4.0
"""Common servers close idle connections after 5 s. Less than that, so that requests seldom meet a closing
one."""

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns all addresses of a host."""


class SystemLookup:
    """Resolves names with the system's resolver, with one lookup at a time per name.

    If a name's servers never answer, its lookup holds a thread until the resolver gives up, which is longer
    than an attempt waits. It holds only one thread, and lookups of other names don't wait for it.
    """

    def __init__(self) -> None:
        self._asked: dict[str, asyncio.Future[list[str]]] = {}

    async def __call__(self, host: str, port: int) -> list[str]:
        asked = self._asked.get(host)
        if asked is None:
            asked = in_thread(partial(_addresses_of, host, port), name=f"foliot-lookup {host}")
            self._asked[host] = asked
            asked.add_done_callback(partial(self._forget, host))
        return await asyncio.shield(asked)

    def _forget(self, host: str, asked: asyncio.Future[list[str]]) -> None:
        del self._asked[host]
        if not asked.cancelled():
            asked.exception()  # perhaps nobody waits for it any more


def _addresses_of(host: str, port: int) -> list[str]:
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in answers))


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens only TCP connections that the guard allows. Unix sockets are not supported."""

    def __init__(self, guard: AddressGuard, lookup: Lookup | None = None) -> None:
        self._guard = guard
        self._lookup = lookup or SystemLookup()
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to one of the host's addresses. Raises InternalAddressError if any of them is forbidden."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(timeout or CONNECT_TIMEOUT_S, CONNECT_TIMEOUT_S)
        addresses = self._guard.require(host, await self._resolve(host, port, deadline))
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for tried, address in enumerate(addresses):
            # Divide the remaining time: an address that never answers must not use up the time of the others.
            share_s = (deadline - loop.time()) / (len(addresses) - tried)
            try:
                return await self._network.connect_tcp(
                    str(address), port, max(share_s, 0.0), local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _resolve(self, host: str, port: int, deadline: float) -> Sequence[str]:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._lookup(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} was not resolved in time") from None
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"{host} can't be resolved: {error}") from None


def guarded_pool(
    guard: AddressGuard,
    *,
    connections: int = 100,
    lookup: Lookup | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> httpcore2.AsyncConnectionPool:
    """Return a connection pool. `connections` should be the number of attempts that may run at once, so that
    a slow agent does not delay other requests."""
    # Debug lines contain response headers, in which an agent may echo a secret.
    logging.getLogger("httpcore2").setLevel(logging.INFO)
    return httpcore2.AsyncConnectionPool(
        ssl_context=ssl_context or httpx2.create_ssl_context(trust_env=False),
        max_connections=connections,
        max_keepalive_connections=min(connections, 20),
        keepalive_expiry=KEEP_ALIVE_S,
        network_backend=GuardedBackend(guard, lookup),
    )
