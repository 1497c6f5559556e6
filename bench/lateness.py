"""Benchmark of lateness at 1,000 fires/s: fires spread over the second, and all at once.

Lateness counts from the nominal time to the return of COMMIT, by the database's clock.
"""

import asyncio
import sys
from datetime import datetime, timedelta

import uvloop
from sqlalchemy import update

from bench.firing import Row, fill, leader
from bench.servers import bench_postgres
from foliot.db.dialect import Pool
from foliot.db.migrate import upgrade
from foliot.db.tables.schedules import schedule_t
from foliot.instance.store import SqlStore, open_store
from foliot.model.event import BatchFired, DomainEvent
from foliot.model.ids import new_id
from foliot.service import Loop
from foliot.timing.clock import Clock, SystemClock

COUNT = 1000
SECONDS = 15
WARM_UP = 3
MARK_MS = 100
"""Upper bound for the p99 lateness in ms when fires are spread over the second."""


class Lateness:
    """Records how late each fire was when its transaction had committed."""

    def __init__(self) -> None:
        self.clock: Clock = SystemClock()
        self.late_s: list[tuple[datetime, float]] = []

    def notify(self, event: DomainEvent) -> None:
        if isinstance(event, BatchFired):
            now = self.clock.now()
            self.late_s.extend((each.fire_ts, (now - each.fire_ts).total_seconds()) for each in event.fired)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def every_second(store: SqlStore, *, is_spread: bool) -> None:
    """Create a thousand schedules that fire every second, one millisecond apart or all at once."""
    trigger = {"kind": "interval", "frequency_unit": "SECONDS", "frequency_time": 1, "timezone": "UTC"}
    rows = [Row(new_id(), trigger) for _ in range(COUNT)]
    await fill(store, rows)
    start = (await store.now()).replace(microsecond=0) + timedelta(seconds=2)
    # No worker runs here, so overlap must not skip fire times.
    policies = {"overlap": {"policy": "allow", "max_instances": 1}}
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        for index, row in enumerate(rows):
            first = start + timedelta(milliseconds=index if is_spread else 0)
            await connection.execute(
                update(schedule_t)
                .where(schedule_t.c.schedule_id == row.schedule_id)
                .values(
                    start_ts=first,
                    next_fire_ts=first,
                    next_run_ts=first,
                    effective_ts=first - timedelta(days=1),
                    policies=policies,
                )
            )


async def measured(url: str, *, is_spread: bool) -> list[float]:
    store = open_store(url, clock=SystemClock(), ttl_s=10)
    await upgrade(store.database)
    await every_second(store, is_spread=is_spread)
    observer = Lateness()
    shard = await leader(store, observer)
    observer.clock = shard._clock
    loops = [Loop(service, observer) for service in shard.services]
    tasks = [asyncio.create_task(loop.run()) for loop in loops]
    await asyncio.sleep(SECONDS + 2)
    for loop in loops:
        loop.stop()
    await asyncio.gather(*tasks)
    await store.close()
    begin = min(at for at, _ in observer.late_s) + timedelta(seconds=WARM_UP)
    return [late for at, late in observer.late_s if at >= begin]


async def run() -> dict[str, dict[str, float]]:
    found = {}
    with bench_postgres() as new_url:
        for name, is_spread in (("spread", True), ("aligned", False)):
            late = await measured(await new_url(), is_spread=is_spread)
            found[name] = {
                "count": len(late),
                "p50_ms": percentile(late, 0.50) * 1000,
                "p99_ms": percentile(late, 0.99) * 1000,
                "max_ms": max(late) * 1000,
            }
    return found


def main() -> bool:
    """Run the benchmark. Return whether lateness met its bound."""
    found = uvloop.run(run())  # `foliot` processes use uvloop too
    for name, figures in found.items():
        print(
            f"lateness at {COUNT:,} fires/s, {name:8} p50 {figures['p50_ms']:6.1f} ms   "
            f"p99 {figures['p99_ms']:6.1f} ms   max {figures['max_ms']:6.1f} ms   "
            f"({figures['count']:,.0f} fires)"
        )
    return found["spread"]["p99_ms"] < MARK_MS


if __name__ == "__main__":
    sys.exit(not main())
