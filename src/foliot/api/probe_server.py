"""A server for `/metrics`, `/healthz` and `/readyz`, for processes without the API.

One request per connection. Limits: 8 kB for the head, 64 kB for the whole request, ten seconds per
connection, 32 connections at once. It does not import FastAPI: importing uvicorn and Starlette's responses
takes 60 ms, importing the API takes 600 ms.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from foliot.api.http.http_server import CannotListenError, listen, serving, url_of
from foliot.model.errors import SettingError
from foliot.telemetry.health.probes import Probes, readiness_document

MAX_HEAD_BYTES = 8192
MAX_REQUEST_BYTES = 8 * MAX_HEAD_BYTES
"""Maximum number of bytes read from a connection. Then it is aborted."""
MAX_CONNECTIONS = 32
LIMIT_S = 10.0
"""Timeout for request and response together. Longer than the readiness check may take."""

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Connection": "close"}


def _refusal(status: HTTPStatus) -> Response:
    allow = {"Allow": "GET, HEAD"} if status is HTTPStatus.METHOD_NOT_ALLOWED else None
    return PlainTextResponse(f"{status.value} {status.phrase}\n", status, allow)


class ProbeServer:
    def __init__(self, probes: Probes, *, limit_s: float = LIMIT_S) -> None:
        self._probes = probes
        self._limit_s = limit_s
        self._paths: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
        }

    @asynccontextmanager
    async def listening(self, host: str, port: int) -> AsyncIterator[str]:
        """Serve while the context is open; yield the address. Port 0 chooses a free port."""
        try:
            listener = listen(host, port)
        except CannotListenError as error:
            raise SettingError(
                f"can't serve metrics on {host}:{port}: {error.reason}; choose another address with "
                "--metrics-port (0 is a free port), or FOLIOT_METRICS_HOST and FOLIOT_METRICS_PORT"
            ) from None
        connection = type("ProbeConnection", (_Connection,), {"limit_s": self._limit_s})
        async with serving(self, listener, http=connection, log_level="error"):
            yield url_of(listener)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in self._paths:
            response = _refusal(HTTPStatus.NOT_FOUND)
        elif scope["method"] not in ("GET", "HEAD"):
            response = _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        else:
            response = await self._paths[scope["path"]](Request(scope))
        response.headers.update(_HEADERS)
        await response(scope, receive, send)

    async def _healthz(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _readyz(self, _request: Request) -> Response:
        problems = await self._probes.problems()
        return JSONResponse(readiness_document(problems), 503 if problems else 200)

    async def _metrics(self, request: Request) -> Response:
        content, content_type = self._probes.page.render(request.headers.get("accept", ""))
        return Response(content, headers={"Content-Type": content_type})


class _Connection(HttpToolsProtocol):
    """A connection of uvicorn, with the limits of probes."""

    limit_s = LIMIT_S
    _received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timeout = self.loop.call_later(self.limit_s, transport.abort)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timeout.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self.cycle is None and self._received > MAX_HEAD_BYTES and b"\r\n\r\n" not in data:
            self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n")
            self.transport.close()
        elif self._received > MAX_REQUEST_BYTES:
            self.transport.abort()
        else:
            super().data_received(data)
