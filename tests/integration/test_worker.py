"""What a worker does with the executions it claims."""

import asyncio
import sys
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from foliot.instance.store import SqlStore
from foliot.model.event import ExecutionsClaimed
from foliot.model.execution import Status, TriggeredBy
from foliot.model.schedule import Schedule
from foliot.planning.change import Author
from foliot.worker.renewer import Renewer
from tests.engine import WORKER, add, every_second, make_instance, noop, registry, running, seen, spec, until

SOON = {"kind": "interval", "seconds": 1}
YEARLY = {"kind": "interval", "days": 365}
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For what happens before the result is written: writing each kind of row is tested on both databases."""
HURRIED = {"initial_delay_seconds": 0.05, "max_delay_seconds": 0.1}


async def result_of(store: SqlStore, url: str, function: Any, **fields: Any) -> Any:
    """Run a function once by a worker, and give the row of the ledger it ends as."""
    target = {"kind": "function", "name": function.__name__, "args": fields.pop("args", {})}
    schedule = await add(store, spec("one", YEARLY, target=target, **fields))
    wanted = await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())
    async with running(url, roles=WORKER, tasks=registry(function)):

        async def is_final() -> bool:
            return (await store.executions.get(wanted)).ended_ts is not None

        await until(is_final)
    return await store.executions.get(wanted)


async def test_an_async_function_runs_with_its_arguments(store: SqlStore, database_url: str) -> None:
    async def add_up(left: int, right: int = 2) -> dict[str, int]:
        return {"sum": left + right}

    target = {"kind": "function", "name": "add_up", "args": {"left": 40}}
    schedule = await add(store, spec("one", SOON, max_runs=1, target=target))
    async with running(database_url), running(database_url, roles=WORKER, tasks=registry(add_up)):

        async def is_final() -> bool:
            rows = await store.schedules.executions(schedule.schedule_id)
            return bool(rows) and rows[0].ended_ts is not None

        await until(is_final)
    (row,) = await store.schedules.executions(schedule.schedule_id)
    assert (row.status, row.result, row.attempt) == (Status.SUCCESS, {"sum": 42}, 1)
    assert row.duration_seconds is not None


@ON_SQLITE
async def test_a_plain_function_runs_beside_the_event_loop(store: SqlStore, database_url: str) -> None:
    def plain() -> str:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return "no loop here"
        return "on the loop"

    row = await result_of(store, database_url, plain)
    assert row.result == "no loop here"


async def test_a_failure_is_tried_again_and_then_final(store: SqlStore, database_url: str) -> None:
    async def broken() -> None:
        raise ValueError("no\0good")

    row = await result_of(store, database_url, broken, retry={"max_attempts": 3, **HURRIED})
    assert (row.status, row.attempt) == (Status.FAILED, 3)
    assert row.error == "ValueError: no\ufffdgood"
    assert "raise ValueError" in row.traceback


@ON_SQLITE
async def test_work_that_takes_too_long_is_stopped(store: SqlStore, database_url: str) -> None:
    stopped = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    row = await result_of(
        store, database_url, endless, timeout_seconds=0.2, retry={"max_attempts": 1, **HURRIED}
    )
    assert row.status is Status.TIMEOUT
    assert stopped.is_set()


@ON_SQLITE
async def test_work_that_cancels_itself_has_failed(store: SqlStore, database_url: str) -> None:
    async def gives_up() -> None:
        raise asyncio.CancelledError

    row = await result_of(store, database_url, gives_up, retry={"max_attempts": 1, **HURRIED})
    assert row.status is Status.FAILED
    assert "cancelled itself" in row.error


async def test_words_that_no_database_can_hold_do_not_stop_the_worker(
    store: SqlStore, database_url: str
) -> None:
    async def broken() -> None:
        raise ValueError("caf\udce9.txt")

    row = await result_of(store, database_url, broken, retry={"max_attempts": 1, **HURRIED})
    assert (row.status, row.error) == (Status.FAILED, "ValueError: caf?.txt")


async def test_a_result_that_json_can_not_hold_is_kept_as_words(store: SqlStore, database_url: str) -> None:
    async def odd() -> object:
        return {"bytes": b"\xff", "name": "caf\udce9"}

    row = await result_of(store, database_url, odd)
    assert row.status is Status.SUCCESS
    assert "caf" in str(row.result)


@ON_SQLITE
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_task_that_exits_has_failed_and_the_worker_stays(
    store: SqlStore, database_url: str, is_async: bool
) -> None:
    async def leaves() -> None:
        sys.exit(3)

    def leaves_plainly() -> None:
        sys.exit(3)

    function = leaves if is_async else leaves_plainly
    row = await result_of(store, database_url, function, retry={"max_attempts": 1, **HURRIED})
    assert (row.status, row.error) == (Status.FAILED, "SystemExit: 3")
    assert first_frame(row.traceback) == function.__name__


def first_frame(text: str) -> str:
    """The function in the first line of a traceback."""
    return next(line for line in text.splitlines() if line.startswith('  File "')).rpartition(" ")[2]


@ON_SQLITE
@pytest.mark.parametrize("is_async", [True, False])
async def test_a_failure_is_kept_with_its_type_and_its_traceback_begins_with_the_task(
    store: SqlStore, database_url: str, is_async: bool
) -> None:
    def looks_up() -> None:
        try:
            {"a": 1}["b"]
        except KeyError as error:
            raise IndexError(3) from error

    async def looks_up_later() -> None:
        looks_up()

    function = looks_up_later if is_async else looks_up
    row = await result_of(store, database_url, function, retry={"max_attempts": 1, **HURRIED})
    assert (row.status, row.error) == (Status.FAILED, "IndexError: 3")
    assert "KeyError: 'b'" in row.traceback
    direct = row.traceback.partition("direct cause")[2]
    assert (first_frame(row.traceback), first_frame(direct)) == ("looks_up", function.__name__)
    assert "foliot/" not in row.traceback


async def test_what_a_worker_handed_back_it_does_not_take_from_those_who_can_do_it(
    store: SqlStore, database_url: str
) -> None:
    schedule = await add(store, every_second("a", max_runs=1))  # of the task `noop`

    async def other() -> None: ...

    async with running(database_url), running(database_url, roles=WORKER, tasks=registry(other)) as (_, told):
        await until(lambda: bool(seen(told, ExecutionsClaimed)))
        async with running(database_url, roles=WORKER, tasks=registry(noop)):

            async def is_done() -> bool:
                (row,) = await store.schedules.executions(schedule.schedule_id)
                return row.status is Status.SUCCESS

            await until(is_done)
        assert len(seen(told, ExecutionsClaimed)) == 1


async def test_an_execution_that_a_worker_does_not_know_is_left_to_others(
    store: SqlStore, database_url: str
) -> None:
    schedule = await add(store, every_second("a", max_runs=1))  # of the task `noop`

    async def other() -> None: ...

    async with running(database_url), running(database_url, roles=WORKER, tasks=registry(other)):

        async def is_refused() -> bool:
            rows = await store.schedules.executions(schedule.schedule_id)
            return bool(rows) and rows[0].error is not None

        await until(is_refused)
        (row,) = await store.schedules.executions(schedule.schedule_id)
        assert row.status is Status.PENDING
        assert 'no task function "noop"' in (row.error or "")
        async with running(database_url, roles=WORKER, tasks=registry(noop)):

            async def is_done() -> bool:
                (row,) = await store.schedules.executions(schedule.schedule_id)
                return row.status is Status.SUCCESS

            await until(is_done)


async def test_of_a_task_that_a_worker_does_not_know_it_claims_one_execution_and_no_more(
    store: SqlStore, database_url: str
) -> None:
    unknown = await add(store, spec("a", YEARLY, overlap={"policy": "allow"}))  # of the task `noop`

    async def other() -> None: ...

    target = {"kind": "function", "name": "other"}
    known = await add(store, spec("b", YEARLY, target=target, overlap={"policy": "allow"}))

    async def run(schedule: Schedule) -> UUID:
        return await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())

    async def ended(execution_id: UUID) -> bool:
        return (await store.executions.get(execution_id)).status is Status.SUCCESS

    first = await run(unknown)
    async with running(database_url, roles=WORKER, tasks=registry(other)) as (_, told):

        async def is_handed_back() -> bool:
            row = await store.executions.get(first)
            return row.status is Status.PENDING and row.error is not None

        await until(is_handed_back)
        for _ in range(3):
            # Each round shows that the worker has claimed since: it runs what it knows, and nothing else.
            later, wanted = await run(unknown), await run(known)
            await until(partial(ended, wanted))
            row = await store.executions.get(later)
            assert (row.status, row.attempt) == (Status.PENDING, 0)
        claimed = [each.schedule_id for batch in seen(told, ExecutionsClaimed) for each in batch.claimed]
        assert claimed.count(unknown.schedule_id) == 1


async def test_a_kind_that_a_worker_can_not_run_is_left_to_others_without_using_up_attempts(
    store: SqlStore, database_url: str
) -> None:
    target = {"kind": "celery", "task": "proj.tasks.clean"}
    schedule = await add(store, spec("a", YEARLY, target=target, retry={"max_attempts": 1}))
    wanted = await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())
    async with running(database_url, roles=WORKER):

        async def is_handed_back() -> bool:
            row = await store.executions.get(wanted)
            return row.error is not None

        await until(is_handed_back)
        row = await store.executions.get(wanted)
        assert (row.status, row.ended_ts) == (Status.PENDING, None)
        assert "can't run targets of kind celery" in (row.error or "")
        assert await store.executions.attempts(wanted) == []


async def test_held_executions_run_one_after_another(store: SqlStore, database_url: str) -> None:
    running_now, highest = 0, 0

    async def slow() -> None:
        nonlocal running_now, highest
        running_now += 1
        highest = max(highest, running_now)
        await asyncio.sleep(0.3)
        running_now -= 1

    target = {"kind": "function", "name": "slow"}
    schedule = await add(store, spec("q", SOON, max_runs=4, target=target, overlap={"policy": "queue"}))
    for _ in range(3):
        await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())
    async with running(database_url), running(database_url, roles=WORKER, tasks=registry(slow)):

        async def all_done() -> bool:
            rows = await store.schedules.executions(schedule.schedule_id)
            return len(rows) == 7 and all(row.status is Status.SUCCESS for row in rows)

        await until(all_done)
    assert highest == 1


async def test_stopping_a_worker_hands_back_what_does_not_finish(store: SqlStore, database_url: str) -> None:
    started = asyncio.Event()

    async def long() -> None:
        started.set()
        await asyncio.Event().wait()

    target = {"kind": "function", "name": "long"}
    schedule = await add(store, spec("long", SOON, max_runs=1, target=target))
    async with running(database_url):
        async with running(database_url, roles=WORKER, tasks=registry(long), stop_grace_seconds=0.1):
            async with asyncio.timeout(30):
                await started.wait()
        (row,) = await store.schedules.executions(schedule.schedule_id)
        assert (row.status, row.attempt) == (Status.PENDING, 1)


async def test_work_that_began_is_not_handed_back_when_it_may_run_once_only(
    store: SqlStore, database_url: str
) -> None:
    started = asyncio.Event()

    async def long() -> None:
        started.set()
        await asyncio.Event().wait()

    target = {"kind": "function", "name": "long"}
    schedule = await add(store, spec("long", SOON, max_runs=1, target=target, delivery="at_most_once"))
    async with running(database_url):
        async with running(database_url, roles=WORKER, tasks=registry(long), stop_grace_seconds=0.1):
            async with asyncio.timeout(30):
                await started.wait()
        (row,) = await store.schedules.executions(schedule.schedule_id)
        assert (row.status, row.attempt) == (Status.UNKNOWN, 1)


async def test_a_worker_that_can_not_renew_stops_its_work(store: SqlStore, database_url: str) -> None:
    """Its renewals hang, as on a connection that swallows everything."""
    stopped = asyncio.Event()

    async def long() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    target = {"kind": "function", "name": "long"}
    await add(store, spec("long", SOON, max_runs=1, target=target))
    async with (
        running(database_url),
        running(database_url, roles=WORKER, tasks=registry(long)) as (worker, _),
    ):

        async def hang(*_: object) -> None:
            await asyncio.Event().wait()

        with pytest.MonkeyPatch.context() as patch:
            [renewer] = [each for each in worker.services if isinstance(each, Renewer)]
            patch.setattr(renewer, "_store", type("Hung", (), {"renew": staticmethod(hang)}))
            async with asyncio.timeout(30):
                await stopped.wait()


async def test_the_room_that_a_look_is_for_is_taken_before_its_claim_begins(sqlite_url: str) -> None:
    instance, _ = make_instance(sqlite_url, roles=WORKER, worker_concurrency=3)
    await instance.prepare()
    worker = instance.worker
    assert worker is not None
    found: list[int] = []

    async def look_for_room() -> None:
        """As one that has received messages does, whose turn comes while the claim is still to begin."""
        found.append(worker.room)

    await asyncio.gather(worker.step(), look_for_room())
    assert (found, worker.room) == ([0], 3)
    await instance.close()
