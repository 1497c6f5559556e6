"""Sends requests when they are due, over open connections, and measures the time to the answer.

It is a minimal HTTP client, because it shares two cores with the server that it measures: a full client takes
a third of a core at 200 requests/s. Each connection is an independent client, as in production, so no request
waits for another.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import Sequence
from itertools import cycle
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

CONNECTIONS = 64


class Wanted(NamedTuple):
    kind: str
    method: str
    path: str
    body: Any = None


class Answered(NamedTuple):
    kind: str
    took_ms: float
    """Milliseconds from the due time to the answer."""
    sent_ms: float
    """Milliseconds by which the request was sent late. This delay is caused by the sender."""
    status: int


class _Connection(asyncio.Protocol):
    """An HTTP connection that sends one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[int] | None = None
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> int:
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._received.clear()
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = bytes(self._received).partition(b"\r\n\r\n")
        if not found or self._answer is None or self._answer.done():
            return
        lines = head.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        if len(body) >= length:
            self._answer.set_result(int(lines[0].split()[1]))

    def connection_lost(self, _error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(0)


async def send_all(urls: Sequence[str], key: str, wanted: Sequence[Wanted], rate: float) -> list[Answered]:
    # uvloop's own clock has a resolution of only 1 ms.
    clock = time.perf_counter
    servers = cycle([urlsplit(url) for url in urls])
    loop = asyncio.get_running_loop()

    async def connect() -> _Connection:
        """Connect to the servers in turn, as a load balancer would."""
        parts = next(servers)
        return (await loop.create_connection(_Connection, parts.hostname or "", parts.port or 80))[1]

    idle = deque([await connect() for _ in range(CONNECTIONS)])

    async def send(each: Wanted, request: bytes, due: float) -> Answered:
        connection = idle.popleft() if idle else await connect()
        if not connection.is_open:
            connection = await connect()
        sent_ms = (clock() - due) * 1000
        status = await connection.ask(request)
        idle.append(connection)
        return Answered(each.kind, (clock() - due) * 1000, sent_ms, status)

    requests = [_bytes_of(each, key) for each in wanted]
    begin = clock() + 0.5
    tasks = []
    for number, (each, request) in enumerate(zip(wanted, requests, strict=True)):
        due = begin + number / rate
        await asyncio.sleep(max(due - clock(), 0))
        tasks.append(asyncio.create_task(send(each, request, due)))
    return await asyncio.gather(*tasks)


def _bytes_of(wanted: Wanted, key: str) -> bytes:
    body = b"" if wanted.body is None else json.dumps(wanted.body).encode()
    head = [f"{wanted.method} {wanted.path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {key}"]
    if wanted.body is not None:
        head += ["Content-Type: application/json"]
    if wanted.method != "GET":
        head += [f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body
