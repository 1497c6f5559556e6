"""A TCP proxy before PostgreSQL that fails on demand. Each process of a cluster gets one of its own.

What is held is not lost but late, as it is when a network comes back: a COMMIT may arrive long after its
client has given up. A reply to COMMIT that is lost is really lost: the connection is reset in its place, and
only the database knows the outcome.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from urllib.parse import urlsplit

from tests.chaos.wire import NO, Conversation, Frame, Frames, asks_for_encryption, completes

CHUNK = 65536
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds: closing sends a reset and drops what was not sent."""


class Way(StrEnum):
    REQUESTS = "requests"
    """From the client to the server."""
    REPLIES = "replies"


class Catch:
    """Waits for one message of the server, on a connection that the condition is true of."""

    def __init__(self, command: str, is_meant: Callable[[Conversation], bool], *, is_kept: bool) -> None:
        self.command = command
        self.is_meant = is_meant
        self.is_kept = is_kept
        """It is passed on once released; else the connection is reset in its place."""
        self.caught = asyncio.Event()
        self.released = asyncio.Event()

    def catches(self, frame: Frame, conversation: Conversation) -> bool:
        if self.caught.is_set() or not completes(frame, self.command) or not self.is_meant(conversation):
            return False
        self.caught.set()
        return True


class Proxy:
    """Listens on a port of its own; passes everything until it is told otherwise."""

    def __init__(self, url: str) -> None:
        """`url` is the database's."""
        self._url = urlsplit(url)
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.delay_s = 0.0
        self.lost_commits = 0
        """Replies that never arrived although the transaction has committed."""
        self._catches: list[Catch] = []
        self._gates = {way: asyncio.Event() for way in Way}
        self._held_words: str | None = None
        self._words_pass = asyncio.Event()

    @property
    def url(self) -> str:
        """URL of the database through the proxy."""
        return self._url._replace(netloc=f"{self._url.username}@127.0.0.1:{self.port}").geturl()

    async def start(self) -> None:
        self.heal()
        await self.accept()

    async def accept(self) -> None:
        """Take connections, also after they were refused."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self.heal()
        await self.refuse()

    # --- faults -----------------------------------------------------------------------------------

    def heal(self) -> None:
        """Pass everything again, first of all what was held."""
        self.delay_s = 0.0
        for gate in self._gates.values():
            gate.set()
        self._held_words = None
        self._words_pass.set()
        for catch in self._catches:
            catch.released.set()
        self._catches = []

    def cut(self) -> None:
        """Reset every connection; new ones are taken."""
        for link in list(self._links):
            link.reset()

    async def refuse(self) -> None:
        """Reset every connection, and take no new ones until `accept`."""
        if self._server is not None:
            server, self._server = self._server, None
            server.close()
            self.cut()
            await server.wait_closed()

    def delay(self, seconds: float) -> None:
        """Let everything arrive so much later, either way."""
        self.delay_s = seconds

    def hold(self, *ways: Way) -> None:
        """Let nothing arrive this way until it is healed."""
        for way in ways:
            self._gates[way].clear()

    def hold_those(self, words: str) -> None:
        """Hold the requests of connections that have used these words, until it is healed."""
        self._held_words = words
        self._words_pass.clear()

    def lose_commit(self, of: str) -> Catch:
        """Lose the reply to the next COMMIT of a transaction in which a statement has these words."""
        return self._watch(Catch("COMMIT", lambda said: said.has_written(of), is_kept=False))

    def hold_commit(self, of: str) -> Catch:
        """Hold the reply to such a COMMIT until it is released."""
        return self._watch(Catch("COMMIT", lambda said: said.has_written(of), is_kept=True))

    def hold_begin(self, of: str) -> Catch:
        """Hold the reply to the next BEGIN on a connection that has used these words, until it is released.

        A client stopped there goes on with its first statement when it wakes, whatever has happened since.
        """
        return self._watch(Catch("BEGIN", lambda said: said.has_ever_said(of), is_kept=True))

    def _watch(self, catch: Catch) -> Catch:
        self._catches.append(catch)
        return catch

    # --- passing ----------------------------------------------------------------------------------

    async def passes(self, way: Way) -> None:
        """Wait until what came may go on."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        await self._gates[way].wait()

    async def lets_go(self, conversation: Conversation) -> None:
        """Wait until what the client said may go on."""
        if self._held_words is not None and conversation.has_ever_said(self._held_words):
            await self._words_pass.wait()

    def caught_by(self, frame: Frame, conversation: Conversation) -> list[Catch]:
        """Which faults have waited for this reply of the server."""
        caught = [each for each in self._catches if each.catches(frame, conversation)]
        self.lost_commits += sum(not each.is_kept for each in caught)
        return caught

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await asyncio.open_connection(self._url.hostname, self._url.port)
        except OSError:
            _reset(writer)
            return
        link = _Link(self, (reader, writer), server)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Link:
    """One connection of a client, and the one to the server that stands for it."""

    def __init__(self, proxy: Proxy, client: Streams, server: Streams) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        self._conversation = Conversation()

    async def run(self) -> None:
        ways = [asyncio.create_task(each) for each in (self._requests(), self._replies())]
        try:
            with suppress(OSError):
                await asyncio.gather(*ways)
        finally:
            for each in ways:
                each.cancel()
            for _, writer in (self._client, self._server):
                writer.close()

    def reset(self) -> None:
        for _, writer in (self._client, self._server):
            _reset(writer)

    async def _requests(self) -> None:
        frames = Frames(is_client=True)
        while data := await self._client[0].read(CHUNK):
            await self._proxy.passes(Way.REQUESTS)
            if self._server[1].is_closing():
                return
            for frame in frames.feed(data):
                if asks_for_encryption(frame):
                    self._client[1].write(NO)
                    continue
                self._conversation.heard(frame)
                await self._proxy.lets_go(self._conversation)
                self._server[1].write(frame.raw)
            await self._server[1].drain()
        self._server[1].close()

    async def _replies(self) -> None:
        frames = Frames(is_client=False)
        while data := await self._server[0].read(CHUNK):
            await self._proxy.passes(Way.REPLIES)
            if self._client[1].is_closing():
                return
            for frame in frames.feed(data):
                for catch in self._proxy.caught_by(frame, self._conversation):
                    if not catch.is_kept:
                        self.reset()
                        return
                    await catch.released.wait()
                self._client[1].write(frame.raw)
            await self._client[1].drain()
        self._client[1].close()


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
