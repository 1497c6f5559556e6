"""Real processes: `foliot up`, its roles one by one, `app.run()`; stopped cleanly, killed, started again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from sqlalchemy import select

from foliot.db.dialect import Pool
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.instance.store import SqlStore
from foliot.model.execution import OPEN, Execution, Status
from foliot.model.ids import DEFAULT_HOST_ID
from tests import forked_cli
from tests.conftest import OpenStore
from tests.engine import all_schedules, until
from tests.servers import free_port

FOLIOT = str(Path(sys.executable).with_name("foliot"))
DEADLINE_S = 60
QUICK = {
    "FOLIOT_LEASE_TTL_SECONDS": "1",
    "FOLIOT_HEARTBEAT_SECONDS": "0.2",
    "FOLIOT_POLL_SECONDS": "0.1",
    "FOLIOT_WORKER_LEASE_SECONDS": "1",
    "FOLIOT_LOG_FORMAT": "json",
}
JOBS = dedent(
    """
    import asyncio

    from foliot import Fire, Foliot, every

    app = Foliot()

    @app.task
    async def tick(fire: Fire) -> str:
        return f"{fire.fire_ts:%S}"

    @app.task
    async def linger() -> None:
        await asyncio.sleep(600)

    app.schedule("ticking", tick, when=every(seconds=1), overlap="allow")
    """
)
LINGERING = JOBS + 'app.schedule("lingering", linger, when=every(seconds=1))\n'
SCRIPT = JOBS + 'if __name__ == "__main__":\n    app.run()\n'


class Process:
    """A command that runs until it is told to stop. `foliot` is forked, other programs are started."""

    def __init__(self, folder: Path, *command: str, port: int = 0, **settings: str) -> None:
        self.port = port or free_port()
        self._log = folder / f"log-{self.port}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
        environment |= {**QUICK, "FOLIOT_API_PORT": str(self.port), **settings}
        self._process: subprocess.Popen[bytes] | forked_cli.Command
        with self._log.open("ab") as log:
            if command[0] == "foliot":
                self._process = forked_cli.Command(
                    *command[1:], cwd=folder, env=environment, stdout=log, stderr=log
                )
            else:
                self._process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def get(self, path: str) -> tuple[int, str]:
        """A status and a body; 0 when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    async def answers(self, path: str, status: int = 200) -> str:
        """Wait until a path answers with this status."""
        body = ""

        async def does() -> bool:
            nonlocal body
            assert self._process.poll() is None, self.log
            got, body = await asyncio.to_thread(self.get, path)
            return got == status

        await until(does)
        return body

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ended(self) -> int:
        return self._process.wait(timeout=DEADLINE_S)

    def stop(self) -> None:
        """Tell it to stop, and see that it does so cleanly."""
        self.send(signal.SIGTERM)
        assert self.ended() == 0, self.log
        assert "Traceback" not in self.log

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts commands in this test's folder; whatever still runs after the test is killed."""
    started: list[Process] = []

    def run(*command: str, **settings: Any) -> Process:
        started.append(Process(tmp_path, *command, **settings))
        return started[-1]

    yield run
    for process in started:
        process.kill()


async def ledger(store: SqlStore, name: str) -> list[Execution]:
    """A schedule's executions, oldest fire time first."""
    schedule = await store.schedules.find(DEFAULT_HOST_ID, name)
    return [] if schedule is None else (await store.schedules.executions(schedule.schedule_id))[::-1]


async def seen(store: SqlStore, name: str, status: Status, count: int) -> None:
    """Wait until a schedule has so many executions of a status."""

    async def enough() -> bool:
        return sum(each.status is status for each in await ledger(store, name)) >= count

    await until(enough)


def decided(executions: list[Execution]) -> list[datetime]:
    """Every fire time that these rows of a schedule each second decide, in order."""
    times = []
    for each in executions:
        first = each.missed_from_ts or each.fire_ts
        times += [first + timedelta(seconds=step) for step in range(each.missed_count + 1)]
        assert times[-1] == each.fire_ts
    return times


def _write(folder: Path, text: str) -> str:
    (folder / "jobs.py").write_text(text)
    return "jobs.py"


async def test_up_fires_says_so_and_stops_cleanly(
    tmp_path: Path, database_url: str, start: Start, open_test_store: OpenStore
) -> None:
    store = await open_test_store(database_url)
    # A lease that a busy machine does not lose: one that ran out is not given back at the end.
    settings = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_LEASE_TTL_SECONDS": "20"}
    # On one of the databases it is the installed program.
    program = FOLIOT if database_url.startswith("sqlite") else "foliot"
    up = start(program, "up", "--tasks", _write(tmp_path, JOBS), **settings)
    assert json.loads(await up.answers("/healthz")) == {"status": "ok"}
    assert json.loads(await up.answers("/readyz")) == {"status": "ready", "problems": []}
    await seen(store, "ticking", Status.SUCCESS, 2)
    metrics = await up.answers("/metrics")
    assert float(metrics.split("\nfoliot_scheduler_fires_total ")[1].split("\n")[0]) >= 2
    assert f"http://127.0.0.1:{up.port}" in up.log

    up.stop()
    rows = await ledger(store, "ticking")
    assert not [each for each in rows if each.status is Status.RUNNING]
    assert all(each.result == f"{each.fire_ts:%S}" for each in rows if each.status is Status.SUCCESS)
    assert await _leader(store) == ""


