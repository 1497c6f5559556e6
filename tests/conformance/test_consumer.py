"""Consumers of the outbox against their contract, on both databases."""

import asyncio

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from tests.conformance.suites.consumer import ConsumerConformance, SharingConformance
from tests.conformance.suites.consumer_scene import POLL_S, Outbox
from tests.conformance.suites.scene import Scene
from tests.plans import explain

from foliot.db.dialect import Pool
from foliot.db.rows.event_rows import write_events
from foliot.model.errors import FoliotError
from foliot.outbox.handler_calls import BatchBrokenError
from foliot.outbox.handlers import EventTransaction


@pytest.fixture
async def outbox(scene: Scene) -> Outbox:
    found = Outbox(scene)
    await found.make_table()
    return found


class TestConsumer(ConsumerConformance):
    """Statements that run on SQLite and PostgreSQL alike."""


class TestSharing(SharingConformance):
    databases = ("postgres",)


class TestSlowWriter:
    databases = ("postgres",)

    async def test_events_behind_a_slow_transaction_come_after_it_and_in_order(self, outbox: Outbox) -> None:
        """Fault 21: it holds the earlier offset, and commits last."""
        slow, quick = await outbox.scene.stores(2)
        consumer = outbox.consumer()
        await outbox.consume(consumer)
        [first] = await outbox.events("a")
        async with slow.database.dialect.begin(slow.database.engine(Pool.WORK)) as connection:
            await write_events(connection, slow.database.dialect, [first])
            behind = asyncio.create_task(outbox.write("a", "b", store=quick))
            assert await outbox.scene.is_kept_waiting(behind), "the later one has not committed before it"
            assert await consumer.step() == POLL_S
            assert await outbox.offsets() == [1], "it has not gone past what it can't see"
        later = await behind
        await outbox.consume(consumer)
        assert await outbox.handled() == [first.id, *later]


class TestQueries:
    async def test_a_batch_reads_its_own_stretch_of_the_outbox_and_nothing_else(self, outbox: Outbox) -> None:
        for _ in range(60):
            await outbox.write(*"abcdefghij" * 10)
        if outbox.scene.store.database.dialect.name == "postgresql":
            await outbox.scene.execute(text("ANALYZE outbox_message_t"))
        consumer = outbox.consumer(outbox.spec(topics=("orders",), batch=10))
        await consumer.step()
        _, plan = await explain(outbox.scene.store, Pool.CONSUMER, consumer.step())
        assert await outbox.offsets() == [101]
        assert not [each for each in plan.scans if each.startswith("outbox_message_t")], plan.text


class TestBrokenTransactions:
    databases = ("postgres",)

    async def test_a_statement_that_outlasts_the_deadline_breaks_its_batch_and_is_given_up(
        self, outbox: Outbox
    ) -> None:
        ids = [each for name in "ab" for each in await outbox.write(name)]

        async def sleep(transaction: EventTransaction) -> None:
            if transaction.events[0].id == ids[0]:
                await transaction.connection.execute(text("SELECT pg_sleep(60)"))
            await outbox.handle(transaction)

        consumer = outbox.consumer(outbox.spec(handler=sleep, timeout_s=0.3, max_attempts=2))
        await consumer.step()
        for _ in range(2):
            with pytest.raises(BatchBrokenError):
                await consumer.step()
            assert await outbox.handled() == []
        await outbox.consume(consumer)
        assert await outbox.handled() == [ids[1]]
        [letter] = await outbox.letters().all()
        assert letter.error.startswith("HandlerDeadlineError")

    async def test_a_database_that_goes_away_makes_no_dead_letters(self, outbox: Outbox) -> None:
        ids = [each for name in "ab" for each in await outbox.write(name)]
        is_away = True

        async def lose(transaction: EventTransaction) -> None:
            await outbox.handle(transaction)
            if is_away:
                await transaction.connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

        consumer = outbox.consumer(outbox.spec(handler=lose))
        await consumer.step()
        for _ in range(5):
            with pytest.raises(FoliotError):
                await consumer.step()
        is_away = False
        await outbox.consume(consumer)
        assert await outbox.handled() == ids
        assert await outbox.letters().all() == []

    async def test_deadlocks_are_not_the_handlers_fault_unless_they_never_end(self, outbox: Outbox) -> None:
        ids = await outbox.write("a")
        left = 4

        async def deadlock(transaction: EventTransaction) -> None:
            nonlocal left
            left -= 1
            if left >= 0:
                await transaction.connection.execute(
                    text("DO $$ BEGIN RAISE EXCEPTION 'caught' USING ERRCODE = '40P01'; END $$")
                )
            await outbox.handle(transaction)

        await outbox.consume(outbox.consumer(outbox.spec(handler=deadlock)))
        assert await outbox.handled() == ids
        await outbox.write("a")
        left = 1000
        consumer = outbox.consumer(outbox.spec(handler=deadlock, max_attempts=1))
        with pytest.raises(DBAPIError):
            await consumer.step()
        await outbox.consume(consumer)
        assert len(await outbox.letters().all()) == 1
