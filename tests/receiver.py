"""A receiver of notifications on a real socket. It checks signatures, and tests set its answers."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

KEY = b"0123456789abcdef01234567"
SECRET = "whsec_" + base64.b64encode(KEY).decode()


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def is_signed(self) -> bool:
        """Whether the signature is valid, checked as by a receiver that only knows the standard."""
        signed = f"{self.message_id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        wanted = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        is_recent = abs(time.time() - int(self.headers["webhook-timestamp"])) < 300
        return is_recent and f"v1,{wanted}" in self.headers["webhook-signature"].split(" ")


@dataclass
class Receiver:
    port: int = 0
    received: list[Received] = field(default_factory=list)
    answers: dict[str, list[int]] = field(default_factory=dict)
    """Statuses of the first answers, by path. All further answers have status 200."""
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    """The receiver answers only while this is set. It is set at the start."""

    def __post_init__(self) -> None:
        self.may_answer.set()

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def at(self, path: str) -> list[Received]:
        return [each for each in self.received if each.path == path]

    def types(self, path: str) -> list[str]:
        return [each.document["type"] for each in self.at(path)]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
                headers = {
                    name.lower(): value for name, _, value in (each.partition(": ") for each in head[1:])
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                path = head[0].split(" ")[1]
                self.received.append(Received(path, headers, body, time.monotonic()))
                await self.may_answer.wait()
                waiting = self.answers.get(path)
                status = waiting.pop(0) if waiting else 200
                writer.write(f"HTTP/1.1 {status} Said\r\nContent-Length: 2\r\n\r\nok".encode())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(receiver.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
