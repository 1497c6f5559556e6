"""The number of statements does not depend on how many schedules or executions they are for."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.rows.due_rows import LoadRange
from foliot.db.rows.schedule_rows import row_of
from foliot.db.tables.executions import queue_t
from foliot.db.tables.schedules import schedule_t, schedule_version_t
from foliot.instance.store import SqlStore
from foliot.model.attempt import Claim, Settled, Settlement
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.lease import Lease, Shard
from foliot.model.policy import Priority
from foliot.planning.change import create
from foliot.planning.definition import compile_definition
from foliot.planning.fire import Due, Firing, plan_firing
from tests.conformance.suites.scene import SOMEBODY, spec_of

WHOLE = Shard(0, 1)
QUEUES = [(DEFAULT_HOST_ID, "default")]
FEW, MANY = 10, 1000
_INTERVAL = timedelta(minutes=1)
_AGE = timedelta(seconds=90)


@contextmanager
def counted(store: SqlStore, pool: Pool) -> Iterator[list[str]]:
    """The statements that are issued inside the block."""
    issued: list[str] = []
    engine = store.database.engine(pool).sync_engine

    def listener(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        # What opens a transaction is not counted: SQLite's BEGIN, the limits that PostgreSQL is told.
        if not statement.startswith(("BEGIN", "SELECT set_config")):
            issued.append(statement)

    event.listen(engine, "before_cursor_execute", listener)
    try:
        yield issued
    finally:
        event.remove(engine, "before_cursor_execute", listener)


async def add_due(store: SqlStore, count: int, **fields: Any) -> None:
    """So many schedules with one time due each, in one statement."""
    now = await store.now()
    schedules = [
        create(
            spec_of(f"{new_id()}", **fields),
            host_id=DEFAULT_HOST_ID,
            now=now.replace(microsecond=0) - _AGE,
            author=SOMEBODY,
        ).schedule
        for _ in range(count)
    ]

    async def work(connection: AsyncConnection) -> None:
        await connection.execute(insert(schedule_t), [row_of(each) for each in schedules])
        await connection.execute(
            insert(schedule_version_t),
            [
                {
                    "schedule_id": each.schedule_id,
                    "aggregate_version": 1,
                    "host_id": DEFAULT_HOST_ID,
                    "change": "created",
                    "document": each.spec.model_dump(mode="json"),
                    "paused": False,
                    "effective_ts": now,
                    "created_ts": now,
                }
                for each in schedules
            ],
        )
        known = store.database.dialect.insert(queue_t).values(host_id=DEFAULT_HOST_ID, queue="default")
        await connection.execute(known.on_conflict_do_nothing())

    await store.database.write(Pool.API, work)


async def lead(store: SqlStore) -> Lease:
    lease = (await store.leases.take(WHOLE, "one", -1)).lease
    assert lease is not None
    return lease


def planned(due: Due, now: datetime) -> Firing:
    return plan_firing(due, compile_definition(due.definition, due.schedule_id), now)


async def fire(store: SqlStore, count: int, **fields: Any) -> list[str]:
    """Fire so many schedules; the statements it took."""
    await add_due(store, count, **fields)
    lease = await lead(store)
    now = await store.now()
    loaded = await store.firing.load(WHOLE, until=now, after=None, limit=count)
    firings = [planned(due, now) for due in loaded]
    with counted(store, Pool.FIRING) as issued:
        fired = await store.firing.fire(lease, firings, now=now)
    assert len(fired.fired) + len(fired.skipped) == count
    return issued


async def claim(store: SqlStore, count: int) -> tuple[list[Claim], list[str]]:
    with counted(store, Pool.WORK) as issued:
        claims = await store.work.claim("worker", QUEUES, limit=count, lease_s=60)
    assert len(claims) == count
    return claims, issued


async def test_loading_is_one_statement(store: SqlStore) -> None:
    await add_due(store, FEW)
    now = await store.now()
    ranges = [LoadRange(new_id(), priority, now) for _ in range(MANY) for priority in Priority]
    with counted(store, Pool.FIRING) as issued:
        await store.firing.load(WHOLE, until=now, after=None, limit=100)
        await store.firing.load_ranges(WHOLE, ranges, until=now, per_range=5, excluding=[new_id()])
        await store.firing.load_hosts(after=None, limit=100)
        await store.firing.load_some(WHOLE, [new_id() for _ in range(MANY)])
    assert len(issued) == 4


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"overlap": {"policy": "allow"}},
        {"overlap": {"policy": "queue"}, "max_runs": 5},
        {"misfire": {"policy": "skip"}},
    ],
    ids=["overlap skip", "overlap allow", "overlap queue", "skipped"],
)
async def test_firing_takes_as_many_statements_for_a_thousand_schedules_as_for_ten(
    store: SqlStore, fields: dict[str, Any]
) -> None:
    few = await fire(store, FEW, **fields)
    many = await fire(store, MANY, **fields)
    assert len(many) == len(few)
    assert len(many) <= 5


async def test_naming_what_was_fired_takes_no_statement_more(store: SqlStore) -> None:
    without = await fire(store, MANY)
    store.firing.names_all = True
    assert len(await fire(store, MANY)) == len(without)


async def test_firing_that_overlap_holds_back_takes_as_many_statements_too(store: SqlStore) -> None:
    counts = []
    for count in (FEW, 200):
        ids = await _with_open_executions(store, count)
        lease = await lead(store)
        now = await store.now()
        loaded = await store.firing.load_some(WHOLE, ids)
        firings = [
            plan_firing(due, compile_definition(due.definition, due.schedule_id), now) for due in loaded
        ]
        with counted(store, Pool.FIRING) as issued:
            fired = await store.firing.fire(lease, firings, now=now)
        assert len(fired.skipped) == count
        counts.append(len(issued))
    assert counts[0] == counts[1]


async def _with_open_executions(store: SqlStore, count: int) -> list[UUID]:
    await fire(store, count)
    claims, _ = await claim(store, count)
    ids = [each.schedule_id for each in claims]
    now = await store.now()

    async def set_back(connection: AsyncConnection) -> None:
        # Right after the time that has fired: that one is decided.
        due_ts = now.replace(microsecond=1) - _AGE + _INTERVAL
        await connection.execute(
            schedule_t.update()
            .where(schedule_t.c.schedule_id.in_(ids))
            .values(next_fire_ts=due_ts, next_run_ts=due_ts)
        )

    await store.database.write(Pool.API, set_back)
    return ids


async def test_claiming_renewing_and_settling_take_as_many_statements_for_a_thousand_as_for_ten(
    store: SqlStore,
) -> None:
    counts = []
    for count in (FEW, MANY):
        await fire(store, count)
        claims, claiming = await claim(store, count)
        with counted(store, Pool.WORK) as renewing:
            await store.work.renew("worker", claims, 60)
        settlements = [
            Settlement(each, Status.SUCCESS, Status.SUCCESS)
            if number % 2
            else Settlement(each, Status.FAILED, Status.RETRYING, retry_in_s=3600)
            for number, each in enumerate(claims)
        ]
        with counted(store, Pool.WORK) as settling:
            assert await store.work.settle("worker", settlements) == Settled()
        assert len(renewing) == 1
        counts.append((len(claiming), len(settling)))
    assert counts[0] == counts[1]
    assert counts[0][0] == 1
    assert counts[0][1] <= 3


async def test_rescuing_takes_as_many_statements_for_many_as_for_few(store: SqlStore) -> None:
    counts = []
    for count in (FEW, 300):
        await fire(store, count)
        claims, _ = await claim(store, count)
        await store.work.renew("worker", claims, -1)
        lease = await lead(store)
        with counted(store, Pool.FIRING) as issued:
            assert len(await store.upkeep.rescue(lease, limit=MANY)) == count
        counts.append(len(issued))
    assert counts[0] == counts[1]
