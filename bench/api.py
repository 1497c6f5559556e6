"""Benchmark of the API: 200 requests/s, PostgreSQL, 100,000 schedules and 1,000,000 executions.

A request is sent when it is due, even if earlier ones have no answer yet. Its latency counts from the time it
was due, so a server that stalls is charged for all requests that came meanwhile. Several `foliot api`
processes run. The sender is a separate process that only sends prepared requests, to each server in turn.

`python -m bench.api [SECONDS]` measures. If a run fails, it prints the query plans of the slowest statements.
"""

import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import httpx2
import psutil
import uvloop
from tests.servers import free_port

from bench.api_sender import Answered, Wanted, send_all
from bench.lateness import percentile
from bench.servers import bench_postgres
from foliot.db.migrate import upgrade
from foliot.instance.preparation import spare_collector
from foliot.instance.store import open_store
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import ScheduleSpec
from foliot.planning.definition import Policies
from foliot.timing.clock import SystemClock

SCHEDULES = 100_000
EXECUTIONS = 1_000_000
DAYS = 30
PER_SECOND = 200
SECONDS = 30
WARM_UP = 3
"""Seconds of warm-up at the same rate, not counted: connections open and statements are prepared."""
MARK_MS = 100
"""Upper bound for the p99 latency in ms, for each of create, read, list and trigger."""
SLOW_STATEMENT_MS = 20
MAX_PLANS = 5
SAMPLE = 2_000
PROCESSES = 4
"""Number of `foliot api` processes: two per core, so that short requests wait less behind long ones."""
API = "/api/v1"

MIX = {
    "read schedule": 25,
    "read execution": 15,
    "list schedules": 6,
    "list schedules, deeper": 4,
    "list schedules by name": 4,
    "list schedules by q, common": 1,
    "list schedules by q, rare": 2,
    "list schedules by last_status": 3,
    "list executions": 2,
    "list executions, deeper": 1,
    "list executions of a schedule": 4,
    "list executions by status": 3,
    "create": 20,
    "trigger": 10,
}
"""Requests of each type per hundred. The first word is the kind that the bound applies to."""
assert sum(MIX.values()) == 100


# --- test data -----------------------------------------------------------------------------------------

FUNCTION = "work"
HTTP_TARGET = {
    "kind": "http",
    "method": "POST",
    "url": "https://agent.example/run",
    "headers": {"Authorization": "Bearer ${secret:agent_token}"},
    "body": {"report": "daily"},
}
FUNCTION_TARGET = {"kind": "function", "name": FUNCTION, "args": {"region": "eu"}}

SCHEDULE_ID = (
    "(lpad(to_hex(1767225600000 + s * 10000), 12, '0') || '70008' || lpad(to_hex(s), 15, '0'))::uuid"
)
"""The id of schedule number s. Ids start in the first days of 2026, ten seconds apart."""

