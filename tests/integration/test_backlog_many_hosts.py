"""A backlog over very many hosts: everything is decided once, and the leader keeps its lease meanwhile."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import delete, func, insert, select, text, update

from foliot.db.dialect import Pool
from foliot.db.rows.schedule_rows import row_of
from foliot.db.tables.access import host_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.instance.store import SqlStore
from foliot.model.event import BatchFired, SchedulesLoaded
from foliot.model.ids import new_id
from foliot.model.instance_events import LeaderElected, LeaseLost
from foliot.model.policy import Priority
from foliot.planning.change import create
from foliot.scheduler.backlog import MAX_ROWS
from foliot.scheduler.loader import PAGE
from foliot.testing.app import Recorder
from tests.conftest import OpenStore
from tests.engine import AUTHOR, running, seen, spec, until

HOSTS = 1_000
PER_HOST = 20
TTL_S = 15.0
"""Longer than the default: other processes may keep the machine busy for seconds."""
MAX_TURN_S = 1.0
"""How much computing there may be between two turns of the event loop. A heartbeat takes several turns."""


class LoopTurns:
    """Measures the computing time between two turns of the event loop, whatever else the machine does."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._task = asyncio.create_task(self._measure())

    async def _measure(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.01)
            now = time.thread_time()
            self.longest_s, before = max(self.longest_s, now - before), now

    def stop(self) -> None:
        self._task.cancel()


@pytest.fixture
async def store(postgres_url: str, open_test_store: OpenStore) -> SqlStore:
    return await open_test_store(postgres_url)


async def fill(store: SqlStore, hosts: int = HOSTS, per_host: int = PER_HOST) -> set[UUID]:
    """Hourly schedules of many hosts in all priorities, due in an hour. Copied from one, in the database."""
    now = await store.now()
    first = new_id()
    template = spec("x", {"kind": "interval", "hours": 1})
    model = row_of(create(template, host_id=first, now=now, author=AUTHOR).schedule)
    own = {
        "schedule_id": "own.id",
        "host_id": "own.host_id",
        "schedule_name": "'n-' || number",
        "priority": f"(ARRAY{[each.value for each in Priority]})[1 + number % 3]",
        "slot": "('x' || right(id::text, 4))::bit(16)::int % 1024",
    }
    names = [column.name for column in schedule_t.columns]
    values = [own.get(name, f'model."{name}"') for name in names]
    copied = text(
        "INSERT INTO schedule_t ({}) SELECT {} FROM schedule_t AS model, (SELECT gen_random_uuid() AS id, "
        "host_t.host_id, number FROM host_t, generate_series(0, :per_host - 1) AS number "
        "WHERE host_name LIKE 'h-%') AS own".format(
            ", ".join(f'"{name}"' for name in names), ", ".join(values)
        )
    )
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        made = [{"host_id": first, "host_name": "model", "created_ts": now}]
        made += [{"host_id": new_id(), "host_name": f"h-{n}", "created_ts": now} for n in range(hosts)]
        await connection.execute(insert(host_t), made)
        await connection.execute(insert(schedule_t), [model])
        await connection.execute(copied, {"per_host": per_host})
        await connection.execute(delete(schedule_t).where(schedule_t.c.host_id == first))
        ids = set((await connection.execute(select(schedule_t.c.schedule_id))).scalars())
    assert len(ids) == hosts * per_host
    return ids


async def set_due(store: SqlStore, seconds: float) -> None:
    """Make every schedule due so many seconds from now; a negative number: since then."""
    due_ts = await store.now() + timedelta(seconds=seconds)
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.execute(update(schedule_t).values(next_fire_ts=due_ts, next_run_ts=due_ts))
    async with store.database.read(Pool.API) as connection:
        await connection.execute(text("VACUUM ANALYZE schedule_t"))


async def check_decided_once(store: SqlStore, ids: set[UUID]) -> None:
    async with store.database.read(Pool.API) as connection:
        counted = select(execution_t.c.schedule_id, func.count()).group_by(execution_t.c.schedule_id)
        rows = {row[0]: row[1] for row in await connection.execute(counted)}
    assert set(rows) == ids
    assert set(rows.values()) == {1}


def fired(recorder: Recorder) -> int:
    return sum(len(each.fired) + len(each.skipped) for each in seen(recorder, BatchFired))


async def overdue_since_an_hour(store: SqlStore) -> None:
    await set_due(store, -1800)


async def due_at_one_instant(store: SqlStore) -> None:
    await set_due(store, 8)


@pytest.mark.parametrize("make_due", [overdue_since_an_hour, due_at_one_instant])
async def test_tens_of_thousands_over_a_thousand_hosts_are_decided_under_one_lease(
    postgres_url: str, store: SqlStore, make_due: Callable[[SqlStore], Awaitable[None]]
) -> None:
    ids = await fill(store)
    await make_due(store)
    options = {"lease_ttl_seconds": TTL_S, "heartbeat_seconds": 1.0, "poll_seconds": 1.0}
    async with running(postgres_url, **options) as (_, recorder):
        turns = LoopTurns()
        await until(lambda: fired(recorder) > 0)
        assert fired(recorder) < len(ids) / 2, "the first fires long before the last is read"
        await until(lambda: fired(recorder) >= len(ids), within_s=240)
        turns.stop()
    assert turns.longest_s < MAX_TURN_S
    assert not seen(recorder, LeaseLost)
    assert len(seen(recorder, LeaderElected)) == 1
    await check_decided_once(store, ids)
    loaded = [each.count for each in seen(recorder, SchedulesLoaded)]
    assert max(loaded) <= max(MAX_ROWS, PAGE), "every step reads a bounded number of rows"
    assert sum(loaded) <= 1.1 * len(ids), "what is queued or in flight is not read again"


async def test_a_backlog_is_served_in_turn_between_hosts_and_urgent_first(
    postgres_url: str, store: SqlStore
) -> None:
    ids = await fill(store, hosts=300, per_host=30)
    await set_due(store, -1800)
    async with store.database.read(Pool.API) as connection:
        rows = (await connection.execute(select(schedule_t.c.schedule_id, schedule_t.c.host_id))).all()
    host_of = {row[0]: row[1] for row in rows}
    async with running(postgres_url, lease_ttl_seconds=TTL_S) as (_, recorder):
        await until(lambda: fired(recorder) >= len(ids), within_s=60)
    order = [each.schedule_id for batch in seen(recorder, BatchFired) for each in batch.fired]
    assert len(order) == len(set(order)) == len(ids)
    reached = {host_of[each] for each in order[: len(order) // 3]}
    assert len(reached) == 300, "a third of the way every host has had its turn"
