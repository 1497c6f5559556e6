"""Serving HTTP beside an instance: uvicorn, without its hand on the process's signals."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from foliot.api.wire import Wire
from foliot.model.errors import FoliotError

CLOSING_LIMIT_S = 2
"""How long requests under way may take when the server stops."""


class CannotListenError(FoliotError):
    """The address can't be listened on."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; taken before anything else starts, so that a taken port costs nothing."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family)
        # Else the body of an answer may wait for the acknowledgement of its head.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CannotListenError(
            f"can't listen on {host}:{port}: {reason}; choose another with --host and --port, "
            "or FOLIOT_API_HOST and FOLIOT_API_PORT"
        ) from None


def url_of(listener: socket.socket) -> str:
    """Where to reach it from this machine."""
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
        """Leave signals alone: the instance stops on them, and the server with it."""
        yield


@asynccontextmanager
async def serving(app: Any, listener: socket.socket, *, trusted_proxies: str = "") -> AsyncIterator[None]:
    """Serve for as long as the context lasts.

    Of proxies at these addresses it is believed whom they speak for, and whether by HTTPS.
    """
    config = uvicorn.Config(
        app,
        http=Wire,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
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
