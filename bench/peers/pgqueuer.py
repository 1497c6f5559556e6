"""PgQueuer: one queue manager on an asyncpg pool, on uvloop as its own command runs it."""

import asyncio
import time
from importlib import import_module
from typing import Any

import asyncpg
import uvloop

from bench.peers.countdown import Countdown

pgqueuer: Any = import_module("pgqueuer")
drivers: Any = import_module("pgqueuer.db")
queries: Any = import_module("pgqueuer.queries")

# The fastest of 100, 200, 500, 1000 and 2000.
BATCH = 500
SETTINGS = f"batch_size={BATCH}, no limit of concurrency, pool of 5, durable tables"
KEEPS = "a log row per change of a job's status"


def fill(url: str, count: int) -> None:
    uvloop.run(_fill(url, count))


async def _fill(url: str, count: int) -> None:
    connection = await asyncpg.connect(url)
    queue = queries.Queries(drivers.AsyncpgDriver(connection))
    await queue.install()
    await queue.enqueue(["noop"] * count, [None] * count, [0] * count)
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


def work(url: str, count: int) -> float:
    return uvloop.run(_work(url, count))


async def _work(url: str, count: int) -> float:
    countdown = Countdown(count)
    async with asyncpg.create_pool(url, min_size=5, max_size=5) as pool:
        manager = pgqueuer.QueueManager(queries.Queries(drivers.AsyncpgPoolDriver(pool)))

        @manager.entrypoint("noop")  # type: ignore[untyped-decorator]
        async def noop(_job: Any) -> None:
            countdown.count()

        started = time.perf_counter()
        running = asyncio.create_task(manager.run(batch_size=BATCH))
        await countdown.wait()
        # On shutdown it writes its buffer at once. Otherwise it would wait for a tenth of a second.
        manager.shutdown.set()
        await running
        elapsed = time.perf_counter() - started
        logged = await pool.fetchval("SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'")
        assert logged == count
        return elapsed
