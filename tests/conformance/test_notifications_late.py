"""What waits for too long is told of, whatever else does."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import update
from tests.conformance.suites.scene import SOMEBODY, Scene
from tests.conformance.test_notifications import SLA_MISS, SLACK, Stage, add

from foliot.db.tables.executions import execution_t
from foliot.db.tables.notifications import notification_rule_t
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.notification import NotificationRuleSpec
from foliot.model.schedule import Schedule
from foliot.notifications import lateness as lateness_module
from foliot.timing.clock import Clock

MANY = 12


@pytest.fixture
async def stage(scene: Scene, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(lateness_module, "PAGE", 4)
    monkeypatch.setattr(lateness_module, "MIN_SHARE", 2)
    monkeypatch.setattr(lateness_module, "MAX_PAGES", 2)
    made = Stage(scene, clock)
    await made.take_over()
    return made


async def late(stage: Stage, job: Schedule, by_s: float) -> None:
    """One that should have been started so long ago."""
    made = await stage.scene.trigger(job)
    due = await stage.scene.now() - timedelta(seconds=by_s)
    table = execution_t
    await stage.scene.execute(update(table).where(table.c.execution_id == made).values(due_by_ts=due))


async def told(stage: Stage, looks: int) -> set[str]:
    return {name for _ in range(looks) for _, name in await stage.look()}


async def watch(stage: Stage, host_id: UUID) -> None:
    spec = NotificationRuleSpec.parse({"name": "late", "on": [SLA_MISS], "to": SLACK})
    await stage.scene.store.notification_rules.create(host_id, spec, SOMEBODY)


@pytest.mark.parametrize("noisy_first", [True, False])
async def test_a_host_with_very_much_that_is_late_does_not_hide_what_is_late_of_another(
    stage: Stage, noisy_first: bool
) -> None:
    hosts = sorted([DEFAULT_HOST_ID, await stage.scene.add_host("another")])
    noisy_host, quiet_host = hosts if noisy_first else hosts[::-1]
    await stage.rule(SLA_MISS, name="here")
    await watch(stage, hosts[1])
    noisy = await add(stage.scene, "noisy", host_id=noisy_host)
    quiet = await add(stage.scene, "quiet", host_id=quiet_host)
    stage.tick()
    await _let_rules_be_old(stage)
    for number in range(MANY):
        await late(stage, noisy, 9 - number / 100)
    await late(stage, quiet, 2)
    assert await told(stage, 1) == {"noisy", "quiet"}


async def test_what_is_late_behind_very_many_others_of_its_queue_is_told_by_the_next_looks(
    stage: Stage,
) -> None:
    await stage.rule(SLA_MISS)
    noisy, quiet = await add(stage.scene, "noisy"), await add(stage.scene, "quiet")
    same = await stage.scene.now() - timedelta(seconds=9)
    for _ in range(MANY):
        await late(stage, noisy, 9)
    # Also where all of them are late since the same instant.
    await stage.scene.execute(update(execution_t).values(due_by_ts=same))
    await late(stage, quiet, 2)
    assert await told(stage, 1) == {"noisy"}
    assert await told(stage, 1) == {"quiet"}


async def test_very_many_that_were_started_too_late_are_gone_through_by_and_by(stage: Stage) -> None:
    await stage.rule(SLA_MISS)
    jobs = [await add(stage.scene, f"job {number}") for number in range(MANY)]
    for job in jobs:
        await late(stage, job, 5)
    await stage.scene.claim(limit=MANY)
    found = [await stage.look(), await stage.look()]
    assert [len(each) for each in found] == [8, 4]
    assert {name for each in found for _, name in each} == {job.spec.name for job in jobs}


async def _let_rules_be_old(stage: Stage) -> None:
    began = await stage.scene.now() - timedelta(days=1)
    await stage.scene.execute(update(notification_rule_t).values(effective_ts=began))
