"""Foliot: a worker as `foliot worker` runs it. Its time ends when every execution is stored as a success.

All executions belong to one schedule, are ready, and are written as firing writes them.
"""

import time
from datetime import UTC, datetime, timedelta

import asyncpg
import uvloop

from bench.peers.countdown import Countdown
from foliot.db.migrate import upgrade
from foliot.instance.preparation import spare_collector
from foliot.instance.settings import Settings
from foliot.instance.spec import InstanceRole
from foliot.instance.store import open_store
from foliot.kinds.cron_trigger import cron
from foliot.model.event import DomainEvent, ExecutionsSettled, Observer
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.schedule import Schedule
from foliot.planning.change import Author, create
from foliot.sdk.app import Foliot
from foliot.telemetry import logs
from foliot.timing.clock import SystemClock

CONCURRENCY = 1000
SETTINGS = f"FOLIOT_WORKER_CONCURRENCY={CONCURRENCY}"
KEEPS = "every execution with its times, worker and result"

_FILL = """
INSERT INTO execution_t (execution_id, schedule_id, host_id, aggregate_version, fire_ts, status, triggered_by,
    queue, priority, ready_ts, due_by_ts, created_ts)
SELECT execution_id, $2, $3, 1, fire_ts, 'pending', 'scheduler', 'default', 'medium',
    clock_timestamp(), clock_timestamp() + interval '5 seconds', clock_timestamp()
FROM unnest($1::uuid[], $4::timestamptz[]) AS each (execution_id, fire_ts)
"""
_DONE = "SELECT count(*) FROM execution_t WHERE status = 'success'"


class Settled:
    """Counts settled executions. Observers are notified after the transaction has committed."""

    def __init__(self, count: int) -> None:
        self.countdown = Countdown(count)

    def notify(self, event: DomainEvent) -> None:
        if isinstance(event, ExecutionsSettled):
            for _ in event.settled:
                self.countdown.count()


def application() -> Foliot:
    app = Foliot()

    @app.task
    async def noop() -> None:
        """Do nothing."""

    app.schedule("noop", noop, when=cron("0 0 1 1 *"), overlap="allow")
    return app


def fill(url: str, count: int) -> None:
    uvloop.run(_fill(url, count))


async def _fill(url: str, count: int) -> None:
    schedule = await _create_schedule(url)
    first = datetime.now(UTC)
    connection = await asyncpg.connect(url)
    await connection.execute(
        _FILL,
        [new_id() for _ in range(count)],
        schedule.schedule_id,
        DEFAULT_HOST_ID,
        [first + timedelta(milliseconds=number) for number in range(count)],
    )
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


async def _create_schedule(url: str) -> Schedule:
    author = Author("bench")
    spec = application().schedules["noop"]
    store = open_store(url, clock=SystemClock())
    await upgrade(store.database)
    schedule = await store.schedules.create(
        lambda now: create(spec, host_id=DEFAULT_HOST_ID, now=now, author=author), author
    )
    await store.close()
    return schedule


def work(url: str, count: int) -> float:
    logs.configure("json", "info")
    spare_collector()
    return uvloop.run(_work(url, count))


async def _work(url: str, count: int) -> float:
    settled = Settled(count)
    app = application()
    # A worker need not declare the schedules that it executes, so declaring is not measured.
    app.schedules.clear()
    settings = Settings(database_url=url, worker_concurrency=CONCURRENCY)
    observers: list[Observer] = [logs.LogObserver(), settled]
    instance = app.instance(settings, roles=frozenset({InstanceRole.WORKER}), observers=observers)
    await instance.prepare()
    started = time.perf_counter()
    instance.begin()
    await settled.countdown.wait()
    elapsed = time.perf_counter() - started
    await instance.stop()
    connection = await asyncpg.connect(url)
    assert await connection.fetchval(_DONE) == count
    await connection.close()
    return elapsed