TASK_ROW = f"""
INSERT INTO task_function_t (name, display_name, description, handler_path, handler_type,
    default_timeout_seconds, args_schema, created_ts, updated_ts)
VALUES ('{FUNCTION}', 'Work', '', 'app.{FUNCTION}', 'function', 300,
    '{{"type": "object", "properties": {{"region": {{"type": "string"}}}}}}', now(), now())
"""
SCHEDULE_ROWS = f"""
INSERT INTO schedule_t (schedule_id, host_id, schedule_name, description, labels, trigger, target, policies,
    effective_ts, next_fire_ts, next_run_ts, run_count, priority, queue, timeout_seconds, state, slot,
    managed_by, aggregate_version, created_by, created_ts, updated_by, updated_ts)
SELECT {SCHEDULE_ID}, $1, (ARRAY['report', 'sync', 'backup', 'invoice', 'cleanup'])[1 + s % 5] || '-' || s,
    'Number ' || s || ' of the schedules that somebody made, with a line that says what it is for',
    jsonb_build_object('team', (ARRAY['pay', 'web', 'data'])[1 + s % 3]),
    CASE s % 3
        WHEN 0 THEN '{{"kind": "interval", "frequency_unit": "HOURS", "frequency_time": 1,
                       "timezone": "UTC"}}'::jsonb
        ELSE jsonb_build_object('kind', 'cron', 'timezone', 'Europe/Berlin', 'expression',
            (s % 60) || ' ' || (s / 60 % 24) || ' * * *')
    END,
    CASE s % 2 WHEN 0 THEN $2::jsonb ELSE $3::jsonb END, $4::jsonb,
    made, due, due, 10, (ARRAY['high', 'medium', 'low'])[1 + s % 3], 'queue-' || s % 5, 300, 'active',
    s % 1024, 'api', 1, 'bench', made, 'bench', made
FROM (SELECT s, to_timestamp(1767225600 + s * 10) AS made, now() + interval '1 h' + s * interval '1 s' AS due
      FROM generate_series(1, $5::bigint) AS s) AS each
"""
VERSION_ROWS = """
INSERT INTO schedule_version_t (schedule_id, aggregate_version, host_id, change, document, paused,
    effective_ts, author, created_ts)
SELECT schedule_id, 1, host_id, 'created', policies || jsonb_build_object('name', schedule_name,
    'trigger', trigger, 'target', target), false, effective_ts, 'bench', created_ts
FROM schedule_t
"""
QUEUE_ROWS = "INSERT INTO queue_t (host_id, queue) SELECT DISTINCT host_id, queue FROM schedule_t"
TEXT_ROWS = """
INSERT INTO schedule_text_t (schedule_id, host_id, schedule_name, search_text)
SELECT schedule_id, host_id, schedule_name, lower(schedule_name || chr(10) || description) FROM schedule_t
"""
# A tenth belongs to 100 busy schedules, a hundredth was triggered by hand, the last ones are still open.
EXECUTION_ROWS = f"""
INSERT INTO execution_t (execution_id, schedule_id, host_id, aggregate_version, fire_ts, status, error,
    triggered_by, queue, priority, ready_ts, due_by_ts, lease_until, worker_id, attempt, started_ts, ended_ts,
    duration_seconds, result, scheduler_instance_id, created_ts)
SELECT (lpad(to_hex((extract(epoch FROM made) * 1000)::bigint), 12, '0') || '70008'
        || lpad(to_hex(n), 15, '0'))::uuid,
    {SCHEDULE_ID}, $1, 1, made - interval '0.1 s', status,
    CASE status WHEN 'failed' THEN 'ConnectionError: the agent did not answer' END,
    CASE WHEN n % 100 = 7 THEN 'api' ELSE 'scheduler' END,
    'queue-' || s % 5, (ARRAY['high', 'medium', 'low'])[1 + s % 3], made,
    CASE status WHEN 'pending' THEN made + interval '5 s' END,
    CASE status WHEN 'running' THEN now() + interval '1 h' END,
    CASE WHEN status NOT IN ('pending', 'skipped') THEN 'worker-1' END,
    CASE WHEN status IN ('pending', 'skipped') THEN 0 ELSE 1 END,
    CASE WHEN status NOT IN ('pending', 'skipped') THEN made END,
    CASE WHEN status NOT IN ('pending', 'running') THEN made + interval '2 s' END,
    CASE WHEN status IN ('success', 'failed', 'timeout') THEN 2.0 END,
    CASE status WHEN 'success' THEN '{{"rows": 12}}'::jsonb END, 'scheduler-1', made
FROM (
    SELECT n, 1 + CASE n % 10 WHEN 0 THEN n / 10 % 100 ELSE n * 7919 % $2::bigint END AS s,
        now() - interval '{DAYS} days' + n * (interval '{DAYS} days' / $3::bigint) AS made,
        CASE WHEN n > $3::bigint - 200 THEN (ARRAY['pending', 'running'])[1 + n % 2]
            WHEN luck < 4 THEN 'failed' WHEN luck = 4 THEN 'timeout' WHEN luck = 5 THEN 'skipped'
            ELSE 'success' END AS status
    FROM (SELECT n, abs(hashint8(n) % 200) AS luck FROM generate_series(1, $3::bigint) AS n) AS drawn
) AS numbered
"""
STATUS_ROWS = """
INSERT INTO schedule_status_t (schedule_id, last_run_ts, last_status, last_execution_id)
SELECT DISTINCT ON (schedule_id) schedule_id, started_ts, status, execution_id FROM execution_t
WHERE ended_ts IS NOT NULL AND started_ts IS NOT NULL ORDER BY schedule_id, execution_id DESC
"""


