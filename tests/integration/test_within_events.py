"""Triggering an event inside an application's transaction holds up nobody, however long that stays open."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import make_url, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from foliot import Foliot, event
from foliot.db.dialect import Pool
from foliot.db.rows.event_rows import write_events
from foliot.db.tables.events import outbox_message_t, pending_event_t
from foliot.db.tables.executions import execution_t
from foliot.instance.store import SqlStore
from foliot.model.errors import InvalidError
from foliot.model.event import BatchFired, PendingEventsFailed
from foliot.model.execution import Status, TriggeredBy
from foliot.model.schedule import Schedule
from foliot.scheduler.firing_sql import FiringStatements
from tests.conftest import OpenStore
from tests.engine import AUTHOR, add, every_second, running, seen, spec, until

NEVER = {"kind": "cron", "expression": "0 0 29 2 *"}
ANY = {"policy": "allow"}
DUE = event("orders", "OrderDue", {"region": "eu"})


@pytest.fixture
async def store_on_postgres(postgres_url: str, open_test_store: OpenStore) -> SqlStore:
    return await open_test_store(postgres_url)


@asynccontextmanager
async def transaction(url: str) -> AsyncIterator[AsyncConnection]:
    driver = "sqlite+aiosqlite" if url.startswith("sqlite") else "postgresql+asyncpg"
    engine = create_async_engine(make_url(url).set(drivername=driver))
    try:
        async with engine.connect() as connection:
            yield connection
    finally:
        await engine.dispose()


async def messages(store: SqlStore) -> list[Any]:
    async with store.database.read(Pool.API) as connection:
        found = await connection.execute(select(outbox_message_t).order_by(outbox_message_t.c.c_offset))
        return list(found.all())


async def rows_of(store: SqlStore, table: Any) -> int:
    async with store.database.read(Pool.API) as connection:
        return len((await connection.execute(select(table))).all())


async def test_an_open_transaction_with_an_event_locks_no_row_that_others_need(
    postgres_url: str, store_on_postgres: SqlStore
) -> None:
    store, app = store_on_postgres, Foliot(postgres_url)
    made = await add(store, spec("order-due", NEVER, target=DUE))
    await store.schedules.trigger(made.schedule_id, by=TriggeredBy.API, author=AUTHOR)
    async with transaction(postgres_url) as connection, transaction(postgres_url) as other:
        await app.within(connection).trigger("order-due")
        for table in ("log_counter", "schedule_t", "schedule_status_t", "queue_t"):
            found = await other.execute(text(f"SELECT * FROM {table} FOR UPDATE NOWAIT"))
            assert found.all(), table


async def test_others_fire_at_their_rate_while_a_transaction_with_an_event_is_open(
    postgres_url: str, store_on_postgres: SqlStore
) -> None:
    store, app = store_on_postgres, Foliot(postgres_url)
    own = await add(store, every_second("own", target=DUE))
    await add(store, every_second("other-event", target=DUE))
    await add(store, every_second("function"))
    async with running(postgres_url) as (_instance, recorder):
        async with transaction(postgres_url) as connection:
            execution_id = await app.within(connection).trigger("own", {"region": "us"})
            before = len(await messages(store))

            async def all_go_on() -> bool:
                events = (await messages(store))[before:]
                own_count = sum(1 for each in events if each.aggregate_id == str(own.schedule_id))
                return own_count >= 4 and len(events) - own_count >= 4

            await until(all_go_on)
            assert all(each.id != execution_id for each in await messages(store))
            await connection.commit()

        async def is_published() -> bool:
            return any(each.id == execution_id for each in await messages(store))

        await until(is_published)
        # No fire was refused for a locked row, and nothing waited for one.
        assert sum(batch.refused for batch in seen(recorder, BatchFired)) == 0
    log = await messages(store)
    assert [each.c_offset for each in log] == list(range(1, len(log) + 1))
    versions = [each.aggregate_version for each in log if each.aggregate_id == str(own.schedule_id)]
    assert versions == list(range(1, len(versions) + 1))
    [told] = [each for each in log if each.id == execution_id]
    assert told.payload["data"] == {"region": "us"}
    assert await rows_of(store, pending_event_t) == 0
    assert (await store.executions.get(execution_id)).status is Status.SUCCESS


async def test_an_event_of_a_transaction_comes_with_its_commit_and_in_its_order(
    database_url: str, store: SqlStore
) -> None:
    app = Foliot(database_url)
    await add(store, spec("order-due", NEVER, target=DUE))
    async with transaction(database_url) as connection:
        wanted = [await app.within(connection).trigger("order-due", {"region": each}) for each in range(5)]
        await connection.commit()
    assert await messages(store) == []
    async with running(database_url):

        async def all_there() -> bool:
            return len(await messages(store)) == 5

        await until(all_there)
    log = await messages(store)
    assert [each.id for each in log] == wanted
    assert [each.c_offset for each in log] == [1, 2, 3, 4, 5]
    assert [each.payload["aggregateversion"] for each in log] == [1, 2, 3, 4, 5]


async def test_of_a_transaction_that_is_rolled_back_no_event_is_left(
    database_url: str, store: SqlStore
) -> None:
    app = Foliot(database_url)
    await add(store, spec("order-due", NEVER, target=DUE))
    async with transaction(database_url) as connection:
        await app.within(connection).trigger("order-due")
        await connection.rollback()
    for table in (pending_event_t, execution_t, outbox_message_t):
        assert await rows_of(store, table) == 0


async def test_a_commit_wakes_the_leader_at_once(postgres_url: str, store_on_postgres: SqlStore) -> None:
    store, app = store_on_postgres, Foliot(postgres_url)
    await add(store, spec("order-due", NEVER, target=DUE))
    async with running(postgres_url, poll_seconds=600, lease_ttl_seconds=60, heartbeat_seconds=10) as (
        instance,
        _recorder,
    ):
        await until(lambda: bool(instance.scheduler is not None and instance.scheduler.leases))
        async with transaction(postgres_url) as connection:
            await app.within(connection).trigger("order-due")
            await connection.commit()

        async def is_there() -> bool:
            return len(await messages(store)) == 1

        await until(is_there)


async def test_a_crash_before_the_commit_leaves_the_event_to_the_next_leader(
    database_url: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Foliot(database_url)
    await add(store, spec("order-due", NEVER, target=DUE))
    async with transaction(database_url) as connection:
        await app.within(connection).trigger("order-due")
        await connection.commit()
    failures = 0

    async def fail_once(*arguments: Any) -> None:
        nonlocal failures
        await write_events(*arguments)
        failures += 1
        if failures == 1:
            raise OSError("the process ends here")

    monkeypatch.setattr("foliot.scheduler.pending_events_sql.write_events", fail_once)
    async with running(database_url):

        async def is_there() -> bool:
            return len(await messages(store)) == 1

        await until(is_there)
    [told] = await messages(store)
    assert (told.c_offset, told.aggregate_version) == (1, 1)
    assert failures == 2


async def test_arguments_that_no_event_can_hold_are_refused_at_once(
    database_url: str, store: SqlStore
) -> None:
    app = Foliot(database_url)
    await add(store, spec("order-due", NEVER, target=DUE))
    async with transaction(database_url) as connection:
        with pytest.raises(InvalidError, match="args"):
            await app.within(connection).trigger("order-due", {"number": 2**70})
        await connection.commit()
    for table in (pending_event_t, execution_t):
        assert await rows_of(store, table) == 0


async def test_events_that_can_not_be_written_delay_only_those_of_their_schedule(
    database_url: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More schedules than a step takes, the first of them broken: polling alone would take half an hour."""
    monkeypatch.setattr("foliot.scheduler.pending_events_sql.MAX_SCHEDULES", 3)
    app = Foliot(database_url)
    schedules = [await add(store, spec(f"order-due-{n}", NEVER, target=DUE)) for n in range(11)]
    schedules.sort(key=lambda each: each.schedule_id.hex)
    broken = schedules[:5]
    async with transaction(database_url) as connection:
        for schedule in schedules:
            await app.within(connection).trigger(schedule.spec.name)
        await connection.commit()
    await change_pending(store, broken[0], target='{"kind": "of_the_next_release"}')
    too_deep = json.loads("[" * 300 + "]" * 300)
    for schedule in broken[1:]:  # as an earlier version has left it
        await change_pending(store, schedule, args={"list": too_deep})
    async with running(database_url, poll_seconds=300, lease_ttl_seconds=60, heartbeat_seconds=10) as (
        _instance,
        recorder,
    ):

        async def others_are_there() -> bool:
            return len(await messages(store)) == 6

        await until(others_are_there)
        await until(lambda: len(seen(recorder, PendingEventsFailed)) == 5)
    assert {each.schedule_id for each in seen(recorder, PendingEventsFailed)} == {
        each.schedule_id for each in broken
    }
    assert await rows_of(store, pending_event_t) == 5


