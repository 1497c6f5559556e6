"""A small server for `/metrics`, `/healthz` and `/readyz`, for processes without the API.

It supports GET and HEAD, and one request per connection. Limits: 8 kB for the head, 64 kB for the rest of the
request, ten seconds per connection, 32 connections at once. Importing it takes 30 ms on a busy machine;
importing the API takes 600 ms.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import NamedTuple

import httptools

from foliot.model.errors import SettingError
from foliot.telemetry.health.probes import Probes, readiness_document

MAX_HEAD_BYTES = 8192
MAX_UNREAD_BYTES = 8 * MAX_HEAD_BYTES
"""Maximum number of bytes read and discarded after the head. Then the connection is aborted."""
MAX_CONNECTIONS = 32
LIMIT_S = 10.0
"""Timeout for request and response together. Longer than the readiness check may take."""

JSON = "application/json"
_HEAD_END = b"\r\n\r\n"


class ProbeResponse(NamedTuple):
    status: HTTPStatus
    content: bytes
    content_type: str = "text/plain; charset=utf-8"


def _refusal(status: HTTPStatus) -> ProbeResponse:
    return ProbeResponse(status, f"{status.value} {status.phrase}\n".encode())


class _Request:
    """Receives the URL and the Accept header from httptools' parser."""

    def __init__(self) -> None:
        self.target = b""
        self.accept = ""

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"accept":
            self.accept = value.decode("latin-1")


class ProbeServer:
    def __init__(self, probes: Probes, *, limit_s: float = LIMIT_S) -> None:
        self._probes = probes
        self._limit_s = limit_s
        self._connections: set[asyncio.Task[None]] = set()
        self._paths: dict[str, Callable[[str], Awaitable[ProbeResponse]]] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/metrics": self._metrics,
        }

    @asynccontextmanager
    async def listening(self, host: str, port: int) -> AsyncIterator[str]:
        """Serve while the context is open; yield the address. Port 0 chooses a free port."""
        try:
            server = await asyncio.start_server(self._accept, host, port, limit=MAX_HEAD_BYTES)
        except OSError as error:
            # Keep the end of "error while attempting to bind on address (…): address already in use".
            reason = (error.strerror or str(error)).rpartition(": ")[2].lower()
            raise SettingError(
                f"can't serve metrics on {host}:{port}: {reason}; choose another address with --metrics-port "
                "(0 is a free port), or FOLIOT_METRICS_HOST and FOLIOT_METRICS_PORT"
            ) from None
        try:
            name, taken = server.sockets[0].getsockname()[:2]
            yield f"http://[{name}]:{taken}" if ":" in name else f"http://{name}:{taken}"
        finally:
            server.close()
            for connection in list(self._connections):
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        # An own task: the event loop would log an error when a task made by asyncio is cancelled.
        task = asyncio.create_task(self._converse(reader, writer), name="probe")
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # The client is too slow or has disconnected.
            with suppress(TimeoutError, OSError, asyncio.IncompleteReadError):
                async with asyncio.timeout(self._limit_s):
                    await self._serve(reader, writer)
        finally:
            # The client has received its response by now.
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method = b""
        try:
            head = await reader.readuntil(_HEAD_END)
        except asyncio.LimitOverrunError:
            answer = _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        else:
            method, answer = await self._answer_to(head)
        fields = [
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(answer.content)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *(["Allow: GET, HEAD"] if answer.status is HTTPStatus.METHOD_NOT_ALLOWED else []),
        ]
        writer.write("\r\n".join(fields).encode() + _HEAD_END)
        if method != b"HEAD":
            writer.write(answer.content)
        await writer.drain()
        with suppress(OSError):
            writer.write_eof()
        # Closing with unread data would reset the connection, and a client that still sends would lose
        # the response.
        unread = MAX_UNREAD_BYTES
        while unread > 0 and (part := await reader.read(MAX_HEAD_BYTES)):
            unread -= len(part)

    async def _answer_to(self, head: bytes) -> tuple[bytes, ProbeResponse]:
        request = _Request()
        parser = httptools.HttpRequestParser(request)
        try:
            # An Upgrade header may be ignored.
            with suppress(httptools.HttpParserUpgrade):
                parser.feed_data(head)
            path = (httptools.parse_url(request.target).path or b"").decode("ascii")
        except httptools.HttpParserError:
            return b"", _refusal(HTTPStatus.BAD_REQUEST)
        method = parser.get_method()
        if path not in self._paths:
            return method, _refusal(HTTPStatus.NOT_FOUND)
        if method not in (b"GET", b"HEAD"):
            return method, _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        return method, await self._paths[path](request.accept)

    # --- what is served ---------------------------------------------------------------------------

    async def _healthz(self, _accept: str) -> ProbeResponse:
        return ProbeResponse(HTTPStatus.OK, json.dumps({"status": "ok"}).encode(), JSON)

    async def _readyz(self, _accept: str) -> ProbeResponse:
        problems = await self._probes.problems()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
        return ProbeResponse(status, json.dumps(readiness_document(problems)).encode(), JSON)

    async def _metrics(self, accept: str) -> ProbeResponse:
        content, content_type = self._probes.page.render(accept)
        return ProbeResponse(HTTPStatus.OK, content, content_type)