async def fill(url: str, schedules: int = SCHEDULES, executions: int = EXECUTIONS) -> None:
    store = open_store(url, clock=SystemClock())
    await upgrade(store.database)
    await store.close()
    targets = [
        ScheduleSpec.parse(
            {"name": "any", "trigger": {"kind": "delay", "seconds": 1}, "target": target}
        ).target.model_dump_json()
        for target in (HTTP_TARGET, FUNCTION_TARGET)
    ]
    connection = await asyncpg.connect(url)
    fills: list[tuple[str, Sequence[Any]]] = [
        (TASK_ROW, ()),
        (SCHEDULE_ROWS, (DEFAULT_HOST_ID, *targets, Policies().model_dump_json(), schedules)),
        (VERSION_ROWS, ()),
        (QUEUE_ROWS, ()),
        (TEXT_ROWS, ()),
        (EXECUTION_ROWS, (DEFAULT_HOST_ID, schedules, executions)),
        (STATUS_ROWS, ()),
        ("VACUUM ANALYZE", ()),
        ("CHECKPOINT", ()),
    ]
    for statement, arguments in fills:
        await connection.execute(statement, *arguments, timeout=600)
    await connection.close()


# --- requests ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """Rows and page tokens that requests refer to."""

    schedules: Sequence[tuple[str, str]]
    """(id, name)"""
    executions: Sequence[str]
    schedule_pages: Sequence[str]
    execution_pages: Sequence[str]


async def known(database_url: str, client: httpx2.AsyncClient) -> Known:
    quiet = {"auto_explain.log_min_duration": "-1"}
    connection = await asyncpg.connect(database_url, server_settings=quiet)
    # Ordering by hash gives the same sample for the same rows.
    schedules = await connection.fetch(
        "SELECT schedule_id, schedule_name FROM schedule_t ORDER BY md5(schedule_name) LIMIT $1", SAMPLE
    )
    executions = await connection.fetch(
        "SELECT execution_id FROM execution_t TABLESAMPLE SYSTEM (1) LIMIT $1", SAMPLE
    )
    await connection.close()
    return Known(
        [(str(row[0]), row[1]) for row in schedules],
        [str(row[0]) for row in executions],
        await _tokens(client, "schedules"),
        await _tokens(client, "executions"),
    )


async def _tokens(client: httpx2.AsyncClient, what: str) -> list[str]:
    """Return the tokens of pages that begin 500 to 5,000 items into a list."""
    tokens: list[str] = []
    while len(tokens) < 10:
        token = tokens[-1] if tokens else ""
        answer = await client.get(f"{API}/{what}", params={"page_size": 500, "page_token": token})
        tokens.append(answer.raise_for_status().json()["next_page_token"])
    return tokens


def requests(known: Known, count: int) -> Iterator[Wanted]:
    """Yield requests in the proportions of MIX, shuffled per hundred with a fixed seed."""
    random = Random(1)
    hundred = [kind for kind, share in MIX.items() for _ in range(share)]
    run = secrets.token_hex(4)
    for number in range(count):
        if number % 100 == 0:
            random.shuffle(hundred)
        yield _request(hundred[number % 100], known, random, f"bench-{run}-{number}")


def _request(kind: str, known: Known, random: Random, new_name: str) -> Wanted:
    schedule_id, name = random.choice(known.schedules)
    status = random.choice(["failed", "timeout", "running", "success"])
    match kind:
        case "create":
            return Wanted(kind, "POST", f"{API}/schedules", _definition(new_name, random))
        case "trigger":
            return Wanted(kind, "POST", f"{API}/schedules/{schedule_id}/trigger")
    path = {
        "read schedule": f"schedules/{schedule_id}",
        "read execution": f"executions/{random.choice(known.executions)}",
        "list schedules": "schedules",
        "list schedules, deeper": f"schedules?page_token={random.choice(known.schedule_pages)}",
        "list schedules by name": f"schedules?name={name}",
        "list schedules by q, common": "schedules?q=report",
        "list schedules by q, rare": f"schedules?q={name[2:]}",
        "list schedules by last_status": "schedules?last_status=failed",
        "list executions": "executions",
        "list executions, deeper": f"executions?page_token={random.choice(known.execution_pages)}",
        "list executions of a schedule": f"schedules/{schedule_id}/executions",
        "list executions by status": f"executions?status={status}",
    }[kind]
    return Wanted(kind, "GET", f"{API}/{path}")


