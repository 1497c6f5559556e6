"""The relay: reads the outbox from its offset, publishes the messages, and advances to what was confirmed.

    standing by ──took the lease──▶ begin the term at the broker ──▶ read ▶ publish ▶ move the offset ─┐
        ▲                                      ▲                      ▲                               │
        │                                      └── anything failed ◀──┴───────────────────────────────┘
        └── lost the lease · the row says that another has it

The row in `relay_t` decides who is active. The offset moves only under the epoch in that row. After any
failure the relay reconnects and reads the offset again, so an UPDATE whose answer was lost does no harm.

Heartbeats are a separate service: a slow or hung broker does not cost the lease. If a broker does not answer
in time (`sending.CALL_S`), the relay reconnects. Before every message the relay checks whether its lease is
valid, so it sends nothing more once it knows that it was replaced. Messages that it had already sent may
still arrive after its successor sent them again, but never before messages that precede them
(`sending.send_in_order`).

Refused messages don't block others. If the broker refuses a message, for example because it is too large, the
message becomes a dead letter in the transaction that moves the offset. If the broker refuses a topic, the
topic is parked: the relay continues without it, and retries it later from where it stopped, in order, until
it has caught up. A step sends at most one portion of a parked topic and then continues with the log, so that
topics don't wait for each other.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foliot.db.hints import Hint, Hints
from foliot.model.broker import BrokerKind
from foliot.model.delivery_events import EventsDeadLettered, RelayConfirmed, TopicRefused
from foliot.model.errors import BrokerUnreachableError
from foliot.model.event import Observer
from foliot.model.instance_events import RedisFailed
from foliot.model.lease import Lease
from foliot.outbox.message_format import topic_at_broker
from foliot.outbox.publisher import BrokerRefusedError, Publisher, RelayTerm, TermOverError
from foliot.outbox.relay_election import WHOLE, RelayLeases, RelayObserver
from foliot.outbox.relays_sql import RELAY_GROUP, RelayReplacedError, Relays, message_of
from foliot.queries.outbox_list import OutboxMessage
from foliot.scheduler.leases.leadership import Leadership
from foliot.service import Service, Wake
from foliot.timing.clock import ClusterClock

BATCH = 500
RETRY_REFUSED_S = 30.0
"""Seconds between attempts to send parked topics, regardless of their number: a refusal costs a reconnect."""
MAX_WINDOW = 5_000
"""Offsets searched per step for messages of a parked topic: there is no index by topic."""
MAX_REPLAYS = 10
"""Maximum number of requested dead letters that are sent per step."""


@dataclass(frozen=True, slots=True)
class RelayOptions:
    ttl_s: float
    heartbeat_s: float
    poll_s: float


class Relay:
    """A service that publishes the outbox. `services` also contains the one that renews its lease."""

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
        """The lease under which the relay connected and read the offset. None: it must begin again."""
        self._next_offset = 0
        self._clock = clock
        self._limits: dict[str | None, int] = {}
        """Batch size by parked topic; key None: the log. It is halved after a failure."""
        self._parked: dict[str, int] = {}
        """Topics that the broker refuses, with the offset at which each continues."""
        self._resuming: str | None = None
        """The parked topic that the broker accepts again, until it has caught up."""
        self._tried_at: dict[str, float] = {}
        self._retried_at = -math.inf
        self._replayed_at = -math.inf
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
        for work in (self._replay, self._retry_parked):
            if not await self._is_connected(lease):
                return self._poll_s
            await work(lease)
        if not await self._is_connected(lease):
            return self._poll_s
        pause_s = await self._ship_next(lease)
        return 0.0 if self._is_retry_due() else pause_s

    async def _is_connected(self, lease: Lease) -> bool:
        return self._begun == lease or await self._begin(lease)

    async def _ship_next(self, lease: Lease) -> float:
        messages = await self._store.read(self._next_offset, limit=self._limits.get(None, BATCH))
        if not messages:
            return self._poll_s
        sending = [each for each in messages if each.event_topic not in self._parked]
        count = await self._publish(lease, sending)
        if count is None:
            return 0.0
        if sending and not count:
            return self._poll_s
        # Messages between two that were sent belong to parked topics.
        following = sending[count].c_offset if count < len(sending) else messages[-1].c_offset + 1
        lag = await self._store.advance(lease.instance_id, lease.epoch, following)
        self._next_offset = following
        self._observer.notify(RelayConfirmed(count, following - 1, lag))
        return 0.0 if lag else self._poll_s

    async def _publish(
        self, lease: Lease, messages: Sequence[OutboxMessage], topic: str | None = None
    ) -> int | None:
        """Publish; return how many the broker confirmed. None: it refused something, which is handled here.

        `topic`: the parked topic that these messages belong to. None: they are from the log.
        """
        if not messages:
            return 0
        limit = self._limits.get(topic, BATCH)
        try:
            count = await self._publisher.publish(messages, self._trusts(lease))
        except BrokerRefusedError as error:
            self._begun = None
            refused = error.topic or (
                topic_at_broker(messages[0].event_topic) if len(messages) == 1 else None
            )
            if error.is_topic and refused is not None:
                await self._park(lease, messages, refused, str(error))
                return None
            self._resuming = topic or self._resuming
            if len(messages) == 1:
                await self._bury(lease, messages[0], str(error), topic)
            else:
                self._limits[topic] = 1  # one by one, until the refused message is found
            return None
        except BrokerUnreachableError:
            self._limits[topic] = max(1, limit // 2)
            raise
        self._limits[topic] = min(BATCH, limit * 2)
        return count

    async def _park(self, lease: Lease, messages: Sequence[OutboxMessage], refused: str, reason: str) -> None:
        topics = {each.event_topic for each in messages if topic_at_broker(each.event_topic) == refused}
        for topic in topics:
            first = next(each.c_offset for each in messages if each.event_topic == topic)
            await self._store.park(lease.instance_id, lease.epoch, topic, first, reason)
            self._observer.notify(TopicRefused(topic, reason))
        self._parked = await self._store.parked()
        now = self._clock.monotonic()
        self._tried_at |= dict.fromkeys(topics, now)
        if self._resuming is None:
            self._retried_at = now

    async def _bury(self, lease: Lease, message: OutboxMessage, reason: str, topic: str | None) -> None:
        await self._store.refuse(lease.instance_id, lease.epoch, message, reason, topic=topic)
        if topic is None:
            self._next_offset = message.c_offset + 1
        else:
            self._parked[topic] = message.c_offset + 1
        self._observer.notify(EventsDeadLettered(RELAY_GROUP, message.transaction_id, 1, reason))

    def _is_retry_due(self) -> bool:
        if self._resuming is not None:
            return True
        return bool(self._parked) and self._clock.monotonic() - self._retried_at >= RETRY_REFUSED_S

    async def _retry_parked(self, lease: Lease) -> None:
        """Send one portion of a parked topic, if a retry is due."""
        if not self._is_retry_due():
            return
        self._parked = await self._store.parked()  # one may have been removed
        self._tried_at = {each: at for each, at in self._tried_at.items() if each in self._parked}
        self._limits = {each: at for each, at in self._limits.items() if each is None or each in self._parked}
        topic = self._resuming if self._resuming in self._parked else None
        if topic is None:
            topic = min(self._parked, key=lambda each: self._tried_at.get(each, -math.inf), default=None)
        # Set before the attempt: if it fails, the log and other topics come first.
        self._resuming, self._retried_at = None, self._clock.monotonic()
        if topic is None:
            return
        self._tried_at[topic] = self._retried_at
        following = await self._send_portion(lease, topic, self._parked[topic])
        if following is None:
            return
        if following < self._next_offset:
            await self._store.move_parked(lease.instance_id, lease.epoch, topic, following)
            self._parked[topic] = following
            self._resuming = topic
        else:
            await self._store.move_parked(lease.instance_id, lease.epoch, topic, None)
            self._parked.pop(topic)
            self._retried_at = -math.inf  # the broker may accept others again as well

    async def _send_portion(self, lease: Lease, topic: str, offset: int) -> int | None:
        """Send a portion of a topic; return its next offset. None: refused (handled by `_publish`) or not
        sent."""
        end = min(offset + MAX_WINDOW, self._next_offset)
        limit = self._limits.get(topic, BATCH)
        messages = await self._store.read(offset, limit=limit, topic=topic, before=end)
        count = await self._publish(lease, messages, topic)
        if count is None or (messages and not count):
            return None
        if count < len(messages):
            return messages[count].c_offset
        return messages[-1].c_offset + 1 if len(messages) == limit else end

    async def _replay(self, lease: Lease) -> None:
        """Send the dead letters again whose replay was requested."""
        now = self._clock.monotonic()
        if now - self._replayed_at < self._poll_s:
            return
        self._replayed_at = now
        rows = self._store.dead_letters
        for dead_letter_id in await rows.take_requested(RELAY_GROUP, limit=MAX_REPLAYS):
            letter = await rows.get(RELAY_GROUP, dead_letter_id)
            if letter is None or letter.replayed_ts is not None or not self._trusts(lease)():
                continue
            messages = [message_of(each) for each in letter.events]
            try:
                is_sent = await self._publisher.publish(messages, self._trusts(lease)) == len(messages)
            except BrokerRefusedError as error:
                await rows.note_outcome(letter, error=str(error))
                self._begun = None
                return
            if is_sent:
                await rows.note_outcome(letter, error=None)

    async def _begin(self, lease: Lease) -> bool:
        self._next_offset = await self._store.position(lease.instance_id, lease.epoch)
        self._parked = await self._store.parked()
        outbox = await self._store.outbox_id()
        if not self._trusts(lease)():
            return False
        try:
            await self._publisher.begin(RelayTerm(outbox, lease.epoch))
        except TermOverError as error:
            # The row is older than the broker's state, for example after restoring a backup. Continue with an
            # epoch above the one that the broker has seen.
            await self._store.release(lease.instance_id, lease.epoch, above=error.seen)
            self.leadership.lose(str(error))
            return False
        self._begun = lease
        return True

    def _trusts(self, lease: Lease) -> Callable[[], bool]:
        return lambda: not self._is_stopping and self.leadership.lease == lease

    def wind_up(self) -> None:
        """Send nothing more. The current step still waits for messages that are already sent."""
        self._is_stopping = True
        self.wake.set()

    async def release(self) -> None:
        """Release the lease, and hint to standby relays that they can take over at once."""
        had_lease = self.leadership.lease is not None
        await self.leadership.release()
        if had_lease:
            self._hints.send(Hint.LEASE)

    async def close(self) -> None:
        await self._publisher.close()
