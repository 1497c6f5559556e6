"""Consumers as an application has them: declared by code, run by workers, woken by hints."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from examples.consumer import app as billing
from examples.consumer import invoice
from sqlalchemy import func, insert, select

from foliot import EventTransaction, Foliot, event
from foliot.cli.process.task_modules import merge
from foliot.db.dialect import Pool
from foliot.db.tables.events import consumer_offsets, outbox_message_t
from foliot.instance.spec import InstanceRole
from foliot.instance.store import SqlStore
from foliot.model.delivery_events import EventsConsumed
from foliot.model.errors import InvalidError, NotFoundError, SettingError
from foliot.model.instance_events import ServiceFailed
from foliot.testing import TestApp
from foliot.testing.app import Recorder
from tests.conformance.suites.consumer_scene import handled
from tests.engine import add, quick_settings, seen, spec, until

NEVER = {"kind": "cron", "expression": "0 0 29 2 *"}
EVENT = event("orders", "OrderDue", {"region": "eu"})


class Handled:
    """An application whose only handler notes what it was given."""

    def __init__(self, url: str, **options: Any) -> None:
        self.app = Foliot(url)
        self.seen: list[EventTransaction] = []
        self.arrived = asyncio.Event()
        self.error: Exception | None = None
        self.app.on_event("billing", **options)(self.handle)

    async def handle(self, transaction: EventTransaction) -> None:
        self.seen.append(transaction)
        self.arrived.set()
        for each in transaction.events:
            await transaction.connection.execute(insert(handled).values(event_id=str(each.id)))
        if self.error is not None:
            raise self.error


async def count(store: SqlStore, table: Any) -> int:
    async with store.database.read(Pool.API) as connection:
        found: int = (await connection.execute(select(func.count()).select_from(table))).scalar_one()
        return found


async def make_handled(store: SqlStore) -> None:
    await store.database.write(Pool.API, lambda found: found.run_sync(handled.metadata.create_all))


async def trigger(app: Foliot, url: str, store: SqlStore) -> UUID:
    await add(store, spec("order-due", NEVER, target=EVENT))
    async with app.connect(quick_settings(url)) as client:
        return await client.trigger("order-due")


async def test_every_event_of_a_schedule_is_billed_once_in_virtual_time() -> None:
    async with TestApp(billing, now=datetime(2026, 3, 1, tzinfo=UTC)) as t:
        await t.advance(minutes=10)
        rows = await t.executions("subscription-due")
        instance = await t._started()
        async with instance.store.database.read(Pool.API) as connection:
            billed = (await connection.execute(select(invoice))).all()
    assert len(rows) == 10
    assert [UUID(row.event_id) for row in billed] == [row.execution_id for row in rows]
    assert {row.amount for row in billed} == {49.0}


async def test_a_worker_is_woken_by_a_notice_from_another_process(
    postgres_url: str, store_on_postgres: SqlStore
) -> None:
    made = Handled(postgres_url)
    await make_handled(store_on_postgres)
    recorder = Recorder()
    settings = quick_settings(postgres_url, poll_seconds=600)
    instance = made.app.instance(settings, roles=frozenset({InstanceRole.WORKER}), observers=[recorder])
    await instance.start()
    try:
        # It has looked, found nothing, and would look again in ten minutes.
        async def has_begun() -> bool:
            return await count(store_on_postgres, consumer_offsets) == 1

        await until(has_begun)
        execution_id = await trigger(Foliot(postgres_url), postgres_url, store_on_postgres)
        async with asyncio.timeout(30):
            await made.arrived.wait()
        await until(lambda: bool(seen(recorder, EventsConsumed)))
    finally:
        await instance.stop()
    [transaction] = made.seen
    assert [each.id for each in transaction.events] == [execution_id]
    assert transaction.events[0].data == {"region": "eu"}
    assert await count(store_on_postgres, handled) == 1
    assert seen(recorder, ServiceFailed) == []


async def test_without_hints_polling_is_enough(database_url: str, store: SqlStore) -> None:
    made = Handled(database_url, topics=["orders"])
    await make_handled(store)
    settings = quick_settings(database_url, hints="off")
    instance = made.app.instance(settings, roles=frozenset({InstanceRole.WORKER}))
    await instance.start()
    try:
        await trigger(Foliot(database_url), database_url, store)
        async with asyncio.timeout(30):
            await made.arrived.wait()

        async def is_done() -> bool:
            return await count(store, handled) == 1

        await until(is_done)
    finally:
        await instance.stop()
    assert len(made.seen) == 1


async def test_an_application_replays_its_dead_letters(database_url: str, store: SqlStore) -> None:
    made = Handled(database_url, max_attempts=1)
    made.error = ValueError("the bank is closed")
    await make_handled(store)
    settings = quick_settings(database_url)
    instance = made.app.instance(settings, roles=frozenset({InstanceRole.WORKER}))
    await instance.start()
    try:
        await trigger(Foliot(database_url), database_url, store)
        async with made.app.dead_letters("billing", settings) as letters:

            async def has_one() -> bool:
                return len(await letters.all()) == 1

            await until(has_one)
            assert await count(store, handled) == 0
            made.error = None
            assert await letters.replay_all() == (1, 0)
            assert await letters.all() == []
    finally:
        await instance.stop()
    assert await count(store, handled) == 1
    with pytest.raises(NotFoundError):
        async with made.app.dead_letters("nobody", settings):
            pass


async def test_the_leader_prunes_old_events_that_a_group_has_passed(
    database_url: str, store: SqlStore
) -> None:
    made = Handled(database_url)
    await make_handled(store)
    await trigger(Foliot(database_url), database_url, store)

    async def is_handled() -> bool:
        return await count(store, handled) == 1

    async def is_pruned() -> bool:
        return await count(store, outbox_message_t) == 0

    # One after the other: it prunes when it has just been elected, and then every minute.
    for role, is_done in ((InstanceRole.WORKER, is_handled), (InstanceRole.SCHEDULER, is_pruned)):
        settings = quick_settings(database_url, retention_days=1e-9)
        instance = made.app.instance(settings, roles=frozenset({role}))
        await instance.start()
        try:
            await until(is_done)
        finally:
            await instance.stop()


def test_two_handlers_of_one_group_are_refused() -> None:
    one, two = Handled("memory"), Handled("memory")
    with pytest.raises(InvalidError):
        one.app.on_event("billing")(two.handle)
    with pytest.raises(InvalidError):
        one.app.on_event("other", topics="orders")
    with pytest.raises(SettingError):
        merge([one.app, two.app])
    assert set(merge([one.app]).consumers) == {"billing"}


@pytest.fixture
async def store_on_postgres(postgres_url: str, open_test_store: Any) -> SqlStore:
    found: SqlStore = await open_test_store(postgres_url)
    return found
