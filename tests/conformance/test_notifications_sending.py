"""Couriers: who is sent to next while receivers are away, and what is not sent any more."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest
from sqlalchemy import select, update
from tests.conformance.suites.scene import SOMEBODY, Scene
from tests.conformance.test_notifications import FAILURE, SLACK, Stage, add

from foliot.db.hints import Hint, LocalHints
from foliot.db.tables.notifications import notification_t
from foliot.kinds.target_protocol import AttemptFailedError
from foliot.model.delivery_events import NotificationFailed
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.notification import (
    DeliveryState,
    NotificationRule,
    NotificationRuleSpec,
    NotificationType,
)
from foliot.notifications.deliveries_sql import DueNotification
from foliot.notifications.delivery import Sender
from foliot.notifications.notifications_sql import NotificationFilter
from foliot.notifications.send_order import AT_ONCE, LONGEST_PAUSE_S, MAX_AWAY
from foliot.notifications.sender import MessageSender
from foliot.testing.app import Recorder
from foliot.timing.clock import Clock, ClusterClock, VirtualClock

TRY_S = 15.0


class Receivers:
    """Some that answer at once, and some that are away: a try of those lasts until time passes."""

    def __init__(self, away: set[UUID]) -> None:
        self.away = away
        self.sent: list[DueNotification] = []
        self._waiting: list[asyncio.Future[None]] = []

    async def send(self, due: DueNotification, now: datetime) -> None:
        self.sent.append(due)
        if due.rule_id in self.away:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
            raise AttemptFailedError("no answer")

    @property
    def under_way(self) -> int:
        return len(self._waiting)

    def let_a_try_pass(self) -> None:
        """All tries that are under way end, in vain."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.set_result(None)

    def of(self, rule: NotificationRule) -> int:
        return sum(each.rule_id == rule.rule_id for each in self.sent)


class Post:
    """A courier that steps again and again, by a clock that the test moves."""

    def __init__(self, stage: Stage, receivers: Receivers) -> None:
        self.receivers = receivers
        self.local = VirtualClock(datetime.fromisoformat("2026-03-01T12:00:00Z"))
        self.clock = ClusterClock(self.local)
        self.hints = LocalHints()
        self.recorder = Recorder()
        self._stage = stage
        self._passing_s = 0.0

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        self.clock.observe(await self._stage.scene.now(), self.clock.monotonic())
        courier = MessageSender(
            self._stage.scene.store.notifications,
            cast("Sender", self.receivers),
            self.clock,
            self.hints,
            self.recorder,
            every_s=1.0,
        )

        async def work() -> None:
            while True:
                self.local.advance(self._passing_s)
                self._passing_s = 0.0
                await courier.step()
                await asyncio.sleep(0)

        task = asyncio.create_task(work())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, is_so: Callable[[], bool] | Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(20):
            while True:
                found = is_so()
                if found if isinstance(found, bool) else await found:
                    return
                self.hints.send(Hint.NOTIFICATIONS)
                await asyncio.sleep(0.001)

    def a_try_later(self) -> None:
        self.local.advance(TRY_S)
        self.receivers.let_a_try_pass()

    def let_pass_between_steps(self, seconds: float) -> None:
        self._passing_s = seconds


@pytest.fixture
async def stage(scene: Scene, clock: Clock) -> Stage:
    made = Stage(scene, clock)
    await made.take_over()
    return made


async def rule_of(stage: Stage, host_id: UUID, name: str, **fields: Any) -> NotificationRule:
    document = {"name": name, "on": [FAILURE], "to": SLACK, **fields}
    return await stage.scene.store.notification_rules.create(
        host_id, NotificationRuleSpec.parse(document), SOMEBODY
    )


async def say(stage: Stage, *rules: NotificationRule, count: int = 1) -> None:
    """Test messages."""
    for _ in range(count):
        for rule in rules:
            await stage.scene.store.notifications.add_test(rule, SOMEBODY)


