"""Conformance suite for work:

an execution has one worker at a time; only its current attempt can settle it.
"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.conformance.suites.scene import LONG, STALE, Scene

from foliot.db.rows.registry_rows import TaskRecord
from foliot.db.tables.cluster import task_function_t
from foliot.db.tables.executions import attempt_t, execution_log_t, execution_t, queue_t
from foliot.db.tables.schedules import schedule_status_t
from foliot.model.attempt import Claim, Settled, Settlement
from foliot.model.errors import IllegalTransitionError
from foliot.model.execution import Status, TriggeredBy
from foliot.model.policy import Priority
from foliot.model.schedule import Schedule
from foliot.planning.change import Author
from foliot.worker.journal_sql import Note

HALF_WAY = '{"fraction": 0.5, "text": "half way"}'
AT_ONCE = {"max_attempts": 5, "initial_delay_seconds": 0, "max_delay_seconds": 0}


async def add_ready(scene: Scene, count: int, name: str = "each", **fields: Any) -> Schedule:
    """Create a schedule with `count` executions that are ready for a worker."""
    schedule = await scene.add(name, overlap={"policy": "allow"}, retry=AT_ONCE, **fields)
    for _ in range(count):
        await scene.trigger(schedule)
    return schedule


async def lose(scene: Scene, worker_id: str = "worker") -> Claim:
    """Claim an execution and let rescue take it back, so that it is ready for its next attempt."""
    claim = await scene.claim_one(worker_id, lease_s=STALE)
    rescued = await scene.rescue(await scene.lead(), limit=10)
    assert rescued == {claim.execution_id: Status.RETRYING}
    return claim


class WorkConformance:
    """Tests for claiming, renewing and settling. Fixture: `scene`."""

    # --- claiming ---------------------------------------------------------------------------------

    async def test_a_claim_makes_an_execution_the_workers_own_for_its_lease(self, scene: Scene) -> None:
        schedule = await scene.add()
        execution_id = await scene.store.schedules.trigger(
            schedule.schedule_id, by=TriggeredBy.API, author=Author("somebody"), args={"region": "eu"}
        )
        before = await scene.now()
        claim = await scene.claim_one("one", lease_s=60)
        assert (claim.execution_id, claim.attempt, claim.failed_attempts) == (execution_id, 1, 0)
        assert (claim.args, claim.queue, claim.priority) == ({"region": "eu"}, "default", Priority.MEDIUM)
        row = await scene.execution(execution_id)
        assert (row.status, row.worker_id, row.attempt) == (Status.RUNNING, "one", 1)
        assert row.lease_until is not None
        assert row.lease_until >= before + timedelta(seconds=60)
        assert row.started_ts == claim.started_ts
        assert await scene.claim("two") == []

    async def test_the_most_urgent_goes_first_and_waiting_makes_urgent(self, scene: Scene) -> None:
        ids = {}
        for priority in (Priority.LOW, Priority.MEDIUM, Priority.HIGH):
            schedule = await scene.add(priority, priority=priority)
            ids[priority] = await scene.trigger(schedule)
        aged = await scene.add("aged", priority="low")
        old = await scene.trigger(aged)
        long_ago = await scene.now() - timedelta(seconds=40)
        await scene.execute(
            update(execution_t)
            .where(execution_t.c.execution_id == old)
            .values(ready_ts=long_ago, due_by_ts=long_ago + timedelta(seconds=30))
        )
        claimed = [(await scene.claim_one()).execution_id for _ in range(4)]
        assert claimed == [old, ids[Priority.HIGH], ids[Priority.MEDIUM], ids[Priority.LOW]]

    async def test_a_batch_comes_in_the_order_of_its_urgency(self, scene: Scene) -> None:
        for priority in (Priority.LOW, Priority.HIGH, Priority.MEDIUM):
            await scene.trigger(await scene.add(priority, priority=priority))
        claims = await scene.claim()
        assert [claim.priority for claim in claims] == [Priority.HIGH, Priority.MEDIUM, Priority.LOW]

    async def test_only_the_queues_asked_for_are_claimed_from(self, scene: Scene) -> None:
        wanted = await scene.trigger(await scene.add("one", queue="reports"))
        await scene.trigger(await scene.add("two", queue="mails"))
        assert [claim.execution_id for claim in await scene.claim(queues=["reports", "none"])] == [wanted]
        assert await scene.claim(queues=["none"]) == []

    async def test_versions_that_a_worker_excludes_are_left_to_others(self, scene: Scene) -> None:
        schedules = [await scene.add(name) for name in ("one", "two")]
        first, second = [await scene.trigger(each) for each in schedules]
        queues = await scene.store.work.queues(None)
        excluding = [(schedules[0].schedule_id, schedules[0].aggregate_version)]
        claims = await scene.store.work.claim("one", queues, limit=9, lease_s=60, excluding=excluding)
        assert [claim.execution_id for claim in claims] == [second]
        assert [claim.execution_id for claim in await scene.claim("two")] == [first]

    async def test_another_version_of_an_excluded_schedule_can_be_claimed(self, scene: Scene) -> None:
        schedule = await scene.add("one", overlap={"policy": "allow"})
        await scene.trigger(schedule)
        edited = await scene.edit(schedule, description="changed")
        wanted = await scene.trigger(edited)
        queues = await scene.store.work.queues(None)
        excluding = [(schedule.schedule_id, schedule.aggregate_version)]
        claims = await scene.store.work.claim("one", queues, limit=9, lease_s=60, excluding=excluding)
        assert [claim.execution_id for claim in claims] == [wanted]

    async def test_of_given_executions_excluded_versions_are_not_claimed(self, scene: Scene) -> None:
        schedules = [await scene.add(name) for name in ("one", "two")]
        first, second = [await scene.trigger(each) for each in schedules]
        queues = await scene.store.work.queues(None)
        excluding = [(schedules[0].schedule_id, schedules[0].aggregate_version)]
        claims = await scene.store.work.claim_some(
            "one", queues, [first, second], lease_s=60, excluding=excluding
        )
        assert [claim.execution_id for claim in claims] == [second]

    async def test_queues_are_every_hosts_own(self, scene: Scene) -> None:
        host_id = await scene.add_host("another")
        other = await scene.trigger(await scene.add("one", host_id=host_id))
        await scene.trigger(await scene.add("two"))
        claims = await scene.store.work.claim("worker", [(host_id, "default")], limit=9, lease_s=60)
        assert [claim.execution_id for claim in claims] == [other]

    async def test_a_paused_queue_is_not_offered(self, scene: Scene) -> None:
        await scene.trigger(await scene.add("one", queue="reports"))
        await scene.trigger(await scene.add("two", queue="mails"))
        await scene.execute(update(queue_t).where(queue_t.c.queue == "mails").values(paused=True))
        assert [name for _, name in await scene.store.work.queues(None)] == ["reports"]
        assert await scene.store.work.queues(["mails"]) == []
        assert [claim.queue for claim in await scene.claim()] == ["reports"]

    async def test_what_is_not_ready_yet_is_not_claimed(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        claim = await scene.claim_one()
        await scene.settle(claim, Status.RETRYING, attempt_status=Status.FAILED, retry_in_s=LONG)
        assert await scene.claim() == []

    async def test_a_claim_takes_no_more_than_it_may(self, scene: Scene) -> None:
        await add_ready(scene, 4, "one", queue="reports")
        await add_ready(scene, 4, "two", queue="mails")
        assert await scene.claim(limit=0) == []
        assert len(await scene.claim(limit=3)) == 3
        assert len(await scene.claim(limit=3)) == 3
        assert len(await scene.claim(limit=3)) == 2

    async def test_many_claimers_never_get_more_than_they_asked_for_nor_any_one_twice(
        self, scene: Scene
    ) -> None:
        await add_ready(scene, 30, "one", queue="reports")
        await add_ready(scene, 30, "two", queue="mails")
        stores = await scene.stores(6)
        claimed: list[Claim] = []
        for _ in range(20):
            batches = await asyncio.gather(
                *(scene.claim(f"worker-{n}", limit=4, store=store) for n, store in enumerate(stores))
            )
            assert all(len(batch) <= 4 for batch in batches)
            claimed += [claim for batch in batches for claim in batch]
            if not any(batches):
                break
        assert len(claimed) == 60
        assert len({claim.execution_id for claim in claimed}) == 60
        assert {claim.attempt for claim in claimed} == {1}

    # --- the fence of an attempt ------------------------------------------------------------------

    async def test_renewing_extends_the_lease_of_every_claim(self, scene: Scene) -> None:
        await add_ready(scene, 3)
        claims = await scene.claim(lease_s=1)
        renewal = await scene.store.work.renew("worker", claims, LONG)
        assert (renewal.lost, renewal.cancelled) == (frozenset(), frozenset())
        later = await scene.now() + timedelta(seconds=LONG / 2)
        for claim in claims:
            lease_until = (await scene.execution(claim.execution_id)).lease_until
            assert lease_until is not None
            assert lease_until > later

    async def test_an_earlier_attempt_can_neither_renew_nor_settle_nor_tell_its_progress(
        self, scene: Scene
    ) -> None:
        await add_ready(scene, 1)
        old = await lose(scene, "worker")
        new = await scene.claim_one("worker")
        assert (new.execution_id, new.attempt, new.failed_attempts) == (old.execution_id, 2, 1)
        before = await scene.everything()
        assert (await scene.store.work.renew("worker", [old], LONG)).lost == {old.execution_id}
        assert await scene.settle(old, Status.SUCCESS, "worker") == {old.execution_id}
        await scene.store.notes.write("worker", [Note(old.execution_id, old.attempt, HALF_WAY)])
        refused = await scene.store.work.accept("worker", old, lease_s=LONG, external_id="42")
        assert (refused.is_open, refused.cancelled) == (False, ())
        assert await scene.everything() == before
        assert await scene.settle(new, Status.SUCCESS, "worker") == frozenset()

    async def test_another_worker_can_neither_renew_nor_settle(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        claim = await scene.claim_one("one")
        before = await scene.everything()
        assert (await scene.store.work.renew("two", [claim], LONG)).lost == {claim.execution_id}
        assert await scene.settle(claim, Status.SUCCESS, "two") == {claim.execution_id}
        assert await scene.everything() == before

    async def test_a_settle_after_the_rescue_is_refused(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        claim = await lose(scene)
        before = await scene.everything()
        assert await scene.settle(claim, Status.SUCCESS) == {claim.execution_id}
        assert (await scene.store.work.renew("worker", [claim], LONG)).lost == {claim.execution_id}
        assert await scene.everything() == before
        assert await scene.rows(select(schedule_status_t)) == []

    async def test_a_settled_execution_stays_as_it_is(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        claim = await scene.claim_one(lease_s=STALE)
        assert await scene.settle(claim, Status.SUCCESS, result='{"rows": 3}') == frozenset()
        before = await scene.everything()
        assert await scene.settle(claim, Status.FAILED) == {claim.execution_id}
        assert await scene.rescue(await scene.lead(), limit=10) == {}
        assert await scene.everything() == before

    async def test_of_a_settle_and_a_rescue_at_once_one_wins_and_the_other_knows(self, scene: Scene) -> None:
        await add_ready(scene, 12)
        lease = await scene.lead()
        one, two = await scene.stores(2)
        for _ in range(12):
            claim = await scene.claim_one(lease_s=STALE)
            outcome, rescued = await asyncio.gather(
                one.work.settle("worker", [Settlement(claim, Status.SUCCESS, Status.SUCCESS)]),
                scene.rescue(lease, store=two),
            )
            row = await scene.execution(claim.execution_id)
            if outcome.refused:
                assert (row.status, rescued) == (Status.RETRYING, {claim.execution_id: Status.RETRYING})
                await scene.execute(
                    update(execution_t)
                    .where(execution_t.c.execution_id == claim.execution_id)
                    .values(status=Status.CANCELLED.value)
                )
            else:
                assert (row.status, rescued) == (Status.SUCCESS, {})

    async def test_one_late_settle_does_not_hold_up_the_others_of_its_batch(self, scene: Scene) -> None:
        await add_ready(scene, 3)
        late, *others = await scene.claim()
        await scene.settle(late, Status.CANCELLED)
        outcome = await scene.store.work.settle(
            "worker", [Settlement(claim, Status.SUCCESS, Status.SUCCESS) for claim in (late, *others)]
        )
        assert outcome == Settled(refused=frozenset({late.execution_id}))
        for claim in others:
            assert (await scene.execution(claim.execution_id)).status is Status.SUCCESS
        assert (await scene.execution(late.execution_id)).status is Status.CANCELLED

    # --- settling ---------------------------------------------------------------------------------

    async def test_a_success_is_final_and_keeps_its_result(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        claim = await scene.claim_one()
        await scene.settle(claim, Status.SUCCESS, result='{"rows": [1, "two", null]}', duration_s=1.5)
        row = await scene.execution(claim.execution_id)
        assert (row.status, row.result, row.duration_seconds) == (
            Status.SUCCESS,
            {"rows": [1, "two", None]},
            1.5,
        )
        assert row.ended_ts is not None
        assert row.lease_until is None
        assert await scene.rows(select(attempt_t)) == []
        assert await scene.claim() == []

    async def test_an_attempt_that_went_wrong_is_recorded_and_the_next_may_start_later(
        self, scene: Scene
    ) -> None:
        schedule = await add_ready(scene, 1, priority="high")
        claim = await scene.claim_one("one")
        before = await scene.now()
        await scene.settle(
            claim,
            Status.RETRYING,
            "one",
            attempt_status=Status.TIMEOUT,
            retry_in_s=100,
            error="too slow",
            traceback="in line 1",
            duration_s=2.5,
        )
        [row] = await scene.executions(schedule)
        assert (row.status, row.attempt, row.ended_ts) == (Status.RETRYING, 1, None)
        assert row.ready_ts is not None
        assert row.due_by_ts is not None
        assert timedelta(seconds=100) <= row.ready_ts - before < timedelta(seconds=200)
        assert timedelta(seconds=0.9) < row.due_by_ts - row.ready_ts < timedelta(seconds=1.1)
        [attempt] = await scene.rows(select(attempt_t))
        assert (attempt.execution_id, attempt.attempt, attempt.status) == (claim.execution_id, 1, "timeout")
        assert (attempt.error, attempt.traceback, attempt.worker_id) == ("too slow", "in line 1", "one")
        assert (attempt.started_ts, attempt.duration_seconds) == (claim.started_ts, 2.5)

    async def test_every_failed_attempt_counts_and_a_hand_back_does_not(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        again: dict[str, Any] = {"retry_in_s": -1.0}
        await scene.settle(await scene.claim_one(), Status.RETRYING, attempt_status=Status.FAILED, **again)
        second = await scene.claim_one()
        assert (second.attempt, second.failed_attempts) == (2, 1)
        await scene.settle(second, Status.PENDING, **again)
        third = await scene.claim_one()
        assert (third.attempt, third.failed_attempts) == (3, 1)
        await scene.settle(third, Status.RETRYING, attempt_status=Status.TIMEOUT, **again)
        assert (await scene.claim_one()).failed_attempts == 2

    @pytest.mark.parametrize("status", [Status.SKIPPED, Status.RUNNING])
    async def test_what_a_running_execution_can_not_become_is_refused(
        self, scene: Scene, status: Status
    ) -> None:
        await add_ready(scene, 1)
        claim = await scene.claim_one()
        before = await scene.everything()
        with pytest.raises(IllegalTransitionError):
            await scene.settle(claim, status)
        assert await scene.everything() == before

    async def test_the_schedules_status_is_that_of_its_latest_run(self, scene: Scene) -> None:
        schedule = await add_ready(scene, 2)
        first = await scene.claim_one()
        second = await scene.claim_one()
        earlier = first._replace(started_ts=first.started_ts - timedelta(seconds=9))
        await scene.settle(second, Status.FAILED)
        await scene.settle(earlier, Status.SUCCESS)
        [row] = await scene.rows(select(schedule_status_t))
        assert (row.schedule_id, row.last_status) == (schedule.schedule_id, "failed")
        assert (row.last_run_ts, row.last_execution_id) == (second.started_ts, second.execution_id)

    async def test_settles_of_the_same_schedules_in_any_order_do_not_block_each_other(
        self, scene: Scene
    ) -> None:
        schedules = [await add_ready(scene, 8, f"number-{n}") for n in range(6)]
        claims = await scene.claim(limit=100)
        assert len(claims) == 8 * len(schedules)
        stores = await scene.stores(4)
        batches = [claims[n::4] if n % 2 else claims[n::4][::-1] for n in range(4)]
        outcomes = await asyncio.gather(
            *(
                store.work.settle(
                    "worker", [Settlement(claim, Status.SUCCESS, Status.SUCCESS) for claim in batch]
                )
                for store, batch in zip(stores, batches, strict=True)
            )
        )
        assert outcomes == [Settled()] * 4

    async def test_what_is_cancelled_while_it_fails_is_told_as_cancelled(self, scene: Scene) -> None:
        schedule = await add_ready(scene, 1)
        claim = await scene.claim_one()
        await scene.store.executions.cancel(claim.execution_id, author=Author("somebody"))
        assert await scene.settle(claim, Status.RETRYING, attempt_status=Status.FAILED) == frozenset()
        [row] = await scene.rows(select(execution_t))
        assert (row.status, row.ended_ts is not None) == ("cancelled", True)
        [status] = await scene.rows(select(schedule_status_t))
        assert (status.schedule_id, status.last_status) == (schedule.schedule_id, "cancelled")

    # --- while it runs ----------------------------------------------------------------------------

    async def test_progress_is_noted_while_the_work_is_the_workers(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        claim = await scene.claim_one()
        await scene.store.notes.write("worker", [Note(claim.execution_id, claim.attempt, HALF_WAY)])
        [[progress]] = await scene.rows(select(execution_t.c.progress))
        assert progress == {"fraction": 0.5, "text": "half way"}

    async def test_another_worker_can_not_tell_its_progress(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        claim = await scene.claim_one("one")
        await scene.store.notes.write("two", [Note(claim.execution_id, claim.attempt, HALF_WAY)])
        assert await scene.rows(select(execution_t.c.progress)) == [(None,)]

    async def test_lines_are_kept_once_however_often_they_are_written(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        claim = await scene.claim_one()
        now = await scene.store.now()
        lines = [(1, (now, "info", "app", "it began")), (2, (now, "error", "app", "it broke"))]
        for _ in range(2):
            await scene.store.notes.write("worker", [Note(claim.execution_id, claim.attempt, lines=lines)])
        rows = await scene.rows(select(execution_log_t).order_by(execution_log_t.c.line))
        assert [(row.attempt, row.line, row.logged_ts, row.level, row.message) for row in rows] == [
            (1, 1, now, "info", "it began"),
            (1, 2, now, "error", "it broke"),
        ]

    async def test_work_that_an_agent_took_over_has_until_its_timeout(self, scene: Scene) -> None:
        await add_ready(scene, 1)
        claim = await scene.claim_one()
        assert (await scene.store.work.accept("worker", claim, lease_s=LONG, external_id="42")).is_open
        [row] = await scene.rows(select(execution_t))
        assert (row.is_remote, row.external_id) == (True, "42")
        assert row.lease_until == row.started_ts + timedelta(seconds=LONG)

    async def test_task_functions_that_are_switched_off_are_known(self, scene: Scene) -> None:
        task = TaskRecord("work", "Work", "", "app.work", "async_function", None, 300, {})
        await scene.store.registry.register_tasks([task])
        assert await scene.store.work.inactive_tasks() == frozenset()
        await scene.execute(update(task_function_t).values(is_active=False))
        await scene.store.registry.register_tasks([task])
        assert await scene.store.work.inactive_tasks() == {"work"}

    async def test_an_execution_runs_with_the_version_it_was_fired_with(self, scene: Scene) -> None:
        schedule = await scene.add(description="old")
        await scene.trigger(schedule)
        await scene.edit(schedule, description="new")
        claim = await scene.claim_one()
        version = (claim.schedule_id, claim.aggregate_version)
        specs = await scene.store.work.specs([version, (claim.schedule_id, 2), (claim.schedule_id, 99)])
        assert {key: spec.description for key, spec in specs.items()} == {
            version: "old",
            (claim.schedule_id, 2): "new",
        }
