"""A transport together with its health: whether its broker answers, and since when."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from foliot.brokers.celery_app import CeleryApp
from foliot.model.broker import BrokerKind, kind_of, shown, transports_of
from foliot.model.delivery_events import TransportLost, TransportRecovered
from foliot.model.errors import BrokerUnreachableError
from foliot.model.event import Observer
from foliot.model.instance_events import RedisFailed
from foliot.model.policy import Priority
from foliot.timing.clock import Clock
from foliot.transport.intervals import TransportIntervals
from foliot.transport.open_transport import open_transport
from foliot.transport.transport_protocol import BrokerQueue, ExecutionDelivery, ExecutionMessage, Transport


class MonitoredTransport:
    """A transport that tracks whether its broker answers.

    The broker counts as *away* once it has not answered for `patience_s`. A single answer brings it back.
    """

    def __init__(
        self, transport: Transport, address: str, clock: Clock, observer: Observer, pace: TransportIntervals
    ) -> None:
        self.transport = transport
        self.kind = kind_of(address)
        self.address = shown(address)
        self.pace = pace
        self.is_away = False
        self.since_ts: datetime | None = None
        """When `is_away` last changed. None: not since this process started."""
        self._clock = clock
        self._observer = observer
        self._silent_since: float | None = None

    @property
    def is_failing(self) -> bool:
        """Whether the last publish or receive failed."""
        return self._silent_since is not None

    async def publish(self, messages: Sequence[ExecutionMessage]) -> None:
        try:
            with self._counting():
                await self.transport.publish(messages)
        except BrokerUnreachableError as error:
            self._failed(error)
            raise
        self._answered()

    async def receive(
        self, broker_queues: Sequence[BrokerQueue], *, limit: int, wait_s: float
    ) -> list[ExecutionDelivery]:
        try:
            with self._counting():
                found = await self.transport.receive(broker_queues, limit=limit, wait_s=wait_s)
        except BrokerUnreachableError as error:
            self._failed(error)
            raise
        self._answered()
        return found

    async def acknowledge(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        with self._counting():
            await self.transport.acknowledge(deliveries)

    async def give_back(self, deliveries: Sequence[ExecutionDelivery]) -> None:
        with self._counting():
            await self.transport.give_back(deliveries)

    async def close(self) -> None:
        await self.transport.close()

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Report each failed Redis call as RedisFailed, like other uses of Redis do."""
        try:
            yield
        except BrokerUnreachableError as error:
            if self.kind is BrokerKind.REDIS:
                self._observer.notify(RedisFailed("transport", str(error)))
            raise

    def _failed(self, error: BrokerUnreachableError) -> None:
        now = self._clock.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        if not self.is_away and now - self._silent_since >= self.pace.patience_s:
            self.is_away, self.since_ts = True, self._clock.now()
            self._observer.notify(TransportLost(self.kind, self.address, str(error)))

    def _answered(self) -> None:
        if self._silent_since is None:
            return
        away_s = self._clock.monotonic() - self._silent_since
        self._silent_since = None
        if self.is_away:
            self.is_away, self.since_ts = False, self._clock.now()
            self._observer.notify(TransportRecovered(self.kind, self.address, away_s))


def describe_transports(
    transports: Mapping[Priority, MonitoredTransport],
) -> dict[str, dict[str, str | None]] | None:
    """Describe the brokers by priority, for display. None: the database carries everything."""
    if not transports:
        return None
    return {str(priority): _described(transports.get(priority)) for priority in Priority}


def _described(transport: MonitoredTransport | None) -> dict[str, str | None]:
    if transport is None:
        return {"kind": str(BrokerKind.DATABASE), "address": None, "state": "up", "since_ts": None}
    return {
        "kind": str(transport.kind),
        "address": transport.address,
        "state": "away" if transport.is_away else "up",
        "since_ts": None if transport.since_ts is None else transport.since_ts.isoformat(),
    }


def open_transports(
    setting: str, clock: Clock, observer: Observer, pace: TransportIntervals, celery: CeleryApp | None = None
) -> Mapping[Priority, MonitoredTransport]:
    """Open the brokers of FOLIOT_TRANSPORT, by priority. Equal addresses share one connection."""
    by_address: dict[str, MonitoredTransport] = {}
    found: dict[Priority, MonitoredTransport] = {}
    for priority, address in transports_of(setting).items():
        if address == BrokerKind.DATABASE:
            continue
        if address not in by_address:
            transport = open_transport(address, clock, pace, celery)
            by_address[address] = MonitoredTransport(transport, address, clock, observer, pace)
        found[priority] = by_address[address]
    return found
