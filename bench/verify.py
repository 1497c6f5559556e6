"""Benchmark of `foliot verify` for a day of 10,000 schedules: two million due times on PostgreSQL.

A tenth fire every minute, four tenths every ten minutes, four tenths every hour, a tenth once a day. Some
have time zones with clock changes, some without.

`python -m bench.verify [SCHEDULES]` measures.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import uvloop
from sqlalchemy import insert
from tests.engine import AUTHOR, spec

from bench.servers import bench_postgres
from foliot.db.dialect import Pool
from foliot.db.migrate import upgrade
from foliot.db.rows.schedule_rows import row_of
from foliot.db.tables.schedules import schedule_t, schedule_version_t
from foliot.instance.store import SqlStore, open_store
from foliot.model.ids import DEFAULT_HOST_ID, ids_at
from foliot.model.schedule import Schedule
from foliot.planning.change import create
from foliot.planning.definition import compile_spec
from foliot.timing.clock import SystemClock
from foliot.verify.finding import Report, Verdict
from foliot.verify.verifier import VerifyRequest, verify

SCHEDULES = 10_000
DAY = timedelta(days=1)
MARK_S = 60
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo")
COLUMNS = [
    "execution_id",
    "schedule_id",
    "host_id",
    "aggregate_version",
    "fire_ts",
    "status",
    "triggered_by",
    "queue",
    "priority",
    "ready_ts",
    "due_by_ts",
    "attempt",
    "started_ts",
    "ended_ts",
    "created_ts",
    "scheduler_instance_id",
]


def triggers(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        zone = ZONES[number % len(ZONES)]
        match number % 10:
            case 0:
                yield {"kind": "cron", "expression": "* * * * *", "timezone": zone}
            case 1 | 2 | 3 | 4:
                yield {"kind": "interval", "frequency_unit": "MINUTES", "frequency_time": 10}
            case 9:
                expression = f"{number % 60} {number // 60 % 24} * * *"
                yield {"kind": "cron", "expression": expression, "timezone": zone}
            case _:
                yield {"kind": "cron", "expression": f"{number % 60} * * * *", "timezone": zone}


async def fill(store: SqlStore, url: str, count: int) -> int:
    """Write a day of correct executions. Return the number of due times."""
    now = await store.now()
    begin = (now - DAY).replace(microsecond=0)
    new_id = ids_at(begin)
    schedules, rows = [], []
    for number, trigger in enumerate(triggers(count)):
        made = create(
            spec(f"schedule-{number}", trigger), host_id=DEFAULT_HOST_ID, now=begin, author=AUTHOR
        ).schedule
        at = made.next_fire_ts
        recurrence = compile_spec(made.spec, made.schedule_id, begin).recurrence
        while at is not None and at <= now:
            rows.append((new_id(), made.schedule_id, DEFAULT_HOST_ID, 1, at, *_run(at)))
            at = recurrence.after(at)
        schedules.append(replace(made, next_fire_ts=at, next_run_ts=at))
    async with store.database.engine(Pool.API).begin() as connection:
        for first in range(0, count, 1000):
            some = schedules[first : first + 1000]
            await connection.execute(insert(schedule_t), [row_of(each) for each in some])
            await connection.execute(insert(schedule_version_t), [_version(each) for each in some])
    filling = await asyncpg.connect(url)
    await filling.copy_records_to_table("execution_t", records=rows, columns=COLUMNS)
    await filling.execute("UPDATE scheduler_lock_t SET epoch = 1")
    await filling.execute("VACUUM ANALYZE")
    await filling.close()
    return len(rows)


def _run(at: datetime) -> tuple[Any, ...]:
    return ("success", "scheduler", "default", "medium", at, at, 1, at, at, at, "leader")


def _version(schedule: Schedule) -> dict[str, Any]:
    return {
        "schedule_id": schedule.schedule_id,
        "aggregate_version": 1,
        "host_id": schedule.host_id,
        "change": "created",
        "document": schedule.spec.model_dump(mode="json"),
        "paused": False,
        "effective_ts": schedule.effective_ts,
        "created_ts": schedule.created_ts,
    }


async def run(count: int) -> tuple[Report, float, float, int]:
    with bench_postgres() as new_url:
        url = await new_url()
        store = open_store(url, clock=SystemClock())
        await upgrade(store.database)
        due = await fill(store, url, count)
        began, own_s = time.perf_counter(), time.process_time()
        found = await verify(store.database, VerifyRequest(timedelta(days=90)))
        took, own_s = time.perf_counter() - began, time.process_time() - own_s
        await store.close()
        return found, took, own_s, due


def main(count: int = SCHEDULES) -> bool:
    """Run the benchmark. Return whether a day is verified within a minute."""
    found, took, own_s, due = uvloop.run(run(count))
    print(
        f"verify: {due:,} due times of {count:,} schedules in {took:.0f} s, {own_s:.0f} s of it its own CPU: "
        f"{found.verdict}   (mark: {MARK_S} s)"
    )
    return found.verdict is Verdict.VALID and took < MARK_S


if __name__ == "__main__":
    sys.exit(not main(*(int(each) for each in sys.argv[1:])))
