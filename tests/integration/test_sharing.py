"""Several schedulers on one database: who leads what, and that every second is decided once meanwhile."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from uuid import UUID

import pytest

from foliot.db.rows.registry_rows import InstanceRecord
from foliot.instance.runtime import Instance
from foliot.instance.spec import InstanceRole
from foliot.instance.store import SqlStore
from foliot.model.errors import FencedError
from foliot.model.event import OverdueCounted
from foliot.model.instance_events import (
    ClockObserved,
    LeaderElected,
    LeaseAttempted,
    LeaseLost,
    LeaseReleased,
    WriteFenced,
)
from foliot.model.lease import Shard
from foliot.scheduler.shard_assignment import view_of
from foliot.testing.app import Recorder
from tests.conftest import OpenStore
from tests.engine import AUTHOR, SCHEDULER, add_all, every_second, running, seen, until
from tests.ledger import assert_exact

SECOND = timedelta(seconds=1)
WITHIN_S = 60.0
CATCH_UP = {"misfire": {"policy": "fire_all"}, "overlap": {"policy": "allow"}}


class Group:
    """Schedulers that come and go."""

    def __init__(self, url: str, store: SqlStore, stack: AsyncExitStack) -> None:
        self._url = url
        self.store = store
        self._stack = stack
        self.members: dict[Instance, Recorder] = {}

    async def join(self, roles: frozenset[InstanceRole] = SCHEDULER) -> Instance:
        instance, recorder = await self._stack.enter_async_context(running(self._url, roles=roles))
        self.members[instance] = recorder
        return instance

    async def held(self) -> Counter[str]:
        """How many shards each leads, by the rows; what nobody leads is under None's name."""
        leaders = await self.store.overviews.leaders(ttl_s=3.0)
        return Counter(str(each.instance_id if each.is_fresh else None) for each in leaders)

    async def evens_out(self, *counts: int, among: list[Instance]) -> None:
        async def is_even() -> bool:
            held = await self.held()
            return sorted(held.values()) == sorted(counts) and set(held) <= {
                each.instance_id for each in among
            }

        await until(is_even, within_s=WITHIN_S)

    async def drain(self, instance: Instance, is_draining: bool = True) -> None:
        await self.store.registry_list.set_draining(instance.instance_id, is_draining, AUTHOR)


@asynccontextmanager
async def group_on(url: str, store: SqlStore) -> AsyncIterator[Group]:
    async with AsyncExitStack() as stack:
        yield Group(url, store, stack)


async def kill(instance: Instance) -> None:
    """As kill -9 would: it does nothing more, and says goodbye to nobody."""
    for _loop, task in instance._running._loops.values():
        task.cancel()
    await asyncio.gather(*(task for _loop, task in instance._running._loops.values()), return_exceptions=True)
    instance._running._loops.clear()
    instance.scheduler = None


async def until_decided(store: SqlStore, schedule_ids: list[UUID]) -> None:
    """Until each has a row from now on, so that what happened before is in the ledger."""
    since = await store.now()

    async def are_all() -> bool:
        latest = [await store.schedules.executions(each, limit=1) for each in schedule_ids]
        return all(rows and rows[0].fire_ts >= since for rows in latest)

    await until(are_all, within_s=WITHIN_S, every_s=0.2)


