"""Executing under faults, with real workers: stopped, killed, outgrown, replaced, cancelled from elsewhere.

What an agent was asked is read from the agent's own log, what ran from lines that the work itself left.
A rescue that races with a settle (fault 9) is a matter of the database alone: the store's contract has
`test_of_a_settle_and_a_rescue_at_once_one_wins_and_the_other_knows` and
`test_a_settled_execution_stays_as_it_is`.
"""

import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any
from uuid import UUID

import httpx2
import psutil
import pytest
from sqlalchemy import func, select, text

from foliot.model.event import Observers
from foliot.model.execution import FINAL, Execution, Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.policy import Priority
from foliot.model.schedule import Schedule
from foliot.steering import Steering
from foliot.store.dialect import Pool
from foliot.store.hints import PostgresHints
from foliot.store.schema import execution_t
from foliot.store.sql import SqlStore, parse_url
from foliot.timing.clock import ClusterClock, SystemClock
from tests.cluster.agent import Agent
from tests.cluster.processes import Node, Nodes
from tests.conftest import OpenStore
from tests.engine import add, spec, until
from tests.ledger import assert_exact
from tests.servers import free_port

pytestmark = pytest.mark.cluster

SECOND = timedelta(seconds=1)
LEASE_S = 1.5
QUICK = {
    "FOLIOT_POLL_SECONDS": "0.2",
    "FOLIOT_WORKER_LEASE_SECONDS": str(LEASE_S),
    "FOLIOT_HTTP_ALLOW": "127.0.0.0/8",
}
WITHIN_S = 60.0
"""Against hanging for ever; nothing is measured by it."""
NEVER = {"kind": "cron", "expression": "0 0 29 2 *"}
"""For schedules that run when they are triggered."""
HURRIED = {"initial_delay_seconds": 0.1, "max_delay_seconds": 0.1}


class Scene:
    """One database, and the processes that work on it."""

    def __init__(self, url: str, store: SqlStore, folder: Path) -> None:
        self.url = url
        self.store = store
        self.folder = folder
        self.nodes = Nodes(url, folder, **QUICK)

    def scheduler(self, **settings: str) -> Node:
        return self.nodes.start("scheduler", **settings)

    def worker(self, *options: str, **settings: str) -> Node:
        return self.nodes.start("worker", "--tasks", "tests.cluster.executing_tasks", *options, **settings)

    def go(self) -> None:
        """Let the work end that waits for it."""
        (self.folder / "go").touch()

    # --- schedules and executions -----------------------------------------------------------------

    async def schedule_of(self, task: str, args: dict[str, Any] | None = None, **fields: Any) -> Schedule:
        target = {"kind": "function", "name": task, "args": args or {}}
        return await self._schedule(task, target, **fields)

    async def schedule_for(self, url: str, **fields: Any) -> Schedule:
        return await self._schedule(url, {"kind": "http", "url": url}, **fields)

    async def _schedule(self, name: str, target: dict[str, Any], **fields: Any) -> Schedule:
        fields = {"overlap": {"policy": "allow"}, "retry": {"max_attempts": 3, **HURRIED}, **fields}
        return await add(self.store, spec(name, NEVER, target=target, **fields))

    async def trigger(self, schedule: Schedule) -> UUID:
        return await self.store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, user=None)

    async def row(self, execution_id: UUID) -> Execution:
        return await self.store.executions.get(execution_id)

    async def stands(self, execution_id: UUID, *statuses: Status) -> Execution:
        """Wait until it does, and read it; another end than these is not waited out."""

        async def does() -> bool:
            row = await self.row(execution_id)
            assert row.status in statuses or row.status not in FINAL, (row.status, row.error)
            return row.status in statuses

        await until(does, within_s=WITHIN_S)
        return await self.row(execution_id)

    async def ran(self, task: str = "nap") -> Execution:
        """Run something short, to see that somebody works."""
        known = [
            each for each in await self.store.schedules.list_all(DEFAULT_HOST_ID) if each.spec.name == task
        ]
        schedule = known[0] if known else await self.schedule_of(task)
        return await self.stands(await self.trigger(schedule), Status.SUCCESS)

    def lines(self, execution_id: UUID) -> list[tuple[int, int]]:
        """The attempt and the process of each time it was begun."""
        return [(attempt, pid) for each, attempt, pid in self.all_lines() if each == execution_id]

    def all_lines(self) -> list[tuple[UUID, int, int]]:
        log = self.folder / "runs.log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [(UUID(each), int(attempt), int(pid)) for each, attempt, pid in lines]

    async def begun(self, execution_id: UUID) -> None:
        await until(lambda: bool(self.lines(execution_id)), within_s=WITHIN_S)

    async def more_begun(self, count: int) -> None:
        """Wait until so many have begun from now on."""
        enough = len(self.all_lines()) + count
        await until(lambda: len(self.all_lines()) >= enough, within_s=WITHIN_S)

    @asynccontextmanager
    async def locked(self, execution_id: UUID) -> AsyncIterator[None]:
        """While nobody else can write the row."""
        database = self.store.database
        async with database.dialect.begin(database.engine(Pool.API)) as connection:
            mine = execution_t.c.execution_id == execution_id
            await connection.execute(select(execution_t.c.execution_id).where(mine).with_for_update())
            yield

    async def has_session(self, waiting_for: str, statement: str) -> bool:
        """Whether one inside a transaction, whose last statement has this text, waits for such a thing."""
        async with self.store.database.read(Pool.LEASE) as connection:
            found = await connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND xact_start IS NOT NULL AND pid <> pg_backend_pid() "
                    "AND wait_event_type = :waiting_for AND strpos(query, :statement) > 0"
                ),
                {"waiting_for": waiting_for, "statement": statement},
            )
            return bool(found.scalar_one())

    async def asked(self, agent: Agent, execution_id: UUID) -> None:
        await until(lambda: bool(agent.requests(execution_id)), within_s=WITHIN_S)


