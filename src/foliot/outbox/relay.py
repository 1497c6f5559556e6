"""The relay: reads the outbox from where it stands, publishes, and moves on by what was confirmed.

    standing by ──took the lease──▶ begin the term at the broker ──▶ read ▶ publish ▶ move the offset ─┐
        ▲                                      ▲                      ▲                               │
        │                                      └── anything failed ◀──┴───────────────────────────────┘
        └── lost the lease · the row says that another has it

Who is right in doubt: the row in `relay_t`. The offset moves only under the epoch that is in it. After
anything that failed, the connection is made anew and the offset is read again, so an UPDATE whose answer was
lost does no harm.

Heartbeats are a service of their own: a slow or hung broker does not cost the lease, and a broker that does
not answer in time (`sending.CALL_S`) is begun with anew. A relay that was replaced sends nothing more once it
knows: it asks before every message whether its lease can be trusted. What it had under way may still arrive,
after its successor sent the same; never before what comes before it (`sending.send_in_order`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from foliot.lease.leadership import Leadership
from foliot.model.broker import BrokerKind
from foliot.model.event import Observer, RedisFailed, RelayConfirmed
from foliot.model.lease import Lease
from foliot.outbox.leading import WHOLE, RelayLeases, RelayObserver
from foliot.outbox.protocol import Publisher, Term, TermOverError
from foliot.service import Service, Wake
from foliot.store.hints import Hint, Hints
from foliot.store.relays import RelayReplacedError, Relays
from foliot.timing.clock import ClusterClock
from foliot.transport.protocol import BrokerUnreachableError

BATCH = 500


@dataclass(frozen=True, slots=True)
class RelayOptions:
    ttl_s: float
    heartbeat_s: float
    poll_s: float


class Relay:
    """A service, and with it the one that keeps its lease."""

    name = "relay"

    def __init__(
        self,
        instance_id: str,
        store: Relays,
        publisher: Publisher,
        clock: ClusterClock,
        hints: Hints,
        observer: Observer,
        options: RelayOptions,
    ) -> None:
        self.wake = Wake()
        self._store = store
        self._publisher = publisher
        self._hints = hints
        self._observer = observer
        self._poll_s = options.poll_s
        self.leadership = Leadership(
            WHOLE,
            RelayLeases(store, instance_id, options.ttl_s, observer),
            clock,
            RelayObserver(observer),
            ttl_s=options.ttl_s,
            heartbeat_s=options.heartbeat_s,
        )
        self.leadership.name = "relay-leadership"
        self.leadership.on_elected(lambda _lease: self.wake.set())
        self._begun: Lease | None = None
        """Under which the connection was made, and the offset read."""
        self._next_offset = 0
        self._is_stopping = False
        hints.listen(Hint.EVENTS, lambda _ids: self.wake.set())
        hints.listen(Hint.LEASE, lambda _ids: self.leadership.wake.set())

    @property
    def services(self) -> tuple[Service, ...]:
        return (self.leadership, self)

    async def step(self) -> float | None:
        lease = self.leadership.lease
        if lease is None or self._is_stopping:
            return self._poll_s
        try:
            return await self._ship(lease)
        except RelayReplacedError:
            self._begun = None
            self.leadership.lose("another relay has taken over")
            return self._poll_s
        except BrokerUnreachableError as error:
            self._begun = None
            if self._publisher.name == BrokerKind.REDIS:
                self._observer.notify(RedisFailed("relay", str(error)))
            raise
        except BaseException:
            self._begun = None
            raise

    async def _ship(self, lease: Lease) -> float:
        if self._begun != lease and not await self._begin(lease):
            return self._poll_s
        messages = await self._store.read(self._next_offset, limit=BATCH)
        if not messages:
            return self._poll_s
        count = await self._publisher.publish(messages, self._trusts(lease))
        if not count:
            return self._poll_s
        offset = messages[count - 1].c_offset
        lag = await self._store.advance(lease.instance_id, lease.epoch, offset + 1)
        self._next_offset = offset + 1
        self._observer.notify(RelayConfirmed(count, offset, lag))
        return 0.0 if lag else self._poll_s

    async def _begin(self, lease: Lease) -> bool:
        self._next_offset = await self._store.position(lease.instance_id, lease.epoch)
        outbox = await self._store.outbox_id()
        if not self._trusts(lease)():
            return False
        try:
            await self._publisher.begin(Term(outbox, lease.epoch))
        except TermOverError as error:
            # The row was set back, as by restoring a backup: its epochs go on above what the broker has seen.
            await self._store.release(lease.instance_id, lease.epoch, above=error.seen)
            self.leadership.lose(str(error))
            return False
        self._begun = lease
        return True

    def _trusts(self, lease: Lease) -> Callable[[], bool]:
        return lambda: not self._is_stopping and self.leadership.lease == lease

    def wind_up(self) -> None:
        """Send nothing more; what is under way is waited for by the step."""
        self._is_stopping = True
        self.wake.set()

    async def release(self) -> None:
        """Stop being the active relay on purpose; those that stand by are told to take over at once."""
        had_lease = self.leadership.lease is not None
        await self.leadership.release()
        if had_lease:
            self._hints.send(Hint.LEASE)

    async def close(self) -> None:
        await self._publisher.close()
