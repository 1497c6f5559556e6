"""The relay over both databases: who is active, how far it has come, and what it does when things go wrong.

The broker here is a list that does as it is told; the real ones are in `test_relay_*.py`.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from tests.conformance.suites.relay import TTL_S, RecordedEvents, message_of, messages_of, relay_over, write
from tests.conformance.suites.scene import LONG, STALE, Scene

from foliot.instance.store import SqlStore
from foliot.model.delivery_events import (
    OutboxMeasured,
    RelayConfirmed,
    RelayLost,
    RelayReleased,
    RelayTookOver,
    TopicRefused,
)
from foliot.model.errors import BrokerUnreachableError
from foliot.outbox.publisher import BrokerRefusedError, RelayTerm, TermOverError
from foliot.outbox.relay import BATCH, RETRY_REFUSED_S, Relay
from foliot.outbox.relays_sql import RELAY_GROUP, RelayReplacedError, Relays
from foliot.planning.change import Author
from foliot.queries.outbox_list import OutboxMessage
from foliot.scheduler.leases.leadership import MARGIN
from foliot.timing.clock import VirtualClock


class Broker:
    """Takes what it is given, until it is told otherwise."""

    name = "list"

    def __init__(self) -> None:
        self.terms: list[RelayTerm] = []
        self.taken: list[OutboxMessage] = []
        self.limit: int | None = None
        """Confirms so many of each batch, if it is set."""
        self.is_away = False
        self.seen_epoch = 0
        self.refused_topics: set[str] = set()
        self.failing_topics: set[str] = set()
        """Nothing is confirmed of these, as when the broker does not answer."""
        self.refused_ids: set[object] = set()
        self.on_publish: Callable[[], object] = lambda: None
        self.was_asked = asyncio.Event()

    async def begin(self, term: RelayTerm) -> None:
        if self.is_away:
            raise BrokerUnreachableError("away")
        if term.epoch < self.seen_epoch:
            raise TermOverError(self.name, term.epoch, self.seen_epoch)
        self.seen_epoch = term.epoch
        self.terms.append(term)

    async def publish(self, messages: Sequence[OutboxMessage], is_trusted: Callable[[], bool]) -> int:
        if self.is_away:
            raise BrokerUnreachableError("away")
        self.was_asked.set()
        waiting = self.on_publish()
        if isinstance(waiting, asyncio.Future):
            await waiting
        for number, message in enumerate(messages):
            if message.event_topic in self.refused_topics:
                raise BrokerRefusedError("no such topic", is_topic=True, topic=message.event_topic)
            if message.event_topic in self.failing_topics:
                raise BrokerUnreachableError("no answer")
            if message.id in self.refused_ids:
                if number == 0:
                    raise BrokerRefusedError("too large", is_topic=False)
                self.taken += messages[:number]
                return number
        taken = list(messages[: self.limit]) if is_trusted() else []
        self.taken += taken
        return len(taken)

    async def close(self) -> None: ...

    @property
    def offsets(self) -> list[int]:
        return [message.c_offset for message in self.taken]


def patient_relay(store: SqlStore, broker: Broker, told: RecordedEvents, name: str = "one") -> Relay:
    """Its lease outlasts whatever holds the machine up between two steps: nobody renews it meanwhile."""
    return relay_over(store, broker, told, name, ttl_s=60.0)


async def turn(relay: Relay) -> None:
    """A heartbeat, and what is to be shipped."""
    await relay.leadership.step()
    await relay.step()


async def active_epoch(relays: Relays, name: str) -> int:
    standing = await relays.take(name, STALE)
    assert standing.is_ours
    return standing.epoch


class TestTheRow:
    """The lease and the offset are one row."""

    async def test_the_first_to_ask_is_active_and_begins_with_the_first_event(self, scene: Scene) -> None:
        await write(scene.store, messages_of("orders", 3))
        standing = await scene.store.relays.take("one", LONG)
        assert (standing.is_ours, standing.epoch, standing.next_offset, standing.lag) == (True, 1, 1, 3)
        other = await scene.store.relays.take("two", LONG)
        assert (other.is_ours, other.epoch) == (False, 1)

    async def test_of_many_that_ask_at_once_one_is_active(self, scene: Scene) -> None:
        stores = await scene.stores(5)
        standings = await asyncio.gather(
            *(store.relays.take(f"relay-{number}", LONG) for number, store in enumerate(stores))
        )
        assert sum(each.is_ours for each in standings) == 1

    async def test_one_that_falls_silent_is_replaced_and_can_do_nothing_more(self, scene: Scene) -> None:
        relays = scene.store.relays
        old = await active_epoch(relays, "one")
        new = await active_epoch(relays, "two")
        assert new > old
        assert not (await relays.renew("one", old)).is_ours
        for attempt in (relays.advance("one", old, 5), relays.position("one", old)):
            with pytest.raises(RelayReplacedError):
                await attempt
        await relays.release("one", old)
        assert (await relays.renew("two", new)).is_ours
        assert await relays.position("two", new) == 1

    async def test_an_instance_that_took_over_twice_is_not_mistaken_for_its_former_self(
        self, scene: Scene
    ) -> None:
        relays = scene.store.relays
        old = await active_epoch(relays, "one")
        new = await active_epoch(relays, "one")
        assert not (await relays.renew("one", old)).is_ours
        with pytest.raises(RelayReplacedError):
            await relays.advance("one", old, 5)
        assert (await relays.renew("one", new)).is_ours

    async def test_the_offset_outlives_the_lease_and_never_goes_back(self, scene: Scene) -> None:
        await write(scene.store, messages_of("orders", 9))
        relays = scene.store.relays
        epoch = await active_epoch(relays, "one")
        assert await relays.advance("one", epoch, 5) == 5
        with pytest.raises(RelayReplacedError):
            await relays.advance("one", epoch, 4)
        await relays.release("one", epoch)
        standing = await relays.take("two", LONG)
        assert (standing.is_ours, standing.next_offset, standing.lag) == (True, 5, 5)
        assert standing.epoch > epoch

    async def test_messages_are_read_in_the_order_of_commits_from_where_it_stands(self, scene: Scene) -> None:
        await write(scene.store, messages_of("orders", 4))
        await write(scene.store, [message_of("x", "another", 1, 1)])
        relays = scene.store.relays
        assert [each.c_offset for each in await relays.read(2, limit=3)] == [2, 3, 4]
        assert [each.event_topic for each in await relays.read(5, limit=3)] == ["x"]
        assert await relays.read(6, limit=3) == []

    async def test_an_outbox_has_a_name_of_its_own_that_stays(self, scene: Scene) -> None:
        stores = await scene.stores(4)
        names = await asyncio.gather(*(store.relays.outbox_id() for store in stores))
        assert len(set(names)) == 1
        assert await scene.store.relays.outbox_id() == names[0]


class TestShipping:
    """A step at a time."""

    async def test_everything_is_shipped_in_order_and_the_offset_moves(self, scene: Scene) -> None:
        broker, told = Broker(), RecordedEvents()
        await write(scene.store, messages_of("orders", 7))
        relay = patient_relay(scene.store, broker, told)
        await turn(relay)
        assert broker.offsets == [1, 2, 3, 4, 5, 6, 7]
        assert told.events[-1] == RelayConfirmed(7, 7, 0)
        await turn(relay)
        assert len(broker.taken) == 7
        [term] = broker.terms
        assert term == RelayTerm(await scene.store.relays.outbox_id(), 1)

    async def test_one_that_is_not_active_ships_nothing(self, scene: Scene) -> None:
        await write(scene.store, messages_of("orders", 3))
        brokers, told = [Broker(), Broker()], RecordedEvents()
        one = patient_relay(scene.store, brokers[0], told, "one")
        two = patient_relay(await scene.open_another(), brokers[1], told, "two")
        await one.leadership.step()
        await turn(two)
        await one.step()
        assert (brokers[0].offsets, brokers[1].offsets) == ([1, 2, 3], [])
        assert [each.instance_id for each in told.events if isinstance(each, RelayTookOver)] == ["one"]

    async def test_what_was_not_confirmed_is_sent_again_and_nothing_is_passed_over(
        self, scene: Scene
    ) -> None:
        broker, told = Broker(), RecordedEvents()
        await write(scene.store, messages_of("orders", 7))
        relay = patient_relay(scene.store, broker, told)
        broker.limit = 3
        await turn(relay)
        assert told.events[-1] == RelayConfirmed(3, 3, 4)
        broker.is_away = True
        with pytest.raises(BrokerUnreachableError):
            await relay.step()
        assert (await scene.store.relays.renew("one", 1)).next_offset == 4
        broker.is_away, broker.limit = False, None
        await relay.step()
        assert broker.offsets == [1, 2, 3, 4, 5, 6, 7]
        assert len(broker.terms) == 2, "after a failure the term is begun anew"

    async def test_more_than_a_batch_is_shipped_without_a_pause(self, scene: Scene) -> None:
        broker = Broker()
        await write(scene.store, messages_of("orders", BATCH + 1))
        relay = patient_relay(scene.store, broker, RecordedEvents())
        await relay.leadership.step()
        assert await relay.step() == 0
        assert len(broker.taken) == BATCH
        assert await relay.step() != 0
        assert broker.offsets == list(range(1, BATCH + 2))

    async def test_one_that_was_replaced_while_it_published_moves_nothing_and_stops(
        self, scene: Scene
    ) -> None:
        await write(scene.store, messages_of("orders", 3))
        broker, told = Broker(), RecordedEvents()
        relay = patient_relay(scene.store, broker, told)
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        broker.on_publish = lambda: held
        await relay.leadership.step()
        step = asyncio.create_task(relay.step())
        await broker.was_asked.wait()
        epoch = await active_epoch((await scene.open_another()).relays, "two")
        held.set_result(None)
        await step
        assert await scene.store.relays.position("two", epoch) == 1
        assert relay.leadership.lease is None
        assert [type(each) for each in told.events if isinstance(each, RelayLost)] == [RelayLost]
        broker.taken.clear()
        await relay.step()
        assert broker.taken == []

    async def test_heartbeats_go_on_and_tell_the_lag_while_the_broker_does_not_answer(
        self, scene: Scene
    ) -> None:
        await write(scene.store, messages_of("orders", 3))
        broker, told = Broker(), RecordedEvents()
        relay = patient_relay(scene.store, broker, told)
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        broker.on_publish = lambda: held
        await relay.leadership.step()
        step = asyncio.create_task(relay.step())
        await broker.was_asked.wait()
        await write(scene.store, [message_of("more", "another", each, each) for each in (1, 2)])
        await relay.leadership.step()
        assert relay.leadership.lease is not None
        assert [each.lag for each in told.events if isinstance(each, OutboxMeasured)] == [3, 5]
        held.set_result(None)
        await step
        assert broker.offsets == [1, 2, 3]

    async def test_a_clean_stop_leaves_the_lease_to_another_at_once(self, scene: Scene) -> None:
        told = RecordedEvents()
        relay = patient_relay(scene.store, Broker(), told)
        await turn(relay)
        relay.wind_up()
        await relay.release()
        assert isinstance(told.events[-1], RelayReleased)
        assert (await scene.store.relays.take("two", LONG)).is_ours

    async def test_one_that_winds_up_sends_nothing_more(self, scene: Scene) -> None:
        await write(scene.store, messages_of("orders", 3))
        broker = Broker()
        relay = patient_relay(scene.store, broker, RecordedEvents())
        await relay.leadership.step()
        broker.on_publish = relay.wind_up
        await relay.step()
        assert broker.taken == []

    async def test_a_row_that_was_set_back_goes_on_above_what_the_broker_has_seen(self, scene: Scene) -> None:
        """As after restoring a backup of the database."""
        await write(scene.store, messages_of("orders", 3))
        broker = Broker()
        broker.seen_epoch = 41
        relay = patient_relay(scene.store, broker, RecordedEvents())
        await turn(relay)
        assert broker.taken == []
        await turn(relay)
        assert broker.offsets == [1, 2, 3]
        assert broker.terms[-1].epoch == 42


class TestRefusal:
    """What the broker refuses holds up nothing else, and is not lost."""

    @staticmethod
    async def ship(relay: Relay, steps: int = 40) -> None:
        await relay.leadership.step()
        for _ in range(steps):
            await relay.step()

    async def test_a_message_that_is_refused_becomes_a_dead_letter_and_the_next_goes_on(
        self, scene: Scene
    ) -> None:
        messages, broker, told = messages_of("orders", 9, aggregates=2), Broker(), RecordedEvents()
        await write(scene.store, messages)
        broker.refused_ids = {messages[4].id}
        relay = patient_relay(scene.store, broker, told)
        await self.ship(relay)
        assert broker.offsets == [1, 2, 3, 4, 6, 7, 8, 9]
        [letter] = await scene.store.dead_letters.of_group(RELAY_GROUP)
        assert (letter.c_offset, letter.error) == (5, "too large")
        broker.refused_ids = set()
        await scene.store.event_admin.replay(letter.dead_letter_id, Author())
        relay._replayed_at = float("-inf")
        await self.ship(relay, 1)
        assert (broker.taken[-1].id, broker.taken[-1].payload) == (messages[4].id, messages[4].payload)
        assert await scene.store.dead_letters.of_group(RELAY_GROUP) == []

    async def test_a_replay_that_is_refused_again_says_why(self, scene: Scene) -> None:
        messages, broker = messages_of("orders", 2), Broker()
        await write(scene.store, messages)
        broker.refused_ids = {messages[0].id}
        relay = patient_relay(scene.store, broker, RecordedEvents())
        await self.ship(relay)
        [letter] = await scene.store.dead_letters.of_group(RELAY_GROUP)
        await scene.store.event_admin.replay(letter.dead_letter_id, Author())
        relay._replayed_at = float("-inf")
        await self.ship(relay, 2)
        [again] = await scene.store.dead_letters.of_group(RELAY_GROUP)
        assert (again.attempts, again.replay_requested_ts) == (2, None)

    async def test_a_refused_topic_is_parked_and_caught_up_with_in_its_order(self, scene: Scene) -> None:
        broker, told = Broker(), RecordedEvents()
        messages = [message_of("ab"[n % 2], f"of-{'ab'[n % 2]}", n // 2 + 1, n + 1) for n in range(10)]
        await write(scene.store, messages)
        broker.refused_topics = {"b"}
        relay = patient_relay(scene.store, broker, told)
        await self.ship(relay)
        assert broker.offsets == [1, 3, 5, 7, 9]
        assert await scene.store.relays.parked() == {"b": 2}
        assert [each.topic for each in told.events if isinstance(each, TopicRefused)] == ["b"]
        assert (await scene.store.relays.renew("one", 1)).lag == 0
        # Another relay takes over, and the topic is taken again.
        broker.refused_topics = set()
        other = patient_relay(scene.store, broker, told, "two")
        relay.wind_up()
        await relay.release()
        await self.ship(other)
        assert broker.offsets == [1, 3, 5, 7, 9, 2, 4, 6, 8, 10]
        assert await scene.store.relays.parked() == {}

    async def test_a_topic_that_is_still_refused_is_left_alone_for_a_while(self, scene: Scene) -> None:
        broker, told = Broker(), RecordedEvents()
        await write(scene.store, [message_of("b", "one", 1, 1), message_of("a", "two", 1, 2)])
        broker.refused_topics = {"b"}
        relay = patient_relay(scene.store, broker, told)
        await self.ship(relay)
        relay._retried_at = float("-inf")
        await self.ship(relay)
        refused = [each for each in told.events if isinstance(each, TopicRefused)]
        assert len(refused) == 2, "once when it was sent, once when it was tried again"
        assert await scene.store.relays.parked() == {"b": 1}

    async def test_what_a_parked_topic_has_not_sent_is_not_pruned(self, scene: Scene) -> None:
        broker = Broker()
        await write(scene.store, [message_of("a", "two", 1, 1), message_of("b", "one", 1, 2)])
        broker.refused_topics = {"b"}
        await self.ship(patient_relay(scene.store, broker, RecordedEvents()))
        lease = await scene.lead()
        later = datetime.now(UTC) + timedelta(days=2)
        await scene.store.upkeep.prune_events(lease, before=later, limit=100)
        left = await scene.store.relays.read(0, limit=10)
        assert [each.c_offset for each in left] == [2]


class TestParkedTopics:
    """Parked topics are tried again one after the other, and the log goes on meanwhile."""

    databases = ("sqlite",)

    @pytest.fixture
    async def parked(self, scene: Scene, clock: VirtualClock) -> "Parked":
        """Topics b and c are parked, and the log is shipped."""
        found = Parked(scene, clock)
        found.broker.refused_topics = {"b", "c"}
        await found.write("b", "c", "a")
        await found.relay.leadership.step()
        await found.ship()
        assert await found.offsets() == {"b": 1, "c": 2}
        return found

    async def test_what_waits_in_a_parked_topic_delays_no_other(self, parked: "Parked") -> None:
        await parked.write(*["b"] * 3 * BATCH)
        await parked.ship()
        await parked.write("a", "a")
        parked.broker.refused_topics = {"c"}
        parked.clock.advance(RETRY_REFUSED_S)
        assert await parked.relay.step() == 0.0, "there is more to send"
        assert parked.taken("b") == BATCH
        assert parked.taken("a") == 3
        await parked.ship()
        assert parked.taken("b") == 3 * BATCH + 1
        assert await parked.offsets() == {"c": 2}

    async def test_an_attempt_that_fails_delays_neither_the_log_nor_other_parked_topics(
        self, parked: "Parked"
    ) -> None:
        parked.broker.refused_topics, parked.broker.failing_topics = set(), {"b"}
        await parked.write("a")
        parked.clock.advance(RETRY_REFUSED_S)
        with pytest.raises(BrokerUnreachableError):
            await parked.relay.step()
        assert parked.taken("a") == 1
        await parked.relay.step()
        assert parked.taken("a") == 2
        parked.clock.advance(RETRY_REFUSED_S)
        await parked.relay.step()
        assert parked.taken("c") == 1
        assert await parked.offsets() == {"b": 1}

    async def test_a_step_searches_a_bounded_part_of_the_log_for_a_parked_topic(
        self, parked: "Parked", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("foliot.outbox.relay.MAX_WINDOW", 10)
        await parked.write(*["a"] * 30, "b")
        await parked.ship()
        parked.broker.refused_topics = {"c"}
        parked.clock.advance(RETRY_REFUSED_S)
        seen = []
        for _ in range(4):
            await parked.relay.step()
            seen.append((await parked.offsets()).get("b"))
        assert seen == [11, 21, 31, None]
        assert parked.taken("b") == 2

    async def test_a_message_that_a_parked_topic_can_not_send_delays_no_other(self, parked: "Parked") -> None:
        await parked.write("b", "b", "b")
        await parked.ship()
        waiting = await parked.scene.store.relays.read(4, limit=9)
        parked.broker.refused_topics, parked.broker.refused_ids = {"c"}, {waiting[1].id}
        await parked.write("a")
        parked.clock.advance(RETRY_REFUSED_S)
        await parked.ship()
        assert (parked.taken("a"), parked.taken("b")) == (2, 3)
        [letter] = await parked.scene.store.dead_letters.of_group(RELAY_GROUP)
        assert letter.c_offset == 5
        assert await parked.offsets() == {"c": 2}

    async def test_however_many_are_parked_one_is_tried_after_each_pause(self, parked: "Parked") -> None:
        def refusals() -> list[str]:
            return [each.topic for each in parked.told.events if isinstance(each, TopicRefused)]

        before, found = len(refusals()), []
        for _ in range(5):
            parked.clock.advance(RETRY_REFUSED_S * 0.6)
            await parked.ship()
            found.append(refusals()[before:])
        assert found == [[], ["b"], ["b"], ["b", "c"], ["b", "c"]]


class Parked:
    def __init__(self, scene: Scene, clock: VirtualClock) -> None:
        self.scene, self.clock = scene, clock
        self.broker, self.told = Broker(), RecordedEvents()
        self.relay = relay_over(scene.store, self.broker, self.told, clock=clock, ttl_s=3_600)
        self._versions = count(1)

    async def write(self, *topics: str) -> None:
        await write(
            self.scene.store, [message_of(each, f"of-{each}", next(self._versions), 1) for each in topics]
        )

    async def ship(self) -> None:
        """Step until there is nothing more to do at once."""
        for _ in range(100):
            if await self.relay.step() != 0.0:
                return
        raise AssertionError("it does not come to rest")

    def taken(self, topic: str) -> int:
        return sum(each.event_topic == topic for each in self.broker.taken)

    async def offsets(self) -> dict[str, int]:
        return await self.scene.store.relays.parked()


class TestTrust:
    """On a clock that is moved by the test."""

    databases = ("sqlite",)

    async def test_one_that_could_not_renew_in_time_sends_nothing(
        self, scene: Scene, clock: VirtualClock
    ) -> None:
        await write(scene.store, messages_of("orders", 3))
        broker, told = Broker(), RecordedEvents()
        relay = relay_over(scene.store, broker, told, clock=clock)
        await relay.leadership.step()
        clock.advance(TTL_S * (1 - MARGIN))
        await relay.step()
        assert broker.taken == []
        await turn(relay)
        assert broker.taken == [], "its row is not stale yet, not even for itself"
        clock.advance(TTL_S)
        await turn(relay)
        assert broker.offsets == [1, 2, 3]

    async def test_one_whose_trust_ends_while_it_publishes_sends_no_more(
        self, scene: Scene, clock: VirtualClock
    ) -> None:
        await write(scene.store, messages_of("orders", 3))
        broker = Broker()
        relay = relay_over(scene.store, broker, RecordedEvents(), clock=clock)
        await relay.leadership.step()
        broker.on_publish = lambda: clock.advance(TTL_S)
        await relay.step()
        assert broker.taken == []
