"""The metrics of several processes that serve one address, on one page.

A scrape reaches any one of them, and a rate over counters that are now of this process and now of that one
means nothing. So whoever is asked asks the others, and shows all samples with a label `process`: 1, 2 and so
on. Nothing is added up here: queries do that, and they know what to do when one is started again, takes its
predecessor's number and counts from zero. One that does not answer in time is left out, as one that is not
scraped would be.

Each has a socket for it on the loopback, which the first process makes and keeps for whoever comes after. It
answers those who send the token that only these processes know.
"""

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from foliot.probing.page import MAX_REST_S, MetricsPage
from foliot.timing.clock import Clock

HOST = "127.0.0.1"
TOKEN_BYTES = 32
LIMIT_S = 2.0
"""How long the others may take, all at once."""
LABEL = "process"


class Place(NamedTuple):
    """Where one of the processes listens, and all the others do."""

    number: int
    """From 1."""
    listener: socket.socket
    ports: tuple[int, ...]
    token: bytes


def make_places(count: int) -> list[Place]:
    """For so many processes; made before they are, and kept for those that are started again."""
    token = secrets.token_bytes(TOKEN_BYTES)
    listeners = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = tuple(int(listener.getsockname()[1]) for listener in listeners)
    return [Place(number, listener, ports, token) for number, listener in enumerate(listeners, 1)]


class SharedPage(MetricsPage):
    """The page of all processes, for whichever is asked."""

    def __init__(
        self, registry: CollectorRegistry, place: Place, clock: Clock | None = None, limit_s: float = LIMIT_S
    ) -> None:
        self._joined = _Joined(registry, place.number)
        joined = CollectorRegistry(auto_describe=False)
        joined.register(self._joined)
        super().__init__(joined, clock)
        self._own = registry
        self._place = place
        self._limit_s = limit_s
        self._asking = asyncio.Lock()
        self._asks_again_at = 0.0
        self._telling: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Tell the others what is measured here, for as long as the context lasts."""
        async with await asyncio.start_server(self._accept, sock=self._place.listener):
            yield
        for task in self._telling:
            task.cancel()

    async def answer(self, accept: str) -> tuple[bytes, str]:
        async with self._asking:
            if self._clock.monotonic() >= self._asks_again_at:
                self._joined.others = await self._ask_all()
                self._asks_again_at = self._clock.monotonic() + MAX_REST_S
                self.forget()
        return self.render(accept)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of its own: of asyncio's the loop would complain when it is cancelled.
        task = asyncio.create_task(self._tell(reader, writer), name="metrics for the others")
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # Gone, slow, or somebody else.
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(self._limit_s):
                    if secrets.compare_digest(await reader.readexactly(TOKEN_BYTES), self._place.token):
                        writer.write(_to_json(self._own.collect()))
                        await writer.drain()
        finally:
            writer.close()

    async def _ask_all(self) -> dict[int, list[Metric]]:
        numbers = [number for number in range(1, len(self._place.ports) + 1) if number != self._place.number]
        told = await asyncio.gather(*(self._ask(self._place.ports[number - 1]) for number in numbers))
        return {number: families for number, families in zip(numbers, told, strict=True) if families}

    async def _ask(self, port: int) -> list[Metric]:
        try:
            async with asyncio.timeout(self._limit_s):
                reader, writer = await asyncio.open_connection(HOST, port)
                try:
                    writer.write(self._place.token)
                    return _from_json(await reader.read())
                finally:
                    writer.close()
        except (OSError, TimeoutError, ValueError):
            return []


class _Joined(Collector):
    """What is measured here, and what the others said."""

    def __init__(self, registry: CollectorRegistry, number: int) -> None:
        self._registry = registry
        self._number = number
        self.others: dict[int, list[Metric]] = {}

    def collect(self) -> Iterator[Metric]:
        by_process = {self._number: list(self._registry.collect()), **self.others}
        joined: dict[str, Metric] = {}
        for number, families in sorted(by_process.items()):
            for family in families:
                empty = Metric(family.name, family.documentation, family.type, family.unit)
                joined.setdefault(family.name, empty).samples += [
                    sample._replace(labels={**sample.labels, LABEL: str(number)}) for sample in family.samples
                ]
        yield from joined.values()


def _to_json(families: Iterable[Metric]) -> bytes:
    return json.dumps(
        [
            [each.name, each.documentation, each.type, each.unit, [sample[:3] for sample in each.samples]]
            for each in families
        ]
    ).encode()


def _from_json(content: bytes) -> list[Metric]:
    families = []
    for name, documentation, kind, unit, samples in json.loads(content):
        family = Metric(name, documentation, kind, unit)
        for sample in samples:
            family.add_sample(*sample)
        families.append(family)
    return families
