"""taskiq on Redis: the receiver of one worker process, on uvloop as its own command runs it."""

import asyncio
import time
from importlib import import_module
from typing import Any

import uvloop

from bench.peers.countdown import Countdown

taskiq_api: Any = import_module("taskiq.api")
taskiq_redis: Any = import_module("taskiq_redis")

ASYNC_TASKS = 500
PREFETCH = 500
SETTINGS = (
    f"RedisStreamBroker, xread_count={PREFETCH}, max-async-tasks={ASYNC_TASKS}, max-prefetch={PREFETCH}"
)
KEEPS = "nothing"
FILL_BATCH = 500


def fill(url: str, count: int) -> None:
    uvloop.run(_fill(url, count))


def _application(url: str, countdown: Countdown | None) -> tuple[Any, Any]:
    broker = taskiq_redis.RedisStreamBroker(url, xread_count=PREFETCH)

    @broker.task(task_name="noop")  # type: ignore[untyped-decorator]
    async def noop() -> None:
        if countdown is not None:
            countdown.count()

    return broker, noop


async def _fill(url: str, count: int) -> None:
    broker, noop = _application(url, None)
    await broker.startup()
    for start in range(0, count, FILL_BATCH):
        await asyncio.gather(*[noop.kiq() for _ in range(min(FILL_BATCH, count - start))])
    await broker.shutdown()


def work(url: str, count: int) -> float:
    # `uvloop.run` would cancel the receiver and wait for it, but a cancelled receiver does not end.
    return uvloop.new_event_loop().run_until_complete(_work(url, count))


async def _work(url: str, count: int) -> float:
    countdown = Countdown(count)
    broker, _ = _application(url, countdown)
    broker.is_worker_process = True
    await broker.startup()
    started = time.perf_counter()
    receiving = asyncio.create_task(
        taskiq_api.run_receiver_task(broker, max_async_tasks=ASYNC_TASKS, max_prefetch=PREFETCH)
    )
    over = asyncio.create_task(countdown.wait())
    await asyncio.wait({receiving, over}, return_when=asyncio.FIRST_COMPLETED)
    assert over.done(), "the receiver ended before its work"
    return time.perf_counter() - started
