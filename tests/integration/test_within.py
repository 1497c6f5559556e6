"""Acting inside a transaction of the application's own, with both databases and both kinds of SQLAlchemy."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
import pytest
from sqlalchemy import (
    Column,
    Integer,
    MetaData,
    Table,
    create_engine,
    event,
    func,
    insert,
    make_url,
    select,
    text,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from foliot import Foliot, cron
from foliot.db.dialect import Pool
from foliot.db.hints import CHANNEL
from foliot.db.joined_transaction import NotJoinableError
from foliot.db.tables.access import audit_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t, schedule_text_t, schedule_version_t
from foliot.instance.store import SqlStore
from foliot.kinds.function_target import UnknownTaskError
from foliot.model.errors import InvalidError, NameTakenError, NotFoundError, UnstorableError
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.sdk.transactions import AsyncWithin, Within
from tests.conftest import OpenStore
from tests.engine import quick_settings, until

NEVER = cron("0 0 1 1 *")
DRIVERS = {
    ("sqlite", "async"): "sqlite+aiosqlite",
    ("sqlite", "plain"): "sqlite+pysqlite",
    ("postgres", "async"): "postgresql+asyncpg",
    ("postgres", "plain"): "postgresql+psycopg",
}

order_t = Table("order_t", MetaData(), Column("order_id", Integer, primary_key=True))


class RefusedError(Exception):
    """What makes the application roll back."""


class Shop:
    """An application with a table of its own beside Foliot's, and the transactions that it makes."""

    def __init__(self, app: Foliot, url: str, driver: str, store: SqlStore) -> None:
        self.app = app
        self.store = store
        self.url = make_url(url)
        self.driver = driver
        self.is_plain = driver.endswith(("pysqlite", "psycopg"))
        self._driven = self.url.set(drivername=driver)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["Transaction"]:
        if self.is_plain:
            engine = create_engine(self._driven)
            session = Session(engine)
            try:
                yield Transaction(self.app.within(session, user="shop"), session)
                await asyncio.to_thread(session.commit)
            finally:
                await asyncio.to_thread(session.close)
                engine.dispose()
        else:
            asynchronous = create_async_engine(self._driven)
            try:
                async with AsyncSession(asynchronous) as awaited, awaited.begin():
                    yield Transaction(self.app.within(awaited, user="shop"), awaited)
            finally:
                await asynchronous.dispose()

    async def counts(self) -> Mapping[str, int]:
        """How many rows there are of everything that an act may write."""
        tables = (order_t, schedule_t, schedule_text_t, schedule_version_t, execution_t, audit_t)
        async with self.store.database.read(Pool.API) as connection:
            return {
                table.name: (await connection.execute(select(func.count()).select_from(table))).scalar_one()
                for table in tables
            }


class Transaction:
    """Calls for sync and async transactions. A sync one runs in a thread: it may wait for this loop."""

    def __init__(self, acts: AsyncWithin | Within, session: AsyncSession | Session) -> None:
        self._acts = acts
        self._session = session

    async def order(self, order_id: int) -> None:
        statement = insert(order_t).values(order_id=order_id)
        if isinstance(self._session, Session):
            await asyncio.to_thread(self._session.execute, statement)
        else:
            await self._session.execute(statement)

    async def act(self, name: str, *arguments: Any, **named: Any) -> Any:
        act = getattr(self._acts, name)
        if isinstance(self._acts, Within):
            return await asyncio.to_thread(act, *arguments, **named)
        return await act(*arguments, **named)


