"""The providers of leases against their contract, and the state machine of leading over them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update
from tests.conformance.suites.lease import LeaseConformance
from tests.conformance.suites.scene import WHOLE, Scene

from foliot.db.tables.cluster import scheduler_lock_t
from foliot.model.errors import FencedError
from foliot.model.event import DomainEvent
from foliot.model.instance_events import LeaderElected, LeaseAttempted, LeaseLost, LeaseReleased
from foliot.model.lease import Lease, Shard
from foliot.scheduler.leases.database_lease import DatabaseLeases
from foliot.scheduler.leases.leadership import MARGIN, Leadership
from foliot.scheduler.leases.lease_provider import LeaseProvider, LeaseReply
from foliot.timing.clock import ClusterClock, VirtualClock

TTL_S = 3.0
HEARTBEAT_S = 1.0
TRUSTED_S = TTL_S * (1 - MARGIN)


@dataclass(frozen=True)
class DatabaseLeaseScene:
    scene: Scene

    async def provider(self, instance_id: str) -> LeaseProvider:
        store = await self.scene.open_another()
        return DatabaseLeases(store.leases, instance_id, 60.0)

    async def expire(self) -> None:
        long_ago = await self.scene.now() - timedelta(seconds=100)
        await self.scene.execute(update(scheduler_lock_t).values(last_heartbeat=long_ago))


@pytest.fixture
def lease_scene(scene: Scene) -> DatabaseLeaseScene:
    return DatabaseLeaseScene(scene)


class TestDatabaseLeases(LeaseConformance):
    """The provider that needs nothing but the database, on both of them."""

    async def test_a_follower_knows_when_a_silent_leader_may_be_followed(self, scene: Scene) -> None:
        leases = scene.store.leases
        one, two = DatabaseLeases(leases, "one", 60.0), DatabaseLeases(leases, "two", 60.0)
        await one.acquire(WHOLE)
        fresh = (await two.acquire(WHOLE)).free_in_s
        silent_for = await scene.now() - timedelta(seconds=50)
        await scene.execute(update(scheduler_lock_t).values(last_heartbeat=silent_for))
        silent = (await two.acquire(WHOLE)).free_in_s
        assert fresh is not None
        assert silent is not None
        assert silent <= 10.1 < fresh <= 60.1


# --- leading, over any provider ------------------------------------------------------------------------


class Provider:
    """Says what it is told to; `on_ask` is what happens while the answer is under way."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.lease: Lease | None = Lease(WHOLE, 7, "one")
        self.on_ask: Callable[[], None] = lambda: None
        self.released: list[Lease] = []
        self.free_in_s: float | None = None

    async def acquire(self, shard: Shard) -> LeaseReply:
        return self._answer("acquired")

    async def renew(self, lease: Lease) -> LeaseReply:
        return self._answer("renewed")

    async def release(self, lease: Lease) -> None:
        self.released.append(lease)

    def _answer(self, result: str) -> LeaseReply:
        self.on_ask()
        return LeaseReply(self.lease, self._clock.now(), result if self.lease else "held", self.free_in_s)


class Heard:
    def __init__(self) -> None:
        self.events: list[DomainEvent] = []

    def notify(self, event: DomainEvent) -> None:
        self.events.append(event)

    def of(self, kind: type[DomainEvent]) -> list[DomainEvent]:
        return [event for event in self.events if isinstance(event, kind)]


class Stage:
    def __init__(self) -> None:
        self.clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
        self.provider = Provider(self.clock)
        self.heard = Heard()
        self.leadership = Leadership(
            WHOLE,
            self.provider,
            ClusterClock(self.clock),
            self.heard,
            ttl_s=TTL_S,
            heartbeat_s=HEARTBEAT_S,
        )


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_an_instance_leads_once_the_provider_says_so(stage: Stage) -> None:
    elected: list[Lease] = []
    stage.leadership.on_elected(elected.append)
    assert stage.leadership.lease is None
    assert await stage.leadership.step() == HEARTBEAT_S
    assert stage.leadership.lease == stage.provider.lease
    assert elected == [stage.provider.lease]
    assert stage.heard.of(LeaderElected) == [LeaderElected(0, 7, "one")]
    assert stage.heard.of(LeaseAttempted) == [LeaseAttempted(0, "acquired")]


async def test_a_follower_asks_again_every_heartbeat(stage: Stage) -> None:
    stage.provider.lease = None
    assert await stage.leadership.step() == HEARTBEAT_S
    assert stage.leadership.lease is None
    assert stage.heard.of(LeaseAttempted) == [LeaseAttempted(0, "held")]
    assert stage.heard.of(LeaderElected) == []