# --- receivers that are away -----------------------------------------------------------------------


async def test_receivers_that_are_away_on_several_hosts_keep_no_other_waiting_for_longer_than_a_try(
    stage: Stage,
) -> None:
    hosts = [await stage.scene.add_host(f"host {number}") for number in range(2)]
    bad = [await rule_of(stage, host, f"bad {number}") for host in hosts for number in range(3)]
    good = await stage.rule(FAILURE, name="good")
    post = Post(stage, Receivers({each.rule_id for each in bad}))
    await say(stage, *bad, count=15)
    async with post.working():
        await post.until(lambda: post.receivers.under_way == AT_ONCE)
        for rounds in range(1, 5):
            # The places are taken, and it is the last that has come.
            await say(stage, good)
            post.a_try_later()
            await post.until(lambda rounds=rounds: post.receivers.of(good) == rounds)
            # Known to be away, they have a few places, and the others are free.
            post.let_pass_between_steps(LONGEST_PAUSE_S)
            await post.until(lambda: post.receivers.under_way > 0)
            assert post.receivers.under_way <= MAX_AWAY
            await say(stage, *bad, count=3)
        await say(stage, good)
        await post.until(lambda: post.receivers.of(good) == 5)
        assert 0 < post.receivers.under_way <= MAX_AWAY


async def test_a_message_that_comes_while_others_are_under_way_does_not_wait_for_them(stage: Stage) -> None:
    bad, good = await stage.rule(FAILURE, name="bad"), await stage.rule(FAILURE, name="good")
    post = Post(stage, Receivers({bad.rule_id}))
    await say(stage, bad)
    async with post.working():
        await post.until(lambda: post.receivers.under_way == 1)
        await say(stage, good, count=3)
        await post.until(lambda: post.receivers.of(good) == 3)
        assert post.receivers.under_way == 1


async def test_one_that_is_back_gets_all_that_has_waited(stage: Stage) -> None:
    rule = await stage.rule(FAILURE)
    receivers = Receivers({rule.rule_id})
    post = Post(stage, receivers)
    await say(stage, rule, count=6)
    async with post.working():
        await post.until(lambda: receivers.under_way == 4)
        post.a_try_later()
        await post.until(lambda: len(post.recorder.events) == 4)
        receivers.away = set()
        post.let_pass_between_steps(LONGEST_PAUSE_S)
        await stage.scene.execute(
            update(notification_t)
            .where(notification_t.c.status == "pending")
            .values(due_ts=await stage.scene.now() - timedelta(seconds=1))
        )

        async def is_all_there() -> bool:
            rows = await stage.scene.rows(select(notification_t.c.status))
            return {row.status for row in rows} == {"delivered"}

        await post.until(is_all_there)


async def test_a_step_that_is_stopped_leaves_nothing_under_way(stage: Stage) -> None:
    rule = await stage.rule(FAILURE)
    post = Post(stage, Receivers({rule.rule_id}))
    await say(stage, rule, count=3)
    before = asyncio.all_tasks()
    async with post.working():
        await post.until(lambda: post.receivers.under_way == 3)
    assert asyncio.all_tasks() == before


# --- what is not sent any more ---------------------------------------------------------------------


