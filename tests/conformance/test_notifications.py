"""What the notifier finds and decides, and what couriers claim and settle, over both databases."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, select, update
from tests.conformance.suites.scene import SOMEBODY, STALE, WHOLE, Scene

from foliot.db.dialect import Pool
from foliot.db.hints import LocalHints
from foliot.db.tables.access import audit_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.notifications import notification_incident_t, notification_rule_t, notification_t
from foliot.db.tables.schedules import schedule_status_t, schedule_t
from foliot.model.delivery_events import NotificationDecided
from foliot.model.errors import ConflictError, FencedError, NameTakenError, NotFoundError, StaleVersionError
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.instance_events import WriteFenced
from foliot.model.notification import DeliveryState, NotificationRule, NotificationRuleSpec, NotificationType
from foliot.model.schedule import Schedule
from foliot.notifications import rules_sql as rules_module
from foliot.notifications.deliveries_sql import DeliveryResult
from foliot.notifications.digest import MAX_ALONE
from foliot.notifications.incidents_sql import Decisions
from foliot.notifications.notifications_sql import NotificationFilter
from foliot.notifications.notifier import OVERLAP, Notifier, NotifierOptions
from foliot.scheduler.leases.database_lease import DatabaseLeases
from foliot.scheduler.leases.leadership import Leadership
from foliot.testing.app import Recorder
from foliot.timing.clock import Clock, ClusterClock, SystemClock, VirtualClock

SLACK = {"kind": "slack", "url": "https://hooks.example/x"}
FAILURE: dict[str, Any] = {"kind": "failure"}
RECOVERY = {"kind": "recovery"}
SLA_MISS = {"kind": "sla_miss"}
LONG_AGO = timedelta(days=2)
HOUR = timedelta(hours=1)


class Stage:
    """A notifier that leads, over a scene; others can be made that take over."""

    def __init__(self, scene: Scene, clock: Clock) -> None:
        self.scene = scene
        self._clock = clock
        self.recorder = Recorder()

    async def take_over(self) -> None:
        """A leader that knows nothing of the one before it."""
        now, clock = await self.scene.now(), ClusterClock(SystemClock())
        clock.observe(now, clock.monotonic())
        provider = DatabaseLeases(self.scene.store.leases, "leader", STALE)
        # It trusts its lease for as long as the test takes.
        self.leadership = Leadership(WHOLE, provider, clock, self.recorder, ttl_s=3600, heartbeat_s=60)
        await self.leadership.step()
        assert self.leadership.lease is not None
        store = self.scene.store
        self.notifier = Notifier(
            lambda: self.leadership,
            store.notification_rules,
            store.sightings,
            store.incidents,
            store.notifications,
            clock,
            LocalHints(),
            self.recorder,
            NotifierOptions(),
        )

    async def rule(self, *on: dict[str, Any], age: timedelta = LONG_AGO, **fields: Any) -> NotificationRule:
        """One that has been there for so long."""
        document = {"name": f"rule {len(on)} {on}", "on": list(on), "to": SLACK, **fields}
        spec = NotificationRuleSpec.parse(document)
        host_id = fields.pop("host_id", DEFAULT_HOST_ID)
        rule = await self.scene.store.notification_rules.create(host_id, spec, SOMEBODY)
        began = await self.scene.now() - age
        await self.scene.execute(
            update(notification_rule_t)
            .where(notification_rule_t.c.rule_id == rule.rule_id)
            .values(effective_ts=began)
        )
        return rule

    def tick(self) -> None:
        """Let what follows be later than what was, also by a clock that stands still."""
        if isinstance(self._clock, VirtualClock):
            self._clock.advance(0.001)

    async def run(self, schedule: Schedule, status: Status, *, ago: timedelta = timedelta(0)) -> UUID:
        """A run that has ended so, so long ago."""
        self.tick()
        made = await self.scene.trigger(schedule)
        [claim] = [each for each in await self.scene.claim() if each.execution_id == made]
        await self.scene.settle(claim, status, error="because" if status is not Status.SUCCESS else None)
        if ago:
            then = await self.scene.now() - ago
            times = dict.fromkeys(("fire_ts", "started_ts", "ended_ts", "due_by_ts"), then)
            table = execution_t
            await self.scene.execute(
                update(table).where(table.c.execution_id == claim.execution_id).values(**times)
            )
            status_t = schedule_status_t
            await self.scene.execute(
                update(status_t)
                .where(status_t.c.last_execution_id == claim.execution_id)
                .values(last_run_ts=then)
            )
        return claim.execution_id

    async def look(self) -> list[tuple[str, str]]:
        """Everything that is to be seen, also by a sweep: the types that are new, and their schedules."""
        before = len(self.recorder.events)
        if self.notifier._term is not None:
            self.notifier._term.swept_at = float("-inf")
        await self.notifier.step()
        return await self.decided(before)

    async def decided(self, before: int) -> list[tuple[str, str]]:
        """What was decided since so many events."""
        decided = [each for each in self.recorder.events[before:] if isinstance(each, NotificationDecided)]
        names: dict[UUID | None, str] = {
            row.schedule_id: row.schedule_name
            for row in await self.scene.rows(select(schedule_t.c.schedule_id, schedule_t.c.schedule_name))
        }
        names[None] = "many"
        return sorted((each.kind.removeprefix("schedule."), names[each.schedule_id]) for each in decided)

    async def open_incidents(self) -> set[str]:
        table = notification_incident_t
        return {row.kind for row in await self.scene.rows(select(table).where(table.c.closed_ts.is_(None)))}


@pytest.fixture
async def stage(scene: Scene, clock: Clock) -> Stage:
    made = Stage(scene, clock)
    await made.take_over()
    return made


async def add(scene: Scene, name: str = "job", **fields: Any) -> Schedule:
    return await scene.add(
        name, age_s=LONG_AGO.total_seconds(), overlap={"policy": "allow"}, active=False, **fields
    )


# --- deciding --------------------------------------------------------------------------------------


async def test_without_rules_a_step_is_one_statement(stage: Stage) -> None:
    await stage.notifier.step()
    issued: list[str] = []
    engines = [stage.scene.store.database.engine(pool).sync_engine for pool in Pool]

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        issued.append(statement)

    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    pause_s = await stage.notifier.step()
    for engine in engines:
        event.remove(engine, "before_cursor_execute", note)
    assert (len(issued), pause_s) == (1, 5.0), issued


async def test_an_incident_is_told_when_it_opens_and_when_a_success_ends_it(stage: Stage) -> None:
    scene = stage.scene
    await stage.rule(FAILURE, RECOVERY)
    await stage.rule({"kind": "failures_in_a_row", "count": 3}, name="row")
    await stage.rule(RECOVERY, name="recovery alone")
    job, other = await add(scene), await add(scene, "other")
    assert await stage.look() == []
    await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "job")]
    await stage.run(job, Status.TIMEOUT)
    await stage.run(other, Status.CANCELLED)
    assert await stage.look() == []
    await stage.run(job, Status.UNKNOWN)
    assert await stage.look() == [("failing", "job")]
    await stage.run(job, Status.FAILED)
    assert await stage.look() == []
    await stage.run(job, Status.SUCCESS)
    assert await stage.look() == [("recovered", "job"), ("recovered", "job")]
    assert await stage.open_incidents() == set()
    await stage.run(job, Status.SUCCESS)
    assert await stage.look() == []
    await stage.run(other, Status.FAILED)
    await stage.run(other, Status.SUCCESS)
    # Both between two looks.
    assert await stage.look() == [("failed", "other"), ("recovered", "other"), ("recovered", "other")]


async def test_what_fails_with_many_others_is_told_with_them_and_told_once(stage: Stage) -> None:
    await stage.rule(FAILURE, RECOVERY)
    jobs = [await add(stage.scene, f"job-{number:02}") for number in range(MAX_ALONE + 3)]
    for job in jobs:
        await stage.run(job, Status.FAILED)
    first = [("failed", job.spec.name) for job in jobs[:MAX_ALONE]]
    assert await stage.look() == [*first, ("schedules.gathered", "many")]
    [row] = await stage.scene.rows(
        select(notification_t).where(notification_t.c.type == NotificationType.GATHERED.value)
    )
    data = row.message["data"]
    assert (data["of"], data["count"]) == ("schedule.failed", 3)
    assert [each["name"] for each in data["schedules"]] == [job.spec.name for job in jobs[MAX_ALONE:]]
    assert await stage.look() == []
    await stage.take_over()
    assert await stage.look() == []
    await stage.run(jobs[-1], Status.SUCCESS)
    assert await stage.look() == [("recovered", jobs[-1].spec.name)]


async def test_a_new_leader_tells_nothing_a_second_time(stage: Stage) -> None:
    scene = stage.scene
    await stage.rule({**FAILURE, "every": True}, RECOVERY)
    await stage.rule(FAILURE, RECOVERY, name="once")
    job = await add(scene)
    await stage.run(job, Status.FAILED)
    await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "job")] * 3
    await stage.take_over()
    assert await stage.look() == []
    await stage.run(job, Status.SUCCESS)
    assert await stage.look() == [("recovered", "job")] * 2
    # What it reads again belongs to what is over: also the failure that was part of it, and not told.
    await stage.take_over()
    assert await stage.look() == []
    assert await stage.open_incidents() == set()
    page = await scene.store.notifications.page(NotificationFilter(host_id=DEFAULT_HOST_ID), limit=100)
    assert len(page) == 5


async def test_a_deposed_leader_decides_nothing(stage: Stage) -> None:
    await stage.rule(FAILURE)
    await stage.run(await add(stage.scene), Status.FAILED)
    lease = stage.leadership.lease
    assert lease is not None
    await stage.scene.lead(instance_id="another")
    assert await stage.look() == []
    assert stage.leadership.lease is None
    assert any(isinstance(each, WriteFenced) for each in stage.recorder.events)
    assert await stage.open_incidents() == set()
    now = await stage.scene.now()
    with pytest.raises(FencedError):
        await stage.scene.store.incidents.decide(lease, Decisions(), now, now)
    await stage.take_over()
    assert await stage.look() == [("failed", "job")]


async def test_a_failure_that_commits_late_is_seen_all_the_same(stage: Stage) -> None:
    await stage.rule(FAILURE)
    job = await add(stage.scene)
    assert await stage.look() == []
    # It ended before the last look, and is there only now.
    await stage.run(job, Status.FAILED, ago=OVERLAP - timedelta(seconds=5))
    assert await stage.look() == [("failed", "job")]


async def test_what_is_older_than_the_rule_or_of_a_muted_time_is_not_told(stage: Stage) -> None:
    scene = stage.scene
    now = await scene.now()
    await stage.rule(FAILURE, age=timedelta(minutes=1), name="young")
    muted_until = (now - timedelta(minutes=1)).isoformat()
    await stage.rule(FAILURE, name="was muted", muted_until_ts=muted_until)
    await stage.rule(FAILURE, name="disabled", enabled=False)
    await stage.rule(FAILURE, name="elsewhere", match={"schedules": ["another"]})
    await stage.run(await add(scene), Status.FAILED, ago=timedelta(minutes=5))
    paused = await add(scene, "paused")
    await scene.pause(paused)
    await stage.run(paused, Status.FAILED)
    deleted = await add(scene, "deleted")
    await stage.run(deleted, Status.FAILED)
    await scene.delete(deleted)
    assert await stage.look() == []
    await stage.run(await add(scene, "today"), Status.FAILED)
    assert await stage.look() == [("failed", "today")] * 2
    # One that is heard again begins anew, also for a leader that reads the last seconds again.
    stage.tick()
    rules = scene.store.notification_rules

    def heard(rule: NotificationRule) -> NotificationRuleSpec:
        return rule.spec.model_copy(update={"enabled": True})

    for rule in await rules.list_all(DEFAULT_HOST_ID):
        await rules.change(rule.rule_id, DEFAULT_HOST_ID, heard, SOMEBODY)
    await stage.take_over()
    assert await stage.look() == []


async def test_what_failed_during_a_pause_is_not_told_after_it_by_whoever_reads_it_again(
    stage: Stage,
) -> None:
    await stage.rule({**FAILURE, "every": True}, {"kind": "failures_in_a_row", "count": 2})
    job = await add(stage.scene)
    await stage.scene.pause(job)
    for _ in range(2):
        await stage.run(job, Status.FAILED)
    assert await stage.look() == []
    await stage.scene.resume(job)
    await stage.take_over()
    assert await stage.look() == []
    await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "job"), ("failing", "job")]


async def test_incidents_of_a_deleted_schedule_are_closed_and_nobody_is_told(stage: Stage) -> None:
    await stage.rule(FAILURE, RECOVERY)
    job = await add(stage.scene)
    await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "job")]
    await stage.scene.delete(job)
    assert await stage.look() == []
    assert await stage.open_incidents() == set()


# --- what did not happen ---------------------------------------------------------------------------


async def test_a_schedule_without_a_success_for_too_long_is_told_once_until_it_has_one(stage: Stage) -> None:
    scene = stage.scene
    within = {"kind": "did_not_run", "within_seconds": HOUR.total_seconds()}
    await stage.rule(within, RECOVERY, match={"labels": {"watched": "yes"}})
    await stage.rule(within, name="young", age=timedelta(minutes=5))
    labels = {"watched": "yes"}

    async def watched(name: str, **fields: Any) -> Schedule:
        return await scene.add(name, age_s=LONG_AGO.total_seconds(), labels=labels, **fields)

    dead, well, failing, resumed, fresh = [
        await watched(name) for name in ("dead", "well", "failing", "resumed", "fresh")
    ]
    await watched("inactive", active=False)
    await scene.pause(await watched("paused"))
    await scene.add("nobody's", age_s=LONG_AGO.total_seconds())
    await scene.add("new", age_s=60, labels=labels)
    await stage.run(dead, Status.SUCCESS, ago=2 * HOUR)
    await stage.run(dead, Status.FAILED, ago=timedelta(minutes=5))
    await stage.run(well, Status.SUCCESS, ago=timedelta(minutes=30))
    # The last run says nothing good, but one before it was well within the hour.
    await stage.run(failing, Status.SUCCESS, ago=timedelta(minutes=30))
    await stage.run(failing, Status.FAILED, ago=timedelta(minutes=5))
    await scene.pause(resumed)
    await scene.resume(resumed)
    await scene.pause(fresh, until_ts=await scene.now() - timedelta(minutes=5))
    assert await stage.look() == [("did_not_run", "dead")]
    assert await stage.look() == []
    await stage.run(dead, Status.FAILED)
    assert await stage.look() == []
    await stage.run(dead, Status.SUCCESS)
    assert await stage.look() == [("recovered", "dead")]
    assert await stage.look() == []


class TestSqlite:
    """Whose clock can be moved."""

    databases = ("sqlite",)

    async def test_silence_is_told_as_soon_as_patience_ends_and_anew_after_each_success(
        self, stage: Stage, clock: VirtualClock
    ) -> None:
        await stage.rule({"kind": "did_not_run", "within_seconds": HOUR.total_seconds()}, age=timedelta(0))
        job = await stage.scene.add("job", age_s=0)
        clock.advance(60)  # the first time that it is to run: from then on it is waited for
        for _ in range(2):
            clock.advance(HOUR.total_seconds() - 1)
            assert await stage.look() == []
            clock.advance(1)
            assert await stage.look() == [("did_not_run", "job")]
            clock.advance(10 * HOUR.total_seconds())
            assert await stage.look() == []
            await stage.run(job, Status.SUCCESS)
            assert await stage.look() == []
            assert await stage.open_incidents() == set()


async def test_a_due_time_without_a_success_is_told_when_its_grace_is_over(stage: Stage) -> None:
    scene = stage.scene
    await stage.rule({"kind": "did_not_run", "grace_seconds": 20})
    # Every minute: one time is due, since 30 s.
    _undecided, waiting, done, later, skipped = [
        await scene.add(name) for name in ("undecided", "waiting", "done", "later", "skipped")
    ]
    lease = stage.leadership.lease
    assert lease is not None
    await scene.fire(lease, waiting, done, later, skipped)
    for claim in await scene.claim():
        if claim.schedule_id == done.schedule_id:
            await scene.settle(claim, Status.SUCCESS)
        elif claim.schedule_id == later.schedule_id:
            await scene.settle(claim, Status.FAILED)
    # Another run has made good for it.
    await stage.run(later, Status.SUCCESS)
    table = execution_t
    await scene.execute(
        update(table)
        .where(table.c.schedule_id == skipped.schedule_id)
        .values(status="skipped", reason="calendar")
    )
    assert await stage.look() == [("did_not_run", "undecided"), ("did_not_run", "waiting")]
    assert await stage.look() == []


async def test_an_execution_that_waits_or_started_too_late_is_told_once(stage: Stage) -> None:
    scene = stage.scene
    await stage.rule(SLA_MISS)
    waits, runs, ran, in_time, held_up = [
        await add(scene, name) for name in ("waits", "runs", "ran", "in time", "held up")
    ]
    for schedule in (waits, runs, ran, in_time, held_up):
        await scene.trigger(schedule)
    table = execution_t
    late = await scene.now() - timedelta(seconds=5)
    await scene.execute(
        update(table).where(table.c.schedule_id != in_time.schedule_id).values(due_by_ts=late)
    )
    await scene.store.work.pause_queue(DEFAULT_HOST_ID, "held-up", SOMEBODY, is_paused=True)
    await scene.execute(
        update(table).where(table.c.schedule_id == held_up.schedule_id).values(queue="held-up")
    )
    for claim in await scene.claim(limit=100):
        if claim.schedule_id == ran.schedule_id:
            await scene.settle(claim, Status.SUCCESS)
        elif claim.schedule_id == waits.schedule_id:
            await scene.settle(claim, Status.PENDING)
    await scene.execute(update(table).where(table.c.schedule_id == waits.schedule_id).values(due_by_ts=late))
    assert await stage.look() == [("sla_missed", "ran"), ("sla_missed", "runs"), ("sla_missed", "waits")]
    assert await stage.look() == []
    await stage.run(ran, Status.SUCCESS)
    assert await stage.look() == []
    incidents = await scene.store.incidents.of_schedules([ran.schedule_id])
    assert [each.is_open for each in incidents] == [False]


# --- delivering ------------------------------------------------------------------------------------


async def test_a_message_is_claimed_by_one_courier_and_again_when_that_one_is_gone(stage: Stage) -> None:
    scene = stage.scene
    rule = await stage.rule(FAILURE)
    notifications = scene.store.notifications
    made = await notifications.add_test(rule, SOMEBODY)
    [gone] = await notifications.claim(limit=5, lease_s=STALE)
    [due] = await notifications.claim(limit=5, lease_s=60)
    assert (due.notification_id, due.attempts) == (made.notification_id, 2)
    assert due.message["type"] == "test"
    assert await notifications.claim(limit=5, lease_s=60) == []
    assert not await notifications.settle(DeliveryResult(gone, DeliveryState.DEAD, "a ghost"))
    assert await notifications.settle(DeliveryResult(due, DeliveryState.PENDING, "away", retry_in_s=0.0))
    [again] = await notifications.claim(limit=5, lease_s=60)
    assert (again.attempts, again.failures) == (3, 1)
    assert await notifications.settle(DeliveryResult(again, DeliveryState.DELIVERED))
    ended = await notifications.get(made.notification_id, DEFAULT_HOST_ID)
    assert (ended.status, ended.attempts, ended.due_ts) == (DeliveryState.DELIVERED, 3, None)
    assert ended.ended_ts is not None
    with pytest.raises(ConflictError):
        await notifications.retry(made.notification_id, DEFAULT_HOST_ID, SOMEBODY)


async def test_old_messages_and_incidents_are_forgotten_those_under_way_are_not(stage: Stage) -> None:
    rule = await stage.rule(FAILURE)
    notifications, incidents = stage.scene.store.notifications, stage.scene.store.incidents
    ended = await notifications.add_test(rule, SOMEBODY)
    [due] = await notifications.claim(limit=5, lease_s=60)
    await notifications.settle(DeliveryResult(due, DeliveryState.DELIVERED))
    waiting = await notifications.add_test(rule, SOMEBODY)
    job, other = await add(stage.scene), await add(stage.scene, "other")
    for each in (job, other):
        await stage.run(each, Status.FAILED)
    await stage.look()
    await stage.run(job, Status.SUCCESS)
    await stage.look()
    later = await stage.scene.now() + timedelta(seconds=1)
    assert await notifications.prune(before=later, limit=100) == 1
    assert await incidents.prune(before=later, limit=100) == 1
    assert [each.is_open for each in await incidents.of_schedules([job.schedule_id, other.schedule_id])] == [
        True
    ]
    await notifications.get(waiting.notification_id, DEFAULT_HOST_ID)
    with pytest.raises(NotFoundError):
        await notifications.get(ended.notification_id, DEFAULT_HOST_ID)


# --- rules -----------------------------------------------------------------------------------------


async def test_rules_are_kept_by_version_and_name_and_every_change_is_in_the_audit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = stage.scene.store.notification_rules
    first = await stage.rule(FAILURE, name="first")
    second = await stage.rule(FAILURE, name="second")
    _, revision = await rules.glance()

    def named(name: str) -> Any:
        return lambda rule: rule.spec.model_copy(update={"name": name})

    with pytest.raises(NameTakenError):
        await rules.create(DEFAULT_HOST_ID, first.spec, SOMEBODY)
    with pytest.raises(NameTakenError):
        await rules.change(second.rule_id, DEFAULT_HOST_ID, named("first"), SOMEBODY)
    with pytest.raises(StaleVersionError):
        await rules.change(second.rule_id, DEFAULT_HOST_ID, named("third"), SOMEBODY, expected_version=7)
    changed = await rules.change(
        second.rule_id, DEFAULT_HOST_ID, named("third"), SOMEBODY, expected_version=1
    )
    assert (changed.version, changed.spec.name) == (2, "third")
    assert (await rules.glance())[1] == revision + 1
    monkeypatch.setattr(rules_module, "MAX_RULES", 2)
    with pytest.raises(ConflictError):
        await stage.rule(FAILURE, name="one too many")
    await stage.scene.store.notifications.add_test(changed, SOMEBODY)
    await rules.delete(second.rule_id, DEFAULT_HOST_ID, SOMEBODY)
    assert await stage.scene.store.notifications.claim(limit=5, lease_s=60) == []
    elsewhere = await stage.scene.add_host("another")
    for host_id, rule_id in ((elsewhere, first.rule_id), (DEFAULT_HOST_ID, second.rule_id)):
        with pytest.raises(NotFoundError):
            await rules.get(rule_id, host_id)
        with pytest.raises(NotFoundError):
            await rules.delete(rule_id, host_id, SOMEBODY)
    entries = await stage.scene.rows(select(audit_t))
    verbs = [each.action.partition(".")[2] for each in entries if each.resource_type == "notification_rule"]
    assert sorted(verbs) == ["created", "created", "deleted", "edited", "tested"]
