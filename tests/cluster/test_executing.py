"""Executing under faults, with real workers: stopped, killed, outgrown, replaced, cancelled from elsewhere.

What an agent was asked is read from the agent's own log, what ran from lines that the work itself left.
A rescue that races with a settle (fault 9) is a matter of the database alone: the store's contract has
`test_of_a_settle_and_a_rescue_at_once_one_wins_and_the_other_knows` and
`test_a_settled_execution_stays_as_it_is`.
"""

from collections import Counter
from datetime import timedelta
from functools import partial
from signal import SIGCONT, SIGSTOP
from uuid import UUID

import psutil
import pytest
from sqlalchemy import func, select

from foliot.commands import Commands
from foliot.db.dialect import Pool
from foliot.db.hints import PostgresHints
from foliot.db.opening import parse_url
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_status_t
from foliot.instance.store import SqlStore
from foliot.model.event import Observers
from foliot.model.execution import FINAL, Execution, Status, TriggeredBy
from foliot.model.policy import Priority
from foliot.model.schedule import Schedule
from foliot.planning.change import Author
from foliot.timing.clock import ClusterClock, SystemClock
from tests.cluster.agent import Agent
from tests.cluster.processes import Node
from tests.cluster.scene import LEASE_S, SECOND, WITHIN_S, Scene, is_of, tells, told
from tests.engine import add, spec, until
from tests.ledger import assert_exact

pytestmark = pytest.mark.cluster

ISOLATED = ("--tasks", "tests.cluster.isolated_tasks")


# --- workers that are stopped and killed ----------------------------------------------------------


async def test_a_worker_stopped_past_its_lease_leaves_the_agents_answer_to_another(
    scene: Scene, agent: Agent
) -> None:
    """Fault 6, with an agent: it is asked twice, with one key."""
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/held")))
    scene.scheduler()
    stopped = scene.worker(FOLIOT_LOG_LEVEL="debug")
    await scene.asked(agent, execution_id)
    stopped.signal(SIGSTOP)
    # It has an answer to read when it wakes.
    agent.answer()
    other = scene.worker()
    row = await scene.stands(execution_id, Status.SUCCESS)
    assert is_of(row, other)
    other.stop()

    stopped.signal(SIGCONT)
    assert is_of(await scene.ran(), stopped), "it goes on with other work"
    assert await scene.row(execution_id) == row
    mine = [
        line for line in told(stopped, "execution_succeeded") if line["execution_id"] == str(execution_id)
    ]
    assert mine == []
    assert [each.attempt for each in agent.requests(execution_id)] == [1, 2]
    assert row.attempt == 2


async def test_the_late_settle_of_a_worker_that_was_stopped_is_refused(scene: Scene) -> None:
    """Fault 6, where the work ends in the moment of waking: before a renewal could tell that it is lost."""
    execution_id = await scene.trigger(await scene.schedule_of("stop_worker_once"))
    scene.scheduler()
    stopped = scene.worker()
    await scene.begun(execution_id)
    other = scene.worker()
    row = await scene.stands(execution_id, Status.SUCCESS)

    stopped.signal(SIGCONT)
    [refused] = await tells(stopped, "settles_refused")
    assert refused["execution_ids"] == [str(execution_id)]
    assert await scene.row(execution_id) == row
    assert (row.attempt, row.result) == (2, "attempt 2")
    assert is_of(row, other)


async def test_a_worker_stopped_in_the_middle_of_settling_does_not_keep_the_execution(
    scene: Scene, agent: Agent
) -> None:
    """Fault 6 at its worst moment: its transaction has the row locked, and it is not there to commit."""
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/held")))
    scene.scheduler()
    stopped = scene.worker()
    await scene.asked(agent, execution_id)
    async with scene.locked(execution_id):
        agent.answer()
        await until(lambda: scene.has_session("Lock", "duration_seconds="), within_s=WITHIN_S)
        stopped.signal(SIGSTOP)
    await until(lambda: scene.has_session("Client", "duration_seconds="), within_s=WITHIN_S)
    other = scene.worker()
    row = await scene.stands(execution_id, Status.SUCCESS)
    assert row.attempt == 2
    assert is_of(row, other)

    stopped.signal(SIGCONT)
    await tells(stopped, "settles_refused")
    assert await scene.row(execution_id) == row


