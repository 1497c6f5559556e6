"""Lists read a page's worth of large tables, whatever is asked for: by indexes, and never by sorting it all.

The statements are taken from the engine while the real methods run, and explained as PostgreSQL would carry
them out for a new statement and for one that it has prepared.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from sqlalchemy import event

from foliot.db.dialect import Pool
from foliot.instance.store import SqlStore, open_store
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.queries.execution_list import ExecutionList
from foliot.queries.execution_search import MAX_WALKED, ExecutionFilter
from foliot.queries.queues import Queues
from foliot.queries.schedule_list import ScheduleFilter, ScheduleList, ScheduleSort
from foliot.timing.clock import SystemClock
from tests.servers import PostgresServer

SCHEDULES = 20_000
EXECUTIONS = 200_000
DAYS = 30
FEW = 5_000
"""Rows that a page may read: some hundreds for each index that it merges."""
A_DAY = EXECUTIONS // DAYS + EXECUTIONS // DAYS // 24
"""What was made within a day of its fire time can only be told by looking at it."""
OWN = f"'{DEFAULT_HOST_ID}'::uuid"


# --- many rows -----------------------------------------------------------------------------------------

HOST_OF = f"CASE WHEN s % 20 = 0 THEN ('a' || lpad(to_hex(s % 400), 31, '0'))::uuid ELSE {OWN} END"

SCHEDULE_ROWS = f"""
    INSERT INTO schedule_t (schedule_id, host_id, schedule_name, description, labels, "trigger", target,
        policies, effective_ts, next_fire_ts, next_run_ts, priority, queue, timeout_seconds, state, slot,
        managed_by, aggregate_version, created_ts, updated_ts)
    SELECT ('b' || lpad(to_hex(s), 31, '0'))::uuid, {HOST_OF}, 'schedule-' || s, '', '{{}}',
        '{{"kind": "interval", "frequency_unit": "HOURS", "frequency_time": 1}}',
        '{{"kind": "function", "name": "work"}}', '{{}}', now(), now(),
        CASE WHEN s % 10 > 0 THEN now() + s * interval '1 s' END,
        (ARRAY['high', 'medium', 'low'])[1 + s % 3], 'queue-' || (s % 5), 60, 'active', s % 1024, 'api', 1,
        now() - s * interval '1 s', now()
    FROM generate_series(1, {SCHEDULES}) AS s
"""
QUEUE_ROWS = "INSERT INTO queue_t (host_id, queue) SELECT DISTINCT host_id, queue FROM schedule_t"
TEXT_ROWS = """
    INSERT INTO schedule_text_t (schedule_id, host_id, schedule_name, search_text)
    SELECT schedule_id, host_id, schedule_name, lower(schedule_name) FROM schedule_t
"""
# A tenth belongs to schedule 1, and a tenth was triggered by hand for schedule 2.
EXECUTION_ROWS = f"""
    INSERT INTO execution_t (execution_id, schedule_id, host_id, aggregate_version, fire_ts, status,
        triggered_by, queue, priority, ready_ts, due_by_ts, lease_until, created_ts)
    SELECT (lpad(to_hex((extract(epoch FROM made) * 1000)::bigint), 12, '0') || '7000' || '8'
            || lpad(to_hex(n), 15, '0'))::uuid,
        ('b' || lpad(to_hex(s), 31, '0'))::uuid, {HOST_OF}, 1,
        made - CASE WHEN n % 100 = 7 THEN interval '10 days' ELSE interval '0.1 s' END, status,
        CASE WHEN n % 100 = 7 THEN 'backfill' WHEN n % 10 = 5 THEN 'api' ELSE 'scheduler' END,
        'queue-' || (s % 5), 'medium', made,
        CASE WHEN status IN ('pending', 'retrying') THEN made + interval '5 s' END,
        CASE WHEN status = 'running' THEN now() + interval '1 h' END, made
    FROM (
        SELECT n, CASE n % 10 WHEN 0 THEN 1 WHEN 5 THEN 2 ELSE 3 + n * 7 % {SCHEDULES - 3} END AS s,
            now() - interval '{DAYS} days' + n * (interval '{DAYS} days' / {EXECUTIONS}) AS made,
            CASE WHEN n > {EXECUTIONS - 300} THEN (ARRAY['pending', 'running', 'retrying'])[1 + n % 3]
                WHEN n % 97 = 0 THEN 'failed' WHEN n % 997 = 1 THEN 'timeout' ELSE 'success' END AS status
        FROM generate_series(1, {EXECUTIONS}) AS n
    ) AS numbered
