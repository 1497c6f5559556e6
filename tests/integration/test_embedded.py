"""Foliot inside an application: it logs through the application's logging, and leaves the schema alone."""

import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot import Foliot, every
from foliot.db.dialect import Pool
from foliot.db.migrate import revisions, run_migrations, schema_status
from foliot.instance.store import SqlStore, open_store
from foliot.model.errors import SchemaError
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.timing.clock import SystemClock
from tests.engine import until
from tests.logging_state import logging_as_it_was

RUNS = 5


def failing(url: str) -> Foliot:
    app = Foliot(url)

    @app.task(retries=0)
    async def broken() -> None:
        raise KeyError("b")

    app.schedule("breaks", broken, when=every(seconds=1), max_runs=RUNS, overlap="allow")
    return app


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[SqlStore]:
    store = open_store(url, clock=SystemClock())
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture(autouse=True)
def _untouched() -> Iterator[None]:
    with logging_as_it_was():
        yield


async def test_failed_executions_are_lines_of_the_applications_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path / 'foliot.db'}"
    app = failing(url)
    caplog.set_level(logging.INFO, "foliot")
    handlers = [each for each in logging.getLogger().handlers if each.get_name() == "foliot"]

    def lines(event: str) -> list[logging.LogRecord]:
        return [each for each in caplog.records if getattr(each, "foliot", {}).get("event") == event]

    async with app.lifespan()(None):
        await until(lambda: len(lines("execution_failed")) >= RUNS)
    failed = lines("execution_failed")[0]
    assert (failed.name, failed.levelno) == ("foliot", logging.ERROR)
    assert "schedule_name=breaks" in failed.getMessage()
    assert "KeyError: 'b'" in failed.getMessage()
    assert lines("instance_started")
    # Nothing of this process's own was configured.
    assert [each for each in logging.getLogger().handlers if each.get_name() == "foliot"] == handlers
    assert not structlog.is_configured()


SCRIPT = """
import asyncio, sys
from foliot import Foliot, every

app = Foliot(sys.argv[1])

@app.task(retries=0)
async def broken() -> None:
    raise KeyError("b")

app.schedule("breaks", broken, when=every(seconds=1), max_runs=2, overlap="allow")

async def main() -> None:
    async with app.lifespan()(None):
        client = app.connect()
        async with client:
            while (await client.schedule("breaks")).run_count < 2:
                await asyncio.sleep(0.1)

asyncio.run(main())
"""


def test_without_any_configuration_errors_reach_stderr_also_after_the_first_task(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'foliot.db'}"
    done = subprocess.run([sys.executable, "-c", SCRIPT, url], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["execution_failed"] * 2
    assert done.stdout == ""


async def test_an_empty_database_gets_its_schema(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'foliot.db'}"
    async with failing(url).lifespan()(None), opened(url) as store:
        assert (await schema_status(store.database)).is_usable


async def older(url: str) -> None:
    """Make the schema of the revision before the last."""

    async def work(connection: AsyncConnection) -> None:
        await connection.run_sync(run_migrations, revisions()[-2])

    async with opened(url) as store:
        await store.database.write(Pool.API, work)


async def test_an_older_schema_is_refused_and_left_as_it_is_unless_asked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'foliot.db'}"
    await older(url)
    with pytest.raises(SchemaError, match=r"foliot db upgrade.*upgrade=True") as refused:
        async with failing(url).lifespan()(None):
            pass
    assert revisions()[-2] in str(refused.value)
    async with opened(url) as store:
        assert (await schema_status(store.database)).current == revisions()[-2]
    async with failing(url).lifespan(upgrade=True)(None), opened(url) as store:
        assert (await schema_status(store.database)).is_usable
        found = await store.schedules.find(DEFAULT_HOST_ID, "breaks")
        assert found is not None


async def test_what_a_task_logs_is_written_once_and_kept_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = Foliot(f"sqlite:///{tmp_path / 'foliot.db'}")

    @app.task
    async def talks() -> None:
        logging.getLogger("shop").warning("three orders")

    app.schedule("talks", talks, when=every(seconds=1), max_runs=1)
    async with app.lifespan()(None), opened(app.url or "") as store:
        schedule = await store.schedules.find(DEFAULT_HOST_ID, "talks")
        assert schedule is not None

        async def is_done() -> bool:
            rows = await store.schedules.executions(schedule.schedule_id)
            return bool(rows) and rows[0].status is Status.SUCCESS

        await until(is_done)
    assert [each.getMessage() for each in caplog.records if each.name == "shop"] == ["three orders"]