def _definition(name: str, random: Random) -> dict[str, Any]:
    expression = f"{random.randrange(60)} {random.randrange(24)} * * *"
    return {
        "name": name,
        "description": "made by a benchmark",
        "trigger": {"kind": "cron", "expression": expression, "timezone": "Europe/Berlin"},
        "target": random.choice([HTTP_TARGET, FUNCTION_TARGET]),
        "labels": {"team": "pay"},
    }


# --- the sender, a process of its own ------------------------------------------------------------------


def client_of(url: str, key: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=url,
        headers={"Authorization": f"Bearer {key}"},
        timeout=30,
    )


def send_from_input(urls: str, rate: float) -> None:
    """Send the `Wanted` requests read from stdin. Write the results to stdout."""
    spare_collector()
    wanted = [Wanted(*each) for each in json.load(sys.stdin)]
    json.dump(uvloop.run(send_all(urls.split(","), os.environ["FOLIOT_KEY"], wanted, rate)), sys.stdout)


async def sent(urls: Sequence[str], key: str, wanted: Sequence[Wanted]) -> list[Answered]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.api", ",".join(urls), str(PER_SECOND)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "FOLIOT_KEY": key},
    )
    out, _ = await process.communicate(json.dumps(wanted).encode())
    assert process.returncode == 0
    return [Answered(*each) for each in json.loads(out)]


# --- the server ----------------------------------------------------------------------------------------


@contextmanager
def serving(database_url: str, key: str) -> Iterator[tuple[str, psutil.Process]]:
    """Start `foliot api` and wait until it is ready. Yield its URL and its process."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")} | {
        "FOLIOT_DATABASE_URL": database_url,
        "FOLIOT_ADMIN_KEY": key,
        "FOLIOT_API_PORT": str(port),
        "FOLIOT_RATE_LIMIT": "off",
        "FOLIOT_LOG_LEVEL": "warning",
    }
    process = subprocess.Popen([Path(sys.executable).parent / "foliot", "api"], env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_ready(url, process)
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait_ready(url: str, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx2.get(f"{url}/readyz").status_code == 200:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError("foliot api did not become ready")


async def backends(database_url: str) -> list[psutil.Process]:
    """Return the PostgreSQL processes that serve the API's connections."""
    connection = await asyncpg.connect(database_url)
    rows = await connection.fetch(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()
    return [psutil.Process(row[0]) for row in rows]


def cpu_s(*processes: psutil.Process) -> float:
    times = [each.cpu_times() for each in processes if each.is_running()]
    return sum(each.user + each.system for each in times)


# --- slow statements -----------------------------------------------------------------------------------


async def explain_slow(database_url: str) -> None:
    """Make PostgreSQL log the plans of slow statements, for connections opened from now on."""
    name = database_url.rpartition("/")[2]
    connection = await asyncpg.connect(database_url)
    for setting, value in {
        "session_preload_libraries": "auto_explain",
        "auto_explain.log_min_duration": str(SLOW_STATEMENT_MS),
    }.items():
        await connection.execute(f"ALTER DATABASE \"{name}\" SET {setting} = '{value}'")
    await connection.close()


async def slow_statements(database_url: str) -> list[tuple[float, str]]:
    """Return duration in ms and plan of the slowest run of each statement, slowest first."""
    connection = await asyncpg.connect(database_url)
    log = await connection.fetchval(
        "SELECT convert_from(pg_read_binary_file(current_setting('data_directory') || '/../log'), 'UTF8')"
    )
    await connection.close()
    found: dict[str, tuple[float, str]] = {}
    for took, plan in re.findall(r"duration: ([\d.]+) ms  plan:\n((?:\t.*\n?)+)", log):
        text = plan.partition("\n\t")[0]
        found[text] = max(found.get(text, (0.0, "")), (float(took), plan))
    return sorted(found.values(), reverse=True)


# --- measuring -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    answered: Sequence[Answered]
    cpu_ms: Mapping[str, float]
    """CPU time per request, of Foliot and of PostgreSQL."""
    load: tuple[float, float]
    """Load average of the machine in the minute before the run, and in its last minute."""
    slow: Sequence[tuple[float, str]]

    @property
    def errors(self) -> Counter[int]:
        """Number of failed requests by status. Status 0: no answer."""
        return Counter(each.status for each in self.answered if not 200 <= each.status < 300)


async def measured(database_url: str, seconds: int) -> Run:
    key = secrets.token_urlsafe(32)
    await explain_slow(database_url)
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(database_url, key)) for _ in range(PROCESSES)]
        urls = [url for url, _ in servers]
        async with client_of(urls[0], key) as client:
            wanted = list(requests(await known(database_url, client), PER_SECOND * (WARM_UP + seconds)))
        warming, counted = wanted[: PER_SECOND * WARM_UP], wanted[PER_SECOND * WARM_UP :]
        await sent(urls, key, warming)
        processes = {
            "foliot": [process for _, process in servers],
            "postgres": await backends(database_url),
        }
        before = {name: cpu_s(*each) for name, each in processes.items()}
        load_before = os.getloadavg()[0]
        answered = await sent(urls, key, counted)
        cpu_ms = {
            name: (cpu_s(*each) - before[name]) * 1000 / len(counted) for name, each in processes.items()
        }
    return Run(answered, cpu_ms, (load_before, os.getloadavg()[0]), await slow_statements(database_url))