async def test_a_worker_stopped_between_two_halves_of_a_statement_does_not_keep_the_execution(
    scene: Scene, agent: Agent
) -> None:
    """The server waits for the rest of a statement, and counts neither as idle nor as too long."""
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/held")))
    scene.scheduler()
    stopped = scene.worker()
    await scene.asked(agent, execution_id)
    async with scene.locked_table(schedule_status_t):
        agent.answer()
        # It has written how the execution ended; the next statement can't even be parsed.
        await until(lambda: scene.has_session("Lock", "schedule_status_t"), within_s=WITHIN_S)
        stopped.signal(SIGSTOP)
    other = scene.worker()
    row = await scene.stands(execution_id, Status.SUCCESS)
    assert row.attempt == 2
    assert is_of(row, other)
    stopped.signal(SIGCONT)
    await tells(stopped, "settles_refused")
    assert await scene.row(execution_id) == row


async def kill_before_it_settles(scene: Scene, agent: Agent, schedule: Schedule) -> UUID:
    """Its agent has answered 200, and nobody has written that down."""
    execution_id = await scene.trigger(schedule)
    scene.scheduler()
    doomed = scene.worker()
    await scene.asked(agent, execution_id)
    async with scene.locked(execution_id):
        agent.answer()
        await until(lambda: agent.requests(execution_id)[0].is_answered, within_s=WITHIN_S)
        doomed.kill()
    assert (await scene.row(execution_id)).status is Status.RUNNING
    return execution_id


async def test_an_answer_that_its_worker_did_not_live_to_settle_is_asked_for_again_with_the_same_key(
    scene: Scene, agent: Agent
) -> None:
    """Fault 7."""
    schedule = await scene.schedule_for(agent.url("/held"))
    execution_id = await kill_before_it_settles(scene, agent, schedule)
    scene.worker()
    row = await scene.stands(execution_id, Status.SUCCESS)
    assert row.attempt == 2
    assert [each.attempt for each in agent.requests(execution_id)] == [1, 2]
    attempts = [(each.attempt, each.status) for each in await scene.store.executions.attempts(execution_id)]
    assert attempts == [(1, Status.UNKNOWN), (2, Status.SUCCESS)]


async def test_at_most_once_is_delivered_once_and_ends_unknown_when_its_worker_is_lost(
    scene: Scene, agent: Agent
) -> None:
    """Fault 7, for who would rather not know than have it done twice."""
    schedule = await scene.schedule_for(agent.url("/held"), delivery="at_most_once")
    execution_id = await kill_before_it_settles(scene, agent, schedule)
    scene.worker()
    row = await scene.stands(execution_id, Status.UNKNOWN)
    await scene.ran()
    assert await scene.row(execution_id) == row
    assert [each.attempt for each in agent.requests(execution_id)] == [1]


async def test_a_worker_that_dies_before_it_has_renewed_once_is_rescued_from(scene: Scene) -> None:
    """Fault 8."""
    execution_id = await scene.trigger(await scene.schedule_of("kill_worker_once"))
    doomed = scene.worker()
    doomed.ended()
    row = await scene.row(execution_id)
    assert (row.status, row.attempt) == (Status.RUNNING, 1)
    assert row.lease_until is not None
    assert row.started_ts is not None
    # Both are written by the claim; a renewal would have moved the one.
    assert (row.lease_until - row.started_ts).total_seconds() == pytest.approx(LEASE_S, abs=0.05)

    scheduler, other = scene.scheduler(), scene.worker()
    row = await scene.stands(execution_id, Status.SUCCESS)
    assert row.attempt == 2
    assert is_of(row, other)
    assert [each["execution_id"] for each in told(scheduler, "execution_rescued")] == [str(execution_id)]


async def test_work_of_many_leases_stays_with_its_worker(scene: Scene) -> None:
    """Fault 10."""
    execution_id = await scene.trigger(await scene.schedule_of("wait_for_go"))
    scheduler, worker = scene.scheduler(), scene.worker()
    scene.worker()
    await tells(scheduler, "leader_elected")
    await scene.begun(execution_id)
    owner = (await scene.row(execution_id)).worker_id

    async def has_lasted() -> bool:
        row = await scene.row(execution_id)
        assert (row.status, row.attempt, row.worker_id) == (Status.RUNNING, 1, owner)
        assert row.started_ts is not None
        return await scene.store.now() - row.started_ts > 5 * timedelta(seconds=LEASE_S)

    await until(has_lasted, within_s=WITHIN_S)
    scene.go()
    row = await scene.stands(execution_id, Status.SUCCESS)
    assert (row.attempt, row.worker_id) == (1, owner)
    assert told(scheduler, "execution_rescued") == []
    assert worker.is_running


