"""Conformance suite for upkeep: rescue, release of held executions, delays, pruning. Fenced, in batches."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update
from tests.conformance.suites.scene import LONG, STALE, Scene

from foliot.db.dialect import Pool
from foliot.db.tables.executions import attempt_t, execution_t
from foliot.db.tables.schedules import schedule_t, schedule_version_t
from foliot.model.attempt import Claim
from foliot.model.errors import FencedError
from foliot.model.execution import Status
from foliot.model.lease import Lease, Shard
from foliot.model.schedule import Schedule, ScheduleState

DELAY = {"kind": "delay", "seconds": 30}


async def lost(scene: Scene, name: str = "each", **fields: Any) -> Claim:
    """Create an execution whose worker is lost."""
    schedule = await scene.add(name, **fields)
    await scene.trigger(schedule)
    return await scene.claim_one("gone", lease_s=STALE)


async def running_delay(scene: Scene, **fields: Any) -> tuple[Schedule, Claim]:
    """Create a schedule with a `delay` trigger and a run in progress."""
    schedule = await scene.add(trigger=DELAY, age_s=40, **fields)
    await scene.fire(await scene.lead(), schedule)
    return schedule, await scene.claim_one()


async def restarted(scene: Scene, lease: Lease) -> list[UUID]:
    return (await scene.store.upkeep.restart_delays(lease, limit=10)).schedule_ids


class UpkeepConformance:
    """Tests for upkeep. Fixture: `scene`."""

    # --- rescue -----------------------------------------------------------------------------------

    async def test_a_lost_execution_is_tried_again_after_its_backoff(self, scene: Scene) -> None:
        retry = {"max_attempts": 2, "initial_delay_seconds": 10, "max_delay_seconds": 10, "jitter": False}
        claim = await lost(scene, retry=retry)
        before = await scene.now()
        assert await scene.rescue(await scene.lead(), limit=10) == {claim.execution_id: Status.RETRYING}
        row = await scene.execution(claim.execution_id)
        assert row.ready_ts is not None
        assert timedelta(seconds=10) <= row.ready_ts - before < timedelta(seconds=100)
        assert row.due_by_ts == row.ready_ts + timedelta(seconds=5)
        assert (row.status, row.lease_until, row.ended_ts) == (Status.RETRYING, None, None)
        [attempt] = await scene.rows(select(attempt_t))
        assert (attempt.execution_id, attempt.attempt, attempt.status) == (claim.execution_id, 1, "unknown")
        assert (attempt.worker_id, attempt.started_ts) == ("gone", claim.started_ts)
        assert await scene.rescue(await scene.lead(), limit=10) == {}

    async def test_a_job_that_kills_every_worker_fails_after_its_attempts(self, scene: Scene) -> None:
        retry = {"max_attempts": 3, "initial_delay_seconds": 0, "max_delay_seconds": 0}
        schedule = await scene.add(retry=retry)
        await scene.trigger(schedule)
        lease = await scene.lead()
        statuses: list[Status] = []
        for _ in range(3):
            await scene.claim_one(lease_s=STALE)
            statuses += (await scene.rescue(lease, limit=10)).values()
        assert statuses == [Status.RETRYING, Status.RETRYING, Status.FAILED]
        assert await scene.claim() == []
        [row] = await scene.executions(schedule)
        assert row.ended_ts is not None
        assert len(await scene.rows(select(attempt_t))) == 3

    async def test_at_most_once_ends_unknown_and_never_runs_again(self, scene: Scene) -> None:
        claim = await lost(scene, delivery="at_most_once")
        rescued = await scene.rescue(await scene.lead(), limit=10)
        assert rescued == {claim.execution_id: Status.UNKNOWN}
        assert (await scene.execution(claim.execution_id)).ended_ts is not None
        assert await scene.claim() == []

    async def test_a_lost_execution_that_was_to_be_cancelled_is_cancelled(self, scene: Scene) -> None:
        claim = await lost(scene, overlap={"policy": "cancel_running"})
        schedule = await scene.store.schedules.get(claim.schedule_id)
        await scene.trigger(schedule)
        rescued = await scene.rescue(await scene.lead(), limit=10)
        assert rescued == {claim.execution_id: Status.CANCELLED}

    async def test_work_whose_lease_is_renewed_is_never_rescued(self, scene: Scene) -> None:
        claim = await lost(scene)
        await scene.store.work.renew("gone", [claim], LONG)
        assert await scene.rescue(await scene.lead(), limit=10) == {}
        assert await scene.settle(claim, Status.SUCCESS, "gone") == frozenset()

    async def test_rescue_goes_in_batches_longest_lost_first(self, scene: Scene) -> None:
        claims = [await lost(scene, f"number-{n}") for n in range(3)]
        for age, claim in zip((20, 30, 10), claims, strict=True):
            await scene.execute(
                update(execution_t)
                .where(execution_t.c.execution_id == claim.execution_id)
                .values(lease_until=await scene.now() - timedelta(seconds=age))
            )
        lease = await scene.lead()
        batches = [set(await scene.rescue(lease, limit=2)) for _ in range(3)]
        assert batches == [
            {claims[1].execution_id, claims[0].execution_id},
            {claims[2].execution_id},
            set(),
        ]

    async def test_each_shard_is_looked_after_by_its_own_leader(self, scene: Scene) -> None:
        claim = await lost(scene)
        schedule = await scene.store.schedules.get(claim.schedule_id)
        await scene.store.leases.reshard(2)
        other = await scene.lead(Shard(1 - schedule.slot % 2, 2))
        assert await scene.rescue(other, limit=10) == {}
        mine = await scene.lead(Shard(schedule.slot % 2, 2))
        assert set(await scene.rescue(mine, limit=10)) == {claim.execution_id}

    async def test_a_deposed_leader_can_do_no_upkeep(self, scene: Scene) -> None:
        claim = await lost(scene)
        await scene.trigger(await scene.store.schedules.get(claim.schedule_id))
        old = await scene.lead(instance_id="one")
        await scene.lead(instance_id="two")
        before = await scene.everything()
        upkeep = scene.store.upkeep
        for act in (
            upkeep.rescue(old, limit=10),
            upkeep.release_held(old, limit=10),
            upkeep.restart_delays(old, limit=10),
            upkeep.prune(old, before=await scene.now() + timedelta(days=1), limit=10),
        ):
            with pytest.raises(FencedError):
                await act
        assert await scene.everything() == before

    # --- held executions --------------------------------------------------------------------------

    async def test_held_ones_are_released_oldest_first_as_far_as_the_limit_allows(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "queue", "max_instances": 2}, priority="high")
        ids = [await scene.trigger(schedule) for _ in range(6)]
        now = await scene.now()
        for minutes, execution_id in zip((9, 8, 3, 5, 4, 6), ids, strict=True):
            await scene.execute(
                update(execution_t)
                .where(execution_t.c.execution_id == execution_id)
                .values(fire_ts=now - timedelta(minutes=minutes))
            )
        lease = await scene.lead()
        assert await scene.release(lease) == 0
        for claim in await scene.claim():
            await scene.settle(claim, Status.SUCCESS)
        assert await scene.release(lease) == 2
        claims = await scene.claim()
        assert {claim.execution_id for claim in claims} == {ids[5], ids[3]}
        row = await scene.execution(ids[5])
        assert row.ready_ts is not None
        assert row.due_by_ts is not None
        assert timedelta(seconds=0.9) < row.due_by_ts - row.ready_ts < timedelta(seconds=1.1)
        await scene.settle(claims[0], Status.SUCCESS)
        assert await scene.release(lease) == 1
        assert [claim.execution_id for claim in await scene.claim()] == [ids[4]]

    async def test_the_present_policy_says_how_many_are_released(self, scene: Scene) -> None:
        schedule = await scene.add(overlap={"policy": "queue"})
        for _ in range(4):
            await scene.trigger(schedule)
        lease = await scene.lead()
        await scene.edit(schedule, overlap={"policy": "queue", "max_instances": 3})
        assert await scene.release(lease) == 2
        await scene.edit(schedule, overlap={"policy": "allow"})
        assert await scene.release(lease) == 1

    async def test_schedules_that_must_wait_do_not_keep_others_waiting(self, scene: Scene) -> None:
        for number in range(4):
            blocked = await scene.add(f"blocked-{number}", overlap={"policy": "queue"})
            await scene.trigger(blocked)
            await scene.trigger(blocked)
        running = await scene.claim()
        free = []
        for number in range(2):
            schedule = await scene.add(f"free-{number}", overlap={"policy": "queue"})
            await scene.trigger(schedule)
            free.append(await scene.trigger(schedule))
        for claim in await scene.claim():
            await scene.settle(claim, Status.SUCCESS)
        lease = await scene.lead()
        position, looks = None, 0
        while looks == 0 or position is not None:
            _count, position = await scene.store.upkeep.release_held(lease, limit=2, after=position)
            looks += 1
        assert looks == 4, "six schedules, two at a time, and nothing after them"
        assert {claim.execution_id for claim in await scene.claim()} == set(free)
        assert len(running) == 4

    async def test_thousands_of_held_ones_of_one_schedule_cost_by_their_number_not_its_square(
        self, scene: Scene
    ) -> None:
        crowded = await scene.add("crowded", overlap={"policy": "queue", "max_instances": 2})
        plain = await scene.add("plain", overlap={"policy": "queue"})
        for schedule in (crowded, plain):
            await scene.trigger(schedule)
        for claim in await scene.claim():
            await scene.settle(claim, Status.SUCCESS)
        await scene.hold(crowded, 6_000)
        await scene.hold(plain, 1)
        lease = await scene.lead()
        async with asyncio.timeout(30):  # a quadratic statement took minutes, or hit the statement timeout
            assert await scene.release(lease) == 3
            assert await scene.release(lease) == 0
        assert len(await scene.claim()) == 3

    async def test_a_schedule_that_somebody_has_locked_does_not_keep_others_waiting(
        self, scene: Scene
    ) -> None:
        if scene.store.database.dialect.name == "sqlite":
            pytest.skip("SQLite has one lock for all")
        locked, free = await scene.add("locked"), await scene.add("free")
        for schedule in (locked, free):
            await scene.hold(schedule, 1)
        lease = await scene.lead()
        async with scene.store.database.engine(Pool.API).begin() as connection:
            await connection.execute(
                select(schedule_t).where(schedule_t.c.schedule_id == locked.schedule_id).with_for_update()
            )
            assert await scene.release(lease) == 1
        assert await scene.release(lease) == 1

    async def test_a_policy_of_a_newer_version_keeps_only_its_own_held_ones_waiting(
        self, scene: Scene
    ) -> None:
        unknown_field, unknown_value = await scene.add("field"), await scene.add("value")
        plain = await scene.add("plain")
        for schedule, overlap in (
            (unknown_field, {"policy": "queue", "max_instances": 1, "field_of_the_next_release": 1}),
            (unknown_value, {"policy": "policy_of_the_next_release"}),
        ):
            await scene.execute(
                update(schedule_t)
                .where(schedule_t.c.schedule_id == schedule.schedule_id)
                .values(policies={"overlap": overlap, "policy_of_the_next_release": {}})
            )
        for schedule in (unknown_field, unknown_value, plain):
            await scene.hold(schedule, 1)
        assert await scene.release(await scene.lead()) == 2
        claimed = {claim.schedule_id for claim in await scene.claim()}
        assert claimed == {unknown_field.schedule_id, plain.schedule_id}

    async def test_an_execution_whose_version_only_others_can_read_is_left_to_them(
        self, scene: Scene
    ) -> None:
        unread, plain = await lost(scene, "unread"), await lost(scene, "plain")
        table = schedule_version_t
        newer = {"of": "the next release"}
        mine = table.c.schedule_id == unread.schedule_id
        known = await scene.rows(select(table.c.document).where(mine))
        await scene.execute(update(table).where(mine).values(document=newer))
        lease = await scene.lead()
        assert set(await scene.rescue(lease)) == {plain.execution_id}
        assert (await scene.execution(unread.execution_id)).status is Status.RUNNING
        # A leader that can read the version rescues it after the lease has ended.
        await scene.execute(update(table).where(mine).values(document=known[0].document))
        await scene.store.work.renew("gone", [unread], STALE)
        assert set(await scene.rescue(lease)) == {unread.execution_id}

    async def test_leases_that_end_only_by_a_step_of_the_clock_are_not_rescued(self, scene: Scene) -> None:
        claim = await lost(scene)
        row = await scene.execution(claim.execution_id)
        lease = await scene.lead()
        assert await scene.store.upkeep.rescue(lease, limit=10, until=row.lease_until) == []
        assert row.lease_until is not None
        later = row.lease_until + timedelta(seconds=1)
        assert len(await scene.store.upkeep.rescue(lease, limit=10, until=later)) == 1

    # --- delay ------------------------------------------------------------------------------------

    async def test_a_delay_has_no_next_time_while_its_run_is_under_way(self, scene: Scene) -> None:
        schedule, _ = await running_delay(scene)
        waiting = await scene.get(schedule)
        assert (waiting.state, waiting.next_fire_ts, waiting.next_run_ts) == (
            ScheduleState.ACTIVE,
            None,
            None,
        )
        assert await restarted(scene, await scene.lead()) == []

    async def test_a_delay_counts_from_the_end_of_its_run(self, scene: Scene) -> None:
        schedule, claim = await running_delay(scene)
        before = await scene.now()
        await scene.settle(claim, Status.SUCCESS, is_delay=True)
        moved = await scene.get(schedule)
        assert moved.next_fire_ts is not None
        assert moved.next_fire_ts == moved.next_run_ts
        assert before <= moved.next_fire_ts - timedelta(seconds=30) <= await scene.now()

    async def test_a_delay_goes_on_waiting_between_attempts_and_through_manual_runs(
        self, scene: Scene
    ) -> None:
        schedule, claim = await running_delay(scene)
        await scene.settle(
            claim, Status.RETRYING, attempt_status=Status.FAILED, retry_in_s=LONG, is_delay=True
        )
        assert (await scene.get(schedule)).next_fire_ts is None
        await scene.edit(schedule, overlap={"policy": "allow"})
        await scene.trigger(schedule)
        await scene.settle(await scene.claim_one(), Status.SUCCESS, is_delay=True)
        assert (await scene.get(schedule)).next_fire_ts is None

    async def test_a_delay_whose_run_ended_without_a_settle_is_restarted(self, scene: Scene) -> None:
        schedule, claim = await running_delay(scene, delivery="at_most_once")
        await scene.store.work.renew("worker", [claim], STALE)
        lease = await scene.lead()
        assert set((await scene.rescue(lease, limit=10)).values()) == {Status.UNKNOWN}
        assert await restarted(scene, lease) == [schedule.schedule_id]
        assert (await scene.get(schedule)).next_fire_ts is not None
        assert await restarted(scene, lease) == []

    async def test_a_delay_of_a_newer_version_is_left_to_it_and_the_others_go_on(self, scene: Scene) -> None:
        found = []
        for name in ("one", "two", "three"):
            schedule = await scene.add(name, trigger=DELAY, age_s=40)
            await scene.fire(await scene.lead(), schedule)
            found.append(schedule)
        first, newer, last = sorted(found, key=lambda each: each.schedule_id)
        await scene.execute(
            update(schedule_t)
            .where(schedule_t.c.schedule_id == newer.schedule_id)
            .values(policies={"overlap": {"policy": "policy_of_the_next_release"}})
        )
        claims = await scene.claim()
        for claim in claims:  # like rescued ones: no settle has set the next fire time
            await scene.settle(claim, Status.SUCCESS)
        lease = await scene.lead()
        looks: list[list[UUID]] = []
        position = None
        while not looks or position is not None:
            ids, position = await scene.store.upkeep.restart_delays(lease, limit=1, after=position)
            looks.append(ids)
        assert looks == [[first.schedule_id], [], [last.schedule_id], []]
        # A worker can settle a run of an unreadable schedule, and the rest of its batch.
        [mine] = [claim for claim in claims if claim.schedule_id == newer.schedule_id]
        await scene.execute(
            update(execution_t)
            .where(execution_t.c.execution_id == mine.execution_id)
            .values(status="running", worker_id="worker", lease_until=await scene.now())
        )
        assert await scene.settle(mine, Status.SUCCESS, is_delay=True) == frozenset()

    async def test_a_paused_delay_is_not_restarted(self, scene: Scene) -> None:
        schedule, claim = await running_delay(scene)
        await scene.pause(schedule)
        await scene.settle(claim, Status.SUCCESS, is_delay=True)
        assert await restarted(scene, await scene.lead()) == []
        assert (await scene.get(schedule)).next_fire_ts is None

    async def test_a_delay_past_its_end_is_completed(self, scene: Scene) -> None:
        end = await scene.now() + timedelta(seconds=10)
        schedule, claim = await running_delay(scene, end_ts=end.isoformat())
        await scene.settle(claim, Status.SUCCESS, is_delay=True)
        moved = await scene.get(schedule)
        assert (moved.state, moved.next_fire_ts) == (ScheduleState.COMPLETED, None)

    # --- history ----------------------------------------------------------------------------------

    async def test_pruning_deletes_settled_history_in_batches_and_keeps_what_is_open(
        self, scene: Scene
    ) -> None:
        schedule = await scene.add(overlap={"policy": "allow"})
        for _ in range(5):
            await scene.trigger(schedule)
        running, *rest = await scene.claim()
        for claim in rest:
            await scene.settle(claim, Status.FAILED)
        waiting = await scene.trigger(schedule)
        lease = await scene.lead()
        later = await scene.now() + timedelta(days=1)
        counts = [await scene.store.upkeep.prune(lease, before=later, limit=3) for _ in range(3)]
        assert counts == [3, 1, 0]
        assert {row.execution_id for row in await scene.executions(schedule)} == {
            running.execution_id,
            waiting,
        }
        assert await scene.rows(select(attempt_t)) == []

    async def test_pruning_keeps_what_is_younger(self, scene: Scene) -> None:
        schedule = await scene.add(misfire={"policy": "skip"})
        await scene.fire(await scene.lead(), schedule)
        lease = await scene.lead()
        before = await scene.now() - timedelta(days=1)
        assert await scene.store.upkeep.prune(lease, before=before, limit=10) == 0
        assert len(await scene.executions(schedule)) == 1
        [[version]] = await scene.rows(select(schedule_t.c.aggregate_version))
        assert version == 1