async def test_shares_follow_who_is_there_and_every_second_is_decided_once(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    await store.leases.reshard(8)
    schedules = await add_all(store, [every_second(f"s{number}", **CATCH_UP) for number in range(24)])
    async with group_on(postgres_url, store) as group:
        one = await group.join()
        await group.evens_out(8, among=[one])
        two, three = await asyncio.gather(group.join(), group.join())
        await group.evens_out(3, 3, 2, among=[one, two, three])
        told = {each: len(seen(group.members[each], LeaseReleased)) for each in group.members}
        if not any(seen(recorder, LeaseLost) for recorder in group.members.values()):
            # Where nobody was too late for its lease: what had to be given away was, and nothing was refused.
            assert told[one] + told[two] + told[three] <= 6, told
            assert not any(seen(recorder, WriteFenced) for recorder in group.members.values())

        await group.drain(three)
        await group.evens_out(4, 4, among=[one, two])
        await group.drain(three, is_draining=False)
        await group.evens_out(3, 3, 2, among=[one, two, three])

        await kill(two)
        await group.evens_out(4, 4, among=[one, three])
        await store.leases.reshard(2)
        await group.evens_out(1, 1, among=[one, three])
        await one.stop()
        await group.evens_out(2, among=[three])
        await until_decided(store, [each.schedule_id for each in schedules])
    for schedule in schedules:
        assert schedule.next_fire_ts is not None
        rows = await store.schedules.executions(schedule.schedule_id, limit=100_000)
        assert_exact(rows, SECOND, schedule.next_fire_ts)


async def test_the_number_of_shards_changes_under_load_and_every_second_is_decided_once(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    schedules = await add_all(store, [every_second(f"s{number}", **CATCH_UP) for number in range(40)])
    ids = [each.schedule_id for each in schedules]
    async with group_on(postgres_url, store) as group:
        both = [await group.join(), await group.join()]
        await until_decided(store, ids)
        fired_by = set()
        for count in (4, 2):
            assert await both[0].commands.cluster.reshard(count, AUTHOR) != count
            await group.evens_out(count // 2, count // 2, among=both)
            await until_decided(store, ids)
            latest = [(await store.schedules.executions(each, limit=1))[0] for each in ids]
            fired_by |= {row.scheduler_instance_id for row in latest}
        assert fired_by == {each.instance_id for each in both}, "both fire their share"
        for recorder in group.members.values():
            await until(lambda recorder=recorder: bool(seen(recorder, OverdueCounted)))  # type: ignore[misc]
            assert {each.count for each in seen(recorder, OverdueCounted)} == {0}
    for schedule in schedules:
        assert schedule.next_fire_ts is not None
        rows = await store.schedules.executions(schedule.schedule_id, limit=100_000)
        assert_exact(rows, SECOND, schedule.next_fire_ts)


async def test_who_knows_another_number_of_shards_leads_none(
    database_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(database_url)
    await store.leases.reshard(4)
    with pytest.raises(FencedError):
        await store.leases.take(Shard(0, 2), "behind", 3.0)
    assert (await store.leases.take(Shard(0, 4), "up to date", 3.0)).lease is not None


async def test_one_shard_has_a_leader_and_followers_and_a_draining_leader_alone_goes_on(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    async with group_on(postgres_url, store) as group:
        one = await group.join()
        await group.evens_out(1, among=[one])
        await group.drain(one)
        recorder = group.members[one]
        # It has looked since, and again: it hands over to nobody.
        await beats(recorder)
        await group.evens_out(1, among=[one])
        assert seen(recorder, LeaseReleased) == []
        two = await group.join()
        await group.evens_out(1, among=[two])
        assert len(seen(recorder, LeaseReleased)) == 1
        await group.drain(one, is_draining=False)
        await beats(recorder)
        # A leader stays, however many follow.
        await group.evens_out(1, among=[two])
        assert seen(group.members[two], LeaseReleased) == []


async def test_a_share_that_is_not_taken_is_taken_by_another_and_kept(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    await store.leases.reshard(2)
    ghost = InstanceRecord("ghost", "elsewhere", 1, ("scheduler",), "1.0")

    async def haunt() -> None:
        """Give signs of life, and lead nothing."""
        while True:
            await store.registry.heartbeat(ghost)
            await asyncio.sleep(0.1)

    haunting = asyncio.create_task(haunt())
    try:
        async with group_on(postgres_url, store) as group:
            one = await group.join()
            await group.evens_out(2, among=[one])
            recorder = group.members[one]
            first, second = seen(recorder, LeaderElected)[:2]
            assert {first.shard, second.shard} == {0, 1}
            await beats(recorder)
            assert seen(recorder, LeaseReleased) == []
    finally:
        haunting.cancel()


async def test_one_that_stops_is_not_counted_on_while_its_work_ends(
    database_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(database_url)
    async with running(database_url) as (instance, _recorder):

        async def candidates() -> frozenset[str]:
            return view_of(await store.surveys.read_snapshot(live_s=60.0), "other", 60.0).candidates

        async def is_counted() -> bool:
            return instance.instance_id in await candidates()

        await until(is_counted, within_s=WITHIN_S)
        assert instance.scheduler is not None
        await instance.scheduler.release()
        assert await candidates() == {"other"}


async def beats(recorder: Recorder) -> None:
    """Wait for a few heartbeats more: as often has it looked who else is there."""

    def count() -> int:
        return len(seen(recorder, ClockObserved)) + len(seen(recorder, LeaseAttempted))

    enough = count() + 5
    await until(lambda: count() >= enough, within_s=WITHIN_S)
