"""The examples do what they say."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from examples.reports import app as reports
from sqlalchemy import select

from foliot.db.dialect import Pool
from foliot.db.tables.cluster import instance_t, scheduler_lock_t
from foliot.instance.store import SqlStore
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.testing import TestApp
from tests.engine import until
from tests.ledger import assert_exact, decided_times
from tests.servers import free_port

ROOT = Path(__file__).parents[2]


async def test_reports_run_on_weekdays_at_seven_in_paris() -> None:
    friday = datetime(2026, 3, 27, 12, tzinfo=UTC)  # the clocks change on Sunday
    async with TestApp(reports, now=friday) as t:
        await t.advance(days=5)
        rows = await t.executions("report-eu")
    assert [row.fire_ts for row in rows] == [datetime(2026, 3, day, 5, tzinfo=UTC) for day in (30, 31)] + [
        datetime(2026, 4, 1, 5, tzinfo=UTC)
    ]
    assert {row.status for row in rows} == {Status.SUCCESS}
    assert rows[0].result == "eu report for 2026-03-30"


@contextmanager
def four_server_processes(url: str, log: Path) -> Iterator[None]:
    environment = {**os.environ, "FOLIOT_DATABASE_URL": url, "PYTHONPATH": str(ROOT)}
    with log.open("wb") as output:
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "uvicorn", "examples.fastapi_app:web"),
                *("--workers", "4", "--port", str(free_port())),
            ],
            cwd=log.parent,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield
            server.send_signal(signal.SIGTERM)
            assert server.wait(timeout=60) == 0, log.read_text()[-3000:]
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


async def test_four_server_processes_have_one_leader_and_one_run_per_fire_time(
    database_url: str, store: SqlStore, tmp_path: Path
) -> None:
    log = tmp_path / "uvicorn.log"
    with four_server_processes(database_url, log):

        async def all_there_and_running() -> bool:
            schedule = await store.schedules.find(DEFAULT_HOST_ID, "refresh-eur")
            if schedule is None:
                return False
            rows = await store.schedules.executions(schedule.schedule_id)
            async with store.database.read(Pool.API) as connection:
                instances = (await connection.execute(select(instance_t.c.instance_id))).all()
                leaders = select(instance_t.c.instance_id).where(instance_t.c.leader_since.is_not(None))
                leading = (await connection.execute(leaders)).all()
            has_run = sum(row.status is Status.SUCCESS for row in rows) >= 5
            return len(instances) == 4 and len(leading) >= 1 and has_run

        try:
            await until(all_there_and_running, within_s=60, every_s=0.1)
        except TimeoutError:
            raise AssertionError(log.read_text()[-3000:]) from None
        async with store.database.read(Pool.API) as connection:
            leaders = (
                await connection.execute(
                    select(instance_t.c.instance_id).where(instance_t.c.leader_since.is_not(None))
                )
            ).scalars()
            epochs = (await connection.execute(select(scheduler_lock_t.c.epoch))).scalars().all()
        assert len(list(leaders)) == 1
        assert epochs == [1]
    schedule = await store.schedules.find(DEFAULT_HOST_ID, "refresh-eur")
    assert schedule is not None
    rows = await store.schedules.executions(schedule.schedule_id)
    step = timedelta(seconds=1)
    assert_exact(rows, step, min(decided_times(rows, step)))
    fired = [row for row in rows if row.status is not Status.SKIPPED]
    assert {row.attempt for row in fired if row.status is Status.SUCCESS} == {1}
    assert "Traceback" not in log.read_text()
    assert "locked" not in log.read_text()
