"""Conformance suite for leases: one leader at a time, epochs never reused, deposed leaders can't write."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select, update
from tests.conformance.suites.scene import LONG, STALE, WHOLE, Scene

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.model.errors import FencedError
from foliot.model.instant import EPOCH
from foliot.model.lease import Lease, Shard
from foliot.scheduler.leases.leases_sql import require_lease


async def check_fence(database: Database, lease: Lease) -> None:
    await database.write(Pool.FIRING, lambda connection: require_lease(connection, lease))


async def heartbeat_back(scene: Scene, seconds: float) -> None:
    then = await scene.now() - timedelta(seconds=seconds)
    await scene.execute(update(scheduler_lock_t).values(last_heartbeat=then))


class FenceConformance:
    """Tests for leases and fencing. Fixture: `scene`."""

    async def test_a_lease_that_nobody_has_is_given_to_who_asks(self, scene: Scene) -> None:
        standing = await scene.store.leases.take(WHOLE, "one", LONG)
        assert standing.lease == Lease(WHOLE, 1, "one")
        assert (standing.holder, standing.epoch, standing.is_contended) == ("one", 1, False)

    async def test_a_held_lease_is_not_given_away_and_names_its_holder(self, scene: Scene) -> None:
        await scene.store.leases.take(WHOLE, "one", LONG)
        standing = await scene.store.leases.take(WHOLE, "two", LONG)
        assert standing.lease is None
        assert (standing.holder, standing.epoch) == ("one", 1)
        assert standing.store_now <= await scene.now()

    async def test_a_lease_passes_on_when_its_heartbeat_is_older_than_the_ttl(self, scene: Scene) -> None:
        await scene.store.leases.take(WHOLE, "one", LONG)
        await heartbeat_back(scene, 100)
        assert (await scene.store.leases.take(WHOLE, "two", 1000)).lease is None
        assert (await scene.store.leases.take(WHOLE, "two", 99)).lease == Lease(WHOLE, 2, "two")

    async def test_taking_a_lease_is_its_first_heartbeat(self, scene: Scene) -> None:
        before = await scene.now()
        await scene.store.leases.take(WHOLE, "one", LONG)
        [[heartbeat]] = await scene.rows(select(scheduler_lock_t.c.last_heartbeat))
        assert before <= heartbeat <= await scene.now()

    async def test_renewing_keeps_a_lease_from_becoming_stale(self, scene: Scene) -> None:
        lease = await scene.lead()
        await heartbeat_back(scene, 100)
        assert (await scene.store.leases.renew(lease)).lease == lease
        assert (await scene.store.leases.take(WHOLE, "two", 50)).lease is None

    async def test_a_lease_that_has_passed_on_can_not_be_renewed(self, scene: Scene) -> None:
        old = await scene.lead(instance_id="one")
        new = await scene.lead(instance_id="two")
        await heartbeat_back(scene, 100)
        standing = await scene.store.leases.renew(old)
        assert standing.lease is None
        assert (standing.holder, standing.epoch) == ("two", new.epoch)
        assert (await scene.store.leases.take(WHOLE, "three", 50)).lease is not None, "no heartbeat was left"

    async def test_who_knows_more_may_take_a_row_sooner_and_others_learn_how_long_it_was_silent(
        self, scene: Scene
    ) -> None:
        old = await scene.lead(instance_id="one")
        await heartbeat_back(scene, 40)
        refused = await scene.store.leases.take(WHOLE, "two", 60)
        assert refused.lease is None
        assert 40 <= refused.silent_s < 60
        assert (await scene.store.leases.take(WHOLE, "two", 30)).lease == Lease(WHOLE, old.epoch + 1, "two")
        refused = await scene.store.leases.take(WHOLE, "three", 30)
        assert refused.lease is None
        assert refused.silent_s < 30

    async def test_an_instance_that_takes_its_own_lease_again_gets_a_new_epoch(self, scene: Scene) -> None:
        old = await scene.lead(instance_id="one")
        new = await scene.lead(instance_id="one")
        assert new.epoch == old.epoch + 1
        assert (await scene.store.leases.renew(old)).lease is None

    async def test_a_released_lease_is_free_at_once_and_its_epoch_still_grows(self, scene: Scene) -> None:
        lease = await scene.lead(instance_id="one")
        await scene.store.leases.release(lease)
        assert (await scene.store.leases.take(WHOLE, "two", LONG)).lease == Lease(
            WHOLE, lease.epoch + 1, "two"
        )

    async def test_releasing_a_lease_that_has_passed_on_changes_nothing(self, scene: Scene) -> None:
        old = await scene.lead(instance_id="one")
        new = await scene.lead(instance_id="two")
        await scene.store.leases.release(old)
        assert (await scene.store.leases.renew(new)).lease == new
        assert (await scene.store.leases.take(WHOLE, "three", LONG)).lease is None

    async def test_of_many_that_reach_for_a_free_lease_exactly_one_gets_it(self, scene: Scene) -> None:
        stores = await scene.stores(8)
        standings = await asyncio.gather(
            *(store.leases.take(WHOLE, f"instance-{n}", LONG) for n, store in enumerate(stores))
        )
        leases = [standing.lease for standing in standings if standing.lease is not None]
        assert [lease.epoch for lease in leases] == [1]

    async def test_shards_are_led_apart(self, scene: Scene) -> None:
        await scene.store.leases.reshard(2)
        first = await scene.lead(Shard(0, 2), "one")
        second = await scene.lead(Shard(1, 2), "two")
        assert (await scene.store.leases.renew(first)).lease == first
        assert (await scene.store.leases.renew(second)).lease == second

    async def test_resharding_ends_every_lease_and_gives_no_epoch_twice(self, scene: Scene) -> None:
        await scene.store.leases.reshard(3)
        leases = [await scene.lead(Shard(n, 3)) for n in (0, 1, 1, 1, 2)]
        highest = max(lease.epoch for lease in leases)
        await scene.store.leases.reshard(2)
        assert await scene.store.leases.shard_count() == 2
        for lease in leases[:4]:
            assert (await scene.store.leases.renew(lease)).lease is None
        with pytest.raises(FencedError):
            await scene.store.leases.renew(leases[4])
        with pytest.raises(FencedError):
            await scene.store.leases.take(Shard(2, 3), "one", STALE)
        await scene.store.leases.reshard(3)
        for number in range(3):
            lease = await scene.lead(Shard(number, 3))
            assert lease.epoch > highest

    async def test_the_fence_lets_only_the_present_lease_pass(self, scene: Scene) -> None:
        old = await scene.lead(instance_id="one")
        new = await scene.lead(instance_id="one")
        await check_fence(scene.store.database, new)
        for stranger in (
            old,
            Lease(WHOLE, new.epoch, "another"),
            Lease(WHOLE, new.epoch + 1, new.instance_id),
            Lease(Shard(1, 2), new.epoch, new.instance_id),
        ):
            with pytest.raises(FencedError):
                await check_fence(scene.store.database, stranger)

    async def test_a_released_lease_does_not_pass_the_fence(self, scene: Scene) -> None:
        lease = await scene.lead()
        await scene.store.leases.release(lease)
        with pytest.raises(FencedError):
            await check_fence(scene.store.database, lease)

    async def test_a_takeover_waits_for_a_firing_in_flight(self, scene: Scene) -> None:
        lease = await scene.lead(instance_id="one")
        other = await scene.open_another()
        database = scene.store.database
        async with database.dialect.begin(database.engine(Pool.FIRING)) as connection:
            await require_lease(connection, lease)
            takeover = asyncio.create_task(other.leases.take(WHOLE, "two", STALE))
            assert await scene.is_kept_waiting(takeover)
        assert (await takeover).lease == Lease(WHOLE, lease.epoch + 1, "two")

    async def test_resharding_waits_for_a_firing_in_flight(self, scene: Scene) -> None:
        lease = await scene.lead()
        other = await scene.open_another()
        database = scene.store.database
        async with database.dialect.begin(database.engine(Pool.FIRING)) as connection:
            await require_lease(connection, lease)
            resharding = asyncio.create_task(other.leases.reshard(2))
            assert await scene.is_kept_waiting(resharding)
        await resharding
        with pytest.raises(FencedError):
            await check_fence(database, lease)

    async def test_a_new_database_has_one_shard_that_nobody_leads(self, scene: Scene) -> None:
        assert await scene.store.leases.shard_count() == 1
        [row] = await scene.rows(select(scheduler_lock_t))
        assert (row.lock_id, row.instance_id, row.last_heartbeat, row.epoch) == (1, "", EPOCH, 0)
