"""The hot statements read what they need and nothing else: no scan, whatever the tables hold.

The statements are taken from the engine while the real methods run, so a guard follows the code.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from foliot.db.dialect import Pool
from foliot.db.migrate import upgrade
from foliot.db.rows.due_rows import LoadPosition, LoadRange
from foliot.instance.store import SqlStore, open_store
from foliot.model.attempt import Claim, Settled, Settlement
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.instant import EPOCH
from foliot.model.lease import Lease, Shard
from foliot.model.policy import Priority
from foliot.notifications.lateness_sql import Behind
from foliot.notifications.missed_runs_sql import ScheduleWindow, SearchStart
from foliot.planning.definition import compile_definition
from foliot.planning.fire import Firing, plan_firing
from foliot.scheduler.measures_sql import Measures
from foliot.timing.clock import SystemClock
from foliot.worker.journal_sql import Note
from tests.plans import check, explain, primary_key
from tests.servers import PostgresServer

WHOLE = Shard(0, 1)
SCHEDULES = 100_000
EXECUTIONS = 100_000
HOSTS = 20

NUMBERS = {
    "postgresql": "SELECT n FROM generate_series(1, {count}) AS n",
    "sqlite": "WITH RECURSIVE each(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each WHERE n < {count}) "
    "SELECT n FROM each",
}
NOW = {
    "postgresql": "(clock_timestamp() + make_interval(secs => {seconds}))",
    "sqlite": "(CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST({seconds} AS INTEGER) * 1000000)",
}
UUID_OF = {
    "postgresql": "CAST('{digit}' || lpad(to_hex({number}), 31, '0') AS uuid)",
    "sqlite": "'{digit}' || printf('%031x', {number})",
}


# --- many rows -----------------------------------------------------------------------------------------


async def fill(store: SqlStore) -> None:
    """100,000 schedules, of which 2,000 are due, and as many executions, nearly all of them ended."""
    name = store.database.dialect.name

    def now(seconds: str) -> str:
        return NOW[name].format(seconds=seconds)

    def identity(digit: str, number: str) -> str:
        return UUID_OF[name].format(digit=digit, number=number)

    hosts = (
        f"INSERT INTO host_t (host_id, host_name, created_ts) SELECT {identity('a', 'n')}, 'host-' || n, "
        f"{now('0')} FROM ({NUMBERS[name].format(count=HOSTS)}) AS numbers"
    )
    is_due = "n % 50 = 0"
    seconds = f"CASE WHEN {is_due} THEN -30 ELSE 60 + n % 86400 END"
    schedules = f"""
        INSERT INTO schedule_t (schedule_id, host_id, schedule_name, description, labels, "trigger", target,
            policies, effective_ts, next_fire_ts, next_run_ts, priority, queue, timeout_seconds, state, slot,
            managed_by, aggregate_version, created_ts, updated_ts)
        SELECT {identity("b", "n")}, {identity("a", f"1 + n % {HOSTS}")}, 'schedule-' || n, '', '{{}}',
            '{{"kind": "interval", "frequency_unit": "HOURS", "frequency_time": 1}}', '{{}}', '{{}}',
            {now("-3630")}, {now(seconds)}, {now(seconds)},
            CASE n % 3 WHEN 0 THEN 'high' WHEN 1 THEN 'medium' ELSE 'low' END, 'queue-' || (n % 5), 60,
            'active', n % 1024, 'api', 1, {now("-3630")}, {now("-3630")}
        FROM ({NUMBERS[name].format(count=SCHEDULES)}) AS numbers
    """
    status = (
        "CASE WHEN n % 200 = 0 THEN 'pending' WHEN n % 200 = 1 THEN 'running' "
        "WHEN n % 200 = 2 THEN 'retrying' ELSE 'success' END"
    )
    ready = f"CASE WHEN n % 400 = 0 THEN NULL ELSE {now('-n % 1000')} END"
    executions = f"""
        INSERT INTO execution_t (execution_id, schedule_id, host_id, aggregate_version, fire_ts, status,
            triggered_by, queue, priority, ready_ts, due_by_ts, lease_until, attempt, worker_id, created_ts)
        SELECT {identity("c", "n")}, {identity("b", f"1 + n % {SCHEDULES}")},
            {identity("a", f"1 + n % {HOSTS}")}, 1, {now("-3600 - n")}, {status}, 'scheduler',
            'queue-' || (n % 5), 'medium', {ready}, {ready},
            CASE WHEN n % 200 = 1 THEN {now("CASE WHEN n % 400 = 1 THEN -5 ELSE 600 END")} END, 1, 'worker',
            {now("-3600 - n")}
        FROM ({NUMBERS[name].format(count=EXECUTIONS)}) AS numbers
    """
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        for statement in (hosts, schedules, executions):
            await connection.exec_driver_sql(statement)


async def prepare(url: str, *, statistics: str | None = None, is_new: bool = True) -> None:
    store = open_store(url, clock=SystemClock())
    if is_new:
        await upgrade(store.database)
        await fill(store)
    if statistics is not None:
        async with store.database.read(Pool.API) as connection:
            await connection.exec_driver_sql(statistics)
    await store.close()


@pytest.fixture(scope="module")
def large_sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "foliot.db"
    asyncio.run(prepare(f"sqlite:///{path}"))
    return path


@pytest.fixture(scope="module")
def large_sqlite_url(large_sqlite_file: Path) -> str:
    """Without statistics, as nearly every SQLite file is."""
    path = large_sqlite_file.with_name("plain.db")
    shutil.copy(large_sqlite_file, path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def large_analyzed_sqlite_url(large_sqlite_file: Path) -> str:
    path = large_sqlite_file.with_name("analyzed.db")
    shutil.copy(large_sqlite_file, path)
    asyncio.run(prepare(f"sqlite:///{path}", statistics="ANALYZE", is_new=False))
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def large_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.database() as url:
        asyncio.run(prepare(url, statistics="VACUUM ANALYZE"))
        yield url


@pytest.fixture(params=["sqlite", "analyzed_sqlite", "postgres"])
def large_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"large_{request.param}_url"))


@pytest.fixture
async def store(large_url: str) -> AsyncIterator[SqlStore]:
    opened = open_store(large_url, clock=SystemClock())
    yield opened
    await opened.close()


# --- where they look ---------------------------------------------------------------------------------------


async def lead(store: SqlStore) -> Lease:
    lease = (await store.leases.take(WHOLE, "one", -1)).lease
    assert lease is not None
    return lease


async def due_firings(store: SqlStore, count: int) -> list[Firing]:
    now = await store.now()
    loaded = await store.firing.load(WHOLE, until=now, after=None, limit=count)
    assert len(loaded) == count
    return [plan_firing(due, compile_definition(due.definition, due.schedule_id), now) for due in loaded]


def queues() -> list[tuple[UUID, str]]:
    hosts = [UUID(f"a{number:031x}") for number in range(1, HOSTS + 1)]
    return [(host_id, f"queue-{n}") for host_id in hosts for n in range(5)]


async def claimed(store: SqlStore, count: int) -> list[Claim]:
    claims = await store.work.claim("worker", queues(), limit=count, lease_s=600)
    assert len(claims) == count
    return claims


# --- firing --------------------------------------------------------------------------------------------


async def test_what_is_due_is_a_range_of_its_index(store: SqlStore) -> None:
    until = await store.now()
    loaded, plan = await explain(
        store, Pool.FIRING, store.firing.load(WHOLE, until=until, after=None, limit=500)
    )
    assert len(loaded) == 500
    check(plan, "idx_schedule_active_next_run")


async def test_the_next_page_of_a_horizon_begins_where_the_last_one_ended(store: SqlStore) -> None:
    until = await store.now() + timedelta(hours=12)
    first = await store.firing.load(WHOLE, until=until, after=None, limit=1000)
    position = LoadPosition(first[-1].run_ts, first[-1].schedule_id)
    _, plan = await explain(
        store, Pool.FIRING, store.firing.load(WHOLE, until=until, after=position, limit=1000)
    )
    check(plan, "idx_schedule_active_next_run")


async def test_a_shard_loads_by_the_same_index(store: SqlStore) -> None:
    until = await store.now()
    _, plan = await explain(
        store, Pool.FIRING, store.firing.load(Shard(1, 4), until=until, after=None, limit=100)
    )
    check(plan, "idx_schedule_active_next_run")


async def test_those_who_watch_look_for_what_is_overdue_by_the_same_index(store: SqlStore) -> None:
    found, plan = await explain(store, Pool.LEASE, store.overviews.overdue_anywhere(ttl_s=0.1))
    assert found.oldest is not None
    check(plan, "idx_schedule_active_next_run")


async def test_those_who_measure_read_of_executions_only_what_waits(store: SqlStore) -> None:
    _, plan = await explain(store, Pool.LEASE, Measures(store.database).queue_depths())
    check(plan, "idx_execution_claimable")


async def test_a_backlog_reads_the_first_of_every_host(store: SqlStore) -> None:
    until = await store.now()
    hosts = await store.firing.load_hosts(after=None, limit=1000)
    ranges = [LoadRange(host_id, priority, EPOCH) for host_id in hosts for priority in Priority]
    known = [firing.due.schedule_id for firing in await due_firings(store, 1000)]
    loaded, plan = await explain(
        store,
        Pool.FIRING,
        store.firing.load_ranges(WHOLE, ranges, until=until, per_range=5, excluding=known),
    )
    assert len(loaded) >= HOSTS
    assert not {due.schedule_id for due in loaded}.intersection(known)
    check(plan, "idx_schedule_host_next_run")


async def test_the_poll_reads_past_what_is_known_by_the_index_of_what_is_due(store: SqlStore) -> None:
    until = await store.now()
    known = [firing.due.schedule_id for firing in await due_firings(store, 1000)]
    loaded, plan = await explain(
        store, Pool.FIRING, store.firing.load(WHOLE, until=until, after=None, limit=500, excluding=known)
    )
    assert len(loaded) == 500
    assert not {due.schedule_id for due in loaded}.intersection(known)
    check(plan, "idx_schedule_active_next_run")


async def test_some_schedules_are_loaded_by_their_ids(store: SqlStore) -> None:
    ids = [firing.due.schedule_id for firing in await due_firings(store, 50)]
    _, plan = await explain(store, Pool.FIRING, store.firing.load_some(WHOLE, ids))
    check(plan, primary_key(store, "schedule_t"))


@pytest.mark.parametrize("count", [1, 1000])
async def test_firing_advances_by_id_and_counts_what_is_open_by_its_index(
    store: SqlStore, count: int
) -> None:
    lease = await lead(store)
    firings = await due_firings(store, count)
    now = await store.now()
    fired, plan = await explain(store, Pool.FIRING, store.firing.fire(lease, firings, now=now))
    assert len(fired.refused) == 0
    check(plan, primary_key(store, "schedule_t"), "idx_execution_open")


# --- working -------------------------------------------------------------------------------------------


async def test_claiming_takes_the_first_of_the_index_of_what_is_claimable(store: SqlStore) -> None:
    claims, plan = await explain(store, Pool.WORK, claimed(store, 20))
    assert len(claims) == 20
    check(plan, "idx_execution_claimable", primary_key(store, "execution_t"))


async def test_claiming_passes_over_versions_without_another_order(store: SqlStore) -> None:
    unknown = [(UUID(int=number), 1) for number in range(1000)]
    claiming = store.work.claim("worker", queues(), limit=20, lease_s=600, excluding=unknown)
    claims, plan = await explain(store, Pool.WORK, claiming)
    assert len(claims) == 20
    check(plan, "idx_execution_claimable", primary_key(store, "execution_t"))


async def test_renewing_progress_and_settling_scan_nothing(store: SqlStore) -> None:
    claims = await claimed(store, 20)
    _, plan = await explain(store, Pool.WORK, store.work.renew("worker", claims, 600))
    check(plan)
    note = Note(claims[0].execution_id, claims[0].attempt, '{"fraction": 0.5}')
    _, plan = await explain(store, Pool.WORK, store.notes.write("worker", [note]))
    check(plan)
    settlements = [Settlement(claim, Status.FAILED, Status.FAILED) for claim in claims]
    outcome, plan = await explain(store, Pool.WORK, store.work.settle("worker", settlements))
    assert outcome == Settled()
    check(plan)


# --- upkeep --------------------------------------------------------------------------------------------


async def test_upkeep_looks_only_at_what_needs_it(store: SqlStore) -> None:
    lease = await lead(store)
    _, plan = await explain(store, Pool.UPKEEP, store.upkeep.rescue(lease, limit=50))
    check(plan, "idx_execution_lease")
    _, plan = await explain(store, Pool.UPKEEP, store.upkeep.release_held(lease, limit=50))
    check(plan, "idx_execution_held")
    _, plan = await explain(store, Pool.UPKEEP, store.upkeep.restart_delays(lease, limit=50))
    check(plan, ("idx_schedule_waiting", "idx_schedule_active_next_run"))
    before = await store.now() - timedelta(days=90)
    _, plan = await explain(store, Pool.UPKEEP, store.upkeep.prune(lease, before=before, limit=50))
    check(plan, primary_key(store, "execution_t"))


# --- notifying -----------------------------------------------------------------------------------------


async def test_the_notifier_looks_only_at_what_failed_or_is_watched(store: SqlStore) -> None:
    now = await store.now()
    hosts = [host_id for host_id, _ in queues()]
    ids = [firing.due.schedule_id for firing in await due_firings(store, 50)]
    seen, since = store.sightings, now - timedelta(seconds=10)
    late, silence = seen.lateness, seen.silence
    places = {queue: Behind(since) for queue in queues()}
    guards = [
        (seen.failures(hosts, now, since=since, limit=500), "idx_execution_failed"),
        (seen.streaks(ids, limit=3), "uq_execution_scheduled"),
        (late.queues(hosts, now, since=since), "idx_execution_claimable"),
        (late.waiting(places, now, share=20), "idx_execution_claimable"),
        (late.running(hosts, now, since=since, limit=500), "idx_execution_lease"),
        (silence.standings(hosts[0], now, after_name="schedule-5", limit=500), "uq_schedule_name"),
        (silence.latest_due([ScheduleWindow(each, since, now) for each in ids]), "uq_execution_scheduled"),
        (silence.successes([SearchStart(each, since) for each in ids], now), "uq_execution_scheduled"),
        (silence.first_fires([SearchStart(each, since) for each in ids]), "uq_execution_scheduled"),
    ]
    for look, index in guards:
        _, plan = await explain(store, Pool.FIRING, look)
        check(plan, index)
    for look in (store.incidents.over(now, since=since, limit=500), store.incidents.abandoned(limit=500)):
        _, plan = await explain(store, Pool.FIRING, look)
        check(plan)


# --- people --------------------------------------------------------------------------------------------


async def test_a_name_is_found_by_its_index(store: SqlStore) -> None:
    _, plan = await explain(store, Pool.API, store.schedules.find(DEFAULT_HOST_ID, "schedule-7"))
    check(plan, "uq_schedule_name")


async def test_the_guard_sees_a_scan_when_there_is_one(store: SqlStore) -> None:
    async def scan() -> None:
        async with store.database.read(Pool.API) as connection:
            await connection.execute(text("SELECT count(*) FROM schedule_t WHERE description = 'x'"))

    _, plan = await explain(store, Pool.API, scan())
    with pytest.raises(AssertionError):
        check(plan)