async def run(seconds: int) -> Run:
    with bench_postgres() as new_url:
        url = await new_url()
        begin = time.monotonic()
        await fill(url)
        print(f"{SCHEDULES:,} schedules and {EXECUTIONS:,} executions in {time.monotonic() - begin:.0f} s")
        return await measured(url, seconds)


def _line(name: str, answered: Sequence[Answered]) -> str:
    took = [each.took_ms for each in answered]
    p50, p95, p99 = (percentile(took, share) for share in (0.50, 0.95, 0.99))
    return (
        f"  {name:30} p50 {p50:7.1f} ms   p95 {p95:7.1f} ms   p99 {p99:7.1f} ms   max {max(took):7.1f} ms   "
        f"({len(took):,})"
    )


def report(found: Run, seconds: int) -> bool:
    """Print the figures. Return whether no request failed and each kind met its latency bound."""
    by_kind: dict[str, list[Answered]] = {kind: [] for kind in ("read", "list", "create", "trigger")}
    by_request: dict[str, list[Answered]] = {request: [] for request in MIX}
    for each in found.answered:
        by_kind[each.kind.split()[0]].append(each)
        by_request[each.kind].append(each)
    # An answer that arrives after the end of the run lowers the achieved rate.
    late_ms = max(
        each.took_ms - (len(found.answered) - number) / PER_SECOND * 1000
        for number, each in enumerate(found.answered)
    )
    rate = len(found.answered) / (seconds + max(late_ms, 0) / 1000)
    sent_late = percentile([each.sent_ms for each in found.answered], 0.99)
    print(f"API at {PER_SECOND} requests/s for {seconds} s:")
    for request, answered in by_request.items():
        print(_line(request, answered))
    for kind, answered in by_kind.items():
        print(_line(kind.upper(), answered))
    print(_line("ALL", found.answered))
    print(
        f"  {rate:.0f} requests/s answered   "
        f"{found.errors.total()} errors {dict(found.errors) or ''}   "
        f"sent late by {sent_late:.1f} ms at p99   "
        f"CPU per request: foliot {found.cpu_ms['foliot']:.1f} ms, "
        f"PostgreSQL {found.cpu_ms['postgres']:.1f} ms   "
        f"load of the machine: {found.load[0]:.1f} before, {found.load[1]:.1f} after"
    )
    p99s = [percentile([each.took_ms for each in answered], 0.99) for answered in by_kind.values()]
    is_within = not found.errors and max(p99s) < MARK_MS
    print(f"  {'PASS' if is_within else 'FAIL'}: p99 of each kind below {MARK_MS} ms, and no errors")
    if not is_within:
        print(f"  {len(found.slow)} statements took longer than {SLOW_STATEMENT_MS} ms")
        for took, plan in found.slow[:MAX_PLANS]:
            print(f"  {took:.0f} ms\n{plan}")
    return is_within


def main(seconds: int = SECONDS) -> bool:
    """Run the benchmark. Return whether the API met its latency bound."""
    return report(uvloop.run(run(seconds)), seconds)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("http"):
        send_from_input(sys.argv[1], float(sys.argv[2]))
    else:
        sys.exit(not main(*(int(each) for each in sys.argv[1:])))
