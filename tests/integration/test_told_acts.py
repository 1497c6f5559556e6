"""What people and agents do to executions is told once it is committed, and adds up in the metrics."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import update

from foliot.commands import Commands
from foliot.commands.admission import DefinitionChecker
from foliot.db.hints import LocalHints
from foliot.db.tables.schedules import schedule_t
from foliot.instance.store import SqlStore
from foliot.kinds.function_target import FunctionRunner
from foliot.model.event import (
    AgentFailed,
    DomainEvent,
    ExecutionRetried,
    ExecutionsCancelled,
    ExecutionsRescued,
    ExecutionsSettled,
    ExecutionTriggered,
    Observers,
    ScheduleChanged,
    ScheduleParked,
)
from foliot.model.execution import SkipReason, Status, TriggeredBy
from foliot.model.ids import new_id
from foliot.model.lease import Lease
from foliot.model.schedule import Schedule
from foliot.planning.change import Author
from foliot.scheduler.backfill import Backfiller
from foliot.scheduler.firing import FiringService
from foliot.scheduler.janitor import HousekeepingOptions, Janitor
from foliot.scheduler.leader_term import LeaderState
from foliot.scheduler.leases.database_lease import DatabaseLeases
from foliot.scheduler.leases.leadership import Leadership
from foliot.telemetry.metrics import MetricsObserver
from foliot.testing.app import Recorder
from foliot.timing.clock import ClusterClock, SystemClock
from foliot.worker.attempt import Handover
from foliot.worker.journal import Journal
from foliot.worker.settler import Settler
from tests.conformance.suites.scene import LONG, STALE, WHOLE, Scene, spec_of
from tests.engine import noop, registry

ANN = Author("ann")
HOURLY = {"kind": "cron", "expression": "0 * * * *"}
EVENT = {"kind": "event", "event_topic": "orders", "event_type": "OrdersDue"}
AGENT = {"kind": "http", "method": "POST", "url": "https://agent.test/run?token=x"}
TASK = {"kind": "function", "name": "noop"}
REPLACING = {"policy": "cancel_running"}


class Stage:
    """All that acts on a store, watched."""

    def __init__(self, store: SqlStore) -> None:
        self.store = store
        self.scene = Scene(store, open_another=None)  # type: ignore[arg-type]
        self.recorder = Recorder()
        self.registry = CollectorRegistry()
        self.observer = Observers([self.recorder, MetricsObserver(self.registry)])
        self.clock = ClusterClock(SystemClock())
        self.hints = LocalHints()
        tasks = registry(noop)
        admission = DefinitionChecker(store.database, tasks, {"function": FunctionRunner(tasks)})
        self.commands = Commands(store.database, self.hints, self.observer, self.clock, admission=admission)

    async def add(self, name: str = "each", **fields: Any) -> Schedule:
        return await self.scene.add(name, **{"target": TASK, **fields})

    async def trigger(self, schedule: Schedule) -> UUID:
        made = await self.commands.schedules.trigger(schedule.schedule_id, ANN, by=TriggeredBy.API)
        return made.execution_id

    def told(self, kind: type[DomainEvent]) -> Any:
        """The only one of its kind."""
        [event] = [each for each in self.recorder.events if isinstance(each, kind)]
        return event

    def kinds(self) -> list[str]:
        return [type(each).__name__ for each in self.recorder.events]

    def counted(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"foliot_{name}_total", labels)


@pytest.fixture
def stage(store: SqlStore) -> Stage:
    return Stage(store)


# --- cancelling ---------------------------------------------------------------------------------------


async def test_cancelling_what_waits_is_told_and_counted(stage: Stage) -> None:
    schedule = await stage.add()
    execution_id = await stage.trigger(schedule)
    await stage.commands.executions.cancel(execution_id, Author("ann", "enough"))
    [ended] = stage.told(ExecutionsCancelled).cancelled
    assert (ended.execution_id, ended.schedule_id, ended.schedule_name) == (
        execution_id,
        schedule.schedule_id,
        "each",
    )
    assert (ended.attempt, ended.reason, ended.started_ts) == (0, "cancelled by ann: enough", None)
    assert stage.counted("execution_status", status="cancelled") == 1
    assert stage.registry.get_sample_value("foliot_execution_duration_seconds_count") == 0


async def test_cancelling_what_an_agent_has_taken_over_is_an_attempt_that_ended(stage: Stage) -> None:
    execution_id = await stage.trigger(await stage.add())
    claim = await stage.scene.claim_one()
    await stage.store.work.accept("worker", claim, lease_s=LONG, external_id="7")
    await stage.commands.executions.cancel(execution_id, ANN)
    [ended] = stage.told(ExecutionsCancelled).cancelled
    assert (ended.worker_id, ended.started_ts, ended.attempt) == ("worker", claim.started_ts, 1)
    assert stage.counted("execution_status", status="cancelled") == 1
    assert stage.registry.get_sample_value("foliot_execution_duration_seconds_count") == 1


async def test_asking_what_runs_in_a_worker_to_stop_ends_nothing_yet(stage: Stage) -> None:
    execution_id = await stage.trigger(await stage.add())
    await stage.scene.claim_one()
    await stage.commands.executions.cancel(execution_id, ANN)
    assert stage.kinds() == ["ExecutionTriggered"]


async def test_a_cancel_that_meets_the_agents_202_is_told_by_the_worker(stage: Stage) -> None:
    execution_id = await stage.trigger(await stage.add())
    claim = await stage.scene.claim_one()
    await stage.commands.executions.cancel(execution_id, ANN)
    journal = Journal("worker", stage.store.notes)
    settler = Settler("worker", stage.store.work, stage.hints, stage.observer, journal, stage.clock)
    settler.accept(Handover(claim, "7", LONG))
    await settler.step()
    [ended] = stage.told(ExecutionsCancelled).cancelled
    assert (ended.execution_id, ended.worker_id) == (execution_id, "worker")


async def test_what_a_run_by_hand_takes_the_place_of_is_told(stage: Stage) -> None:
    schedule = await stage.add(overlap=REPLACING)
    first, second = await stage.trigger(schedule), await stage.trigger(schedule)
    [ended] = stage.told(ExecutionsCancelled).cancelled
    assert (ended.execution_id, ended.reason) == (first, "replaced")
    await stage.commands.executions.retry(first, ANN)
    assert [each.execution_id for each in stage.recorder.events[-1].cancelled] == [second]  # type: ignore[attr-defined]
    assert stage.counted("execution_status", status="cancelled") == 2


async def test_deleting_a_schedule_tells_of_all_that_waited(stage: Stage) -> None:
    schedule = await stage.add(overlap={"policy": "allow"})
    waiting = {await stage.trigger(schedule) for _ in range(3)}
    await stage.commands.schedules.delete(schedule.schedule_id, ANN)
    assert {each.execution_id for each in stage.told(ExecutionsCancelled).cancelled} == waiting
    assert stage.counted("execution_status", status="cancelled") == 3


async def test_cancelling_a_backfill_tells_of_what_waited(stage: Stage) -> None:
    backfill_id = await backfill(stage, await stage.add(trigger=HOURLY), hours=3)
    await advance_backfills(stage)
    await stage.commands.schedules.cancel_backfill(backfill_id, ANN)
    assert {each.reason for each in stage.told(ExecutionsCancelled).cancelled} == {
        "its backfill was cancelled by ann"
    }
    assert stage.counted("execution_status", status="cancelled") == 3
    await stage.commands.schedules.cancel_backfill(backfill_id, ANN)
    assert stage.kinds().count("ExecutionsCancelled") == 1, "nothing was left to cancel"


async def test_firing_tells_of_what_it_takes_the_place_of(stage: Stage) -> None:
    schedule = await stage.add(overlap=REPLACING)
    waiting = await stage.trigger(schedule)
    await fire_due(stage)
    [ended] = stage.told(ExecutionsCancelled).cancelled
    assert (ended.execution_id, ended.reason, ended.schedule_name) == (waiting, "replaced", "each")
    assert stage.counted("execution_status", status="cancelled") == 1


async def test_a_try_by_hand_is_told_and_counted_with_the_retries(stage: Stage) -> None:
    schedule = await stage.add()
    execution_id = await stage.trigger(schedule)
    await stage.scene.settle(await stage.scene.claim_one(), Status.FAILED)
    await stage.commands.executions.retry(execution_id, ANN)
    assert stage.told(ExecutionRetried) == ExecutionRetried(
        execution_id, schedule.schedule_id, "each", 1, "ann", None
    )
    assert stage.counted("execution_retries") == 1


# --- skipping -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [SkipReason.PAUSED, SkipReason.INACTIVE, SkipReason.DELETED])
async def test_a_due_time_that_a_change_holds_back_is_counted_by_its_reason(
    stage: Stage, reason: SkipReason
) -> None:
    """Three are due, in one row."""
    schedule = await stage.add(age_s=210)
    acts = stage.commands.schedules
    match reason:
        case SkipReason.PAUSED:
            await acts.pause(schedule.schedule_id, ANN)
        case SkipReason.INACTIVE:
            await acts.edit(schedule.schedule_id, spec_of("each", target=TASK, active=False), ANN)
        case _:
            await acts.delete(schedule.schedule_id, ANN)
    [row] = await stage.scene.executions(schedule)
    skipped = stage.told(ScheduleChanged).skipped
    assert (skipped.execution_id, skipped.fire_ts, skipped.reason) == (row.execution_id, row.fire_ts, reason)
    assert (skipped.missed_count, skipped.schedule_name) == (2, "each")
    assert stage.counted("scheduler_skips", reason=reason) == 3
    assert stage.counted("execution_status", status="skipped") == 1


async def test_due_times_that_an_edit_gives_up_are_counted_as_misfires(stage: Stage) -> None:
    schedule = await stage.add(age_s=210)
    retimed = spec_of("each", target=TASK, trigger=HOURLY)
    await stage.commands.schedules.edit(schedule.schedule_id, retimed, ANN)
    assert stage.counted("scheduler_skips", reason="misfire") == 2, "the last of three still fires"
    assert stage.counted("execution_status", status="skipped") == 1


async def test_a_change_that_holds_nothing_back_counts_no_skip(stage: Stage) -> None:
    schedule = await stage.add(age_s=0)
    await stage.commands.schedules.pause(schedule.schedule_id, ANN)
    assert stage.told(ScheduleChanged).skipped is None
    assert stage.counted("scheduler_skips", reason="paused") == 0


async def test_a_schedule_that_can_not_be_planned_is_reported_once_and_counts_no_skip(stage: Stage) -> None:
    schedule = await stage.add()
    # As after a change of the rules, or of the zones that there are.
    nonsense = {"kind": "cron", "expression": "* * * * *", "timezone": "Mars/Olympus"}
    await stage.scene.execute(update(schedule_t).values(trigger=nonsense))
    await fire_due(stage)
    parked = stage.told(ScheduleParked)
    assert parked.schedule_id == schedule.schedule_id
    assert "Mars/Olympus" in parked.reason
    assert stage.counted("scheduler_skips", reason="error") == 0


# --- running ------------------------------------------------------------------------------------------


async def test_a_run_that_is_asked_for_again_by_its_id_is_told_once(stage: Stage) -> None:
    schedule, execution_id = await stage.add(), new_id()
    for _ in range(2):
        await stage.commands.schedules.trigger(
            schedule.schedule_id, ANN, by=TriggeredBy.MANUAL, execution_id=execution_id
        )
    assert stage.told(ExecutionTriggered).execution_id == execution_id
    assert stage.counted("executions_triggered", triggered_by="manual") == 1


async def test_an_event_that_is_triggered_by_hand_has_succeeded(stage: Stage) -> None:
    execution_id = await stage.trigger(await stage.add(target=EVENT))
    assert stage.kinds() == ["ExecutionTriggered", "ExecutionsSettled"]
    [settled] = stage.told(ExecutionsSettled).settled
    assert (settled.execution_id, settled.status, settled.schedule_name) == (
        execution_id,
        Status.SUCCESS,
        "each",
    )
    assert stage.counted("execution_status", status="success") == 1


@pytest.mark.parametrize("is_event", [True, False])
async def test_what_a_backfill_makes_is_counted_as_fired_and_events_as_ended(
    stage: Stage, is_event: bool
) -> None:
    target = EVENT if is_event else TASK
    await backfill(stage, await stage.add(trigger=HOURLY, target=target), hours=3)
    await advance_backfills(stage)
    assert stage.counted("scheduler_fires") == 3
    assert stage.counted("executions_triggered", triggered_by="backfill") == 3
    assert stage.counted("execution_status", status="success") == (3 if is_event else 0)


# --- agents -------------------------------------------------------------------------------------------


async def test_an_agent_that_never_reported_has_timed_out_and_no_worker_vanished(stage: Stage) -> None:
    schedule = await stage.add(target=AGENT, retry={"max_attempts": 1})
    lost = await stage.add("lost")
    taken_over, vanished = await stage.trigger(schedule), await stage.trigger(lost)
    for claim in await stage.scene.claim(lease_s=STALE):
        if claim.execution_id == taken_over:
            await stage.store.work.accept("worker", claim, lease_s=STALE, external_id="7")
    await sweep(stage)
    assert stage.told(ExecutionsRescued).rescued.keys() == {vanished}
    told = stage.told(ExecutionsSettled)
    [settled] = told.settled
    assert (settled.execution_id, settled.status, settled.attempt_status, told.worker_id) == (
        taken_over,
        Status.TIMEOUT,
        Status.TIMEOUT,
        "worker",
    )
    assert settled.agent_url == "https://agent.test/run"
    assert stage.told(AgentFailed) == AgentFailed("timeout")
    assert stage.counted("worker_rescued") == 1
    assert stage.counted("agent_http_errors", status_code="timeout") == 1
    assert stage.counted("execution_status", status="timeout") == 1


# --- steps of services, by hand -----------------------------------------------------------------------


async def backfill(stage: Stage, schedule: Schedule, *, hours: int) -> UUID:
    to_ts = (await stage.scene.now()).replace(minute=0, second=0, microsecond=0)
    from_ts = to_ts - timedelta(hours=hours)
    made = await stage.commands.schedules.backfill(schedule.schedule_id, from_ts, to_ts, ANN)
    return made.backfill_id


async def lead(stage: Stage) -> tuple[Leadership, Lease]:
    leases = DatabaseLeases(stage.store.leases, "one", LONG)
    leading = Leadership(WHOLE, leases, stage.clock, Recorder(), ttl_s=LONG, heartbeat_s=1.0)
    await leading.step()
    assert leading.lease is not None
    return leading, leading.lease


async def advance_backfills(stage: Stage) -> None:
    leading, _lease = await lead(stage)
    backfiller = Backfiller(leading, stage.store.backfills, stage.hints, stage.observer, every_s=1.0)
    await backfiller.step()


async def fire_due(stage: Stage) -> None:
    leading, lease = await lead(stage)
    firing = FiringService(leading, stage.store.firing, stage.clock, stage.hints, stage.observer, idle_s=1.0)
    now = await stage.scene.now()
    term = LeaderState(lease, now)
    term.put(await stage.store.firing.load(WHOLE, until=now, after=None, limit=100))
    firing.begin(term)
    await firing.step()


async def sweep(stage: Stage) -> None:
    leading, _lease = await lead(stage)
    store = stage.store
    janitor = Janitor(
        leading,
        store.upkeep,
        store.registry,
        stage.clock,
        stage.hints,
        stage.observer,
        HousekeepingOptions(every_s=1.0, retention_days=1.0),
    )
    for duty in janitor.duties:
        await duty.step()
