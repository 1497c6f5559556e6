"""Benchmark of a leader with a million schedules due within ten minutes: time to first fire, and memory.

The leader runs in its own process, so that its memory can be measured.
"""

import asyncio
import json
import resource
import subprocess
import sys
import time
from typing import Any

import asyncpg

from bench.servers import bench_postgres
from foliot.db.migrate import upgrade
from foliot.instance.preparation import spare_collector
from foliot.instance.runtime import Instance
from foliot.instance.settings import Settings
from foliot.instance.spec import InstanceRole, InstanceSpec
from foliot.instance.store import open_store
from foliot.model.event import BatchFired, DomainEvent
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.planning.definition import Policies
from foliot.timing.clock import SystemClock

COUNT = 1_000_000
WATCH_S = 60
FIRST_FIRE_MARK_S = 10
MEMORY_MARK_MB = 700

_FILL = """
INSERT INTO schedule_t (schedule_id, host_id, schedule_name, description, labels, trigger, target, policies,
    effective_ts, next_fire_ts, next_run_ts, priority, queue, timeout_seconds, active, state, slot,
    managed_by, aggregate_version, created_ts, updated_ts)
SELECT gen_random_uuid(), $1, 'schedule-' || n, '', '{}',
    CASE n % 3
        WHEN 0 THEN '{"kind": "cron", "expression": "*/10 * * * *", "timezone": "Europe/Berlin"}'::jsonb
        WHEN 1 THEN jsonb_build_object('kind', 'cron', 'timezone', 'UTC', 'expression',
            (n % 60) || ' ' || (n / 60 % 60) || ' ' || (n / 3600 % 24) || ' * * *')
        ELSE '{"kind": "interval", "frequency_unit": "MINUTES", "frequency_time": 10,
               "timezone": "UTC"}'::jsonb
    END,
    '{"kind": "function", "name": "noop", "args": {}}', $2::jsonb,
    now() - interval '1 day', due, due, 'medium', 'default', 300, true, 'active', n % 1024,
    'code', 1, now(), now()
FROM (SELECT n, clock_timestamp() + random() * interval '10 minutes' AS due
      FROM generate_series(1, $3::int) AS n) AS each
"""


async def fill(url: str, count: int) -> None:
    store = open_store(url, clock=SystemClock())
    await upgrade(store.database)
    await store.close()
    connection = await asyncpg.connect(url)
    await connection.execute(_FILL, DEFAULT_HOST_ID, Policies().model_dump_json(), count, timeout=600)
    await connection.execute("ANALYZE schedule_t")
    await connection.close()


class FirstFire:
    def __init__(self) -> None:
        self.started = time.monotonic()
        self.after_s: float | None = None
        self.fired = 0
        self.latest_s = 0.0

    def notify(self, event: DomainEvent) -> None:
        if isinstance(event, BatchFired) and event.fired:
            if self.after_s is None:
                self.after_s = time.monotonic() - self.started
            self.fired += len(event.fired)
            self.latest_s = max(each.lateness_s for each in event.fired)


async def lead(url: str) -> dict[str, Any]:
    spare_collector()
    observer = FirstFire()
    settings = Settings(database_url=url)
    instance = Instance(
        InstanceSpec(settings=settings, roles=frozenset({InstanceRole.SCHEDULER}), observers=[observer])
    )
    await instance.start()
    await asyncio.sleep(WATCH_S)
    await instance.stop()
    return {
        "first_fire_s": observer.after_s,
        "fired": observer.fired,
        "late_s": observer.latest_s,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


async def run(count: int = COUNT) -> dict[str, Any]:
    with bench_postgres() as new_url:
        url = await new_url()
        await fill(url, count)
        command = [sys.executable, "-m", "bench.million", url]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def main() -> bool:
    """Run the benchmark. Return whether the leader met its targets."""
    figures = asyncio.run(run())
    print(
        f"leading {COUNT:,} schedules due within 10 minutes: "
        f"first fire after {figures['first_fire_s']:.1f} s, peak memory {figures['peak_mb']:.0f} MB, "
        f"{figures['fired']:,} fired in {WATCH_S} s, "
        f"the last batch up to {figures['late_s'] * 1000:.0f} ms late"
    )
    return bool(figures["first_fire_s"] < FIRST_FIRE_MARK_S and figures["peak_mb"] < MEMORY_MARK_MB)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(lead(sys.argv[1]))))
    else:
        sys.exit(not main())