async def test_a_job_that_kills_its_worker_each_time_ends_failed_after_its_attempts(scene: Scene) -> None:
    """Fault 11."""
    execution_id = await scene.trigger(await scene.schedule_of("kill_worker"))
    scene.scheduler()
    workers = [scene.worker()]

    async def is_over() -> bool:
        if not workers[-1].is_running:
            workers.append(scene.worker())
        return (await scene.row(execution_id)).status in FINAL

    await until(is_over, within_s=WITHIN_S, every_s=0.1)
    row = await scene.row(execution_id)
    assert (row.status, row.attempt) == (Status.FAILED, 3)
    assert row.error is not None
    assert "worker vanished" in row.error
    # The one that is left lives, and works.
    assert is_of(await scene.ran(), workers[-1])
    begun = scene.lines(execution_id)
    assert [attempt for attempt, _ in begun] == [1, 2, 3]
    assert [pid for _, pid in begun] == [each.pid for each in workers[:3]]


# --- replacing everything -------------------------------------------------------------------------


async def test_every_process_is_replaced_under_load_and_nothing_is_lost(scene: Scene) -> None:
    """Fault 12."""
    target = {"kind": "function", "name": "nap", "args": {"seconds": 0.3}}
    policies = {"misfire": {"policy": "fire_all"}, "overlap": {"policy": "allow"}}
    each_second = {"kind": "interval", "seconds": 1}
    schedules = [
        await add(scene.store, spec(f"s{number}", each_second, target=target, **policies))
        for number in range(60)
    ]
    # Longer than the test may wait: what is left behind is not made good by a rescue.
    lease = {"FOLIOT_WORKER_LEASE_SECONDS": str(2 * WITHIN_S)}
    schedulers = [scene.scheduler() for _ in range(2)]
    workers = [scene.worker(**lease) for _ in range(2)]
    await scene.more_begun(60)
    for _ in range(2):
        for kind, start in ((schedulers, scene.scheduler), (workers, partial(scene.worker, **lease))):
            kind.append(start())
            await tells(kind[-1], "instance_started")
            leaving = kind.pop(0)
            assert leaving.stop() == 0, leaving.told()[-2000:]
            await scene.more_begun(60)
    for node in schedulers:
        assert node.stop() == 0, node.told()[-2000:]

    async def nothing_is_open() -> bool:
        async with scene.store.database.read(Pool.API) as connection:
            statement = select(func.count()).where(
                execution_t.c.status.in_(["pending", "running", "retrying"])
            )
            return (await connection.execute(statement)).scalar_one() == 0

    await until(nothing_is_open, within_s=WITHIN_S, every_s=0.2)
    for node in workers:
        assert node.stop() == 0, node.told()[-2000:]
    begun = Counter((execution_id, attempt) for execution_id, attempt, _ in scene.all_lines())
    fired = 0
    for schedule in schedules:
        rows = await scene.store.schedules.executions(schedule.schedule_id, limit=10_000)
        assert schedule.next_fire_ts is not None
        assert_exact(rows, SECOND, schedule.next_fire_ts)
        for row in rows:
            assert row.status is Status.SUCCESS, (row.status, row.reason, row.error)
            # The last attempt ran. An earlier one was handed back, before it had begun or after.
            times = [begun.pop((row.execution_id, attempt), 0) for attempt in range(1, row.attempt + 1)]
            assert max(times) == 1
            assert times[-1] == 1
            fired += 1
    assert not begun, "what is not in the ledger has run"
    assert fired > 60


# --- isolated processes, memory, cancelling -------------------------------------------------------


def children_of(node: Node) -> list[psutil.Process]:
    """All processes that a worker has brought about: its template, and what that has forked."""
    found: list[psutil.Process] = psutil.Process(node.pid).children(recursive=True)
    return found


async def test_a_hundred_functions_that_take_too_long_leave_no_process_and_no_slot_taken(
    scene: Scene,
) -> None:
    schedule = await scene.schedule_of("sleep_long", timeout_seconds=5, retry={"max_attempts": 1})
    # Longer leases: a hundred processes that start at once are heavy weather.
    lease = {"FOLIOT_WORKER_LEASE_SECONDS": "10"}
    worker = scene.worker(*ISOLATED, "--concurrency", "100", **lease)
    # The first isolated function waits for the template to import the tasks, and that counts as its time.
    assert is_of(await scene.ran("look"), worker)
    executions = [await scene.trigger(schedule) for _ in range(100)]
    highest = 0

    async def have_all_ended() -> bool:
        nonlocal highest
        highest = max(highest, len(children_of(worker)))
        rows = await scene.store.schedules.executions(schedule.schedule_id)
        return all(row.status in FINAL for row in rows)

    await until(have_all_ended, within_s=WITHIN_S, every_s=0.1)
    rows = [await scene.row(each) for each in executions]
    assert Counter((row.status, row.attempt) for row in rows) == {(Status.TIMEOUT, 1): 100}
    assert highest > 50, f"they were there at once, not one after another: at most {highest}"
    [template] = children_of(worker)
    assert template.children() == []
    row = await scene.ran("look")
    assert is_of(row, worker)
    assert row.started_ts is not None
    assert row.ready_ts is not None
    assert (row.started_ts - row.ready_ts).total_seconds() < 5


