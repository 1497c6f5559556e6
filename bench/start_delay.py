"""Benchmark of start delay: how long a ready execution waits for its start, at 100/s, with hints on.

A real scheduler process and a real worker process use one PostgreSQL. A hundred schedules fire every second,
ten milliseconds apart. The delay is `started_ts - ready_ts` of each execution, both by the database's clock.
"""

import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import asyncpg
import uvloop

from bench.lateness import percentile
from bench.servers import bench_postgres
from foliot.db.migrate import upgrade
from foliot.instance.preparation import spare_collector
from foliot.instance.settings import Settings
from foliot.instance.spec import InstanceRole
from foliot.instance.store import open_store
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import ScheduleSpec
from foliot.planning.change import Author, PlannedChange, create
from foliot.sdk.app import Foliot
from foliot.telemetry import logs
from foliot.timing.clock import SystemClock

PER_SECOND = 100
SECONDS = 20
WARM_UP = 3
P50_MARK_MS = 5
P99_MARK_MS = 20

_DELAYS = """
SELECT extract(epoch FROM started_ts - ready_ts)::float8 * 1000 FROM execution_t
WHERE started_ts IS NOT NULL AND attempt = 1 AND fire_ts >= $1 AND fire_ts < $2
"""


def application() -> Foliot:
    app = Foliot()

    @app.task
    async def noop() -> None:
        """Do nothing."""

    return app


async def serve(url: str, role: InstanceRole) -> None:
    """Run one role, as `foliot scheduler` and `foliot worker` do."""
    instance = application().instance(
        Settings(database_url=url), roles=frozenset({role}), observers=[logs.LogObserver()]
    )
    await instance.run()


async def prepare(url: str) -> datetime:
    """Create a hundred schedules that fire every second. Return the first fire time."""
    store = open_store(url, clock=SystemClock())
    await upgrade(store.database)
    start = (await store.now()).replace(microsecond=0) + timedelta(seconds=5)
    author = Author("bench")
    for index in range(PER_SECOND):
        spec = every_second(f"noop-{index}", start + timedelta(seconds=index / PER_SECOND))
        await store.schedules.create(partial(made_at, spec, author), author)
    await store.close()
    return start


def made_at(spec: ScheduleSpec, author: Author, now: datetime) -> PlannedChange:
    return create(spec, host_id=DEFAULT_HOST_ID, now=now, author=author)


def every_second(name: str, first: datetime) -> ScheduleSpec:
    return ScheduleSpec.parse(
        {
            "name": name,
            "trigger": {"kind": "interval", "seconds": 1},
            "target": {"kind": "function", "name": "noop"},
            "overlap": {"policy": "allow"},
            "start_ts": first.isoformat(),
        }
    )


async def delays_of(url: str, begin: datetime, end: datetime) -> list[float]:
    """Return the start delays in milliseconds."""
    connection = await asyncpg.connect(url)
    rows = await connection.fetch(_DELAYS, begin, end)
    await connection.close()
    return [row[0] for row in rows]


def measured(url: str) -> list[float]:
    start = uvloop.run(prepare(url))
    begin, end = start + timedelta(seconds=WARM_UP), start + timedelta(seconds=WARM_UP + SECONDS)
    command = [sys.executable, "-m", "bench.start_delay", url]
    roles = [
        subprocess.Popen([*command, role], stderr=subprocess.DEVNULL)
        for role in (InstanceRole.SCHEDULER, InstanceRole.WORKER)
    ]
    # The database runs on this machine, so it has the same clock.
    time.sleep((end - datetime.now(UTC)).total_seconds() + 2)
    for each in roles:
        each.terminate()
    for each in roles:
        each.wait(timeout=60)
    return uvloop.run(delays_of(url, begin, end))


async def _url_of(new_url: Callable[[], Awaitable[str]]) -> str:
    return await new_url()


def main() -> bool:
    """Run the benchmark. Return whether start delays met their bounds."""
    with bench_postgres() as new_url:
        delays = measured(uvloop.run(_url_of(new_url)))
    p50, p90, p99 = (percentile(delays, share) for share in (0.50, 0.90, 0.99))
    wanted = PER_SECOND * SECONDS
    print(
        f"start delay at {PER_SECOND} jobs/s with hints: p50 {p50:.1f} ms   p90 {p90:.1f} ms   "
        f"p99 {p99:.1f} ms   max {max(delays):.1f} ms   ({len(delays):,} of {wanted:,} started; "
        f"marks: p50 below {P50_MARK_MS} ms, p99 below {P99_MARK_MS} ms)"
    )
    return len(delays) == wanted and p50 < P50_MARK_MS and p99 < P99_MARK_MS


if __name__ == "__main__":
    if len(sys.argv) > 1:
        logs.configure("json", "info")
        spare_collector()
        uvloop.run(serve(sys.argv[1], InstanceRole(sys.argv[2])))
    else:
        sys.exit(not main())
