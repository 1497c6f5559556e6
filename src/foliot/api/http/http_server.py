"""The HTTP server of an instance: uvicorn, without its signal handlers."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from foliot.api.http.http1 import Http1Connection
from foliot.model.errors import FoliotError

CLOSING_LIMIT_S = 2
"""How long running requests may continue when the server stops."""


class CannotListenError(FoliotError):
    """The address can't be listened on."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"can't listen on {host}:{port}: {reason}; choose another with --host and --port, "
            "or FOLIOT_API_HOST and FOLIOT_API_PORT"
        )
        self.reason = reason


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Call it before anything else starts, so that a used port is found early."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family)
        # Without it, the body of a response may wait for the acknowledgement of its headers.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise CannotListenError(host, port, (error.strerror or str(error)).lower()) from None


def url_of(listener: socket.socket) -> str:
    """Return the URL at which this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - read, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers: the instance handles signals and stops the server."""
        yield


@asynccontextmanager
async def serving(
    app: Any,
    listener: socket.socket,
    *,
    trusted_proxies: str = "",
    http: type[asyncio.Protocol] = Http1Connection,
    log_level: str = "warning",
) -> AsyncIterator[None]:
    """Serve HTTP while the context is open.

    The `X-Forwarded-*` headers of `trusted_proxies` (client address, HTTPS) are trusted. Empty: none.
    """
    config = uvicorn.Config(
        app,
        http=http,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level=log_level,
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=trusted_proxies,
        timeout_graceful_shutdown=CLOSING_LIMIT_S,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve([listener]), name="http")
    task.add_done_callback(lambda _task: server.is_up.set())
    try:
        await server.is_up.wait()
        if task.done():
            task.result()
        yield
    finally:
        server.should_exit = True
        await task
