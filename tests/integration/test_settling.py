"""What has ended is written down, whatever else goes wrong meanwhile, and by nobody twice."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.hints import Hint, LocalHints
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_version_t
from foliot.instance.store import SqlStore
from foliot.model.attempt import Claim, Settled, Settlement
from foliot.model.errors import DatabaseUnreachableError
from foliot.model.event import ExecutionsSettled, Observer
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule
from foliot.planning.change import Author
from foliot.testing.app import Recorder
from foliot.timing.clock import SystemClock
from foliot.worker.attempt import Handover
from foliot.worker.journal import Journal
from foliot.worker.journal_sql import Note
from foliot.worker.settler import Settler
from tests.engine import WORKER, add, make_instance, registry, running, seen, spec, until

LATER = {"kind": "interval", "seconds": 3600}
QUEUES = [(DEFAULT_HOST_ID, "default")]


async def trigger(store: SqlStore, schedule: Schedule) -> UUID:
    return await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())


async def claim_all(store: SqlStore) -> dict[UUID, Claim]:
    claims = await store.work.claim("worker", QUEUES, limit=10, lease_s=60)
    return {claim.execution_id: claim for claim in claims}


def settler(
    store: SqlStore, work: Any = None, notes: Any = None, observer: Observer | None = None
) -> Settler:
    journal = Journal("worker", notes or store.notes)
    observer = Recorder() if observer is None else observer
    return Settler("worker", work or store.work, LocalHints(), observer, journal, SystemClock())


async def status_of(store: SqlStore, execution_id: UUID) -> Status:
    return (await store.executions.get(execution_id)).status


async def test_an_answer_that_can_not_be_stored_does_not_hold_up_what_others_ended(store: SqlStore) -> None:
    odd = await trigger(store, await add(store, spec("odd", LATER)))
    plain = await trigger(store, await add(store, spec("plain", LATER)))
    claims = await claim_all(store)
    settling = settler(store)
    settling.accept(Handover(claims[odd], "job\0 7", 300.0))
    settling.settle(Settlement(claims[plain], Status.SUCCESS, Status.SUCCESS))
    await settling.write()
    assert await status_of(store, plain) is Status.SUCCESS
    assert (await store.executions.get(odd)).is_remote


async def test_a_cancel_that_meets_the_agents_202_is_not_lost(store: SqlStore) -> None:
    execution_id = await trigger(store, await add(store, spec("agent", LATER)))
    [claim] = (await claim_all(store)).values()
    await store.executions.cancel(execution_id, author=Author("ann"))
    accepted = await store.work.accept("worker", claim, lease_s=300, external_id=None)
    assert (accepted.is_open, [each.execution_id for each in accepted.cancelled]) == (False, [execution_id])
    assert await status_of(store, execution_id) is Status.CANCELLED


@pytest.mark.parametrize("status", [Status.RETRYING, Status.PENDING])
async def test_what_was_to_go_on_and_was_cancelled_meanwhile_is_told_as_it_was_written(
    store: SqlStore, status: Status
) -> None:
    stopped = await trigger(store, await add(store, spec("stopped", LATER)))
    goes_on = await trigger(store, await add(store, spec("goes-on", LATER)))
    claims = await claim_all(store)
    await store.executions.cancel(stopped, author=Author("ann"))
    recorder = Recorder()
    settling = settler(store, observer=recorder)
    ended = Status.FAILED if status is Status.RETRYING else Status.PENDING
    for execution_id in (stopped, goes_on):
        settling.settle(Settlement(claims[execution_id], ended, status))
    await settling.write()
    [told] = seen(recorder, ExecutionsSettled)
    statuses = {each.execution_id: each.status for each in told.settled}
    assert statuses == {stopped: Status.CANCELLED, goes_on: status}
    assert statuses == {each: await status_of(store, each) for each in (stopped, goes_on)}


async def test_what_was_said_is_written_before_the_end_also_while_the_journal_writes(store: SqlStore) -> None:
    execution_id = await trigger(store, await add(store, spec("talks", LATER)))
    [claim] = (await claim_all(store)).values()
    is_writing, go_on = asyncio.Event(), asyncio.Event()

    class Slow:
        async def write(self, worker_id: str, notes: Sequence[Note]) -> None:
            is_writing.set()
            await go_on.wait()
            await store.notes.write(worker_id, notes)

    settling = settler(store, notes=Slow())
    settling._journal.open(claim).report(1.0, "done")
    journal = asyncio.create_task(settling._journal.step())
    await is_writing.wait()
    settling.settle(Settlement(claim, Status.SUCCESS, Status.SUCCESS))
    writing = asyncio.create_task(settling.write())
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(journal, writing)
    row = await store.executions.get(execution_id)
    assert (row.status, row.progress) == (Status.SUCCESS, {"fraction": 1.0, "text": "done"})


async def test_a_passing_error_costs_no_result(store: SqlStore) -> None:
    execution_id = await trigger(store, await add(store, spec("precious", LATER)))
    [claim] = (await claim_all(store)).values()

    class FailsOnce:
        has_failed = False

        async def settle(self, worker_id: str, batch: Sequence[Settlement]) -> Settled:
            if not self.has_failed:
                self.has_failed = True
                raise DBAPIError("UPDATE", None, Exception("out of something"))
            return await store.work.settle(worker_id, batch)

    settling = settler(store, FailsOnce())
    settling.settle(Settlement(claim, Status.SUCCESS, Status.SUCCESS, result='{"rows": 7}'))
    with pytest.raises(DBAPIError):
        await settling.write()
    await settling.write()
    row = await store.executions.get(execution_id)
    assert (row.status, row.result) == (Status.SUCCESS, {"rows": 7})


async def test_a_worker_that_stops_while_the_database_is_away_for_a_moment_loses_nothing(
    store: SqlStore, database_url: str
) -> None:
    started, may_end = asyncio.Event(), asyncio.Event()

    async def precious() -> str:
        started.set()
        await may_end.wait()
        return "kept"

    target = {"kind": "function", "name": "precious"}
    schedule = await add(store, spec("precious", LATER, target=target, delivery="at_most_once"))
    worker, _ = make_instance(database_url, roles=WORKER, tasks=registry(precious), stop_grace_seconds=10)
    await worker.start()
    assert worker.worker is not None
    execution_id = await trigger(store, schedule)
    await started.wait()
    real = worker.worker.settler._store
    tries = 0

    class Away:
        async def settle(self, worker_id: str, batch: Sequence[Settlement]) -> Settled:
            nonlocal tries
            tries += 1
            if tries < 4:
                raise DatabaseUnreachableError("away")
            return await real.settle(worker_id, batch)

    worker.worker.settler._store = Away()  # type: ignore[assignment]
    may_end.set()
    await worker.stop()
    row = await store.executions.get(execution_id)
    assert (row.status, row.result) == (Status.SUCCESS, "kept")


async def test_a_version_that_this_worker_can_not_read_harms_no_other_execution(
    store: SqlStore, database_url: str
) -> None:
    async def noop() -> None:
        """Do nothing."""

    odd, plain = await add(store, spec("odd", LATER)), await add(store, spec("plain", LATER))
    newer = await add(store, spec("newer", LATER))

    async def spoil(connection: AsyncConnection) -> None:
        table = schedule_version_t
        known = select(table.c.document).where(table.c.schedule_id == newer.schedule_id)
        document = (await connection.execute(known)).scalar_one()
        for schedule, written in (
            (odd, {"of": "another world"}),
            (newer, {**document, "field_of_the_next_release": 1}),
        ):
            await connection.execute(
                update(table).where(table.c.schedule_id == schedule.schedule_id).values(document=written)
            )

    await store.database.write(Pool.API, spoil)
    unread, read, ahead = [await trigger(store, each) for each in (odd, plain, newer)]
    async with running(database_url, roles=WORKER, tasks=registry(noop)):

        async def are_done() -> bool:
            return {await status_of(store, read), await status_of(store, ahead)} == {Status.SUCCESS}

        await until(are_done)

        async def is_left() -> bool:
            row = await store.executions.get(unread)
            return row.status is Status.PENDING and "can't be read" in (row.error or "")

        await until(is_left)


async def test_a_worker_that_claims_its_own_lost_work_again_keeps_track_of_both(
    store: SqlStore, database_url: str
) -> None:
    begun: list[asyncio.Event] = [asyncio.Event(), asyncio.Event()]
    may_leave = asyncio.Event()
    count = 0

    async def slow() -> None:
        nonlocal count
        number, count = count, count + 1
        begun[number].set()
        try:
            await asyncio.Event().wait()
        finally:
            if number == 0:
                await may_leave.wait()

    target = {"kind": "function", "name": "slow"}
    schedule = await add(store, spec("slow", LATER, target=target))
    async with running(database_url, roles=WORKER, tasks=registry(slow), worker_lease_seconds=6) as (
        worker,
        _,
    ):
        assert worker.worker is not None
        execution_id = await trigger(store, schedule)
        await begun[0].wait()
        first = worker.worker.running[execution_id]

        async def rescue(connection: AsyncConnection) -> None:
            await connection.execute(
                update(execution_t).values(
                    status="retrying", lease_until=None, due_by_ts=execution_t.c.ready_ts
                )
            )

        await store.database.write(Pool.API, rescue)
        worker.hints.send(Hint.READY)
        await begun[1].wait()
        second = worker.worker.running[execution_id]
        assert second is not first
        may_leave.set()
        assert first.task is not None
        await asyncio.wait({first.task})
        await asyncio.sleep(0)
        assert worker.worker.running[execution_id] is second
        await store.executions.cancel(execution_id, author=Author("ann"))
        worker.hints.send(Hint.CANCEL)

        async def is_cancelled() -> bool:
            return await status_of(store, execution_id) is Status.CANCELLED

        await until(is_cancelled)