async def change_pending(store: SqlStore, schedule: Schedule, **values: Any) -> None:
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.execute(
            update(pending_event_t)
            .where(pending_event_t.c.schedule_id == schedule.schedule_id)
            .values(**values)
        )


async def test_a_schedule_that_somebody_keeps_locked_delays_only_itself(
    postgres_url: str, store_on_postgres: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triggering a function locks its schedule until COMMIT: overlap is counted under that lock."""
    store, app = store_on_postgres, Foliot(postgres_url)
    free_of, waits = FiringStatements._free_of, []

    async def count_waits(self: Any, connection: Any, firings: Any, tries: int) -> Any:
        if tries > 1:
            waits.append(tries)
        return await free_of(self, connection, firings, tries)

    monkeypatch.setattr(FiringStatements, "_free_of", count_waits)
    locked = await add(store, every_second("locked", overlap=ANY))
    other = await add(store, every_second("other", overlap=ANY))
    async with running(postgres_url) as (_instance, recorder):
        async with transaction(postgres_url) as connection:
            began = len(seen(recorder, BatchFired))
            await app.within(connection).trigger("locked")

            def others() -> int:
                batches = seen(recorder, BatchFired)[began:]
                return sum(fired.schedule_id == other.schedule_id for b in batches for fired in b.fired)

            await until(lambda: others() >= 6)
            # Only the first batch that met the locked row waited for it.
            assert waits == [2]
            await connection.commit()
        await until(
            lambda: any(
                fired.schedule_id == locked.schedule_id
                for batch in seen(recorder, BatchFired)[began:]
                for fired in batch.fired
            )
        )
