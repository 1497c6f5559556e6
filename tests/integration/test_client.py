"""Steering from Python, over an engine that runs elsewhere."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from foliot import Foliot, every
from foliot.kinds.cron_trigger import cron
from foliot.model.errors import InvalidError, NotFoundError
from foliot.model.execution import Execution, Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.sdk.client import Client
from tests.engine import quick_settings, until


async def reach(client: Client, execution_id: UUID, is_there: Callable[[Execution], bool]) -> Execution:
    async def look() -> bool:
        return is_there(await client.execution(execution_id))

    await until(look)
    return await client.execution(execution_id)


NEVER = cron("0 0 1 1 *")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def app(database_url: str) -> Foliot:
    app = Foliot(database_url)
    started = asyncio.Event()

    @app.task
    async def greet(name: str = "you") -> str:
        logging.getLogger("greeting").info("hello %s", name)
        return f"hello {name}"

    @app.task
    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    app.schedule("greet", greet, when=NEVER, overlap="allow", queue="front")
    app.schedule("wait", wait, when=NEVER)
    app.schedule("each", greet, when=every(minutes=1), overlap="allow")
    return app


async def test_a_client_triggers_watches_cancels_and_retries(app: Foliot, database_url: str) -> None:
    settings = quick_settings(database_url)
    instance = app.instance(settings)
    await instance.start()
    try:
        async with app.connect(settings, user="ann") as client:
            first = await client.trigger("greet", {"name": "bob"})
            done = await reach(client, first, lambda each: each.status is Status.SUCCESS)
            assert (done.result, done.triggered_by, done.triggered_by_user) == (
                "hello bob",
                TriggeredBy.API,
                "ann",
            )
            assert [(line.logger, line.message) for line in await client.logs(first)] == [
                ("greeting", "hello bob")
            ]
            second = await client.trigger("wait")
            await reach(client, second, lambda each: each.status is Status.RUNNING)
            await client.cancel(second, reason="not today")
            await reach(client, second, lambda each: each.status is Status.CANCELLED)
            assert (await client.retry(second)).status is Status.PENDING
            await reach(client, second, lambda each: each.attempt == 2)
            await client.cancel(second)
    finally:
        await instance.stop()


async def test_a_paused_queue_is_left_alone_until_it_is_resumed(app: Foliot, database_url: str) -> None:
    settings = quick_settings(database_url)
    instance = app.instance(settings)
    await instance.start()
    try:
        async with app.connect(settings) as client:
            await client.pause_queue("front")
            assert (DEFAULT_HOST_ID, "front") not in await instance.store.work.queues(None)
            worker = instance.worker
            assert worker is not None
            worker._queues_at = float("-inf")
            worker.wake.set()
            # A claim that is under way still knows the queues of before.
            await until(lambda: worker._queues_at > 0)
            waiting = await client.trigger("greet")
            other = await client.trigger("each")
            await reach(client, other, lambda each: each.status is Status.SUCCESS)
            assert (await client.execution(waiting)).status is Status.PENDING
            await client.resume_queue("front")
            await reach(client, waiting, lambda each: each.status is Status.SUCCESS)
    finally:
        await instance.stop()


async def test_what_a_client_asks_for_wrongly_is_told(app: Foliot, database_url: str) -> None:
    settings = quick_settings(database_url)
    instance = app.instance(settings)
    await instance.start()
    try:
        async with app.connect(settings) as client:
            with pytest.raises(NotFoundError, match="nobody"):
                await client.trigger("nobody")
            with pytest.raises(InvalidError, match=r"args\.name"):
                await client.trigger("greet", {"name": 7})
            with pytest.raises(InvalidError, match="from_ts"):
                await client.backfill(
                    "each", datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
                )
    finally:
        await instance.stop()