@pytest.mark.parametrize("why", ["disabled", "muted", "paused", "deleted", "heard"])
async def test_what_was_decided_before_nobody_wanted_to_hear_it_is_not_sent(stage: Stage, why: str) -> None:
    rule = await stage.rule(FAILURE)
    job = await add(stage.scene)
    await stage.run(job, Status.FAILED)
    assert await stage.look() == [("failed", "job")]
    if why == "paused":
        await stage.scene.pause(job)
    elif why == "deleted":
        await stage.scene.delete(job)
    elif why != "heard":
        until = await stage.scene.now() + timedelta(hours=1)
        update_ = {"enabled": False} if why == "disabled" else {"muted_until_ts": until}

        def changed(known: NotificationRule) -> NotificationRuleSpec:
            return known.spec.model_copy(update=update_)

        await stage.scene.store.notification_rules.change(rule.rule_id, DEFAULT_HOST_ID, changed, SOMEBODY)
    await say(stage, rule)
    post = Post(stage, Receivers(set()))

    async def is_over() -> bool:
        rows = await stage.scene.rows(select(notification_t.c.status))
        return "pending" not in {row.status for row in rows}

    async with post.working():
        await post.until(is_over)
    sent = sorted(each.type for each in post.receivers.sent)
    if why == "heard":
        assert sent == [NotificationType.FAILED, NotificationType.TEST]
        return
    assert sent == [NotificationType.TEST]
    assert not any(isinstance(each, NotificationFailed) for each in post.recorder.events)
    wanted = NotificationFilter(host_id=DEFAULT_HOST_ID, types=["schedule.failed"])
    [ended] = await stage.scene.store.notifications.page(wanted)
    assert (ended.status, ended.attempts) == (DeliveryState.DEAD, 1)
    assert why in (ended.error or "")
    again = await stage.scene.store.notifications.retry(ended.notification_id, DEFAULT_HOST_ID, SOMEBODY)
    assert again.status is DeliveryState.PENDING


async def test_what_has_waited_for_too_long_is_given_up(stage: Stage) -> None:
    rule = await stage.rule(FAILURE)
    await say(stage, rule, count=2)
    notifications = stage.scene.store.notifications
    now = await stage.scene.now()
    [old, young] = await notifications.page(NotificationFilter(host_id=DEFAULT_HOST_ID))
    table = notification_t
    await stage.scene.execute(
        update(table)
        .where(table.c.notification_id == old.notification_id)
        .values(due_ts=now - timedelta(days=2))
    )
    assert await stage.look() == []
    told = [each for each in stage.recorder.events if isinstance(each, NotificationFailed)]
    assert [(each.notification_id, each.retry_in_s) for each in told] == [(old.notification_id, None)]
    given_up = await notifications.get(old.notification_id, DEFAULT_HOST_ID)
    assert (given_up.status, given_up.due_ts) == (DeliveryState.DEAD, None)
    assert (await notifications.get(young.notification_id, DEFAULT_HOST_ID)).status is DeliveryState.PENDING


async def test_messages_of_a_type_that_a_newer_version_has_written_are_left_to_it(stage: Stage) -> None:
    rule = await stage.rule(FAILURE)
    notifications = stage.scene.store.notifications
    newer = await notifications.add_test(rule, SOMEBODY)
    table = notification_t
    await stage.scene.execute(update(table).values(type="schedule.of_tomorrow"))
    stage.tick()
    known = await notifications.add_test(rule, SOMEBODY)
    [due] = await notifications.claim(limit=5, lease_s=60)
    assert due.notification_id == known.notification_id
    assert await notifications.claim(limit=5, lease_s=60) == []
    listed = await notifications.page(NotificationFilter(host_id=DEFAULT_HOST_ID))
    assert [each.notification_id for each in listed] == [known.notification_id]
    assert newer.notification_id != known.notification_id


async def test_couriers_that_claim_at_the_same_time_take_each_message_once(stage: Stage) -> None:
    rules = [await stage.rule(FAILURE, name=f"rule {number}") for number in range(3)]
    await say(stage, *rules, count=4)
    stores = await stage.scene.stores(3)

    async def claim_all(number: int) -> list[UUID]:
        found: list[UUID] = []
        while some := await stores[number].notifications.claim(limit=2, lease_s=60):
            found += [each.notification_id for each in some]
        return found

    claimed = [each for some in await asyncio.gather(*map(claim_all, range(3))) for each in some]
    left = await stage.scene.store.notifications.claim(limit=20, lease_s=60)
    assert len(claimed) + len(left) == len({*claimed, *(each.notification_id for each in left)})
    rows = await stage.scene.rows(select(notification_t.c.attempts))
    assert {row.attempts for row in rows} <= {0, 1}