async def _leader(store: SqlStore) -> str:
    async with store.database.read(Pool.API) as connection:
        return str((await connection.execute(select(scheduler_lock_t.c.instance_id))).scalar_one())


async def test_the_demo_shows_fires_and_skips_within_seconds(
    sqlite_url: str, start: Start, open_test_store: OpenStore
) -> None:
    store = await open_test_store(sqlite_url)
    up = start("foliot", "up", "--demo", FOLIOT_STOP_GRACE_SECONDS="0")
    await seen(store, "demo-heartbeat", Status.SUCCESS, 1)
    await seen(store, "demo-slow", Status.RUNNING, 1)
    await seen(store, "demo-slow", Status.SKIPPED, 1)
    up.stop()
    slow = await ledger(store, "demo-slow")
    assert {each.reason for each in slow if each.status is Status.SKIPPED} == {"overlap"}
    assert not [each for each in slow if each.status is Status.RUNNING]
    names = [schedule.spec.name for schedule in await all_schedules(store)]
    assert names == [
        "demo-flaky",
        "demo-heartbeat",
        "demo-patient",
        "demo-quarter-minute",
        "demo-slow",
    ]


async def test_after_a_kill_every_second_is_decided_exactly_once(
    tmp_path: Path, sqlite_url: str, start: Start, open_test_store: OpenStore
) -> None:
    store = await open_test_store(sqlite_url)
    command = ("foliot", "up", "--tasks", _write(tmp_path, JOBS))
    killed = start(*command)
    await seen(store, "ticking", Status.SUCCESS, 2)
    killed.send(signal.SIGKILL)
    killed.ended()
    before = await ledger(store, "ticking")

    async def missed() -> bool:
        return await store.now() > before[-1].fire_ts + timedelta(seconds=3)

    await until(missed)
    again = start(*command)
    await seen(store, "ticking", Status.SUCCESS, len(before) + 2)
    again.stop()

    rows = await ledger(store, "ticking")
    assert any(each.missed_count for each in rows)
    times = decided(rows)
    assert times == [times[0] + timedelta(seconds=step) for step in range(len(times))]
    # What ran when it was killed has been rescued, or waits for the next start.
    assert not [each for each in rows if each.status is Status.RUNNING]


async def test_roles_in_processes_of_their_own_work_together(
    tmp_path: Path, sqlite_url: str, start: Start, open_test_store: OpenStore
) -> None:
    store = await open_test_store(sqlite_url)
    scheduler = start("foliot", "scheduler")
    worker = start(
        "foliot", "worker", "--tasks", _write(tmp_path, JOBS), "--queues", "default", "--concurrency", "3"
    )
    await seen(store, "ticking", Status.SUCCESS, 2)
    scheduler.stop()
    worker.stop()
    rows = await ledger(store, "ticking")
    assert {each.worker_id != each.scheduler_instance_id for each in rows if each.worker_id} == {True}
    assert not [each for each in rows if each.status is Status.RUNNING]


async def test_a_worker_of_other_queues_leaves_the_work_alone(
    tmp_path: Path, sqlite_url: str, start: Start, open_test_store: OpenStore
) -> None:
    store = await open_test_store(sqlite_url)
    start("foliot", "scheduler")
    start("foliot", "worker", "--tasks", _write(tmp_path, JOBS), "--queues", "reports,mail")
    await seen(store, "ticking", Status.PENDING, 3)
    assert {each.status for each in await ledger(store, "ticking")} == {Status.PENDING}


async def test_an_application_runs_itself_as_up_does(
    tmp_path: Path, sqlite_url: str, start: Start, open_test_store: OpenStore
) -> None:
    store = await open_test_store(sqlite_url)
    script = start(sys.executable, _write(tmp_path, SCRIPT))
    await script.answers("/readyz")
    await seen(store, "ticking", Status.SUCCESS, 1)
    script.stop()


def test_an_application_that_cannot_start_ends_as_up_does(tmp_path: Path, start: Start) -> None:
    script = start(
        sys.executable,
        _write(tmp_path, SCRIPT),
        FOLIOT_DATABASE_URL=f"postgresql://user@127.0.0.1:{free_port()}/none",
    )
    assert script.ended() == 7
    assert "Traceback" not in script.log
    assert json.loads(script.log.splitlines()[-1])["error"].startswith("the database at ")


async def test_a_second_signal_hands_back_at_once_what_still_runs(
    tmp_path: Path, sqlite_url: str, start: Start, open_test_store: OpenStore
) -> None:
    store = await open_test_store(sqlite_url)
    up = start("foliot", "up", "--tasks", _write(tmp_path, LINGERING), FOLIOT_STOP_GRACE_SECONDS="600")
    await seen(store, "lingering", Status.RUNNING, 1)
    up.send(signal.SIGINT)
    assert json.loads(await up.answers("/readyz", 503))["status"] == "not ready"
    assert up.get("/healthz")[0] == 200
    up.send(signal.SIGINT)
    assert up.ended() == 0
    lingering = [each for each in await ledger(store, "lingering") if each.status in OPEN]
    assert [each.status for each in lingering] == [Status.PENDING]
