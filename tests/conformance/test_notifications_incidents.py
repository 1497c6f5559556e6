"""When incidents end, and what a rule that was not heard for a while makes of them."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from tests.conformance.suites.scene import SOMEBODY, Scene
from tests.conformance.test_notifications import FAILURE, RECOVERY, SLACK, Stage, add

from foliot.db.tables.executions import execution_t
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.notification import NotificationRule, NotificationRuleSpec
from foliot.model.schedule import Schedule
from foliot.timing.clock import Clock

IN_A_ROW = {"kind": "failures_in_a_row", "count": 2}


@pytest.fixture
async def stage(scene: Scene, clock: Clock) -> Stage:
    made = Stage(scene, clock)
    await made.take_over()
    return made


async def hear(stage: Stage, rule: NotificationRule, *, enabled: bool) -> None:
    stage.tick()

    def changed(known: NotificationRule) -> NotificationRuleSpec:
        return known.spec.model_copy(update={"enabled": enabled})

    await stage.scene.store.notification_rules.change(rule.rule_id, DEFAULT_HOST_ID, changed, SOMEBODY)
    stage.tick()


async def backfilled(stage: Stage, job: Schedule, status: Status) -> None:
    made = await stage.run(job, status)
    day = await stage.scene.now() - timedelta(days=5)
    await stage.scene.execute(
        update(execution_t)
        .where(execution_t.c.execution_id == made)
        .values(triggered_by="backfill", fire_ts=day)
    )


@pytest.mark.parametrize("others", [0, 1])
async def test_a_rule_that_is_heard_again_begins_anew_whatever_rules_other_hosts_have(
    stage: Stage, others: int
) -> None:
    elsewhere = await stage.scene.add_host("elsewhere")
    for number in range(others):
        spec = NotificationRuleSpec.parse({"name": f"theirs {number}", "on": [FAILURE], "to": SLACK})
        await stage.scene.store.notification_rules.create(elsewhere, spec, SOMEBODY)
    rule = await stage.rule(FAILURE, RECOVERY)
    well, failing = await add(stage.scene, "well"), await add(stage.scene, "failing")
    for job in (well, failing):
        await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "failing"), ("failed", "well")]
    await hear(stage, rule, enabled=False)
    assert await stage.look() == []
    await stage.run(well, Status.SUCCESS)
    await stage.run(failing, Status.SUCCESS)
    await stage.run(failing, Status.FAILED)
    assert await stage.look() == []
    await hear(stage, rule, enabled=True)
    # Neither the recovery nor the failure of the time in which nobody listened.
    assert await stage.look() == []
    assert await stage.open_incidents() == set()
    await stage.run(failing, Status.FAILED)
    assert await stage.look() == [("failed", "failing")]
    await stage.run(failing, Status.SUCCESS)
    assert await stage.look() == [("recovered", "failing")]


async def test_a_recovery_in_the_time_of_a_mute_is_not_told_when_the_mute_has_ended(stage: Stage) -> None:
    rule = await stage.rule(FAILURE, RECOVERY)
    job = await add(stage.scene)
    await stage.run(job, Status.FAILED, ago=timedelta(seconds=5))
    assert await stage.look() == [("failed", "job")]
    await stage.run(job, Status.SUCCESS, ago=timedelta(seconds=2))
    muted_until = await stage.scene.now() - timedelta(seconds=1)

    def changed(known: NotificationRule) -> NotificationRuleSpec:
        return known.spec.model_copy(update={"muted_until_ts": muted_until})

    await stage.scene.store.notification_rules.change(rule.rule_id, DEFAULT_HOST_ID, changed, SOMEBODY)
    assert await stage.look() == []
    assert await stage.open_incidents() == set()


async def test_a_backfill_ends_no_incident_and_hides_no_success(stage: Stage) -> None:
    await stage.rule(IN_A_ROW, RECOVERY)
    job = await add(stage.scene)
    for _ in range(2):
        await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failing", "job")]
    await backfilled(stage, job, Status.SUCCESS)
    assert await stage.look() == []
    await stage.run(job, Status.FAILED)
    assert await stage.look() == []
    await stage.run(job, Status.SUCCESS)
    await backfilled(stage, job, Status.SUCCESS)
    assert await stage.look() == [("recovered", "job")]


async def test_a_backfill_is_no_success_that_a_schedule_was_waited_for(stage: Stage) -> None:
    await stage.rule({"kind": "did_not_run", "within_seconds": 3600})
    job = await stage.scene.add("job", age_s=2 * 86400, overlap={"policy": "allow"})
    await backfilled(stage, job, Status.SUCCESS)
    assert await stage.look() == [("did_not_run", "job")]


@pytest.mark.parametrize("hiding", [Status.CANCELLED, Status.RETRYING])
async def test_a_success_is_not_hidden_by_what_comes_after_it_before_the_next_look(
    stage: Stage, hiding: Status
) -> None:
    await stage.rule(FAILURE, RECOVERY)
    job = await add(stage.scene)
    await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "job")]
    await stage.run(job, Status.SUCCESS)
    await stage.run(job, hiding)
    assert await stage.look() == [("recovered", "job")]
    await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "job")]


async def test_what_fails_and_recovers_in_the_middle_of_a_look_is_told_by_the_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.rule({**FAILURE, "every": True})
    job = await add(stage.scene)
    await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "job")]
    stage.tick()
    incidents = stage.scene.store.incidents
    read = incidents.over

    async def meanwhile(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(incidents, "over", read)
        await stage.run(job, Status.FAILED)
        await stage.run(job, Status.SUCCESS)
        return await read(*arguments, **named)

    monkeypatch.setattr(incidents, "over", meanwhile)
    assert await stage.look() == []
    assert await stage.look() == [("failed", "job")]
