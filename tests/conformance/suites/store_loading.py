"""Conformance suite for loading due schedules: soonest first, complete, only those of the own shard."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import update
from tests.conformance.suites.scene import WHOLE, Scene

from foliot.db.rows.due_rows import LoadPosition, LoadRange
from foliot.db.tables.schedules import schedule_t
from foliot.model.instant import EPOCH
from foliot.model.lease import Shard
from foliot.model.policy import Priority
from foliot.planning.change import due_of
from foliot.planning.fire import Due


async def load_all(
    scene: Scene, until: datetime, shard: Shard = WHOLE, page: int = 4
) -> list[tuple[datetime, UUID]]:
    found: list[tuple[datetime, UUID]] = []
    after: LoadPosition | None = None
    while True:
        loaded = await scene.store.firing.load(shard, until=until, after=after, limit=page)
        assert len(loaded) <= page
        found += [(due.run_ts, due.schedule_id) for due in loaded]
        if len(loaded) < page:
            return found
        after = LoadPosition(loaded[-1].run_ts, loaded[-1].schedule_id)


async def load_first(scene: Scene, shard: Shard, until: datetime, *, per_range: int) -> list[Due]:
    """Load the first due schedules of every load_range (host and priority)."""
    hosts: list[UUID] = []
    while page := await scene.store.firing.load_hosts(after=hosts[-1] if hosts else None, limit=2):
        hosts += page
    assert hosts == sorted(set(hosts)), "every host once"
    ranges = [LoadRange(host_id, priority, EPOCH) for host_id in hosts for priority in Priority]
    return await scene.store.firing.load_ranges(shard, ranges, until=until, per_range=per_range)


class LoadingConformance:
    """Tests for loading due schedules. Fixture: `scene`."""

    async def test_what_is_loaded_is_what_planning_needs(self, scene: Scene) -> None:
        end = (await scene.now() + timedelta(days=1)).isoformat()
        schedule = await scene.add(
            priority="low",
            queue="reports",
            max_runs=7,
            end_ts=end,
            jitter_seconds=3,
            overlap={"policy": "queue"},
        )
        [due] = await scene.store.firing.load(WHOLE, until=await scene.now(), after=None, limit=10)
        expected = due_of(await scene.get(schedule))
        assert due.definition._replace(trigger="", policies="") == expected.definition._replace(
            trigger="", policies=""
        )
        [firing] = await scene.plan(schedule)
        assert firing.due == due
        assert (due.fire_ts, due.run_ts, due.run_count) == (expected.fire_ts, expected.run_ts, 0)

    async def test_only_what_is_due_by_then_is_loaded_soonest_first(self, scene: Scene) -> None:
        ages = [95, 61, 80, 30, 0]
        schedules = [await scene.add(f"number-{n}", age_s=age) for n, age in enumerate(ages)]
        loaded = await load_all(scene, await scene.now())
        assert [each[1] for each in loaded] == [schedules[n].schedule_id for n in (0, 2, 1)]

    async def test_pages_neither_lose_nor_repeat_schedules_that_share_an_instant(self, scene: Scene) -> None:
        schedules = [await scene.add(f"number-{n:02}") for n in range(19)]
        instant = await scene.now() - timedelta(seconds=10)
        await scene.execute(update(schedule_t).values(next_run_ts=instant))
        for page in (1, 3, 4, 19, 100):
            loaded = [each[1] for each in await load_all(scene, await scene.now(), page=page)]
            assert loaded == sorted(each.schedule_id for each in schedules)

    async def test_what_will_not_become_due_is_not_loaded(self, scene: Scene) -> None:
        paused, inactive, deleted, rest = [await scene.add(f"number-{n}") for n in range(4)]
        await scene.pause(paused)
        await scene.edit(inactive, active=False)
        await scene.delete(deleted)
        far = await scene.now() + timedelta(days=1000)
        assert [each[1] for each in await load_all(scene, far)] == [rest.schedule_id]
        ids = [each.schedule_id for each in (paused, inactive, deleted, rest)]
        some = await scene.store.firing.load_some(WHOLE, ids)
        assert [due.schedule_id for due in some] == [rest.schedule_id]

    async def test_a_pause_with_an_end_is_loaded_for_then(self, scene: Scene) -> None:
        schedule = await scene.add()
        until = await scene.now() + timedelta(minutes=10)
        await scene.pause(schedule, until_ts=until)
        [due] = await scene.due(schedule)
        assert until <= due.fire_ts < until + timedelta(minutes=1)

    async def test_every_schedule_belongs_to_exactly_one_shard(self, scene: Scene) -> None:
        schedules = {(await scene.add(f"number-{n}")).schedule_id for n in range(24)}
        now = await scene.now()
        by_shard = [{each[1] for each in await load_all(scene, now, Shard(n, 3))} for n in range(3)]
        assert set.union(*by_shard) == schedules
        assert sum(len(each) for each in by_shard) == len(schedules)
        for number, expected in enumerate(by_shard):
            some = await scene.store.firing.load_some(Shard(number, 3), list(schedules))
            assert {due.schedule_id for due in some} == expected
            backlog = await load_first(scene, Shard(number, 3), now, per_range=100)
            assert {due.schedule_id for due in backlog} == expected

    async def test_a_backlog_gives_every_host_and_priority_its_first(self, scene: Scene) -> None:
        hosts = [await scene.add_host("one"), await scene.add_host("two")]
        oldest = {}
        for host_id in hosts:
            for priority in Priority:
                for age in (62, 70, 90, 80):
                    schedule = await scene.add(
                        f"{priority}-{age}", host_id=host_id, priority=priority, age_s=age
                    )
                    oldest[host_id, priority, age] = schedule.schedule_id
        await scene.add("not-due", host_id=hosts[0], age_s=0)
        loaded = await load_first(scene, WHOLE, await scene.now(), per_range=2)
        assert len(loaded) == 12
        assert {due.schedule_id for due in loaded} == {
            schedule_id for (_, _, age), schedule_id in oldest.items() if age in (90, 80)
        }

    async def test_a_lane_goes_on_from_an_instant_and_leaves_out_what_is_known(self, scene: Scene) -> None:
        made = [await scene.add(f"number-{age}", priority="low", age_s=age) for age in (90, 80, 75, 70)]
        dues = await scene.due(*made)
        by_age = sorted(dues, key=lambda due: due.run_ts)
        load_range = LoadRange(made[0].host_id, Priority.LOW, by_age[1].run_ts)
        now = await scene.now()
        found = await scene.store.firing.load_ranges(
            WHOLE, [load_range], until=now, per_range=10, excluding=[by_age[2].schedule_id]
        )
        assert {due.schedule_id for due in found} == {by_age[1].schedule_id, by_age[3].schedule_id}
        page = await scene.store.firing.load(
            WHOLE, until=now, after=None, limit=10, excluding=[due.schedule_id for due in by_age[:3]]
        )
        assert [due.schedule_id for due in page] == [by_age[3].schedule_id]