"""


@pytest.fixture(scope="module")
def large_url(postgres_server: PostgresServer) -> Iterator[str]:
    async def fill(url: str) -> None:
        connection = await asyncpg.connect(url)
        for rows in (SCHEDULE_ROWS, QUEUE_ROWS, TEXT_ROWS, EXECUTION_ROWS):
            await connection.execute(rows)
        await connection.execute("VACUUM ANALYZE")
        await connection.close()

    with postgres_server.database() as url:
        asyncio.run(fill(url))
        yield url


@pytest.fixture
async def store(large_url: str) -> AsyncIterator[SqlStore]:
    opened = open_store(large_url, clock=SystemClock())
    yield opened
    await opened.close()


@pytest.fixture
async def connection(large_url: str) -> AsyncIterator[asyncpg.Connection]:
    opened = await asyncpg.connect(large_url)
    yield opened
    await opened.close()


# --- how much is read ----------------------------------------------------------------------------------


@dataclass
class Reading:
    """What statements did when they were carried out."""

    indexes: set[str] = field(default_factory=set)
    scans: list[str] = field(default_factory=list)
    """Tables that were read whole."""
    read: dict[str, int] = field(default_factory=dict)
    """Rows that were looked at, by table."""
    max_sorted: int = 0
    text: str = ""

    def add(self, node: dict[str, Any], depth: int = 1) -> None:
        kind, table, index = node["Node Type"], node.get("Relation Name", ""), node.get("Index Name", "")
        rows = node["Actual Rows"] + sum(
            node.get(f"Rows Removed by {reason}", 0) for reason in ("Filter", "Index Recheck")
        )
        rows *= node["Actual Loops"]
        self.text += f"{'  ' * depth}{kind} {table} {index} {rows}\n"
        if index:
            self.indexes.add(index)
        if table:
            self.read[table] = self.read.get(table, 0) + rows
        if kind == "Seq Scan":
            self.scans.append(table)
        if kind == "Sort":
            self.max_sorted = max(self.max_sorted, *[each["Actual Rows"] for each in node["Plans"]])
        for child in node.get("Plans", ()):
            self.add(child, depth + 1)


Issued = list[tuple[str, Sequence[Any]]]


async def issued(store: SqlStore, act: Awaitable[Any]) -> tuple[Any, Issued]:
    """The statements of a call, besides its result."""
    found: Issued = []
    engine = store.database.engine(Pool.API).sync_engine

    def listener(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        found.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", listener)
    try:
        return await act, found
    finally:
        event.remove(engine, "before_cursor_execute", listener)


async def carry_out(connection: asyncpg.Connection, statements: Issued, *, is_prepared: bool) -> Reading:
    reading = Reading()
    mode = "force_generic_plan" if is_prepared else "force_custom_plan"
    await connection.execute(f"SET plan_cache_mode = {mode}")
    for statement, parameters in statements:
        values = f"({', '.join(_literal(value) for value in parameters)})" if parameters else ""
        await connection.execute(f"PREPARE guarded AS {statement}")
        document = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE guarded{values}")
        await connection.execute("DEALLOCATE guarded")
        reading.text += f"\n{statement}\n"
        reading.add(json.loads(document)[0]["Plan"])
    return reading


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "ARRAY[" + ", ".join(_literal(each) for each in value) + "]"
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return "'" + text.replace("'", "''") + "'"


def check(reading: Reading, indexes: Sequence[str], limit: int = FEW) -> None:
    """These indexes were used, no table was read whole, and of none too much."""
    assert reading.indexes.issuperset(indexes), reading.text
    assert [each for each in reading.scans if each in ("execution_t", "schedule_t")] == [], reading.text
    assert max(reading.read.get(each, 0) for each in ("execution_t", "schedule_t")) <= limit, reading.text
    assert reading.max_sorted <= limit, reading.text


def numbered(number: int) -> UUID:
    return UUID(f"b{number:031x}")


def ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


# --- executions ----------------------------------------------------------------------------------------

BY_CREATION = "execution_t_pkey"
NOT_WELL = "idx_execution_not_well"
LATE = "idx_execution_late"
OF_SCHEDULE = ("uq_execution_scheduled", "uq_execution_backfill", "idx_execution_by_hand")

SHAPES: dict[str, tuple[ExecutionFilter, Sequence[str]]] = {
    "all": (ExecutionFilter(), [BY_CREATION]),
    "that went well": (ExecutionFilter(statuses=[Status.SUCCESS]), [BY_CREATION]),
    "of a queue": (ExecutionFilter(queues=["queue-3"]), [BY_CREATION]),
    "that failed": (ExecutionFilter(statuses=[Status.FAILED]), [NOT_WELL]),
    "that failed or timed out": (ExecutionFilter(statuses=[Status.FAILED, Status.TIMEOUT]), [NOT_WELL]),
    "that failed of a queue": (
        ExecutionFilter(statuses=[Status.FAILED], queues=["queue-3"]),
        [NOT_WELL],
    ),
    "that run": (ExecutionFilter(statuses=[Status.RUNNING]), ["idx_execution_lease"]),
    "that wait": (ExecutionFilter(statuses=[Status.PENDING, Status.RETRYING]), ["idx_execution_open"]),
    "that run or failed": (
        ExecutionFilter(statuses=[Status.RUNNING, Status.FAILED]),
        ["idx_execution_lease", NOT_WELL],
    ),
    "from a time on": (ExecutionFilter(fire_from=ago(1)), [BY_CREATION]),
    "until a time": (ExecutionFilter(fire_to=ago(4)), [BY_CREATION, LATE]),
    "between two times": (ExecutionFilter(fire_from=ago(5), fire_to=ago(4)), [BY_CREATION, LATE]),
    "that failed between two times": (
        ExecutionFilter(statuses=[Status.FAILED], fire_from=ago(5), fire_to=ago(4)),
        [NOT_WELL, LATE],
    ),
    "of a schedule": (ExecutionFilter(schedule_ids=[numbered(9)]), OF_SCHEDULE),
    "of a busy schedule": (ExecutionFilter(schedule_ids=[numbered(1)]), OF_SCHEDULE),
    "of a schedule triggered by hand": (ExecutionFilter(schedule_ids=[numbered(2)]), OF_SCHEDULE),
    "of a schedule between two times": (
        ExecutionFilter(schedule_ids=[numbered(1)], fire_from=ago(5), fire_to=ago(4)),
        OF_SCHEDULE,
    ),
    "of a schedule by its own times": (
        ExecutionFilter(schedule_ids=[numbered(1)], triggered_by=[TriggeredBy.SCHEDULER]),
        OF_SCHEDULE[:1],
    ),
    "of a schedule that failed": (
        ExecutionFilter(schedule_ids=[numbered(1)], statuses=[Status.FAILED]),
        [NOT_WELL],
    ),
    "of a schedule that wait": (
        ExecutionFilter(schedule_ids=[numbered(1)], statuses=[Status.PENDING]),
        ["idx_execution_open"],
    ),
    "of several schedules": (
        ExecutionFilter(schedule_ids=[numbered(n) for n in range(1, 8)]),
        OF_SCHEDULE,
    ),
}
OWN_SHAPES = {
    name: (ExecutionFilter(host_id=DEFAULT_HOST_ID, **_fields), indexes)
    for name, (_filter, indexes) in SHAPES.items()
    for _fields in [{each: getattr(_filter, each) for each in _filter.__slots__ if each != "host_id"}]
}


async def two_pages(executions: ExecutionList, wanted: ExecutionFilter) -> int:
    """The first, and the one after it."""
    first = await executions.page(wanted, limit=50)
    if first.next is not None:
        await executions.page(wanted, after=first.next, limit=50)
    return len(first.items)


@pytest.mark.parametrize("is_prepared", [False, True])
@pytest.mark.parametrize("shape", OWN_SHAPES)
async def test_executions(
    store: SqlStore, connection: asyncpg.Connection, shape: str, is_prepared: bool
) -> None:
    wanted, indexes = OWN_SHAPES[shape]
    count, statements = await issued(store, two_pages(ExecutionList(store.database), wanted))
    assert count >= 3
    reading = await carry_out(connection, statements, is_prepared=is_prepared)
    check(reading, indexes, 2 * FEW + (A_DAY if wanted.fire_to else 0))


async def test_what_is_nowhere_is_looked_for_only_so_long(
    store: SqlStore, connection: asyncpg.Connection
) -> None:
    executions = ExecutionList(store.database)
    wanted = ExecutionFilter(host_id=DEFAULT_HOST_ID, queues=["none"])
    page, statements = await issued(store, executions.page(wanted))
    assert (page.items, page.next is None) == ([], False)
    reading = await carry_out(connection, statements, is_prepared=True)
    check(reading, [BY_CREATION], MAX_WALKED + FEW)


@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ("that failed", NOT_WELL),
        ("that wait", "idx_execution_open"),
        ("between two times", LATE),
        *[("of a schedule", index) for index in OF_SCHEDULE],
    ],
)
async def test_without_its_index_the_guard_is_red(
    store: SqlStore, connection: asyncpg.Connection, shape: str, index: str
) -> None:
    wanted, indexes = OWN_SHAPES[shape]
    _, statements = await issued(store, two_pages(ExecutionList(store.database), wanted))
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(f"DROP INDEX {index}")
        if index == NOT_WELL:  # which would do instead
            await connection.execute("DROP INDEX idx_execution_failed")
        reading = await carry_out(connection, statements, is_prepared=False)
    finally:
        await transaction.rollback()
    with pytest.raises(AssertionError):
        check(reading, [each for each in indexes if each != index], 2 * FEW)


# --- schedules and queues ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize(
    ("sort", "index"),
    [(ScheduleSort.NAME, "uq_schedule_name"), (ScheduleSort.NEXT_RUN, "idx_schedule_host_next_run")],
)
async def test_schedules_in_order_of_an_index(
    store: SqlStore, connection: asyncpg.Connection, sort: ScheduleSort, index: str, is_descending: bool
) -> None:
    schedules = ScheduleList(store.database)
    wanted = ScheduleFilter(host_id=DEFAULT_HOST_ID)

    async def read() -> None:
        first = await schedules.page(wanted, sort=sort, is_descending=is_descending)
        assert len(first.items) == 50
        await schedules.page(wanted, sort=sort, is_descending=is_descending, after=first.next)

    _, statements = await issued(store, read())
    for is_prepared in (False, True):
        check(await carry_out(connection, statements, is_prepared=is_prepared), [index], 1000)


async def test_schedules_in_other_orders_are_read_once(
    store: SqlStore, connection: asyncpg.Connection
) -> None:
    schedules = ScheduleList(store.database)
    wanted = ScheduleFilter(host_id=DEFAULT_HOST_ID)
    for sort in (ScheduleSort.CREATED, ScheduleSort.UPDATED, ScheduleSort.LAST_RUN):
        _, statements = await issued(store, schedules.page(wanted, sort=sort))
        reading = await carry_out(connection, statements, is_prepared=True)
        assert reading.read["schedule_t"] <= SCHEDULES + 100, reading.text


async def test_names_are_found_by_their_index(store: SqlStore, connection: asyncpg.Connection) -> None:
    schedules = ScheduleList(store.database)
    names = [f"schedule-{n}" for n in range(1, 40)]
    found, statements = await issued(store, schedules.by_names(DEFAULT_HOST_ID, names))
    assert len(found) == 38
    check(await carry_out(connection, statements, is_prepared=False), ["uq_schedule_name"], 200)


@pytest.mark.parametrize(("part", "count"), [("schedule-1999", 11), ("DULE-1234", 10), ("e-77_", 0)])
async def test_what_is_rare_is_found_by_its_trigrams(
    store: SqlStore, connection: asyncpg.Connection, part: str, count: int
) -> None:
    wanted = ScheduleFilter(host_id=DEFAULT_HOST_ID, q=part)
    found, statements = await issued(store, ScheduleList(store.database).page(wanted))
    assert len(found.items) == count
    for is_prepared in (False, True):
        reading = await carry_out(connection, statements, is_prepared=is_prepared)
        check(reading, ["idx_schedule_text_search"], 2_000)


async def test_queues_are_counted_by_the_index_of_what_is_claimable(
    store: SqlStore, connection: asyncpg.Connection
) -> None:
    found, statements = await issued(store, Queues(store.database).page(DEFAULT_HOST_ID))
    assert [sum(each.depth.values()) > 0 for each in found] == [True] * 5
    for is_prepared in (False, True):
        reading = await carry_out(connection, statements, is_prepared=is_prepared)
        check(reading, ["idx_execution_claimable", "idx_execution_lease"], 500)