@pytest.fixture(params=list(DRIVERS), ids="-".join)
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A database, and the driver of the application."""
    database, _ = request.param
    return str(request.getfixturevalue(f"{database}_url")), DRIVERS[request.param]


@pytest.fixture
async def shop(place: tuple[str, str], open_test_store: OpenStore) -> Shop:
    url, driver = place
    app = Foliot(url)

    @app.task
    async def receipt(order: int = 0) -> str:
        return f"receipt of {order}"

    app.schedule("receipt", receipt, when=NEVER, overlap="allow")
    store = await open_test_store(url)

    async def work(connection: AsyncConnection) -> None:
        await connection.run_sync(order_t.metadata.create_all)

    await store.database.write(Pool.API, work)
    return Shop(app, url, driver, store)


async def test_what_is_asked_for_in_a_transaction_comes_with_its_commit_and_runs(shop: Shop) -> None:
    instance = shop.app.instance(quick_settings(shop.url.render_as_string(hide_password=False)))
    await instance.start()
    try:
        async with shop.transaction() as transaction:
            await transaction.order(7)
            execution_id = await transaction.act("trigger", "receipt", {"order": 7})
            made = await transaction.act(
                "create_schedule", "remind-7", "receipt", args={"order": 7}, when=NEVER, labels={"of": "7"}
            )

        async def has_run() -> bool:
            return (await shop.store.executions.get(execution_id)).status is Status.SUCCESS

        await until(has_run)
        execution = await shop.store.executions.get(execution_id)
        assert (execution.result, execution.triggered_by_user) == ("receipt of 7", "shop")
        known = await shop.store.schedules.find(DEFAULT_HOST_ID, "remind-7")
        assert known is not None
        assert (known.schedule_id, known.spec.labels, known.created_by) == (
            made.schedule_id,
            {"of": "7"},
            "shop",
        )
        async with shop.transaction() as transaction:
            await transaction.act("delete_schedule", "remind-7")
        assert await shop.store.schedules.find(DEFAULT_HOST_ID, "remind-7") is None
    finally:
        await instance.stop()


async def test_of_a_transaction_that_is_rolled_back_nothing_is_left(shop: Shop) -> None:
    await declared(shop)
    before = await shop.counts()
    with suppress(RefusedError):
        async with shop.transaction() as transaction:
            await transaction.order(7)
            await transaction.act("trigger", "receipt", {"order": 7})
            await transaction.act("create_schedule", "remind-7", "receipt", when=NEVER)
            await transaction.act("delete_schedule", "receipt")
            raise RefusedError
    assert await shop.counts() == before


async def test_also_when_it_had_done_nothing_of_its_own_before(shop: Shop) -> None:
    await declared(shop)
    before = await shop.counts()
    with suppress(RefusedError):
        async with shop.transaction() as transaction:
            await transaction.act("create_schedule", "remind-7", "receipt", when=NEVER)
            raise RefusedError
    assert await shop.counts() == before


async def test_what_is_refused_leaves_the_rest_of_the_transaction_as_it_was(shop: Shop) -> None:
    await declared(shop)
    before = await shop.counts()
    async with shop.transaction() as transaction:
        with pytest.raises(NameTakenError):
            await transaction.act("create_schedule", "receipt", "receipt", when=NEVER)
        with pytest.raises(InvalidError, match="valid integer"):
            await transaction.act("trigger", "receipt", {"order": "seven"})
        with pytest.raises(NotFoundError, match="there is no schedule refund"):
            await transaction.act("trigger", "refund")
        with pytest.raises(UnknownTaskError, match="no_such_task"):
            await transaction.act("create_schedule", "remind-7", "no_such_task", when=NEVER)
        await transaction.order(7)
    assert await shop.counts() == {**before, "order_t": 1}


async def test_a_database_that_is_not_foliots_is_named_as_what_is_wrong(shop: Shop, tmp_path: Any) -> None:
    elsewhere = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'elsewhere.db'}")
    try:
        async with elsewhere.begin() as connection:
            with pytest.raises(NotJoinableError, match="FOLIOT_DATABASE_URL"):
                await shop.app.within(connection).trigger("receipt")
        async with elsewhere.connect() as connection:
            careless = await connection.execution_options(isolation_level="AUTOCOMMIT")
            with pytest.raises(NotJoinableError, match="commits every statement"):
                await shop.app.within(careless).trigger("receipt")
    finally:
        await elsewhere.dispose()


async def test_workers_are_hinted_at_when_the_transaction_commits_and_not_before(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    app = Foliot(postgres_url)
    app.schedule("receipt", app.task(receipt), when=NEVER, overlap="allow")
    store = await open_test_store(postgres_url)
    heard: asyncio.Queue[str] = asyncio.Queue()
    await declared(Shop(app, postgres_url, "postgresql+asyncpg", store))
    listening = await asyncpg.connect(postgres_url)
    engine = create_async_engine(make_url(postgres_url).set(drivername="postgresql+asyncpg"))
    try:
        await listening.add_listener(CHANNEL, lambda *told: heard.put_nowait(told[-1]))
        async with engine.begin() as connection:
            await app.within(connection).trigger("receipt")
            await listening.execute("SELECT 1")  # whatever was told before it would be here
            assert heard.empty()
        assert (await asyncio.wait_for(heard.get(), 30)).startswith("ready:")
    finally:
        await engine.dispose()
        await listening.close()


async def receipt(order: int = 0) -> str:
    return f"receipt of {order}"


async def declared(shop: Shop) -> None:
    """Have the application's own schedule written, as it is when it starts."""
    instance = shop.app.instance(quick_settings(shop.url.render_as_string(hide_password=False)))
    await instance.prepare()
    await instance.close()