@pytest.fixture
async def scene(postgres_url: str, open_test_store: OpenStore, tmp_path: Path) -> AsyncIterator[Scene]:
    found = Scene(postgres_url, await open_test_store(postgres_url), tmp_path)
    try:
        yield found
    finally:
        found.nodes.end()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    found = Agent(tmp_path)
    try:
        yield found
    finally:
        found.end()


def told(node: Node, event: str) -> list[dict[str, Any]]:
    """The lines of a node's log about one kind of event."""
    lines = [json.loads(line) for line in node.told().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == event]


async def tells(node: Node, event: str) -> list[dict[str, Any]]:
    await until(lambda: bool(told(node, event)), within_s=WITHIN_S)
    return told(node, event)


def is_of(row: Execution, node: Node) -> bool:
    """Instance ids are host-pid-random."""
    return row.worker_id is not None and row.worker_id.split("-")[-2] == str(node.pid)


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
    schedule = await scene.schedule_of("sleep_long", timeout_seconds=1, retry={"max_attempts": 1})
    # Longer leases: a hundred processes that start at once are heavy weather.
    lease = {"FOLIOT_WORKER_LEASE_SECONDS": "10"}
    worker = scene.worker("--concurrency", "100", **lease)
    # The first isolated function waits for the template to import the tasks, and that counts as its time.
    assert is_of(await scene.ran("look"), worker)
    executions = [await scene.trigger(schedule) for _ in range(100)]
    most = 0

    async def have_all_ended() -> bool:
        nonlocal most
        most = max(most, len(children_of(worker)))
        rows = await scene.store.schedules.executions(schedule.schedule_id)
        return all(row.status in FINAL for row in rows)

    await until(have_all_ended, within_s=WITHIN_S, every_s=0.1)
    rows = [await scene.row(each) for each in executions]
    assert Counter((row.status, row.attempt) for row in rows) == {(Status.TIMEOUT, 1): 100}
    assert most > 50, f"they were there at once, not one after another: at most {most}"
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
    worker = scene.worker(FOLIOT_WORKER_LEASE_SECONDS="60")
    await scene.begun(execution_id)
    [(_, pid)] = scene.lines(execution_id)
    assert pid in {each.pid for each in children_of(worker)}

    hints, clock = PostgresHints(parse_url(scene.url)), SystemClock()
    steering = Steering(scene.store, hints, Observers(), ClusterClock(clock))
    sent_at = clock.monotonic()
    try:
        await steering.cancel(execution_id, by="ann")
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


# --- agents that take the work over ---------------------------------------------------------------


@pytest.fixture
async def callbacks() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=WITHIN_S) as client:
        yield client


def start_up(scene: Scene) -> Node:
    port = str(free_port())
    return scene.nodes.start("up", FOLIOT_API_PORT=port, FOLIOT_PUBLIC_URL=f"http://127.0.0.1:{port}")


async def taken_over(scene: Scene, agent: Agent, execution_id: UUID, attempt: int = 1) -> tuple[str, str]:
    """Wait until the worker has noted that it is the agent's; where to report, and by which token."""

    async def is_remote() -> bool:
        row = await scene.row(execution_id)
        return row.is_remote and row.attempt == attempt

    await until(is_remote, within_s=WITHIN_S)
    request = agent.requests(execution_id)[-1]
    assert request.attempt == attempt
    assert request.callback is not None
    assert request.token is not None
    return request.callback, request.token


async def report(
    client: httpx2.AsyncClient, callback: str, verb: str, token: str, body: dict[str, Any]
) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    answer = await client.post(f"{callback}/{verb}", json=body, headers=headers)
    return answer.status_code


SUCCESS = {"status": "success", "result": {"rows": 3}}
HALF = {"fraction": 0.5, "text": "half way"}


