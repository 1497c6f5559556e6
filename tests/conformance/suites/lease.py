"""Conformance suite for lease providers: one leader at a time, and a change of leader is noticed at once."""

import asyncio
from typing import Protocol

from tests.conformance.suites.scene import WHOLE

from foliot.scheduler.leases.lease_provider import LeaseProvider


class LeaseScene(Protocol):
    """Lease providers for several instances that share one backend."""

    async def provider(self, instance_id: str) -> LeaseProvider: ...

    async def expire(self) -> None:
        """Make every lease as old as its TTL, without waiting."""
        ...


class LeaseConformance:
    """Tests for a lease provider. Fixture: `lease_scene`."""

    async def test_the_first_to_ask_leads(self, lease_scene: LeaseScene) -> None:
        one = await lease_scene.provider("one")
        answer = await one.acquire(WHOLE)
        assert answer.result == "acquired"
        assert answer.lease is not None
        assert (answer.lease.shard, answer.lease.instance_id) == (WHOLE, "one")

    async def test_while_one_leads_the_others_follow(self, lease_scene: LeaseScene) -> None:
        one, two = await lease_scene.provider("one"), await lease_scene.provider("two")
        first = await one.acquire(WHOLE)
        answer = await two.acquire(WHOLE)
        assert (answer.lease, answer.result) == (None, "held")
        assert answer.store_now >= first.store_now

    async def test_a_leader_that_renews_goes_on_leading(self, lease_scene: LeaseScene) -> None:
        one, two = await lease_scene.provider("one"), await lease_scene.provider("two")
        lease = (await one.acquire(WHOLE)).lease
        assert lease is not None
        await lease_scene.expire()
        answer = await one.renew(lease)
        assert (answer.lease, answer.result) == (lease, "renewed")
        assert (await two.acquire(WHOLE)).lease is None

    async def test_a_leader_that_falls_silent_is_followed_under_a_higher_epoch(
        self, lease_scene: LeaseScene
    ) -> None:
        one, two = await lease_scene.provider("one"), await lease_scene.provider("two")
        old = (await one.acquire(WHOLE)).lease
        await lease_scene.expire()
        new = (await two.acquire(WHOLE)).lease
        assert old is not None
        assert new is not None
        assert new.epoch > old.epoch
        answer = await one.renew(old)
        assert (answer.lease, answer.result) == (None, "held")
        await one.release(old)
        assert (await two.renew(new)).lease == new

    async def test_a_leader_that_releases_is_followed_at_once(self, lease_scene: LeaseScene) -> None:
        one, two = await lease_scene.provider("one"), await lease_scene.provider("two")
        old = (await one.acquire(WHOLE)).lease
        assert old is not None
        await one.release(old)
        new = (await two.acquire(WHOLE)).lease
        assert new is not None
        assert new.epoch > old.epoch

    async def test_of_many_that_ask_at_once_one_leads(self, lease_scene: LeaseScene) -> None:
        providers = [await lease_scene.provider(f"instance-{n}") for n in range(6)]
        answers = await asyncio.gather(*(provider.acquire(WHOLE) for provider in providers))
        assert sum(1 for answer in answers if answer.lease is not None) == 1
        assert {answer.result for answer in answers if answer.lease is None} <= {"held", "contended"}
