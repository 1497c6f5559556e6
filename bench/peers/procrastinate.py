"""Procrastinate: one worker that ends when its queue is empty."""

import time
from importlib import import_module
from typing import Any

import asyncpg
import uvloop

from bench.peers.countdown import Countdown

procrastinate: Any = import_module("procrastinate")
psycopg: Any = import_module("psycopg")

# The fastest of 1, 5, 10, 30 and 100, with 1,000 jobs. It fetches one job at a time, so more tasks only wait.
CONCURRENCY = 5
SETTINGS = f"concurrency={CONCURRENCY}, pool of {CONCURRENCY + 2}, psycopg in {psycopg.pq.__impl__}"
KEEPS = "every job and an event per change of its status"


def fill(url: str, count: int) -> None:
    uvloop.run(_fill(url, count))


def _application(url: str, countdown: Countdown | None) -> tuple[Any, Any]:
    connector = procrastinate.PsycopgConnector(
        conninfo=url, min_size=CONCURRENCY + 2, max_size=CONCURRENCY + 2
    )
    app = procrastinate.App(connector=connector)

    @app.task(name="noop")  # type: ignore[untyped-decorator]
    async def noop() -> None:
        if countdown is not None:
            countdown.count()

    return app, noop


async def _fill(url: str, count: int) -> None:
    app, noop = _application(url, None)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await noop.batch_defer_async(*[{}] * count)
    connection = await asyncpg.connect(url)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


def work(url: str, count: int) -> float:
    return uvloop.run(_work(url, count))


async def _work(url: str, count: int) -> float:
    countdown = Countdown(count)
    app, _ = _application(url, countdown)
    async with app.open_async():
        started = time.perf_counter()
        await app.run_worker_async(concurrency=CONCURRENCY, wait=False, install_signal_handlers=False)
        elapsed = time.perf_counter() - started
    await countdown.wait()
    return elapsed
