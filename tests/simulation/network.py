"""The simulated network between an instance and the database. Calls wait, fail, or lose their replies.

A call is parked until the simulation lets it pass, so anything can happen between two calls of a step. A call
can go wrong in three ways: it never arrives, it is rolled back, or it is committed and its reply is lost.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.model.errors import DatabaseUnreachableError
from tests.simulation.memory import Memory
from tests.simulation.virtual_loop import living

T = TypeVar("T")


class Fault(StrEnum):
    UNSENT = "unsent"
    """The call never arrived."""
    ROLLED_BACK = "rolled back"
    """The connection broke before COMMIT."""
    UNKNOWN_COMMIT = "unknown commit"
    """Committed, but the reply was lost."""


@dataclass(slots=True)
class Step:
    """A step of one service."""

    name: str
    service: object = None
    writes: int = 0
    """Number of writes sent so far."""


stepping: ContextVar[Step | None] = ContextVar("stepping", default=None)


@dataclass(slots=True, eq=False)
class Call:
    """A call that was sent to the database and has not arrived."""

    sender: "Sender"
    what: str
    passage: asyncio.Future[Fault | None]


@dataclass(slots=True, eq=False)
class Sender:
    """A process, as seen by the network."""

    name: str
    role: str
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    is_dead: bool = False
    is_paused: bool = False


@dataclass(slots=True)
class Network:
    """Holds the calls in flight, and decides which ones fail."""

    choose: random.Random
    tell: Callable[[str], None]
    calls: list[Call] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    parked_share: float = 0.5
    """Share of calls that wait until the simulation lets them pass."""
    fault_share: float = 0.0
    """Share of calls that fail."""

    async def pass_on(self, sender: Sender, what: str) -> Fault | None:
        """Wait until the call may pass. Return its fault. None: it succeeds."""
        if sender.is_dead:
            raise asyncio.CancelledError
        if not sender.is_paused and self.choose.random() >= self.parked_share:
            return self._fault_for(what)
        call = Call(sender, what, asyncio.get_running_loop().create_future())
        self.calls.append(call)
        try:
            return await call.passage
        finally:
            if call in self.calls:
                self.calls.remove(call)

    def let_pass(self, call: Call) -> None:
        self.calls.remove(call)
        call.passage.set_result(self._fault_for(call.what))

    def _fault_for(self, what: str) -> Fault | None:
        if self.choose.random() >= self.fault_share:
            return None
        return self.choose.choice([*Fault]) if what.startswith("write") else Fault.UNSENT


Watch = Callable[[Sender], None]


class SimulatedDatabase(Database):
    """The database as one process reaches it through the network."""

    def __init__(
        self, memory: Memory, network: Network, sender: Sender, on_sent: Watch, on_committed: Watch
    ) -> None:
        super().__init__(memory.dialect, memory.engines, "memory")
        self._raw = memory.raw
        self._reading = memory.reading
        self._network = network
        self._sender = sender
        self._on_sent = on_sent
        self._on_committed = on_committed

    @asynccontextmanager
    async def read(self, pool: Pool) -> AsyncIterator[AsyncConnection]:
        await self._arrive(f"read {pool}")
        async with self._reading as connection:
            yield connection
        # The result may be outdated when the process gets it.
        await self._network.pass_on(self._sender, f"answer {pool}")

    async def write(
        self, pool: Pool, work: Callable[[AsyncConnection], Awaitable[T]], *, is_single: bool = False
    ) -> T:
        self._on_sent(self._sender)
        fault = await self._arrive(f"write {pool}")

        async def broken(connection: AsyncConnection) -> T:
            await work(connection)
            raise ConnectionResetError("the connection broke before COMMIT")

        before = self._raw.total_changes
        try:
            answer = await super().write(
                pool, broken if fault is Fault.ROLLED_BACK else work, is_single=is_single
            )
        finally:
            if fault is not None:
                self._told(fault, pool)
        has_changed = self._raw.total_changes > before
        if has_changed:
            self._on_committed(self._sender)
        if fault is Fault.UNKNOWN_COMMIT:
            self._network.counts["unknown commits"] += has_changed
            raise DatabaseUnreachableError("the connection broke in COMMIT")
        await self._network.pass_on(self._sender, f"committed {pool}")
        return answer

    async def _arrive(self, what: str) -> Fault | None:
        fault = await self._network.pass_on(self._sender, what)
        if fault is Fault.UNSENT:
            self._network.tell(f"{self._sender.name} {self._service()}: {what} never arrives")
            raise DatabaseUnreachableError("the connection broke before anything was sent")
        return fault

    def _told(self, fault: Fault, pool: Pool) -> None:
        self._network.counts[fault] += 1
        self._network.tell(f"{self._sender.name} {self._service()}: write {pool} {fault}")

    def _service(self) -> str:
        step = stepping.get()
        return "" if step is None else step.name


def act_as(sender: Sender, name: str, service: object = None) -> None:
    """Attribute the rest of this task to the sender."""
    living.set(sender)
    stepping.set(Step(name, service))
