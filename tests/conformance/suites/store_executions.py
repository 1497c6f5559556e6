"""Conformance suite for single executions: cancel, retry, trigger and read."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete, insert, select, update
from tests.conformance.suites.scene import LONG, STALE, Scene

from foliot.commands.executions_sql import ChangedExecution
from foliot.db.tables.executions import attempt_t, execution_log_t, execution_t, queue_t
from foliot.db.tables.schedules import schedule_status_t
from foliot.model.attempt import Claim
from foliot.model.errors import IllegalTransitionError, NotFoundError
from foliot.model.event import CancelledExecution
from foliot.model.execution import FINAL, RETRY_BY_HAND, Execution, Status, TriggeredBy
from foliot.model.ids import new_id
from foliot.model.schedule import Schedule
from foliot.model.trace import trace_id_text
from foliot.planning.change import Author
from foliot.queries.execution_search import ExecutionFilter

ONE_AT_A_TIME = {"policy": "queue", "max_instances": 1}
FREELY = {"policy": "allow"}
AT_ONCE = {"max_attempts": 2, "initial_delay_seconds": 0, "max_delay_seconds": 0}


async def running(scene: Scene, name: str = "each", **fields: Any) -> tuple[Schedule, Claim]:
    schedule = await scene.add(name, **fields)
    await scene.trigger(schedule)
    return schedule, await scene.claim_one()


async def ended(scene: Scene, status: Status, name: str = "each", **fields: Any) -> tuple[Schedule, UUID]:
    schedule, claim = await running(scene, name, **fields)
    await scene.settle(claim, status, error="went wrong", traceback="where", result='{"a": 1}')
    return schedule, claim.execution_id


async def cancel(scene: Scene, execution_id: UUID, reason: str | None = None) -> Execution:
    return (await scene.store.executions.cancel(execution_id, author=Author("ann", reason))).execution


async def retry(scene: Scene, execution_id: UUID) -> Execution:
    return (await scene.store.executions.retry(execution_id, author=Author("ann"))).execution


async def is_held(scene: Scene, execution_id: UUID) -> bool:
    row = await scene.execution(execution_id)
    return row.status is Status.PENDING and row.due_by_ts is None


class ExecutionsConformance:
    """Tests for single executions. Fixture: `scene`."""

    # --- cancel -----------------------------------------------------------------------------------

    async def test_what_waits_is_cancelled_at_once_and_says_by_whom(self, scene: Scene) -> None:
        execution_id = await scene.trigger(await scene.add())
        row = await cancel(scene, execution_id, "not now")
        assert (row.status, row.reason, row.error) == (
            Status.CANCELLED,
            "cancelled by ann: not now",
            "cancelled by ann: not now",
        )
        assert row.ended_ts is not None
        assert row == await scene.execution(execution_id)
        assert await scene.claim() == []
        assert await scene.rows(select(schedule_status_t)) == [], "it never ran"

    async def test_a_reason_longer_than_its_column_is_told_in_full_beside_it(self, scene: Scene) -> None:
        row = await cancel(scene, await scene.trigger(await scene.add()), "x" * 500)
        assert row.reason is not None
        assert (len(row.reason), row.error) == (64, "cancelled by ann: " + "x" * 500)

    async def test_a_reason_that_no_database_can_hold_is_made_fit(self, scene: Scene) -> None:
        row = await cancel(scene, await scene.trigger(await scene.add()), "a\0b\ud800c")
        assert row.error == "cancelled by ann: a\ufffdb?c"

    async def test_what_is_held_is_cancelled_and_never_released(self, scene: Scene) -> None:
        schedule = await scene.add(overlap=ONE_AT_A_TIME)
        first, second = [await scene.trigger(schedule) for _ in range(2)]
        assert await is_held(scene, second)
        assert (await cancel(scene, second)).status is Status.CANCELLED
        await cancel(scene, first)
        assert await scene.release(await scene.lead()) == 0

    async def test_what_is_between_attempts_is_cancelled_and_its_schedule_says_so(self, scene: Scene) -> None:
        schedule, claim = await running(scene)
        await scene.settle(
            claim, Status.RETRYING, attempt_status=Status.FAILED, retry_in_s=LONG, error="went wrong"
        )
        assert (await cancel(scene, claim.execution_id)).status is Status.CANCELLED
        [status] = await scene.rows(select(schedule_status_t))
        assert (status.schedule_id, status.last_status) == (schedule.schedule_id, "cancelled")
        assert status.last_run_ts == claim.started_ts
        [attempt] = await scene.store.executions.attempts(claim.execution_id)
        assert (attempt.status, attempt.error) == (Status.FAILED, "went wrong")

    async def test_what_runs_stays_running_until_its_worker_has_stopped_it(self, scene: Scene) -> None:
        _, claim = await running(scene)
        for _ in range(2):
            row = await cancel(scene, claim.execution_id)
            assert (row.status, row.cancel_requested, row.ended_ts) == (Status.RUNNING, True, None)
        renewal = await scene.store.work.renew("worker", [claim], LONG)
        assert renewal.cancelled == {claim.execution_id}
        assert await scene.settle(claim, Status.CANCELLED) == frozenset()
        ended = await scene.execution(claim.execution_id)
        assert (ended.status, ended.reason) == (Status.CANCELLED, "cancelled by ann")

    async def test_what_an_agent_has_taken_over_is_cancelled_at_once(self, scene: Scene) -> None:
        schedule, claim = await running(scene)
        await scene.store.work.accept("worker", claim, lease_s=LONG, external_id="42")
        row, [told] = await scene.store.executions.cancel(claim.execution_id, author=Author("ann"))
        assert (row.status, row.lease_until) == (Status.CANCELLED, None)
        assert told == CancelledExecution(
            claim.execution_id,
            schedule.schedule_id,
            1,
            "cancelled by ann",
            told.cancelled_ts,
            "each",
            "default",
            "worker",
            claim.started_ts,
            None,
        )
        [attempt] = await scene.store.executions.attempts(claim.execution_id)
        assert (attempt.attempt, attempt.status) == (1, Status.CANCELLED)
        assert (attempt.worker_id, attempt.error) == ("worker", "cancelled by ann")
        [status] = await scene.rows(select(schedule_status_t))
        assert (status.schedule_id, status.last_status) == (schedule.schedule_id, "cancelled")
        assert await scene.settle(claim, Status.SUCCESS) == {claim.execution_id}

    @pytest.mark.parametrize("status", sorted(FINAL - {Status.SKIPPED}))
    async def test_what_has_ended_can_not_be_cancelled(self, scene: Scene, status: Status) -> None:
        _, execution_id = await ended(scene, status)
        before = await scene.everything()
        with pytest.raises(IllegalTransitionError) as caught:
            await cancel(scene, execution_id)
        assert (caught.value.execution_id, caught.value.status, caught.value.wanted) == (
            execution_id,
            status,
            Status.CANCELLED,
        )
        assert await scene.everything() == before

    async def test_of_a_cancel_and_a_claim_at_once_none_is_lost(self, scene: Scene) -> None:
        schedule = await scene.add(overlap=FREELY)
        [other] = await scene.stores(1)
        for _ in range(10):
            execution_id = await scene.trigger(schedule)
            row, claims = await asyncio.gather(cancel(scene, execution_id), scene.claim(store=other))
            if claims:
                renewal = await scene.store.work.renew("worker", claims, LONG)
                assert renewal.cancelled == {execution_id}
                await scene.settle(claims[0], Status.CANCELLED)
            else:
                assert row.status is Status.CANCELLED

    # --- retry ------------------------------------------------------------------------------------

    @pytest.mark.parametrize("status", sorted(RETRY_BY_HAND))
    async def test_what_did_not_succeed_is_tried_again_as_the_same_execution(
        self, scene: Scene, status: Status
    ) -> None:
        _, execution_id = await ended(scene, status)
        row = await retry(scene, execution_id)
        assert (row.execution_id, row.status, row.attempt) == (execution_id, Status.PENDING, 1)
        assert row.due_by_ts is not None
        cleared = (row.ended_ts, row.error, row.traceback, row.result, row.worker_id, row.duration_seconds)
        assert cleared == (None,) * 6
        claim = await scene.claim_one()
        assert (claim.execution_id, claim.attempt, claim.failed_attempts) == (execution_id, 2, 0)
        await scene.settle(claim, Status.SUCCESS)
        attempts = await scene.store.executions.attempts(execution_id)
        assert [(each.attempt, each.status) for each in attempts] == [(1, status), (2, Status.SUCCESS)]
        assert attempts[0].error == "went wrong"

    async def test_its_budget_of_retries_is_fresh(self, scene: Scene) -> None:
        schedule = await scene.add(retry=AT_ONCE)
        execution_id = await scene.trigger(schedule)
        lease = await scene.lead()
        statuses: list[Status] = []
        for number in range(4):
            if number == 2:
                await retry(scene, execution_id)
            await scene.claim_one(lease_s=STALE)
            statuses += (await scene.rescue(lease, limit=10)).values()
        assert statuses == [Status.RETRYING, Status.FAILED] * 2

    async def test_one_that_was_asked_to_stop_is_not_stopped_again(self, scene: Scene) -> None:
        _, claim = await running(scene)
        await cancel(scene, claim.execution_id)
        await scene.settle(claim, Status.CANCELLED)
        await retry(scene, claim.execution_id)
        again = await scene.claim_one()
        assert (await scene.store.work.renew("worker", [again], LONG)).cancelled == frozenset()

    async def test_a_retry_that_overlap_forbids_is_held(self, scene: Scene) -> None:
        schedule, execution_id = await ended(scene, Status.FAILED)
        await scene.trigger(schedule)
        await retry(scene, execution_id)
        assert await is_held(scene, execution_id)
        await scene.settle(await scene.claim_one(), Status.SUCCESS)
        assert await scene.release(await scene.lead()) == 1
        assert (await scene.claim_one()).execution_id == execution_id

    async def test_a_retry_replaces_what_runs_where_the_policy_is_so(self, scene: Scene) -> None:
        schedule, execution_id = await ended(scene, Status.FAILED, overlap={"policy": "cancel_running"})
        await scene.trigger(schedule)
        other = await scene.claim_one()
        await retry(scene, execution_id)
        assert await is_held(scene, execution_id)
        assert (await scene.store.work.renew("worker", [other], LONG)).cancelled == {other.execution_id}

    @pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING, Status.SUCCESS])
    async def test_what_goes_on_or_went_well_is_not_tried_again(self, scene: Scene, status: Status) -> None:
        schedule = await scene.add()
        execution_id = await scene.trigger(schedule)
        if status is not Status.PENDING:
            claim = await scene.claim_one()
            if status is Status.SUCCESS:
                await scene.settle(claim, status)
        before = await scene.everything()
        with pytest.raises(IllegalTransitionError, match=f"is {status} and can't become pending"):
            await retry(scene, execution_id)
        assert await scene.everything() == before

    async def test_a_skipped_time_is_not_tried_again(self, scene: Scene) -> None:
        schedule = await scene.add()
        await scene.trigger(schedule)
        fired = await scene.fire(await scene.lead(), schedule)
        with pytest.raises(IllegalTransitionError, match="is skipped"):
            await retry(scene, fired.skipped[0].execution_id)

    async def test_nothing_of_a_deleted_schedule_is_tried_again(self, scene: Scene) -> None:
        schedule, execution_id = await ended(scene, Status.FAILED)
        await scene.delete(schedule)
        with pytest.raises(NotFoundError, match="there is no schedule"):
            await retry(scene, execution_id)
        assert (await scene.execution(execution_id)).status is Status.FAILED

    async def test_of_two_retries_at_once_one_is_refused(self, scene: Scene) -> None:
        _, execution_id = await ended(scene, Status.FAILED, overlap=FREELY)
        stores = await scene.stores(2)
        outcomes = await asyncio.gather(
            *(store.executions.retry(execution_id, author=Author("ann")) for store in stores),
            return_exceptions=True,
        )
        assert {type(each) for each in outcomes} == {ChangedExecution, IllegalTransitionError}
        assert len(await scene.claim()) == 1

    # --- trigger ----------------------------------------------------------------------------------

    async def test_a_manual_run_has_its_own_identity_and_the_scheduled_one_still_happens(
        self, scene: Scene
    ) -> None:
        schedule = await scene.add(overlap=ONE_AT_A_TIME)
        manual = await scene.trigger(schedule)
        await scene.fire(await scene.lead(), schedule)
        rows = {row.triggered_by: row for row in await scene.executions(schedule)}
        assert rows[TriggeredBy.API].execution_id == manual
        scheduled = rows[TriggeredBy.SCHEDULER]
        assert (scheduled.fire_ts, scheduled.status) == (schedule.next_fire_ts, Status.PENDING)

    async def test_a_trigger_tells_of_the_execution_as_it_is_stored(self, scene: Scene) -> None:
        event = {"kind": "event", "event_topic": "orders", "event_type": "OrdersDue"}
        held = await scene.add("held", overlap=ONE_AT_A_TIME)
        await scene.trigger(held)
        schedules = [await scene.add("each"), held, await scene.add("event", target=event)]
        for schedule in schedules:
            made, known, is_new, *_ = await scene.store.schedules.trigger_known(
                schedule.schedule_id, by=TriggeredBy.API, author=Author("ann"), args={"größe": [1, None]}
            )
            assert known.schedule_id == schedule.schedule_id
            assert made == await scene.execution(made.execution_id)
            again = await scene.store.schedules.trigger_known(
                schedule.schedule_id,
                by=TriggeredBy.API,
                author=Author("ann"),
                execution_id=made.execution_id,
            )
            assert (is_new, again.is_new, again.execution) == (True, False, made)

    async def test_a_paused_schedule_can_be_triggered_and_a_deleted_one_can_not(self, scene: Scene) -> None:
        schedule = await scene.add()
        await scene.pause(schedule)
        await scene.settle(await self._triggered(scene, schedule), Status.SUCCESS)
        await scene.delete(schedule)
        with pytest.raises(NotFoundError):
            await scene.trigger(schedule)

    async def test_a_queue_that_nobody_knows_yet_is_made_known(self, scene: Scene) -> None:
        schedule = await scene.add(queue="reports")
        await scene.execute(delete(queue_t))
        await self._triggered(scene, schedule)

    async def _triggered(self, scene: Scene, schedule: Schedule) -> Claim:
        execution_id = await scene.trigger(schedule)
        claim = await scene.claim_one()
        assert claim.execution_id == execution_id
        return claim

    # --- hosts ------------------------------------------------------------------------------------

    async def test_another_hosts_executions_are_not_found(self, scene: Scene) -> None:
        schedule, execution_id = await ended(scene, Status.FAILED)
        other = await scene.add_host("other")
        executions = scene.store.executions
        before = await scene.everything()
        for act in (
            executions.get(execution_id, host_id=other),
            executions.attempts(execution_id, host_id=other),
            executions.logs(execution_id, host_id=other),
            executions.cancel(execution_id, author=Author("ann"), host_id=other),
            executions.retry(execution_id, author=Author("ann"), host_id=other),
            executions.get(new_id()),
            executions.cancel(new_id(), author=Author("ann")),
            executions.retry(new_id(), author=Author("ann")),
            scene.store.schedules.trigger(
                schedule.schedule_id, by=TriggeredBy.API, author=Author(), host_id=other
            ),
        ):
            with pytest.raises(NotFoundError):
                await act
        assert await scene.everything() == before
        assert await executions.page(ExecutionFilter(host_id=other)) == []
        assert (await executions.get(execution_id, host_id=schedule.host_id)).execution_id == execution_id

    # --- reading ----------------------------------------------------------------------------------

    async def test_pages_go_from_the_latest_on_without_gaps_or_doubles(self, scene: Scene) -> None:
        schedule = await scene.add(overlap=FREELY)
        ids = sorted([await scene.trigger(schedule) for _ in range(7)], reverse=True)
        found: list[UUID] = []
        after = None
        while page := await scene.store.executions.page(ExecutionFilter(), after=after, limit=3):
            found += [row.execution_id for row in page]
            after = found[-1]
        assert found == ids

    async def test_filters_narrow_and_of_several_values_any_may_hold(self, scene: Scene) -> None:
        one, claim = await running(scene, "one", queue="fast")
        await scene.settle(claim, Status.FAILED)
        two = await scene.add("two")
        waiting = await scene.trigger(two)
        await scene.fire(await scene.lead(), one)
        scheduled = next(
            row for row in await scene.executions(one) if row.triggered_by is TriggeredBy.SCHEDULER
        )
        failed = claim.execution_id
        everything = {failed, waiting, scheduled.execution_id}

        async def found(**fields: Any) -> set[UUID]:
            page = await scene.store.executions.page(ExecutionFilter(**fields))
            return {row.execution_id for row in page}

        assert await found() == everything
        assert await found(schedule_ids=[two.schedule_id]) == {waiting}
        assert await found(schedule_ids=[one.schedule_id, two.schedule_id]) == everything
        assert await found(statuses=[Status.FAILED]) == {failed}
        assert await found(statuses=[Status.FAILED, Status.PENDING]) == everything
        assert await found(queues=["fast"]) == {failed, scheduled.execution_id}
        assert await found(triggered_by=[TriggeredBy.SCHEDULER]) == {scheduled.execution_id}
        instant = scheduled.fire_ts
        assert await found(fire_to=instant) == set()
        assert await found(fire_to=instant + timedelta(microseconds=1)) == {scheduled.execution_id}
        assert await found(fire_from=instant) == everything
        assert await found(fire_from=instant + timedelta(microseconds=1)) == {failed, waiting}
        assert await found(statuses=[Status.PENDING], queues=["fast"]) == {scheduled.execution_id}
        mine = await scene.store.executions.for_schedule(one.schedule_id, limit=1)
        assert [row.execution_id for row in mine] == [failed]

    async def test_an_execution_tells_its_schedules_name_and_its_trace(self, scene: Scene) -> None:
        schedule = await scene.add("nightly")
        execution_id = await scene.trigger(schedule)
        await scene.execute(update(execution_t).values(progress={"fraction": 0.5, "text": "half"}))
        row = await scene.store.executions.get(execution_id)
        assert (row.schedule_name, row.trace_id) == ("nightly", trace_id_text(execution_id))
        assert row.progress == {"fraction": 0.5, "text": "half"}
        await scene.delete(schedule)
        assert (await scene.execution(execution_id)).schedule_name == "nightly"

    async def test_an_execution_that_a_caller_traces_goes_on_with_that_trace(self, scene: Scene) -> None:
        schedule = await scene.add("nightly", overlap={"policy": "allow"})
        context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        traced = await scene.store.schedules.trigger(
            schedule.schedule_id, by=TriggeredBy.API, author=Author("ann", trace_context=context)
        )
        others = await scene.trigger(schedule)
        assert (await scene.execution(traced)).trace_id == "4bf92f3577b34da6a3ce929d0e0e4736"
        claims = await scene.claim()
        assert {each.execution_id: each.trace_context for each in claims} == {traced: context, others: None}

    async def test_attempts_include_the_one_under_way(self, scene: Scene) -> None:
        _, claim = await running(scene)
        await scene.settle(claim, Status.RETRYING, attempt_status=Status.TIMEOUT, error="too slow")
        again = await scene.claim_one("other")
        attempts = await scene.store.executions.attempts(claim.execution_id)
        assert [(each.attempt, each.status, each.worker_id) for each in attempts] == [
            (1, Status.TIMEOUT, "worker"),
            (2, Status.RUNNING, "other"),
        ]
        assert (attempts[1].started_ts, attempts[1].ended_ts) == (again.started_ts, None)

    async def test_logs_come_in_order_a_page_at_a_time(self, scene: Scene) -> None:
        _, claim = await running(scene)
        now = await scene.now()
        numbers = [(attempt, line) for attempt in (2, 1) for line in (3, 1, 2)]
        await scene.execute(
            insert(execution_log_t).values(
                [
                    {
                        "execution_id": claim.execution_id,
                        "attempt": attempt,
                        "line": line,
                        "logged_ts": now,
                        "level": "info",
                        "logger": "mine",
                        "message": f"{attempt}.{line}",
                    }
                    for attempt, line in numbers
                ]
            )
        )
        logs = scene.store.executions.logs
        first = await logs(claim.execution_id, limit=4)
        assert [each.message for each in first] == ["1.1", "1.2", "1.3", "2.1"]
        rest = await logs(claim.execution_id, after=(first[-1].attempt, first[-1].line), limit=4)
        assert [each.message for each in rest] == ["2.2", "2.3"]
        assert (rest[0].logged_ts, rest[0].level, rest[0].logger) == (now, "info", "mine")

    # --- executions ended by rescue --------------------------------------------------------------

    async def test_an_agent_that_never_reports_has_timed_out(self, scene: Scene) -> None:
        schedule, claim = await running(scene, retry={"max_attempts": 1})
        await scene.store.work.accept("worker", claim, lease_s=STALE, external_id=None)
        [lost] = await scene.store.upkeep.rescue(await scene.lead(), limit=10)
        assert (lost.execution_id, lost.status, lost.is_remote) == (claim.execution_id, Status.TIMEOUT, True)
        told = "the agent did not report its end within timeout_seconds"
        assert (await scene.execution(claim.execution_id)).error == told
        [attempt] = await scene.rows(select(attempt_t))
        assert (attempt.status, attempt.error) == ("timeout", told)
        [status] = await scene.rows(select(schedule_status_t))
        assert (status.schedule_id, status.last_status) == (schedule.schedule_id, "timeout")

    async def test_an_end_that_rescue_brings_is_the_schedules_last_status(self, scene: Scene) -> None:
        schedule = await scene.add(retry=AT_ONCE)
        execution_id = await scene.trigger(schedule)
        lease = await scene.lead()
        found: list[list[tuple[str, UUID]]] = []
        for _ in range(2):
            await scene.claim_one(lease_s=STALE)
            await scene.rescue(lease, limit=10)
            rows = await scene.rows(select(schedule_status_t))
            found.append([(row.last_status, row.last_execution_id) for row in rows])
        assert found == [[], [("failed", execution_id)]]

    async def test_pruning_takes_the_lines_with_the_execution(self, scene: Scene) -> None:
        _, execution_id = await ended(scene, Status.SUCCESS)
        now = await scene.now()
        line = {"attempt": 1, "line": 1, "logged_ts": now, "level": "info", "logger": "a", "message": "b"}
        await scene.execute(insert(execution_log_t).values(execution_id=execution_id, **line))
        await scene.store.upkeep.prune(await scene.lead(), before=now + timedelta(days=1), limit=10)
        assert await scene.rows(select(execution_log_t)) == []
