"""The dead man's handle: what is not to run is not missed, and what is missed is told, however often."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, insert
from sqlalchemy.ext.asyncio import AsyncConnection
from tests.conformance.suites.scene import SOMEBODY, Scene
from tests.conformance.test_notifications import FAILURE, HOUR, LONG_AGO, RECOVERY, SLA_MISS, SLACK, Stage

from foliot.db.dialect import Pool
from foliot.db.tables.executions import execution_t
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.notification import NotificationRule, NotificationRuleSpec
from foliot.model.schedule import Schedule, ScheduleState
from foliot.notifications import scanner as sweeping_module
from foliot.notifications.notifications_sql import NotificationFilter
from foliot.planning.change import PlannedChange, pause
from foliot.timing.clock import Clock, VirtualClock

WITHIN = {"kind": "did_not_run", "within_seconds": HOUR.total_seconds()}
GRACE = {"kind": "did_not_run", "grace_seconds": 20}


@pytest.fixture
async def stage(scene: Scene, clock: Clock) -> Stage:
    made = Stage(scene, clock)
    await made.take_over()
    return made


async def old(stage: Stage, name: str, **fields: Any) -> Schedule:
    return await stage.scene.add(name, age_s=LONG_AGO.total_seconds(), **fields)


async def fire(stage: Stage, *schedules: Schedule) -> None:
    assert stage.leadership.lease is not None
    await stage.scene.fire(stage.leadership.lease, *schedules)


async def change(stage: Stage, rule: NotificationRule, **fields: Any) -> NotificationRule:
    def changed(known: NotificationRule) -> NotificationRuleSpec:
        return NotificationRuleSpec.parse(known.spec.model_dump(mode="json") | fields)

    return await stage.scene.store.notification_rules.change(rule.rule_id, DEFAULT_HOST_ID, changed, SOMEBODY)


# --- what is not to run ----------------------------------------------------------------------------


async def test_the_first_firing_after_a_timed_pause_does_not_make_its_end_forgotten(stage: Stage) -> None:
    await stage.rule(WITHIN)
    jobs = [await old(stage, name) for name in ("just over", "long over")]
    for job, ago in zip(jobs, (timedelta(minutes=5), 2 * HOUR), strict=True):
        await stage.run(job, Status.SUCCESS, ago=LONG_AGO - HOUR)
        await _pause_then(stage, job, await stage.scene.now() - ago)
    await fire(stage, *jobs)
    assert not (await stage.scene.get(jobs[0])).paused
    assert await stage.look() == [("did_not_run", "long over")]


async def test_one_that_is_made_active_or_is_to_run_again_begins_anew(stage: Stage) -> None:
    await stage.rule(WITHIN)
    await stage.rule(GRACE, name="grace")
    inactive = await old(stage, "inactive", active=False)
    completed = await old(stage, "completed", max_runs=1)
    await fire(stage, completed)
    [claim] = await stage.scene.claim()
    await stage.scene.settle(claim, Status.FAILED)
    assert (await stage.scene.get(completed)).state is ScheduleState.COMPLETED
    stage.tick()
    await stage.scene.edit(inactive, active=True)
    await stage.scene.edit(completed, max_runs=None)
    assert await stage.look() == []


async def test_one_that_is_not_yet_to_run_is_waited_for_from_its_first_time_on(stage: Stage) -> None:
    await stage.rule(WITHIN)
    now = await stage.scene.now()

    def later(delay: timedelta) -> str:
        return (now + delay).isoformat()

    await old(stage, "next month", trigger={"kind": "once", "at": later(timedelta(days=30))})
    await old(stage, "starts next month", start_ts=later(timedelta(days=30)))
    await old(stage, "has just started", start_ts=later(-HOUR / 2))
    missed = await old(stage, "missed", start_ts=later(-3 * HOUR))
    await old(stage, "nobody fires it", start_ts=later(-2 * HOUR))
    await fire(stage, missed)
    assert await stage.look() == [("did_not_run", "missed"), ("did_not_run", "nobody fires it")]


async def test_a_rule_that_is_given_another_patience_or_other_schedules_counts_from_then(
    stage: Stage,
) -> None:
    await old(stage, "job")
    patient = await stage.rule(FAILURE, name="patient")
    elsewhere = await stage.rule(WITHIN, name="elsewhere", match={"schedules": ["another"]})
    await change(stage, patient, on=[FAILURE, WITHIN])
    await change(stage, elsewhere, match={})
    assert await stage.look() == []
    # What else it tells of is not forgotten by that, and a change of other things is none.
    renamed = await stage.rule(WITHIN, name="renamed")
    await change(stage, renamed, name="another name")
    assert await stage.look() == [("did_not_run", "job")]


async def test_what_was_too_late_while_it_was_paused_is_not_told_after_the_pause(stage: Stage) -> None:
    await stage.rule(SLA_MISS)
    job = await old(stage, "job", active=False)
    await stage.scene.trigger(job)
    await stage.scene.pause(job)
    late = await stage.scene.now() - timedelta(seconds=5)
    await stage.scene.execute(execution_t.update().values(due_by_ts=late))
    [claim] = await stage.scene.claim()
    await stage.scene.settle(claim, Status.SUCCESS)
    assert await stage.look() == []
    stage.tick()
    await stage.scene.resume(job)
    assert await stage.look() == []
    await stage.take_over()
    assert await stage.look() == []


# --- what is missed --------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [WITHIN, GRACE])
async def test_a_success_that_commits_behind_the_look_that_missed_it_ends_the_silence(
    stage: Stage, patience: dict[str, Any]
) -> None:
    await stage.rule(patience, RECOVERY)
    # A time is due since 30 s.
    job = await stage.scene.add("job", age_s=LONG_AGO.total_seconds() + 30, overlap={"policy": "allow"})
    await fire(stage, job)
    assert await stage.look() == [("did_not_run", "job")]
    # It has written its time before that look.
    await stage.run(job, Status.SUCCESS, ago=timedelta(milliseconds=500))
    assert await stage.look() == [("recovered", "job")]
    assert await stage.open_incidents() == set()


class TestSqlite:
    """Whose clock can be moved."""

    databases = ("sqlite",)

    async def test_every_silence_is_told_also_when_the_last_runs_have_failed(
        self, stage: Stage, clock: VirtualClock
    ) -> None:
        await stage.rule(WITHIN)
        job = await old(stage, "job")
        for _ in range(3):
            await stage.run(job, Status.SUCCESS)
            well_ts = await stage.scene.now()
            assert await stage.look() == []
            clock.advance(HOUR.total_seconds() / 2)
            await stage.run(job, Status.FAILED)
            assert await stage.look() == []
            clock.advance(HOUR.total_seconds() / 2)
            assert await stage.look() == [("did_not_run", "job")]
            everything = NotificationFilter(host_id=DEFAULT_HOST_ID)
            [latest] = await stage.scene.store.notifications.page(everything, limit=1)
            assert datetime.fromisoformat(latest.message["data"]["since_ts"]) == well_ts

    async def test_a_timed_pause_is_not_missed_from_its_beginning_to_the_first_run_after_it(
        self, stage: Stage, clock: VirtualClock
    ) -> None:
        await stage.rule(WITHIN)
        job = await old(stage, "job")
        await stage.run(job, Status.SUCCESS)
        await stage.scene.pause(job, until_ts=await stage.scene.now() + 5 * HOUR)
        clock.advance(5 * HOUR.total_seconds() - 1)
        assert await stage.look() == []
        clock.advance(1.5)
        assert await stage.look() == []
        clock.advance(60)
        await fire(stage, job)
        assert await stage.look() == []
        clock.advance(HOUR.total_seconds())
        assert await stage.look() == [("did_not_run", "job")]

    async def test_times_that_were_not_due_are_gone_through_once(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch, clock: VirtualClock
    ) -> None:
        await stage.rule(GRACE)
        job = await old(stage, "job", trigger={"kind": "cron", "expression": "0 0 1 1 *"})
        now, spans = await stage.scene.now(), []
        await _skip(stage, job, [now - timedelta(minutes=each) for each in range(100)], "window")
        silence = stage.scene.store.sightings.silence
        read = silence.latest_due

        async def noted(wanted: Any) -> Any:
            spans.append(list(wanted))
            return await read(wanted)

        monkeypatch.setattr(silence, "latest_due", noted)
        assert await stage.look() == []
        clock.advance(15)
        assert await stage.look() == []
        [[first], [second]] = spans
        assert first.until_ts - first.from_ts > HOUR
        assert second.until_ts - second.from_ts < timedelta(minutes=2)
        # What becomes due is missed all the same.
        await _skip(stage, job, [await stage.scene.now()], "overlap")
        clock.advance(19)
        assert await stage.look() == []
        clock.advance(1)
        assert await stage.look() == [("did_not_run", "job")]


# --- how it goes through them ----------------------------------------------------------------------


async def test_what_a_sweep_reads_does_not_grow_with_the_rules(stage: Stage) -> None:
    for number in range(40):
        labels = {"team": f"t{number}"}
        await stage.rule([WITHIN, GRACE][number % 2], name=f"r{number}", match={"labels": labels})
        for one in range(3):
            await old(stage, f"j{number}-{one}", labels=labels)
    issued: list[str] = []
    engine = stage.scene.store.database.engine(Pool.FIRING).sync_engine

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().startswith("SELECT"):
            issued.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    told = await stage.look()
    event.remove(engine, "before_cursor_execute", note)
    assert len(told) > 40
    assert len(issued) < 25, len(issued)


async def test_a_page_that_can_not_be_read_keeps_no_other_from_being_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping_module, "PAGE", 1)
    await stage.rule(GRACE)
    for name in ("a", "b", "c"):
        await old(stage, name)
    silence = stage.scene.store.sightings.silence
    read, tries = silence.latest_due, 0

    async def stuck(wanted: Any) -> Any:
        nonlocal tries
        tries += 1
        if tries == 2:
            raise TimeoutError
        return await read(wanted)

    monkeypatch.setattr(silence, "latest_due", stuck)
    with pytest.raises(TimeoutError):
        await stage.look()
    assert await stage.look() == [("did_not_run", "c")]
    # The one that was left out is asked about in full by the next round.
    assert await stage.look() == [("did_not_run", "b")]


async def test_a_sweep_whose_time_is_up_goes_on_behind_its_last_page(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping_module, "PAGE", 2)
    monkeypatch.setattr(sweeping_module, "BUDGET_S", 0.0)
    elsewhere = await stage.scene.add_host("elsewhere")
    rules = stage.scene.store.notification_rules
    await stage.rule(GRACE)
    spec = NotificationRuleSpec.parse({"name": "theirs", "on": [GRACE], "to": SLACK})
    await rules.create(elsewhere, spec, SOMEBODY)
    for name in ("a", "b", "c"):
        await old(stage, name)
    told = [await stage.look(), *[await _step(stage) for _ in range(3)]]
    names = [sorted(name for _, name in each) for each in told]
    assert sorted(names) == [[], [], ["a", "b"], ["c"]]


async def _step(stage: Stage) -> list[tuple[str, str]]:
    """Without beginning another sweep."""
    assert stage.notifier._term is not None
    swept_at = stage.notifier._clock.monotonic()
    before = len(stage.recorder.events)
    stage.notifier._term.swept_at = swept_at
    await stage.notifier.step()
    assert stage.notifier._term.swept_at == swept_at
    return await stage.decided(before)


async def _pause_then(stage: Stage, job: Schedule, until_ts: datetime) -> None:
    """As if yesterday, with an end that has passed."""

    def plan(known: Schedule, now: datetime) -> PlannedChange | None:
        return pause(known, now=now - timedelta(days=1), author=SOMEBODY, until_ts=until_ts)

    await stage.scene.store.schedules.change(job.schedule_id, plan, SOMEBODY)


async def _skip(stage: Stage, job: Schedule, times: list[datetime], reason: str) -> None:
    now = await stage.scene.now()
    rows = [
        {
            "execution_id": new_id(),
            "schedule_id": job.schedule_id,
            "host_id": job.host_id,
            "aggregate_version": 1,
            "fire_ts": each,
            "status": "skipped",
            "reason": reason,
            "triggered_by": "scheduler",
            "queue": "default",
            "priority": "medium",
            "created_ts": now,
        }
        for each in times
    ]

    async def work(connection: AsyncConnection) -> None:
        await connection.execute(insert(execution_t), rows)

    await stage.scene.store.database.write(Pool.API, work)
