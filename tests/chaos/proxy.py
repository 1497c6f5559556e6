"""A TCP proxy in front of PostgreSQL that fails on demand. Each process of a cluster has its own.

Held data is not lost but late, as after a network outage: a COMMIT may arrive long after its client has given
up. A lost reply to COMMIT is really lost: the connection is reset instead, and only the database knows the
outcome.
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
"""SO_LINGER of zero seconds: closing sends a reset and drops unsent data."""


class Way(StrEnum):
    REQUESTS = "requests"
    """From the client to the server."""
    REPLIES = "replies"


class Catch:
    """Waits for one reply of the server, on a connection that meets the condition."""

    def __init__(self, command: str, is_meant: Callable[[Conversation], bool], *, is_kept: bool) -> None:
        self.command = command
        self.is_meant = is_meant
        self.is_kept = is_kept
        """True: pass the reply on after release. False: reset the connection instead."""
        self.caught = asyncio.Event()
        self.released = asyncio.Event()

    def catches(self, frame: Frame, conversation: Conversation) -> bool:
        if self.caught.is_set() or not completes(frame, self.command) or not self.is_meant(conversation):
            return False
        self.caught.set()
        return True


class Proxy:
    """Listens on its own port, and passes all data on while no fault is set."""

    def __init__(self, url: str) -> None:
        """`url`: URL of the database."""
        self._url = urlsplit(url)
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.delay_s = 0.0
        self.lost_commits = 0
        """Number of replies to COMMIT that were dropped after the transaction had committed."""
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
        """Accept connections, for the first time or again after `refuse`."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self.heal()
        await self.refuse()

    # --- faults -----------------------------------------------------------------------------------

    def heal(self) -> None:
        """End all faults, and pass held data on."""
        self.delay_s = 0.0
        for gate in self._gates.values():
            gate.set()
        self._held_words = None
        self._words_pass.set()
        for catch in self._catches:
            catch.released.set()
        self._catches = []

    def cut(self) -> None:
        """Reset every connection. New ones are accepted."""
        for link in list(self._links):
            link.reset()

    async def refuse(self) -> None:
        """Reset every connection. Accept no new ones until `accept`."""
        if self._server is not None:
            server, self._server = self._server, None
            server.close()
            self.cut()
            await server.wait_closed()

    def delay(self, seconds: float) -> None:
        """Delay all data by `seconds`, in both directions."""
        self.delay_s = seconds

    def hold(self, *ways: Way) -> None:
        """Hold all data in these directions until `heal`."""
        for way in ways:
            self._gates[way].clear()

    def hold_those(self, words: str) -> None:
        """Hold the requests of connections that have ever sent a statement with these words, until `heal`."""
        self._held_words = words
        self._words_pass.clear()

    def lose_commit(self, of: str) -> Catch:
        """Lose the reply to the next COMMIT of a transaction with these words in a statement."""
        return self._watch(Catch("COMMIT", lambda said: said.has_written(of), is_kept=False))

    def hold_commit(self, of: str) -> Catch:
        """Hold the reply to the next COMMIT of a transaction with these words, until it is released."""
        return self._watch(Catch("COMMIT", lambda said: said.has_written(of), is_kept=True))

    def hold_begin(self, of: str) -> Catch:
        """Hold the reply to the next BEGIN on a connection that has ever sent these words, until released.

        After the release the client sends its first statement, whatever has happened meanwhile.
        """
        return self._watch(Catch("BEGIN", lambda said: said.has_ever_said(of), is_kept=True))

    def _watch(self, catch: Catch) -> Catch:
        self._catches.append(catch)
        return catch

    # --- passing ----------------------------------------------------------------------------------

    async def passes(self, way: Way) -> None:
        """Wait until data in this direction may pass."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        await self._gates[way].wait()

    async def lets_go(self, conversation: Conversation) -> None:
        """Wait until the statements of this client may pass."""
        if self._held_words is not None and conversation.has_ever_said(self._held_words):
            await self._words_pass.wait()

    def caught_by(self, frame: Frame, conversation: Conversation) -> list[Catch]:
        """Return the catches that this reply of the server triggers."""
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
    """A client's connection, paired with a connection to the server."""

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
