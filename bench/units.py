"""Measures the cost of one schedule and of one fire, for sizing: bytes, WAL, CPU time.

It prints figures and has no target. `python -m bench.units [COUNT]` measures.
"""

import sys
import time
from typing import Any

import asyncpg
import psutil
import uvloop

from bench.firing import Counter, fill, fill_wheel, leader, make_rows
from bench.servers import bench_postgres
from foliot.db.migrate import upgrade
from foliot.instance.preparation import spare_collector
from foliot.instance.store import open_store
from foliot.scheduler.leader_term import LeaderState
from foliot.timing.clock import SystemClock

COUNT = 50_000


async def run(count: int) -> dict[str, float]:
    with bench_postgres() as new_url:
        url = await new_url()
        store = open_store(url, clock=SystemClock(), ttl_s=60)
        await upgrade(store.database)
        asking = await asyncpg.connect(url)

        async def ask(statement: str, *arguments: Any) -> float:
            return float(await asking.fetchval(statement, *arguments))

        async def size_of(table: str) -> float:
            return await ask("SELECT pg_total_relation_size(CAST($1::text AS regclass))", table)

        empty = await size_of("schedule_t")
        await fill(store, make_rows(count, seed=1))
        schedule_bytes = (await size_of("schedule_t") - empty) / count
        counter = Counter()
        shard = await leader(store, counter)
        term = shard.firing.term
        assert isinstance(term, LeaderState)
        await fill_wheel(store, term, count)

        async def server_cpu_s() -> float:
            """Return the CPU seconds of all current backends. A backend that starts later begins at zero."""
            rows = await asking.fetch(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> $1",
                asking.get_server_pid(),
            )
            return sum(sum(psutil.Process(row[0]).cpu_times()[:2]) for row in rows)

        empty = await size_of("execution_t")
        log = await ask("SELECT pg_current_wal_lsn() - '0/0'")
        server_s = await server_cpu_s()
        own_s, began = time.process_time(), time.perf_counter()
        while counter.fired < count:
            await shard.firing.step()
        took, own_s = time.perf_counter() - began, time.process_time() - own_s
        server_s = await server_cpu_s() - server_s
        log = await ask("SELECT pg_current_wal_lsn() - '0/0'") - log
        found = {
            "bytes of a schedule, with its indexes": schedule_bytes,
            "bytes of an execution, with its indexes": (await size_of("execution_t") - empty) / count,
            "bytes of the database's log for a fire": log / count,
            "microseconds of the scheduler's CPU for a fire": own_s / count * 1e6,
            "microseconds of the database's CPU for a fire": server_s / count * 1e6,
            "fires a second": count / took,
        }
        await shard.release()
        await asking.close()
        await store.close()
        return found


def main(count: int = COUNT) -> bool:
    """Print the figures. Always return True: there is no target."""
    spare_collector()
    for what, figure in uvloop.run(run(count)).items():
        print(f"  {what:48} {figure:10,.0f}")
    return True


if __name__ == "__main__":
    sys.exit(not main(*(int(each) for each in sys.argv[1:])))