async def test_an_agent_that_took_the_work_over_reports_by_its_token_and_by_no_other(
    scene: Scene, agent: Agent, callbacks: httpx2.AsyncClient
) -> None:
    start_up(scene)
    schedule = await scene.schedule_for(agent.url("/later"))
    execution_id, another = [await scene.trigger(schedule) for _ in range(2)]
    callback, token = await taken_over(scene, agent, execution_id)
    _, foreign = await taken_over(scene, agent, another)
    for wrong in ("wrong", foreign, token[:-1]):
        assert await report(callbacks, callback, "progress", wrong, HALF) == 401
        assert await report(callbacks, callback, "complete", wrong, SUCCESS) == 401
    row = await scene.row(execution_id)
    assert (row.status, row.progress, row.external_id) == (Status.RUNNING, None, "job-1")

    assert await report(callbacks, callback, "progress", token, HALF) == 204
    row = await scene.row(execution_id)
    assert (row.status, row.progress) == (Status.RUNNING, HALF)
    assert await report(callbacks, callback, "complete", token, SUCCESS) == 200
    row = await scene.row(execution_id)
    assert (row.status, row.result, row.attempt) == (Status.SUCCESS, {"rows": 3}, 1)
    assert len(agent.requests(execution_id)) == 1


async def test_the_token_of_an_earlier_attempt_is_worth_nothing(
    scene: Scene, agent: Agent, callbacks: httpx2.AsyncClient
) -> None:
    start_up(scene)
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/later")))
    callback, first = await taken_over(scene, agent, execution_id)
    failed = {"status": "failed", "error": "no"}
    assert await report(callbacks, callback, "complete", first, failed) == 200
    _, second = await taken_over(scene, agent, execution_id, attempt=2)
    assert await report(callbacks, callback, "progress", first, HALF) == 401
    assert await report(callbacks, callback, "complete", first, SUCCESS) == 401
    row = await scene.row(execution_id)
    assert (row.status, row.progress, row.attempt) == (Status.RUNNING, None, 2)
    assert await report(callbacks, callback, "complete", second, SUCCESS) == 200
    assert (await scene.row(execution_id)).status is Status.SUCCESS


async def test_an_agent_that_never_reports_has_timed_out_and_is_not_heard_any_more(
    scene: Scene, agent: Agent, callbacks: httpx2.AsyncClient
) -> None:
    start_up(scene)
    fields = {"timeout_seconds": 2, "retry": {"max_attempts": 1}}
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/later"), **fields))
    callback, token = await taken_over(scene, agent, execution_id)
    row = await scene.stands(execution_id, Status.TIMEOUT)
    assert row.started_ts is not None
    assert row.ended_ts is not None
    assert row.ended_ts - row.started_ts >= 2 * SECOND
    assert await report(callbacks, callback, "complete", token, SUCCESS) == 409
    assert await scene.row(execution_id) == row
    assert [each.attempt for each in agent.requests(execution_id)] == [1]


async def test_an_agent_that_reports_the_end_before_it_answers_is_believed(
    scene: Scene, agent: Agent
) -> None:
    """The worker's note that the agent has taken it over comes too late, and must not open it again."""
    node = start_up(scene)
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/hasty")))
    await scene.stands(execution_id, Status.SUCCESS)
    await until(lambda: agent.requests(execution_id)[0].is_answered, within_s=WITHIN_S)
    # What has ended is written down before a clean end, and the note is part of that.
    assert node.stop() == 0, node.told()[-2000:]
    row = await scene.row(execution_id)
    assert (row.status, row.attempt, row.result) == (Status.SUCCESS, 1, "done before it was accepted")
    assert (row.is_remote, row.lease_until) == (False, None)


async def test_a_name_that_leads_to_this_machine_is_refused_when_connecting(
    scene: Scene, agent: Agent
) -> None:
    """Faults 31 and 32: nothing in the name tells where it leads, so only resolving it can."""
    host = socket.gethostname()
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host, agent.port, type=socket.SOCK_STREAM)}
    except OSError:
        pytest.skip("this machine's own name has no address")
    if not all(ip_address(each).is_private and "." in each for each in found):
        pytest.skip("this machine's own name does not lead to internal addresses alone")
    execution_id = await scene.trigger(await scene.schedule_for(agent.url("/run", host)))
    guarded = scene.worker(FOLIOT_HTTP_ALLOW="")
    row = await scene.stands(execution_id, Status.FAILED)
    assert (row.attempt, agent.requests(execution_id)) == (1, [])
    assert row.error is not None
    assert f"{host} is an internal address" in row.error
    guarded.stop()

    # Allowed, the same request arrives: it was the guard that kept it from the agent.
    await scene.store.executions.retry(execution_id, by="ann")
    scene.worker(FOLIOT_HTTP_ALLOW=",".join(sorted(found)))
    await scene.stands(execution_id, Status.SUCCESS)
    assert len(agent.requests(execution_id)) == 1