async def test_a_follower_asks_again_when_a_silent_leader_may_be_followed(stage: Stage) -> None:
    stage.provider.lease = None
    stage.provider.free_in_s = HEARTBEAT_S / 4
    assert await stage.leadership.step() == HEARTBEAT_S / 4
    stage.provider.free_in_s = TTL_S
    assert await stage.leadership.step() == HEARTBEAT_S


async def test_a_lease_is_trusted_from_when_it_was_asked_for_and_not_to_the_end_of_its_ttl(
    stage: Stage,
) -> None:
    stage.provider.on_ask = lambda: stage.clock.advance(1)
    await stage.leadership.step()
    stage.clock.advance(TRUSTED_S - 1 - 0.01)
    assert stage.leadership.lease is not None
    stage.clock.advance(0.01)
    assert stage.leadership.lease is None
    assert [type(event) for event in stage.heard.of(LeaseLost)] == [LeaseLost]
    assert stage.leadership.wake.is_set


async def test_renewing_in_time_keeps_the_trust(stage: Stage) -> None:
    await stage.leadership.step()
    for _ in range(10):
        stage.clock.advance(HEARTBEAT_S)
        await stage.leadership.step()
    assert stage.leadership.lease == stage.provider.lease
    assert stage.heard.of(LeaseLost) == []


async def test_a_leader_that_was_stopped_finds_itself_deposed_when_it_wakes(stage: Stage) -> None:
    await stage.leadership.step()
    stage.clock.advance(2 * TTL_S)
    assert stage.leadership.lease is None
    assert len(stage.heard.of(LeaseLost)) == 1


async def test_a_wall_clock_that_jumps_deposes_nobody(stage: Stage) -> None:
    await stage.leadership.step()
    stage.clock.jump(600)
    assert stage.leadership.lease is not None
    stage.clock.jump(-1200)
    assert stage.leadership.lease is not None


async def test_a_renewal_that_took_too_long_does_not_bring_the_trust_back(stage: Stage) -> None:
    await stage.leadership.step()
    stage.clock.advance(1)
    stage.provider.on_ask = lambda: stage.clock.advance(TTL_S)
    await stage.leadership.step()
    assert stage.leadership.lease is None
    assert len(stage.heard.of(LeaseLost)) == 1


async def test_a_leader_whose_lease_passed_on_steps_down_at_once(stage: Stage) -> None:
    await stage.leadership.step()
    stage.provider.lease = None
    await stage.leadership.step()
    assert stage.leadership.lease is None
    assert len(stage.heard.of(LeaseLost)) == 1


async def test_a_leader_whose_shard_is_gone_steps_down(stage: Stage) -> None:
    await stage.leadership.step()

    def gone() -> None:
        raise FencedError(0, 7)

    stage.provider.on_ask = gone
    await stage.leadership.step()
    assert stage.leadership.lease is None


async def test_a_leader_that_can_not_reach_the_provider_leads_until_its_trust_ends(stage: Stage) -> None:
    await stage.leadership.step()

    def away() -> None:
        raise ConnectionError

    stage.provider.on_ask = away
    stage.clock.advance(1)
    with pytest.raises(ConnectionError):
        await stage.leadership.step()
    assert stage.leadership.lease is not None
    stage.clock.advance(TRUSTED_S)
    assert stage.leadership.lease is None


async def test_releasing_gives_the_lease_up_and_asks_for_none_again(stage: Stage) -> None:
    await stage.leadership.step()
    lease = stage.leadership.lease
    await stage.leadership.release()
    assert stage.provider.released == [lease]
    assert stage.leadership.lease is None
    assert stage.heard.of(LeaseReleased) == [LeaseReleased(0, 7)]
    assert await stage.leadership.step() is None
    assert stage.leadership.lease is None


async def test_an_instance_that_stops_while_it_is_elected_does_not_lead(stage: Stage) -> None:
    stage.provider.on_ask = lambda: setattr(stage.leadership, "_is_stopping", True)
    await stage.leadership.step()
    assert stage.leadership.lease is None
    assert stage.heard.of(LeaderElected) == []


async def test_leading_over_the_database_and_being_deposed_by_it(scene: Scene) -> None:
    provider = DatabaseLeases(scene.store.leases, "one", 60.0)
    heard = Heard()
    clock = ClusterClock(VirtualClock(await scene.now()))
    leadership = Leadership(WHOLE, provider, clock, heard, ttl_s=60, heartbeat_s=1)
    await leadership.step()
    assert leadership.lease == Lease(WHOLE, 1, "one")
    await scene.lead(instance_id="two")
    await leadership.step()
    assert leadership.lease is None
    assert len(heard.of(LeaseLost)) == 1
