"""Leading by the database and a second witness: who may take a row when, and what the witness's absence does.

The witness is a real Redis. Nothing waits: rows are made to look old, and the clock by which a leader trusts
its lease is virtual.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import select, update
from tests.brokers import Broker
from tests.conformance.suites.scene import WHOLE, Scene

from foliot.db.tables.cluster import scheduler_lock_t
from foliot.model.event import DomainEvent
from foliot.model.instance_events import LeaseProviderLost, LeaseProviderReached, RedisFailed
from foliot.model.lease import Lease
from foliot.scheduler.leases.external_lease import QUIET, WitnessedLeases
from foliot.scheduler.leases.leadership import MARGIN
from foliot.scheduler.leases.lease_provider import ExternalLeases, ProviderUnreachableError
from foliot.scheduler.leases.redis_keys import RedisLeases
from foliot.scheduler.leases.second_witness import AWAY_PAUSE_S, Witness
from foliot.telemetry.metrics import MetricsObserver
from foliot.timing.clock import ClusterClock, VirtualClock

TTL_S = 60.0
HEARTBEAT_S = 20.0
QUIET_S = TTL_S * QUIET
TRUSTED_S = TTL_S * (1 - MARGIN)
CALL_S = 30.0


class Heard:
    def __init__(self) -> None:
        self.events: list[DomainEvent] = []
        self.failures: list[DomainEvent] = []

    def notify(self, event: DomainEvent) -> None:
        (self.failures if isinstance(event, RedisFailed) else self.events).append(event)


class Line:
    """An external server behind a line that can be cut, and with somebody who meddles."""

    def __init__(self, external: ExternalLeases) -> None:
        self.name, self.address = external.name, external.address
        self.is_cut = False
        self.asked: list[str] = []
        self.before_acquire: Callable[[], Awaitable[Any]] | None = None
        self._external = external

    async def acquire(self, key: str) -> bool:
        self._pass("acquire")
        if self.before_acquire is not None:
            await self.before_acquire()
        return await self._external.acquire(key)

    async def extend(self, keys: Collection[str]) -> frozenset[str]:
        self._pass("extend")
        return await self._external.extend(keys)

    async def give_up(self, key: str) -> None:
        self._pass("give_up")
        await self._external.give_up(key)

    async def close(self) -> None:
        await self._external.close()

    def _pass(self, call: str) -> None:
        self.asked.append(call)
        if self.is_cut:
            raise ProviderUnreachableError("the line is cut")


@dataclass(frozen=True)
class Candidate:
    """One instance: its provider, its witness, the line to it, and its clock."""

    provider: WitnessedLeases
    witness: Witness
    line: Line
    clock: VirtualClock
    heard: list[DomainEvent]
    failures: list[DomainEvent]
    """Of single calls."""

    async def leads(self) -> Lease:
        """Take the row, and have its key."""
        lease = (await self.provider.acquire(WHOLE)).lease
        assert lease is not None
        await self.witness.step()
        return lease

    async def owns_key(self) -> bool:
        """Whether it does or could."""
        return await self.line._external.acquire(self.witness._key(WHOLE))


class Stage:
    """One database, one Redis, and the instances over both."""

    def __init__(self, scene: Scene, url: str) -> None:
        self.scene = scene
        self._url = url
        self._cluster = uuid4().hex
        self.opened: list[Candidate] = []

    async def candidate(self, name: str) -> Candidate:
        line = Line(RedisLeases(self._url, name, ttl_s=TTL_S, call_s=CALL_S))
        clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
        cluster_clock = ClusterClock(clock)
        cluster_clock.observe(clock.now(), 0)
        heard = Heard()
        witness = Witness(
            line,
            cluster_clock,
            heard,
            patience_s=TTL_S,
            trusted_s=TRUSTED_S,
            heartbeat_s=HEARTBEAT_S,
        )
        witness.cluster = self._cluster
        leases = (await self.scene.open_another()).leases
        provider = WitnessedLeases(leases, witness, cluster_clock, name, TTL_S)
        found = Candidate(provider, witness, line, clock, heard.events, heard.failures)
        self.opened.append(found)
        await witness.step()
        assert witness.is_answering
        return found

    async def silence(self, seconds: float) -> None:
        """As if the leader had last been heard of so long ago."""
        then = await self.scene.now() - timedelta(seconds=seconds)
        await self.scene.execute(update(scheduler_lock_t).values(last_heartbeat=then))

    async def holder(self) -> str:
        [[found]] = await self.scene.rows(select(scheduler_lock_t.c.instance_id))
        return str(found)


@pytest.fixture
async def stage(scene: Scene, redis_broker: Broker) -> AsyncIterator[Stage]:
    found = Stage(scene, redis_broker.url)
    yield found
    for each in found.opened:
        await each.line.close()


def test_two_silences_are_enough_only_after_the_leader_has_stopped_trusting_its_lease() -> None:
    assert 1 - MARGIN < QUIET < 1


# --- who may take a row --------------------------------------------------------------------------------


async def test_a_dead_leader_is_followed_as_soon_as_its_key_has_run_out(stage: Stage) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    old = await one.leads()
    await stage.silence(QUIET_S + 1)
    refused = await two.provider.acquire(WHOLE)
    assert (refused.lease, refused.result) == (None, "held"), "its key has not run out"
    assert refused.free_in_s is not None
    assert refused.free_in_s <= TTL_S - QUIET_S
    await one.line.give_up(one.witness._key(WHOLE))
    new = (await two.provider.acquire(WHOLE)).lease
    assert new is not None
    assert (new.epoch, new.instance_id) == (old.epoch + 1, "two")
    assert not await one.owns_key(), "the new leader has it"


async def test_a_stale_row_is_taken_whoever_has_the_key(stage: Stage) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    await one.leads()
    await stage.silence(TTL_S + 1)
    assert (await two.provider.acquire(WHOLE)).lease is not None
    await two.witness.step()
    assert not await two.owns_key()
    await one.witness.give_up(WHOLE)
    await two.witness.step()
    assert not await one.owns_key(), "it gets the key when that is free"


async def test_a_leader_whose_heartbeat_goes_on_is_left_in_peace_although_its_key_is_gone(
    stage: Stage,
) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    lease = await one.leads()
    await one.line.give_up(one.witness._key(WHOLE))
    two.line.asked.clear()
    await stage.silence(QUIET_S - 1)
    answer = await two.provider.acquire(WHOLE)
    assert answer.lease is None
    assert two.line.asked == [], "nobody asks for a key that is of no use"
    assert answer.free_in_s is not None
    assert answer.free_in_s <= 1.1, "to ask again when it is quiet"
    assert (await one.provider.renew(lease)).lease == lease
    await one.witness.step()
    assert not await two.owns_key(), "the leader has it again"


async def test_a_leader_that_was_only_late_keeps_its_row_and_gets_its_key_back(stage: Stage) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    lease = await one.leads()
    await one.line.give_up(one.witness._key(WHOLE))
    await stage.silence(QUIET_S + 1)
    two.line.before_acquire = lambda: one.provider.renew(lease)
    assert (await two.provider.acquire(WHOLE)).lease is None
    assert await stage.holder() == "one"
    assert await one.owns_key()


async def test_a_key_that_is_campaigned_for_is_kept_until_the_campaign_has_ended(stage: Stage) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    assert await two.witness.acquire(WHOLE)
    await two.witness.step()
    assert not await one.owns_key()
    two.clock.advance(TRUSTED_S)
    await two.witness.step()
    assert await one.owns_key(), "one that never ends is given up"


# --- the witness away ----------------------------------------------------------------------------------


async def test_a_witness_that_goes_away_and_comes_back_empty_changes_no_leader(stage: Stage) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    lease = await one.leads()
    one.line.is_cut = two.line.is_cut = True
    for _ in range(4):
        for each in (one, two):
            assert await each.witness.step() == max(HEARTBEAT_S, AWAY_PAUSE_S)
            each.clock.advance(HEARTBEAT_S)
        assert (await one.provider.renew(lease)).lease == lease
        assert (await two.provider.acquire(WHOLE)).lease is None
    assert one.witness.is_away
    assert two.witness.is_away
    await one.line._external.give_up(one.witness._key(WHOLE))
    one.line.is_cut = two.line.is_cut = False
    assert await two.witness.step() == HEARTBEAT_S
    assert not two.witness.is_away
    assert (await two.provider.acquire(WHOLE)).lease is None, "although it could have the key"
    assert (await one.provider.renew(lease)).lease == lease
    assert await one.witness.step() == HEARTBEAT_S
    assert not one.witness.is_away
    assert not await two.owns_key()


async def test_without_the_witness_a_row_is_taken_when_it_is_stale_and_not_before(stage: Stage) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    await one.leads()
    two.line.is_cut = True
    await stage.silence(QUIET_S + 1)
    assert (await two.provider.acquire(WHOLE)).lease is None
    two.line.asked.clear()
    assert (await two.provider.acquire(WHOLE)).lease is None
    assert two.line.asked == [], "one that does not answer is not waited for"
    await stage.silence(TTL_S + 1)
    assert (await two.provider.acquire(WHOLE)).lease is not None


async def test_losing_the_witness_is_told_after_a_ttl_and_its_return_at_once(stage: Stage) -> None:
    one = await stage.candidate("one")
    metrics = MetricsObserver(CollectorRegistry())
    address = one.line.address
    assert one.heard == [LeaseProviderReached("redis", address, 0.0)]
    one.heard.clear()
    one.line.is_cut = True
    await one.witness.step()
    one.clock.advance(TTL_S - 1)
    await one.witness.step()
    assert one.heard == []
    assert one.witness.describe()["state"] == "up"
    one.line.is_cut = False
    await one.witness.step()
    assert one.heard == [], "too short to be worth a word"
    one.line.is_cut = True
    await one.witness.step()
    one.clock.advance(TTL_S)
    await one.witness.step()
    await one.witness.step()
    assert one.heard == [LeaseProviderLost("redis", address, "the line is cut")]
    assert one.failures == [RedisFailed("lease", "the line is cut")] * 5, "each call counts"
    assert one.witness.describe() == {
        "kind": "redis",
        "address": address,
        "state": "away",
        "since_ts": one.clock.now().isoformat(),
    }
    metrics.notify(one.heard[-1])
    assert b'foliot_lease_provider_up{provider="redis"} 0.0' in metrics.render()
    one.clock.advance(5)
    one.line.is_cut = False
    await one.witness.step()
    assert one.heard[1:] == [LeaseProviderReached("redis", address, TTL_S + 5)]
    metrics.notify(one.heard[-1])
    assert b'foliot_lease_provider_up{provider="redis"} 1.0' in metrics.render()


# --- the database away ---------------------------------------------------------------------------------


async def test_a_leader_that_can_not_renew_its_row_gives_its_key_up_when_its_trust_ends(
    stage: Stage,
) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    lease = await one.leads()
    one.clock.advance(1)
    await one.provider.renew(lease)
    one.clock.advance(TRUSTED_S - 0.1)
    await one.witness.step()
    assert not await two.owns_key()
    one.clock.advance(0.1)
    await one.witness.step()
    assert await two.owns_key()
    await one.witness.step()
    assert not await one.owns_key(), "it does not ask for it again"


async def test_an_instance_that_can_not_reach_the_database_does_not_campaign(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    await one.leads()
    await one.line.give_up(one.witness._key(WHOLE))
    await stage.silence(QUIET_S + 1)
    two.line.asked.clear()

    async def away(*_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(two.provider._store, "take", away)
    with pytest.raises(ConnectionError):
        await two.provider.acquire(WHOLE)
    assert two.line.asked == []


async def test_a_key_is_not_kept_when_the_database_goes_away_in_mid_campaign(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    await one.leads()
    await one.line.give_up(one.witness._key(WHOLE))
    await stage.silence(QUIET_S + 1)

    async def away(*_: object) -> None:
        raise ConnectionError

    async def cut_database() -> None:
        monkeypatch.setattr(two.provider._store, "take", away)

    two.line.before_acquire = cut_database
    with pytest.raises(ConnectionError):
        await two.provider.acquire(WHOLE)
    assert await one.owns_key()


# --- giving up -----------------------------------------------------------------------------------------


async def test_a_deposed_leader_gives_its_key_up_and_so_does_one_that_releases(stage: Stage) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    lease = await one.leads()
    await stage.silence(TTL_S + 1)
    taken = await two.leads()
    assert (await one.provider.renew(lease)).lease is None
    await two.witness.step()
    assert not await one.owns_key()
    await two.provider.release(taken)
    await two.witness.step()
    assert await one.owns_key()
    await two.witness.step()
    assert not await two.owns_key(), "what was released is not asked for again"


async def test_a_key_that_arrives_after_its_lease_was_released_is_given_up(stage: Stage) -> None:
    one, two = await stage.candidate("one"), await stage.candidate("two")
    lease = (await one.provider.acquire(WHOLE)).lease
    assert lease is not None
    one.line.before_acquire = lambda: one.provider.release(lease)
    await one.witness.step()
    assert one.line.asked[-2:] == ["acquire", "give_up"]
    assert await two.owns_key()


async def test_a_leader_stops_cleanly_although_the_witness_is_away(stage: Stage) -> None:
    one = await stage.candidate("one")
    lease = await one.leads()
    one.line.is_cut = True
    await one.provider.release(lease)
    assert await stage.holder() == ""