async def test_a_task_that_is_cancelled_in_the_middle_is_cancelled_and_nothing_else(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    app = Foliot(postgres_url)
    app.schedule("receipt", app.task(receipt), when=NEVER, overlap="allow")
    await declared(Shop(app, postgres_url, "postgresql+asyncpg", await open_test_store(postgres_url)))
    engine = create_async_engine(make_url(postgres_url).set(drivername="postgresql+asyncpg"))
    began = asyncio.Event()

    async def trigger(connection: AsyncConnection) -> None:
        began.set()
        await app.within(connection).trigger("receipt")

    try:
        async with engine.begin() as holder, engine.connect() as connection:
            await app.within(holder).delete_schedule("receipt")  # whoever triggers it waits for this one
            waiting = asyncio.create_task(trigger(connection))
            await began.wait()
            await until(lambda: is_waiting(holder))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await connection.rollback()
            assert (await connection.execute(select(1))).scalar_one() == 1
    finally:
        await engine.dispose()


async def is_waiting(connection: AsyncConnection) -> bool:
    """Whether somebody waits for a lock in this database."""
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return bool((await connection.execute(waiting)).scalar_one())


async def test_what_the_database_can_not_hold_is_refused_and_leaves_the_transaction_as_it_was(
    shop: Shop,
) -> None:
    await declared(shop)
    before = await shop.counts()
    async with shop.transaction() as transaction:
        for name in ("nul\0", "half \ud800"):
            with pytest.raises((NotFoundError, UnstorableError)):
                await transaction.act("trigger", name)
        await transaction.order(7)
    assert await shop.counts() == {**before, "order_t": 1}


@pytest.mark.parametrize("level", ["engine", "connection"])
async def test_a_connection_that_commits_by_itself_is_refused_wherever_it_was_told_to(
    shop: Shop, level: str
) -> None:
    await declared(shop)
    before = await shop.counts()
    refused = pytest.raises(NotJoinableError, match="commits every statement")
    url = shop.url.set(drivername=shop.driver)
    options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT"}
    at_engine = options if level == "engine" else {}
    if shop.is_plain:
        engine = create_engine(url, **at_engine)
        try:
            with engine.connect() as connection:
                if level == "connection":
                    connection.execution_options(**options)
                with refused:
                    await asyncio.to_thread(shop.app.within(connection).trigger, "receipt")
        finally:
            engine.dispose()
    else:
        asynchronous = create_async_engine(url, **at_engine)
        try:
            async with asynchronous.connect() as awaited:
                if level == "connection":
                    await awaited.execution_options(**options)
                with refused:
                    await shop.app.within(awaited).trigger("receipt")
        finally:
            await asynchronous.dispose()
    assert await shop.counts() == before


async def test_sqlite_whose_transactions_sqlalchemy_begins_itself_is_joined(
    sqlite_url: str, open_test_store: OpenStore
) -> None:
    """As SQLAlchemy advises. The driver begins nothing: so looks one that commits by itself, too."""
    app = Foliot(sqlite_url)
    app.schedule("receipt", app.task(receipt), when=NEVER, overlap="allow")
    shop = Shop(app, sqlite_url, "sqlite+pysqlite", await open_test_store(sqlite_url))
    await declared(shop)
    engine = create_engine(make_url(sqlite_url).set(drivername="sqlite+pysqlite"))
    event.listen(engine, "connect", lambda driver, _record: setattr(driver, "isolation_level", None))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    with engine.connect() as connection:
        app.within(connection).trigger("receipt")
        connection.rollback()
        app.within(connection).trigger("receipt")
        connection.commit()
    engine.dispose()
    async with shop.store.database.read(Pool.API) as reading:
        made = await reading.execute(select(func.count()).select_from(execution_t))
        assert made.scalar_one() == 1


async def test_arguments_that_are_no_json_are_refused_by_name(shop: Shop) -> None:
    await declared(shop)
    async with shop.transaction() as transaction:
        for wrong in ("half of a character \ud800", object(), "\0"):
            with pytest.raises(InvalidError, match="args"):
                await transaction.act("trigger", "receipt", {"order": wrong})
        await transaction.order(7)
    assert (await shop.counts())["order_t"] == 1
