"""Commands on what a real scheduler and a real worker do: cancel, retry, backfill."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.hints import Hint
from foliot.db.rows.cancellation import request_cancel
from foliot.db.rows.row_locks import lock_executions
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.executions import execution_t
from foliot.instance.spec import InstanceRole
from foliot.instance.store import SqlStore
from foliot.model.attempt import Claim, Settled, Settlement
from foliot.model.backfill import BackfillState
from foliot.model.event import ExecutionsRescued
from foliot.model.execution import Execution, Status, TriggeredBy
from foliot.model.lease import Lease, Shard
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.backfill import BackfillStep, plan_backfill
from foliot.planning.change import Author
from foliot.planning.definition import compile_spec
from tests.conftest import OpenStore
from tests.engine import SCHEDULER, add, registry, running, seen, spec, until

BOTH = frozenset({InstanceRole.SCHEDULER, InstanceRole.WORKER})
HOURLY = {"kind": "cron", "expression": "0 * * * *"}
FREELY = {"policy": "allow"}
HOUR = timedelta(hours=1)


def hourly(name: str = "each", **fields: object) -> ScheduleSpec:
    return spec(name, HOURLY, **fields)


async def trigger(store: SqlStore, schedule: Schedule) -> UUID:
    return await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author("ann"))


async def last_hours(store: SqlStore, count: int) -> tuple[datetime, datetime]:
    to_ts = (await store.now()).replace(minute=0, second=0, microsecond=0)
    return to_ts - count * HOUR, to_ts


def stands(store: SqlStore, execution_id: UUID, status: Status) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return (await store.executions.get(execution_id)).status is status

    return look


async def filled_in(store: SqlStore, schedule: Schedule) -> list[Execution]:
    rows = await store.schedules.executions(schedule.schedule_id, limit=10_000)
    return [row for row in rows if row.triggered_by is TriggeredBy.BACKFILL][::-1]


# --- cancel and retry --------------------------------------------------------------------------------


async def test_a_cancelled_run_is_stopped_within_a_second_and_can_be_tried_again(
    store: SqlStore, database_url: str
) -> None:
    started, stopped, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def patient() -> str:
        started.set()
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            stopped.set()
            raise
        return "well"

    schedule = await add(store, hourly(target={"kind": "function", "name": "patient"}))
    options = {"roles": BOTH, "tasks": registry(patient), "worker_lease_seconds": 30}
    async with running(database_url, **options) as (instance, _):
        execution_id = await trigger(store, schedule)
        instance.hints.send(Hint.READY)
        await asyncio.wait_for(started.wait(), 30)
        row, ended = await store.executions.cancel(execution_id, author=Author("ann", "enough"))
        assert (row.status, ended) == (Status.RUNNING, [])
        # A renewal alone would come after ten seconds: it is the hint that makes it quick.
        instance.hints.send(Hint.CANCEL, (execution_id,))
        await asyncio.wait_for(stopped.wait(), 5)
        await until(stands(store, execution_id, Status.CANCELLED), within_s=5)
        may_end.set()
        await store.executions.retry(execution_id, author=Author("ann"))
        instance.hints.send(Hint.READY)
        await until(stands(store, execution_id, Status.SUCCESS))
    attempts = await store.executions.attempts(execution_id)
    assert [(each.attempt, each.status) for each in attempts] == [
        (1, Status.CANCELLED),
        (2, Status.SUCCESS),
    ]


async def test_what_rescue_ends_lets_held_work_go_on(store: SqlStore, database_url: str) -> None:
    schedule = await add(store, hourly(overlap={"policy": "queue"}, retry={"max_attempts": 1}))
    lost, held = [await trigger(store, schedule) for _ in range(2)]
    await store.work.claim("gone", await store.work.queues(None), limit=1, lease_s=-1)
    async with running(database_url, roles=BOTH) as (_, recorder):
        await until(stands(store, held, Status.SUCCESS))
        [rescued] = seen(recorder, ExecutionsRescued)
        assert dict(rescued.rescued) == {lost: Status.FAILED}


# --- backfill ----------------------------------------------------------------------------------------


async def test_a_backfill_is_carried_out_and_worked_off(store: SqlStore, database_url: str) -> None:
    schedule = await add(store, hourly(overlap={"policy": "queue", "max_instances": 3}))
    from_ts, to_ts = await last_hours(store, 25)
    backfill = await store.backfills.create(schedule.schedule_id, from_ts, to_ts, author=Author("ann"))

    async def is_worked_off() -> bool:
        told = await store.backfills.get(backfill.backfill_id)
        return told.state is BackfillState.DONE and told.ended_count == 25

    async with running(database_url, roles=BOTH):
        await until(is_worked_off)
    rows = await filled_in(store, schedule)
    assert [row.fire_ts for row in rows] == [from_ts + number * HOUR for number in range(25)]
    assert {(row.status, row.attempt) for row in rows} == {(Status.SUCCESS, 1)}


async def test_backfills_take_turns_and_never_flood_the_queue(store: SqlStore, database_url: str) -> None:
    from_ts, to_ts = await last_hours(store, 500)
    schedules = [await add(store, hourly(f"number-{number}", overlap=FREELY)) for number in range(3)]
    for schedule in schedules:
        await store.backfills.create(schedule.schedule_id, from_ts, to_ts, author=Author("ann"))

    async def are_all_full() -> bool:
        counts = [len(await filled_in(store, schedule)) for schedule in schedules]
        assert max(counts) <= 200
        assert max(counts) - min(counts) <= 100, "none waits for another to be through"
        return min(counts) == 200

    async with running(database_url, roles=SCHEDULER):
        await until(are_all_full)


async def test_a_backfill_goes_on_exactly_where_a_killed_leader_left_it(
    store: SqlStore, database_url: str
) -> None:
    """Killed in the transaction: its connection breaks after the rows, before the COMMIT."""
    schedule = await add(store, hourly(overlap=FREELY))
    from_ts, to_ts = await last_hours(store, 30)
    backfill = await store.backfills.create(schedule.schedule_id, from_ts, to_ts, author=Author("ann"))
    standing = await store.leases.take(Shard(0, 1), "doomed", -1)
    assert standing.lease is not None
    for limit in (7, 5):
        await _step(store, standing.lease, backfill.backfill_id, limit)
    with pytest.raises(_KilledError):
        await _step_and_die(store, standing.lease, backfill.backfill_id)
    told = await store.backfills.get(backfill.backfill_id)
    assert (told.created_count, told.position_ts) == (12, from_ts + 11 * HOUR + timedelta(microseconds=1))
    await _expire(store)

    async def is_done() -> bool:
        return (await store.backfills.get(backfill.backfill_id)).state is BackfillState.DONE

    async with running(database_url, roles=SCHEDULER):
        await until(is_done)
    rows = await filled_in(store, schedule)
    assert [row.fire_ts for row in rows] == [from_ts + number * HOUR for number in range(30)]
    assert (await store.backfills.get(backfill.backfill_id)).created_count == 30


class _KilledError(Exception):
    """Ends a transaction as the death of its process would."""


def _plan(schedule: Schedule, position_ts: datetime, to_ts: datetime, limit: int) -> BackfillStep:
    cadence = compile_spec(schedule.spec, schedule.schedule_id, schedule.effective_ts)
    return plan_backfill(schedule, cadence, position_ts, to_ts, limit=limit)


async def _step(store: SqlStore, lease: Lease, backfill_id: UUID, limit: int) -> None:
    await store.backfills.step(lease, backfill_id, _plan, limit=limit, max_open=200)


async def _step_and_die(store: SqlStore, lease: Lease, backfill_id: UUID) -> None:
    database = store.database
    write = database.write

    async def dying(pool: Pool, work: Callable[[AsyncConnection], Awaitable[object]]) -> object:
        async def and_die(connection: AsyncConnection) -> object:
            await work(connection)
            raise _KilledError

        return await write(pool, and_die)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "write", dying)
        await _step(store, lease, backfill_id, 9)


async def _expire(store: SqlStore) -> None:
    """The doomed leader's last heartbeat was long ago."""

    async def work(connection: AsyncConnection) -> None:
        long_ago = await store.now() - timedelta(hours=1)
        await connection.execute(update(scheduler_lock_t).values(last_heartbeat=long_ago))

    await store.database.write(Pool.API, work)


