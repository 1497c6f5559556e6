"""Many overdue at once: decided by policy, in bounded batches, fair between hosts, urgent first."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import insert, select, update

from foliot.db.dialect import Pool
from foliot.db.rows.schedule_rows import row_of
from foliot.db.tables.access import host_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.instance.store import SqlStore
from foliot.model.event import BatchFired
from foliot.model.ids import new_id
from foliot.planning.change import create
from tests.engine import AUTHOR, add, every_second, running, seen, spec, until

HOURLY = {"kind": "interval", "hours": 1}
LARGE = 12_000
"""Schedules of a backlog that is several times what is read ahead."""


async def overdue(store: SqlStore, host_id: UUID, count: int, priority: str = "medium") -> list[UUID]:
    """Schedules of a host, all due since a minute ago."""
    now = await store.now()
    definition = spec("x", HOURLY, priority=priority)
    model = row_of(create(definition, host_id=host_id, now=now - timedelta(hours=1), author=AUTHOR).schedule)
    rows = []
    for number in range(count):
        key = new_id()
        rows.append(
            {**model, "schedule_id": key, "slot": key.int % 1024, "schedule_name": f"{priority}-{number}"}
        )
    late = now - timedelta(minutes=1)
    values = [{**row, "next_fire_ts": late, "next_run_ts": late} for row in rows]
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.execute(
            store.database.dialect.insert(host_t)
            .values(host_id=host_id, host_name=str(host_id), created_ts=now)
            .on_conflict_do_nothing()
        )
        await connection.execute(insert(schedule_t), values)
    return [row["schedule_id"] for row in rows]


async def test_a_small_host_and_urgent_work_do_not_wait_for_a_large_backlog(
    database_url: str, store: SqlStore
) -> None:
    large, small = new_id(), new_id()
    await overdue(store, large, LARGE)
    # Due last, so that an order by time alone would serve them last.
    few = set(await overdue(store, small, 20))
    urgent = set(await overdue(store, large, 20, priority="high"))
    async with running(database_url, poll_seconds=0.05) as (_, recorder):
        await until(
            lambda: sum(len(each.fired) for each in seen(recorder, BatchFired)) == LARGE + 40, within_s=240
        )
    batches = seen(recorder, BatchFired)
    assert max(len(batch.fired) for batch in batches) <= 1000, "paced: bounded batches"
    order = [each.schedule_id for batch in batches for each in batch.fired]
    assert len(set(order)) == LARGE + 40
    last_of_few = max(order.index(each) for each in few)
    last_of_urgent = max(order.index(each) for each in urgent)
    assert last_of_few < LARGE * 2 / 3, "the small host waited for the large one's backlog"
    assert last_of_urgent < LARGE * 2 / 3, "urgent work waited for the backlog"


async def test_more_missed_times_than_a_catch_up_takes_are_no_dead_end(
    database_url: str, store: SqlStore
) -> None:
    policy = {"policy": "fire_all", "max_catchup": 100, "grace_seconds": 86400}
    schedule = await add(store, every_second("a", misfire=policy, overlap={"policy": "allow"}))
    first = await store.now() - timedelta(seconds=500)
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.execute(
            update(schedule_t).values(
                start_ts=first,
                effective_ts=first - timedelta(seconds=1),
                next_fire_ts=first,
                next_run_ts=first,
            )
        )
    async with running(database_url):

        async def caught_up() -> bool:
            found = await store.schedules.get(schedule.schedule_id)
            assert found.next_fire_ts is not None
            return found.next_fire_ts > await store.now()

        await until(caught_up)
    async with store.database.read(Pool.API) as connection:
        rows = (await connection.execute(select(execution_t).order_by(execution_t.c.fire_ts))).all()
    skipped = [row for row in rows if row.status == "skipped"]
    assert [row.reason for row in skipped] == ["misfire"]
    assert skipped[0].missed_count >= 395
    assert len(rows) - 1 >= 100
    assert sum(row.missed_count + 1 for row in rows) == (rows[-1].fire_ts - first).total_seconds() + 1
