"""Notifications where very much fails at once, clocks go back, commits are slow, and rules come and go."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, update
from tests.conformance.suites.scene import SOMEBODY, Scene
from tests.conformance.test_notifications import FAILURE, HOUR, LONG_AGO, Stage, add

from foliot.db.tables.cluster import cluster_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.notifications import notification_incident_t
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.instant import micros_of
from foliot.model.notification import DeliveryState, NotificationRule, NotificationRuleSpec
from foliot.model.schedule import Schedule
from foliot.notifications import notifier as notifier_module
from foliot.notifications.deliveries_sql import DeliveryResult
from foliot.notifications.incidents_sql import POSITION
from foliot.notifications.notifications_sql import NotificationFilter
from foliot.notifications.notifier import OVERLAP, NotifierOptions
from foliot.timing.clock import Clock


@pytest.fixture
async def stage(scene: Scene, clock: Clock) -> Stage:
    made = Stage(scene, clock)
    await made.take_over()
    return made


async def fail(stage: Stage, schedules: Sequence[Schedule]) -> None:
    for schedule in schedules:
        await stage.run(schedule, Status.FAILED)


async def test_more_incidents_at_once_than_a_statement_takes_arguments_are_all_written(stage: Stage) -> None:
    rules, jobs = 112, 50
    for number in range(rules):
        await stage.rule(FAILURE, name=f"rule {number}")
    failing = [await add(stage.scene, f"job {number}") for number in range(jobs)]
    await fail(stage, failing)
    await stage.look()
    [[opened]] = await stage.scene.rows(select(func.count()).select_from(notification_incident_t))
    assert opened == rules * jobs


async def test_a_failure_that_commits_late_is_seen_also_when_very_much_failed_meanwhile(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier_module, "PAGE", 2)
    await stage.rule(FAILURE)
    jobs = [await add(stage.scene, f"job {number}") for number in range(5)]
    late = await add(stage.scene, "late")
    await fail(stage, jobs)
    assert await stage.look() == [("failed", f"job {number}") for number in range(5)]
    await stage.run(late, Status.FAILED, ago=OVERLAP - timedelta(seconds=5))
    assert await stage.look() == [("failed", "late")]
    assert await stage.look() == []


async def test_more_failures_than_a_look_reads_are_told_by_the_next_ones(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier_module, "PAGE", 2)
    monkeypatch.setattr(notifier_module, "MAX_PAGES", 2)
    await stage.rule(FAILURE)
    jobs = [await add(stage.scene, f"job {number}") for number in range(9)]
    await fail(stage, jobs)
    told: list[tuple[str, str]] = []
    for _ in range(4):
        told += await stage.look()
    assert told == [("failed", f"job {number}") for number in range(9)]


async def test_a_clock_that_has_gone_back_does_not_silence_anybody(stage: Stage) -> None:
    await stage.rule(FAILURE)
    job = await add(stage.scene)
    assert await stage.look() == []
    ahead = micros_of(await stage.scene.now() + HOUR)
    await stage.scene.execute(update(cluster_t).where(cluster_t.c.name == POSITION).values(value=ahead))
    await stage.take_over()
    assert await stage.look() == []
    await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "job")]


async def test_what_fails_while_a_rule_is_being_made_is_told_by_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.rule(FAILURE, name="before")
    job = await add(stage.scene)
    sightings = stage.scene.store.sightings
    read = sightings.failures

    async def meanwhile(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(sightings, "failures", read)
        stage.tick()
        await stage.rule(FAILURE, name="meanwhile")
        await stage.run(job, Status.FAILED)
        return await read(*arguments, **named)

    monkeypatch.setattr(sightings, "failures", meanwhile)
    told = await stage.look() + await stage.look()
    assert told == [("failed", "job")] * 2


async def test_old_messages_are_forgotten_also_when_no_rule_is_left_and_however_many_there_are(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier_module, "PAGE", 2)
    rule = await stage.rule(FAILURE)
    notifications = stage.scene.store.notifications
    for _ in range(5):
        await notifications.add_test(rule, SOMEBODY)
    while due := await notifications.claim(limit=5, lease_s=60):
        await notifications.settle(DeliveryResult(due[0], DeliveryState.DELIVERED))
    await stage.scene.store.notification_rules.delete(rule.rule_id, DEFAULT_HOST_ID, SOMEBODY)
    await stage.look()
    wanted = NotificationFilter(host_id=DEFAULT_HOST_ID)
    assert len(await notifications.page(wanted)) == 5
    await stage.take_over()
    stage.notifier._options = NotifierOptions(retention_days=-0.001)
    await stage.look()
    assert await notifications.page(wanted) == []


async def test_a_run_that_was_long_under_way_is_a_success_since_what_was_due_meanwhile(stage: Stage) -> None:
    scene = stage.scene
    await stage.rule({"kind": "did_not_run", "grace_seconds": 20})
    job = await scene.add("job")
    lease = stage.leadership.lease
    assert lease is not None
    await scene.fire(lease, job)
    table = execution_t
    await scene.execute(update(table).values(status="skipped", reason="overlap", ended_ts=table.c.fire_ts))
    began = await stage.run(job, Status.SUCCESS)
    long_ago = await scene.now() - 3 * HOUR
    await scene.execute(
        update(table)
        .where(table.c.execution_id == began)
        .values(fire_ts=long_ago, started_ts=long_ago, due_by_ts=long_ago)
    )
    assert await stage.look() == []


async def test_to_take_away_a_mute_that_is_over_does_not_tell_of_the_time_before_its_end(
    stage: Stage,
) -> None:
    scene = stage.scene
    muted_until = await scene.now() - timedelta(minutes=5)
    within = {"kind": "did_not_run", "within_seconds": HOUR.total_seconds()}
    rule = await stage.rule(within, muted_until_ts=muted_until.isoformat())
    await scene.add("job", age_s=LONG_AGO.total_seconds())
    assert await stage.look() == []

    def heard(rule: NotificationRule) -> NotificationRuleSpec:
        return rule.spec.model_copy(update={"muted_until_ts": None})

    changed = await scene.store.notification_rules.change(rule.rule_id, DEFAULT_HOST_ID, heard, SOMEBODY)
    assert changed.counts_from == muted_until
    assert await stage.look() == []


async def test_couriers_take_from_the_rules_in_turn_however_many_messages_one_of_them_has(
    stage: Stage,
) -> None:
    notifications = stage.scene.store.notifications
    busy, quiet = await stage.rule(FAILURE, name="busy"), await stage.rule(FAILURE, name="quiet")
    waiting = [await notifications.add_test(busy, SOMEBODY) for _ in range(3)]
    stage.tick()
    last = await notifications.add_test(quiet, SOMEBODY)

    async def claimed(**named: Any) -> list[UUID]:
        return [each.notification_id for each in await notifications.claim(limit=4, lease_s=60, **named)]

    assert await notifications.claim(limit=4, lease_s=60, but_hosts={DEFAULT_HOST_ID}) == []
    assert await claimed(but_rules={busy.rule_id, quiet.rule_id}) == []
    assert sorted(await claimed()) == sorted([waiting[0].notification_id, last.notification_id])
    assert await claimed() == [waiting[1].notification_id]
    assert await notifications.claim_of([quiet.rule_id], limit=4, lease_s=60) == []
    [rest] = await notifications.claim_of([quiet.rule_id, busy.rule_id], limit=4, lease_s=60)
    assert (rest.notification_id, rest.attempts) == (waiting[2].notification_id, 1)
    assert await claimed() == []
