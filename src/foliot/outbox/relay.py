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

What the broker refuses holds up nothing else. A message that it does not take, as one that is too large,
becomes a dead letter in the transaction that moves the offset. A topic that it refuses is parked: the relay
goes on without it, and tries it again from where it stopped, in order, until it has caught up. A step sends
at most one portion of a parked topic, and then goes on with the log, so that no topic waits for another.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foliot.lease.leadership import Leadership
from foliot.model.broker import BrokerKind
from foliot.model.event import EventsDeadLettered, Observer, RedisFailed, RelayConfirmed, TopicRefused
from foliot.model.lease import Lease
from foliot.outbox.leading import WHOLE, RelayLeases, RelayObserver
from foliot.outbox.parcel import topic_at_broker
from foliot.outbox.protocol import BrokerRefusedError, Publisher, RelayTerm, TermOverError
from foliot.service import Service, Wake
from foliot.store.hints import Hint, Hints
from foliot.store.outbox_list import OutboxMessage
from foliot.store.relays import RELAY_GROUP, RelayReplacedError, Relays, message_of
from foliot.timing.clock import ClusterClock
from foliot.transport.protocol import BrokerUnreachableError

BATCH = 500
RETRY_REFUSED_S = 30.0
"""Pause between two attempts to send parked topics, however many there are: a refusal costs a reconnect."""
MAX_WINDOW = 5_000
"""Offsets that are searched for messages of a parked topic in one step: no index is by topic."""
MAX_REPLAYS = 10
"""Dead letters that are sent in one step, on request."""


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
        self._clock = clock
        self._limits: dict[str | None, int] = {}
        """How many messages to send at once, fewer after a failure: of a parked topic; None: of the log."""
        self._parked: dict[str, int] = {}
        """Topics that the broker refuses, and where each of them goes on."""
        self._resuming: str | None = None
        """The parked topic that the broker takes again, until it has caught up."""
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
        # What lies between two that were sent is parked.
        following = sending[count].c_offset if count < len(sending) else messages[-1].c_offset + 1
        lag = await self._store.advance(lease.instance_id, lease.epoch, following)
        self._next_offset = following
        self._observer.notify(RelayConfirmed(count, following - 1, lag))
        return 0.0 if lag else self._poll_s

    async def _publish(
        self, lease: Lease, messages: Sequence[OutboxMessage], topic: str | None = None
    ) -> int | None:
        """How many the broker has confirmed; None: it has refused something, which is dealt with.

        `topic`: these are of a parked topic.
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
                self._limits[topic] = 1  # one after the other, until it is known which it was
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
        """Send one portion of a parked topic, if it is time to."""
        if not self._is_retry_due():
            return
        self._parked = await self._store.parked()  # somebody may have removed one
        self._tried_at = {each: at for each, at in self._tried_at.items() if each in self._parked}
        self._limits = {each: at for each, at in self._limits.items() if each is None or each in self._parked}
        topic = self._resuming if self._resuming in self._parked else None
        if topic is None:
            topic = min(self._parked, key=lambda each: self._tried_at.get(each, -math.inf), default=None)
        # Noted before the attempt: should it fail, the log and other topics come first.
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
            self._retried_at = -math.inf  # others may be taken again as well

    async def _send_portion(self, lease: Lease, topic: str, offset: int) -> int | None:
        """Where the topic goes on; None: not all was sent, and `_publish` has noted what comes next."""
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
        """Send dead letters again that somebody asked for."""
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
