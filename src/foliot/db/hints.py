"""Hints: messages that make another component poll at once. A hint may be lost, so every receiver also polls.

Inside a process a hint is a function call. Between processes on PostgreSQL it is NOTIFY, sent and received on
one dedicated connection. Redis can carry hints instead (`redis_hints.py`). After a lost connection is
replaced, every listener is woken, because hints may have been missed meanwhile.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

import asyncpg
from sqlalchemy.engine import URL

from foliot.db.postgres_url import connect, connect_arguments
from foliot.service import Service, Wake

CHANNEL = "foliot"
HEALTH_CHECK_S = 10.0
IDS_PER_HINT = 150
"""A NOTIFY payload must be shorter than 8,000 bytes; an id takes 37."""


class Hint(StrEnum):
    SCHEDULES = "schedules"
    """These schedules have changed."""
    READY = "ready"
    """Executions became ready to claim."""
    ENDED = "ended"
    """Executions have ended, so held ones may run."""
    LEASE = "lease"
    """A lease was released, or the number of shards changed."""
    INSTANCE = "instance"
    """An instance is asked to drain, or to resume."""
    CANCEL = "cancel"
    """Cancellation of running executions was requested."""
    BACKFILL = "backfill"
    """A backfill was requested."""
    EVENTS = "events"
    """Events were written to the outbox."""
    PENDING_EVENTS = "pending_events"
    """Events wait for an offset."""
    NOTIFICATIONS = "notifications"
    """Notifications are ready to send, or the notification rules have changed."""


Listener = Callable[[tuple[UUID, ...]], None]


class Hints(Protocol):
    def listen(self, hint: Hint, listener: Listener) -> None: ...

    def send(self, hint: Hint, ids: tuple[UUID, ...] = ()) -> None: ...


class SharedHints(Hints, Service, Protocol):
    """Hints that also reach other processes: a service."""

    async def close(self) -> None: ...


class LocalHints:
    """Hints within one process."""

    def __init__(self) -> None:
        self._listeners: dict[Hint, list[Listener]] = {hint: [] for hint in Hint}

    def listen(self, hint: Hint, listener: Listener) -> None:
        self._listeners[hint].append(listener)

    def send(self, hint: Hint, ids: tuple[UUID, ...] = ()) -> None:
        for listener in self._listeners[hint]:
            listener(ids)

    def send_all(self) -> None:
        """Wake all listeners, so that everyone polls."""
        for hint in Hint:
            self.send(hint)


class PostgresHints:
    """Hints to this process and to all others on the same database. A service: run its `step`."""

    name = "hints"

    def __init__(self, url: URL) -> None:
        self.wake = Wake()
        self._url = url
        self._local = LocalHints()
        self._outgoing: dict[Hint, list[UUID]] = {}
        self._connection: asyncpg.Connection | None = None

    def listen(self, hint: Hint, listener: Listener) -> None:
        self._local.listen(hint, listener)

    def send(self, hint: Hint, ids: tuple[UUID, ...] = ()) -> None:
        self._local.send(hint, ids)
        self._outgoing.setdefault(hint, []).extend(ids)
        self.wake.set()

    async def step(self) -> float | None:
        connection = await self._connected()
        outgoing, self._outgoing = self._outgoing, {}
        payloads = [payload for hint, ids in outgoing.items() for payload in payloads_of(hint, ids)]
        if payloads:
            await connection.execute(
                "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload", CHANNEL, payloads
            )
        else:
            await connection.execute("SELECT 1")
        return HEALTH_CHECK_S

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is not None and not self._connection.is_closed():
            return self._connection
        self._connection = await connect(**connect_arguments(self._url, timeout=5), command_timeout=5)
        await self._connection.add_listener(CHANNEL, self._received)
        self._connection.add_termination_listener(lambda _connection: self.wake.set())
        self._local.send_all()
        return self._connection

    def _received(self, connection: Any, pid: int, _channel: str, payload: str) -> None:
        if pid == connection.get_server_pid():
            return
        hint = read_payload(payload)
        if hint is not None:
            self._local.send(*hint)


def read_payload(payload: str) -> tuple[Hint, tuple[UUID, ...]] | None:
    """Parse a payload. None: a newer version sent a hint that this one does not know; polling covers it."""
    name, _, rest = payload.partition(":")
    try:
        return Hint(name), tuple(UUID(hex=each) for each in rest.split(",") if each)
    except ValueError:
        return None


def payloads_of(hint: Hint, ids: list[UUID]) -> list[str]:
    unique = list(dict.fromkeys(ids))
    pages = range(0, len(unique), IDS_PER_HINT)
    return [f"{hint}:{','.join(each.hex for each in unique[at : at + IDS_PER_HINT])}" for at in pages] or [
        f"{hint}:"
    ]
