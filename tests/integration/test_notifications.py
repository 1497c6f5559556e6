"""Notifications from a run that fails to a receiver that checks the signature, in a whole engine."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.address_guard import AddressGuard, HttpAllow
from foliot.access.secrets import SecretResolver
from foliot.db.dialect import Pool
from foliot.db.hints import LocalHints
from foliot.db.tables.notifications import notification_t
from foliot.instance.runtime import Instance
from foliot.instance.spec import ENGINE
from foliot.instance.store import SqlStore
from foliot.kinds.http_connections import guarded_pool
from foliot.model.delivery_events import NotificationDecided, NotificationDelivered, NotificationFailed
from foliot.model.errors import InvalidError
from foliot.model.execution import TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.notification import DeliveryState, Notification, NotificationRule, NotificationRuleSpec
from foliot.model.schedule import Schedule
from foliot.notifications.delivery import Sender
from foliot.notifications.notifications_sql import NotificationFilter
from foliot.notifications.sender import AT_ONCE, MAX_OF_RULE, MessageSender
from foliot.testing.app import Recorder
from foliot.timing.clock import ClusterClock, SystemClock
from tests.engine import AUTHOR, add, registry, running, seen, spec, until
from tests.receiver import SECRET, Receiver, receiving

FAILURE = {"kind": "failure"}
YEARLY = {"kind": "cron", "expression": "0 0 1 1 *"}
ERROR = "no <b>luck</b> & more"


async def work(fails: bool = False) -> None:
    """Fail, or not."""
    if fails:
        raise RuntimeError(ERROR)


@dataclass
class Stage:
    instance: Instance
    recorder: Recorder
    receiver: Receiver

    async def rule(self, path: str, *on: dict[str, Any], **fields: Any) -> NotificationRule:
        """One that tells the receiver, at this path."""
        kind = fields.pop("kind", "webhook")
        to = {"kind": kind, "url": self.receiver.url(path)}
        if kind == "webhook":
            to["secret"] = "${secret:hook_key}"
        document = {"name": path, "on": list(on), "to": to, **fields}
        return await self.instance.commands.notifications.create(
            DEFAULT_HOST_ID, NotificationRuleSpec.parse(document), AUTHOR
        )

    async def schedule(self, name: str, **fields: Any) -> Schedule:
        definition = spec(
            name,
            YEARLY,
            target={"kind": "function", "name": "work"},
            retry={"max_attempts": 1},
            overlap={"policy": "allow"},
            **fields,
        )
        return await add(self.instance.store, definition)

    async def run(self, schedule: Schedule, *, fails: bool) -> None:
        made = await self.instance.commands.schedules.trigger(
            schedule.schedule_id, AUTHOR, by=TriggeredBy.API, args={"fails": fails}
        )

        async def is_over() -> bool:
            execution = await self.instance.store.executions.get(made.execution_id)
            return execution.ended_ts is not None

        await until(is_over)

    async def told(self, path: str, *types: str) -> None:
        """Exactly these have come at a path."""
        await until(lambda: len(self.receiver.at(path)) >= len(types))
        assert self.receiver.types(path) == list(types)

    async def one(self, rule: NotificationRule) -> Notification:
        wanted = NotificationFilter(host_id=DEFAULT_HOST_ID, rule_ids=[rule.rule_id])
        [found] = await self.instance.store.notifications.page(wanted)
        return found

    async def ended(self, rule: NotificationRule) -> Notification:
        async def is_over() -> bool:
            return (await self.one(rule)).ended_ts is not None

        await until(is_over)
        return await self.one(rule)


@pytest.fixture
async def stage(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setenv("FOLIOT_SECRET_VALUE_HOOK_KEY", SECRET)
    options = {
        "roles": ENGINE,
        "tasks": registry(work),
        "http_allow": "127.0.0.0/8",
        "public_url": "https://foliot.example",
    }
    async with receiving() as receiver, running(database_url, **options) as (instance, recorder):
        yield Stage(instance, recorder, receiver)


async def test_a_failure_is_told_once_and_so_is_the_recovery(stage: Stage) -> None:
    labels = {"team": "pay"}
    await stage.rule("/once", FAILURE, {"kind": "recovery"}, match={"labels": labels})
    await stage.rule("/every", {**FAILURE, "every": True}, match={"schedules": ["job <one>"]})
    await stage.rule("/row", {"kind": "failures_in_a_row", "count": 3}, kind="slack")
    job = await stage.schedule("job <one>", labels=labels)
    other = await stage.schedule("another team's", labels={"team": "other"})

    await stage.run(job, fails=True)
    await stage.told("/once", "schedule.failed")
    await stage.run(other, fails=True)
    await stage.run(job, fails=True)
    await stage.told("/every", "schedule.failed", "schedule.failed")
    await stage.run(job, fails=True)
    await until(lambda: len(stage.receiver.at("/row")) == 1)
    await stage.told("/every", *["schedule.failed"] * 3)
    # Decided in the same transactions: what was to come has been decided.
    await stage.told("/once", "schedule.failed")
    await stage.run(job, fails=False)
    await stage.told("/once", "schedule.failed", "schedule.recovered")
    await stage.run(job, fails=True)
    await stage.told("/once", "schedule.failed", "schedule.recovered", "schedule.failed")

    webhooks = stage.receiver.at("/once") + stage.receiver.at("/every")
    assert all(each.is_signed for each in webhooks)
    assert len({each.message_id for each in webhooks}) == len(webhooks)
    failed = webhooks[0].document
    assert failed["data"]["schedule"] == {
        "schedule_id": str(job.schedule_id),
        "name": "job <one>",
        "labels": labels,
    }
    execution = failed["data"]["execution"]
    assert (execution["status"], ERROR in execution["error"]) == ("failed", True)
    assert failed["data"]["url"] == f"https://foliot.example/executions/{execution['execution_id']}"

    [slack] = stage.receiver.at("/row")
    text = slack.document["text"]
    assert "job &lt;one&gt;" in text
    assert "3 times in a row" in text
    assert "<b>" not in slack.body.decode()
    assert "webhook-signature" not in slack.headers
    await until(lambda: len(seen(stage.recorder, NotificationDelivered)) == 8)
    assert len(seen(stage.recorder, NotificationDecided)) == 8


async def test_nothing_is_told_while_the_schedule_is_paused_or_the_rule_muted(stage: Stage) -> None:
    await stage.rule("/heard", FAILURE, {"kind": "recovery"})
    muted = await stage.rule("/muted", FAILURE, {"kind": "recovery"}, muted_until_ts="2999-01-01T00:00:00Z")
    paused, other, last = [await stage.schedule(name) for name in ("paused", "other", "last")]
    await stage.instance.commands.schedules.pause(paused.schedule_id, AUTHOR)
    await stage.run(paused, fails=True)
    await stage.run(other, fails=True)
    await stage.told("/heard", "schedule.failed")
    await stage.instance.commands.schedules.resume(paused.schedule_id, AUTHOR)

    def heard(rule: NotificationRule) -> NotificationRuleSpec:
        return rule.spec.model_copy(update={"muted_until_ts": None})

    await stage.instance.commands.notifications.edit(muted.rule_id, DEFAULT_HOST_ID, heard, AUTHOR)
    await stage.run(last, fails=True)
    await stage.told("/muted", "schedule.failed")
    assert stage.receiver.at("/muted")[0].document["data"]["schedule"]["name"] == "last"
    await stage.told("/heard", "schedule.failed", "schedule.failed")
    names = [each.document["data"]["schedule"]["name"] for each in stage.receiver.at("/heard")]
    assert names == ["other", "last"]


async def test_what_does_not_arrive_is_tried_again_under_its_id_and_given_up_where_that_is_vain(
    stage: Stage,
) -> None:
    commands, store = stage.instance.commands.notifications, stage.instance.store
    stage.receiver.answers = {"/away": [503, 429], "/gone": [410], "/moved": [302]}
    refused = await stage.rule("/refused", FAILURE)

    def elsewhere(rule: NotificationRule) -> NotificationRuleSpec:
        to = {"kind": "slack", "url": "http://169.254.169.254/latest"}
        return NotificationRuleSpec.parse({**rule.spec.model_dump(mode="json"), "to": to})

    with pytest.raises(InvalidError) as told:
        await commands.edit(refused.rule_id, DEFAULT_HOST_ID, elsewhere, AUTHOR)
    assert [each.pointer for each in told.value.problems] == ["/to/url"]
    # As if it had been allowed when it was saved.
    await store.notification_rules.change(refused.rule_id, DEFAULT_HOST_ID, elsewhere, AUTHOR)
    unsigned = await stage.rule("/unsigned", FAILURE)

    def with_other_secret(rule: NotificationRule) -> NotificationRuleSpec:
        to = {**rule.spec.to.model_dump(), "secret": "${secret:not_set}"}
        return NotificationRuleSpec.parse({**rule.spec.model_dump(mode="json"), "to": to})

    await commands.edit(unsigned.rule_id, DEFAULT_HOST_ID, with_other_secret, AUTHOR)
    rules = {path: await stage.rule(path, FAILURE) for path in ("/away", "/gone", "/moved")}
    for rule in (refused, unsigned, *rules.values()):
        await commands.test(rule.rule_id, DEFAULT_HOST_ID, AUTHOR)

    away = await stage.ended(rules["/away"])
    assert (away.status, away.attempts) == (DeliveryState.DELIVERED, 3)
    tries = stage.receiver.at("/away")
    assert {each.message_id for each in tries} == {str(away.notification_id)}
    assert all(each.is_signed for each in tries)
    # Half of a second at least, then half of three: what the backoff leaves when its jitter is largest.
    assert tries[1].at - tries[0].at > 0.45
    assert tries[2].at - tries[1].at > 1.4
    vain = {"410": rules["/gone"], "redirects": rules["/moved"], "internal address": refused}
    for said, rule in vain.items():
        ended = await stage.ended(rule)
        assert (ended.status, ended.attempts, said in (ended.error or "")) == (DeliveryState.DEAD, 1, True)
    waiting = await stage.one(unsigned)
    assert (waiting.status, "not_set" in (waiting.error or "")) == (DeliveryState.PENDING, True)

    gone = await stage.one(rules["/gone"])
    await commands.retry(gone.notification_id, DEFAULT_HOST_ID, AUTHOR)
    await until(lambda: len(stage.receiver.at("/gone")) == 2)
    assert (await stage.ended(rules["/gone"])).status is DeliveryState.DELIVERED
    results = [each.retry_in_s is None for each in seen(stage.recorder, NotificationFailed)]
    assert results.count(True) == 3


async def test_one_that_dies_between_sending_and_writing_so_leaves_it_to_be_sent_again_under_its_id(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_SECRET_VALUE_HOOK_KEY", SECRET)
    guard = AddressGuard(HttpAllow.parse("127.0.0.0/8"))
    clock = ClusterClock(SystemClock())
    clock.observe(await store.now(), clock.monotonic())
    table = notification_t

    async def let_lease_end(connection: AsyncConnection) -> None:
        await connection.execute(update(table).values(due_ts=clock.now() - timedelta(seconds=1)))

    async with receiving() as receiver:
        sender = Sender(guard, guarded_pool(guard), SecretResolver(None, os.environ))
        couriers = [
            MessageSender(store.notifications, sender, clock, LocalHints(), Recorder(), every_s=1.0)
            for _ in range(2)
        ]
        to = {"kind": "webhook", "url": receiver.url(), "secret": "${secret:hook_key}"}
        definition = NotificationRuleSpec.parse({"name": "one", "on": [FAILURE], "to": to})
        rule = await store.notification_rules.create(DEFAULT_HOST_ID, definition, AUTHOR)
        made = await store.notifications.add_test(rule, AUTHOR)
        receiver.may_answer.clear()
        sending = asyncio.create_task(couriers[0].step())
        await until(lambda: len(receiver.received) == 1)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        receiver.may_answer.set()
        # Its lease still runs: nobody else sends it.
        await couriers[1].step()
        assert len(receiver.received) == 1
        await store.database.write(Pool.API, let_lease_end)
        await couriers[1].step()
        await couriers[1].step()
        await sender.close()
    assert [each.message_id for each in receiver.received] == [str(made.notification_id)] * 2
    assert all(each.is_signed for each in receiver.received)
    ended = await store.notifications.get(made.notification_id, DEFAULT_HOST_ID)
    assert (ended.status, ended.attempts) == (DeliveryState.DELIVERED, 2)


async def test_a_receiver_that_never_answers_does_not_keep_the_messages_of_other_rules_waiting(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_SECRET_VALUE_HOOK_KEY", SECRET)
    guard = AddressGuard(HttpAllow.parse("127.0.0.0/8"))
    clock = ClusterClock(SystemClock())
    clock.observe(await store.now(), clock.monotonic())
    async with receiving() as receiver:
        sender = Sender(guard, guarded_pool(guard), SecretResolver(None, os.environ))
        courier = MessageSender(store.notifications, sender, clock, LocalHints(), Recorder(), every_s=1.0)
        rules = []
        for path in ("/away", "/well"):
            to = {"kind": "webhook", "url": receiver.url(path), "secret": "${secret:hook_key}"}
            definition = NotificationRuleSpec.parse({"name": path, "on": [FAILURE], "to": to})
            rules.append(await store.notification_rules.create(DEFAULT_HOST_ID, definition, AUTHOR))
        for rule in [rules[0]] * (AT_ONCE + 5) + [rules[1]]:
            await store.notifications.add_test(rule, AUTHOR)
        receiver.may_answer.clear()
        sending = asyncio.create_task(courier.step())
        try:
            # In the same step as the first of those that nobody takes.
            await until(lambda: receiver.types("/well") == ["test"])
            await until(lambda: len(receiver.at("/away")) == MAX_OF_RULE)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await sender.close()