async def test_a_worker_that_outgrows_its_memory_finishes_what_runs_and_leaves_the_rest_to_others(
    scene: Scene,
) -> None:
    large = await scene.trigger(await scene.schedule_of("eat", {"megabytes": 128}))
    outgrown = scene.worker("--memory-limit", "128MB")
    [passed] = await tells(outgrown, "memory_limit_passed")
    assert passed["resident_bytes"] > passed["limit_bytes"] == 128 * 2**20
    await tells(outgrown, "stopping")
    small = await scene.schedule_of("nap")
    rest = [await scene.trigger(small) for _ in range(5)]
    other = scene.worker()
    for execution_id in rest:
        row = await scene.stands(execution_id, Status.SUCCESS)
        assert is_of(row, other)
        assert row.attempt == 1
    assert outgrown.is_running, "it does not leave before its work is done"
    assert (await scene.row(large)).status is Status.RUNNING

    scene.go()
    row = await scene.stands(large, Status.SUCCESS)
    assert (row.attempt, row.result) == (1, "full")
    assert is_of(row, outgrown)
    assert outgrown.ended() == 1
    assert "past its memory limit (128MB)" in outgrown.told().splitlines()[-1]


async def test_a_cancel_from_another_process_ends_an_isolated_function(scene: Scene) -> None:
    execution_id = await scene.trigger(await scene.schedule_of("sleep_long"))
    # A renewal alone would come after twenty seconds: it is the hint that makes it quick.
    worker = scene.worker(*ISOLATED, FOLIOT_WORKER_LEASE_SECONDS="60")
    await scene.begun(execution_id)
    [(_, pid)] = scene.lines(execution_id)
    assert pid in {each.pid for each in children_of(worker)}

    hints, clock = PostgresHints(parse_url(scene.url)), SystemClock()
    commands = Commands(scene.store.database, hints, Observers(), ClusterClock(clock))
    sent_at = clock.monotonic()
    try:
        await commands.executions.cancel(execution_id, author=Author("ann"))
        await hints.step()
        await until(lambda: not psutil.pid_exists(pid), within_s=5)
        gone_s = clock.monotonic() - sent_at
        row = await scene.stands(execution_id, Status.CANCELLED)
    finally:
        await hints.close()
    print(f"cancelled: its process was gone after {gone_s:.3f} s")
    assert row.ended_ts is not None
    assert (row.attempt, row.error) == (1, None)
    assert is_of(await scene.ran(), worker)


async def test_without_hints_every_priority_starts_in_time(scene: Scene) -> None:
    """More work than fits at once: what is urgent can't wait for the rest to be done."""
    off = {"FOLIOT_HINTS": "off"}
    scheduler = scene.scheduler(**off)
    scene.worker("--concurrency", "10", **off)
    await tells(scheduler, "leader_elected")
    await scene.ran()
    at = {"kind": "once", "at": (await scene.store.now() + 3 * SECOND).isoformat()}
    schedules = []
    for priority in reversed(Priority):
        args = {"seconds": 0.05 if priority is Priority.HIGH else 0.4}
        target = {"kind": "function", "name": "nap", "args": args}
        for number in range(30):
            document = spec(f"{priority}-{number}", at, target=target, priority=priority)
            schedules.append(await add(scene.store, document))
    delays: dict[Priority, list[float]] = {priority: [] for priority in Priority}
    for schedule in schedules:
        row = await _ended(scene.store, schedule)
        assert (row.status, row.triggered_by) == (Status.SUCCESS, TriggeredBy.SCHEDULER)
        assert row.started_ts is not None
        assert row.ready_ts is not None
        delays[row.priority].append((row.started_ts - row.ready_ts).total_seconds())
    late = {str(each): max(found) for each, found in delays.items() if max(found) > each.sla_s}
    assert not late, f"the latest of each, in seconds: {late}"
    assert [len(found) for found in delays.values()] == [30, 30, 30]


async def _ended(store: SqlStore, schedule: Schedule) -> Execution:
    """Wait for the end of a schedule's only execution."""
    rows: list[Execution] = []

    async def has_ended() -> bool:
        rows[:] = await store.schedules.executions(schedule.schedule_id)
        return bool(rows) and rows[0].status in FINAL

    await until(has_ended, within_s=WITHIN_S)
    [row] = rows
    return row