# --- locks -------------------------------------------------------------------------------------------


async def _claims(store: SqlStore, schedule: Schedule, count: int) -> list[Claim]:
    for _ in range(count):
        await trigger(store, schedule)
    return await store.work.claim("worker", await store.work.queues(None), limit=count, lease_s=60)


async def test_a_cancel_of_many_takes_them_in_the_order_of_their_ids(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    """Whoever holds the first of them keeps the cancel from all others, so no circle can close."""
    store = await open_test_store(postgres_url)
    schedule = await add(store, hourly(overlap=FREELY))
    claims = sorted(await _claims(store, schedule, 20), key=lambda claim: claim.execution_id)
    ids = [claim.execution_id for claim in claims]
    # Renewed, so that the first by id is the last in the table: the order must not be that of the table.
    await store.work.renew("worker", claims[:1], 60)
    dialect = store.database.dialect

    async def cancel_all() -> None:
        async def work(connection: AsyncConnection) -> None:
            await request_cancel(connection, dialect, [schedule.schedule_id], reason="replaced")

        await store.database.write(Pool.API, work)

    async with dialect.begin(store.database.engine(Pool.WORK)) as connection:
        await lock_executions(connection, dialect, execution_t.c.execution_id == ids[0])
        cancelling = asyncio.create_task(cancel_all())
        await until(lambda: _is_anyone_waiting(store))
        # Had it begun elsewhere, it would hold some of these, and each of us would wait for the other.
        async with asyncio.timeout(0.5):
            await lock_executions(connection, dialect, execution_t.c.execution_id.in_(ids[1:]))
    await cancelling
    rows = [await store.executions.get(each) for each in ids]
    assert all(row.cancel_requested for row in rows)


async def test_the_end_of_a_delay_locks_its_schedule_before_its_execution(
    postgres_url: str, open_test_store: OpenStore
) -> None:
    """As firing does, which locks the schedule and then may cancel what runs."""
    store = await open_test_store(postgres_url)
    schedule = await add(store, spec("each", {"kind": "delay", "seconds": 3600}))
    [claim] = await _claims(store, schedule, 1)
    dialect = store.database.dialect
    async with dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.exec_driver_sql("SELECT 1 FROM schedule_t FOR UPDATE")
        settlement = Settlement(claim, Status.SUCCESS, Status.SUCCESS, is_delay=True)
        settling = asyncio.create_task(store.work.settle("worker", [settlement]))
        await until(lambda: _is_anyone_waiting(store))
        async with asyncio.timeout(0.5):
            await request_cancel(connection, dialect, [schedule.schedule_id], reason="replaced")
    assert await settling == Settled()


async def _is_anyone_waiting(store: SqlStore) -> bool:
    async with store.database.read(Pool.LEASE) as connection:
        waiting = await connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(waiting.scalar_one())
