"""Imports into a real server, the tables of a real database, and the commands that the task `shell` runs."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
import typer
from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    insert,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from foliot.cli.commands import import_schedules
from foliot.cli.support.api_failures import ending
from foliot.cli.support.exits import run_command
from foliot.cli.support.rest_client import ApiClient
from foliot.cli.support.server_choice import Server
from foliot.contrib.shell import app as shell_app
from foliot.importers import django_celery_beat
from foliot.importers.django_celery_beat import load, read
from foliot.kinds.function_target import FunctionRunner
from foliot.kinds.target_protocol import Assignment, AttemptFailedError, Fire, LogLine
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.schedule import ScheduleSpec
from foliot.worker.isolation.processes import Processes
from tests.cluster.processes import Node
from tests.engine import until
from tests.servers import free_port

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = "an-operators-key-of-forty-characters-long"
SECRET = "not for commands, whoever wrote them"
DEADLINE_S = 60


# --- into a server ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A `foliot up` whose worker has the task function `shell`."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    settings = {"FOLIOT_API_PORT": str(port), "FOLIOT_ADMIN_KEY": KEY, "FOLIOT_RATE_LIMIT": "off"}
    url = f"sqlite:///{folder / 'foliot.db'}"
    node = Node("up", url, folder, "up", "--tasks", "foliot.contrib.shell", **settings)
    try:
        at = Server(f"http://127.0.0.1:{port}", KEY)
        _await_ready(node, at)
        yield at
    finally:
        node.kill()


def _await_ready(node: Node, at: Server) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            with ApiClient(at, tries=1) as api:
                if api.get("task-functions")["items"]:
                    return
        except Exception:
            assert node.is_running, node.told()
        assert time.monotonic() < deadline, node.told()
        time.sleep(0.1)


@pytest.fixture
def api(server: Server) -> Iterator[ApiClient]:
    """The server's API, without any schedule."""
    with ApiClient(server) as opened:
        for schedule in opened.items("schedules").items:
            opened.delete(f"schedules/{schedule['schedule_id']}")
        yield opened


class Said:
    def __init__(self, code: int, captured: Any) -> None:
        self.code, self.out, self.err = code, captured.out, captured.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def actions(self) -> dict[str, str]:
        return {item["name"]: item["action"] for item in self.json["items"]}


Import = Callable[..., Said]


@pytest.fixture
def imported(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Import:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOLIOT_URL", server.url)
    monkeypatch.setenv("FOLIOT_KEY", server.key)
    monkeypatch.syspath_prepend(tmp_path)
    command = typer.main.get_command(import_schedules.app)

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        code = run_command(lambda: ending(lambda: command.main(args=arguments, standalone_mode=False)))
        return Said(code, capsys.readouterr())

    return run


def schedules(api: ApiClient) -> dict[str, dict[str, Any]]:
    return {schedule["name"]: schedule for schedule in api.items("schedules").items}


TAB = "0 2 * * mon-fri /usr/bin/backup\n@reboot start\n*/5 * * * * echo hello\n"


def test_a_dry_run_shows_what_would_be_made_and_makes_nothing(
    imported: Import, api: ApiClient, tmp_path: Path
) -> None:
    (tmp_path / "tab").write_text(TAB)
    said = imported("crontab", "tab", "--tz", "Europe/Berlin", "--dry-run")
    assert said.code == 0
    header, backup, echo = said.out.splitlines()
    assert header.split() == ["NAME", "FROM", "WHEN", "TARGET", "ACTION"]
    assert "At 02:00" in backup
    assert "(Europe/Berlin)" in backup
    assert echo.split()[0] == "echo-hello"
    assert "left out: line 2: @reboot start" in said.err
    assert said.err.splitlines()[-1] == "nothing was done: 2 to create, 1 left out"
    assert "\x1b" not in said.out + said.err
    assert schedules(api) == {}


def test_an_import_makes_the_schedules_and_done_again_changes_nothing(
    imported: Import, api: ApiClient, tmp_path: Path
) -> None:
    (tmp_path / "tab").write_text(TAB)
    first = imported("crontab", "tab", "--tz", "UTC", "-o", "json")
    assert (first.code, first.actions) == (0, {"backup": "create", "echo-hello": "create"})
    made = schedules(api)
    assert made["backup"]["trigger"]["expression"] == "0 2 * * mon-fri"
    assert made["backup"]["target"]["args"]["command"] == "/usr/bin/backup"
    assert made["backup"]["overlap"]["policy"] == "allow"
    assert made["backup"]["managed_source"] == "import-crontab"
    again = imported("crontab", "tab", "--tz", "UTC", "-o", "json")
    assert (again.code, set(again.actions.values())) == (0, {"unchanged"})
    (tmp_path / "tab").write_text(TAB.replace("0 2", "0 3"))
    third = imported("crontab", "tab", "--tz", "UTC", "-o", "json")
    assert third.actions == {"backup": "update", "echo-hello": "unchanged"}
    assert schedules(api)["backup"]["trigger"]["expression"] == "0 3 * * mon-fri"


def test_who_says_no_gets_nothing(
    imported: Import, api: ApiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tab").write_text(TAB)
    asked: list[str] = []

    def only_with_yes(question: str, *, is_yes: bool) -> bool:
        asked.append(question)
        return is_yes

    monkeypatch.setattr(import_schedules, "may", only_with_yes)
    said = imported("crontab", "tab", "--tz", "UTC")
    assert (said.code, asked) == (1, ["Make 2 schedules?"])
    assert schedules(api) == {}
    assert imported("crontab", "tab", "--tz", "UTC", "-y").code == 0
    assert len(schedules(api)) == 2


def test_what_the_server_refuses_is_told_one_by_one_and_the_rest_is_made(
    imported: Import, api: ApiClient, tmp_path: Path
) -> None:
    (tmp_path / "jobs_to_import.py").write_text(
        "from datetime import timedelta\n"
        "class IntervalTrigger:\n    interval = timedelta(hours=1)\n"
        "class Job:\n"
        "    trigger = IntervalTrigger(); args = (); executor = 'default'\n"
        "    def __init__(self, name, function, **kwargs):\n"
        "        self.id = self.name = name; self.func_ref = f'm:{function}'; self.kwargs = kwargs\n"
        "class Scheduler:\n    state = 0\n"
        "    def get_jobs(self):\n"
        "        return [Job('unknown', 'nope'), Job('good', 'shell', command='true'),\n"
        "                Job('wrong', 'shell', colour='blue')]\n"
        "scheduler = Scheduler()\n"
    )
    said = imported("apscheduler", "--scheduler", "jobs_to_import:scheduler", "-o", "json")
    assert said.code == 1
    assert said.actions == {"unknown": "refused", "good": "create", "wrong": "refused"}
    errors = {item["name"]: item["error"] for item in said.json["items"]}
    assert 'no worker has registered a task function "nope"' in errors["unknown"]
    assert "colour" in errors["wrong"]
    assert 'foliot: unknown (job "unknown"): refused' in said.err
    assert set(schedules(api)) == {"good"}


def test_a_schedule_in_other_hands_is_left_to_them_unless_it_is_adopted(
    imported: Import, api: ApiClient, tmp_path: Path
) -> None:
    (tmp_path / "tab").write_text(TAB)
    other = {"kind": "function", "name": "shell", "args": {"command": "other"}}
    api.post(
        "schedules", {"name": "backup", "trigger": {"kind": "cron", "expression": "@daily"}, "target": other}
    )
    first = imported("crontab", "tab", "--tz", "UTC", "--source", "web1", "-o", "json")
    assert (first.code, first.actions) == (1, {"backup": "conflict", "echo-hello": "create"})
    assert "backup (line 1): conflict: a schedule of this name exists already; --adopt would" in first.err
    assert schedules(api)["backup"]["target"]["args"] == {"command": "other"}, "made by hand, and left alone"
    (tmp_path / "tab").write_text(TAB.replace("*/5", "*/6"))
    second = imported("crontab", "tab", "--tz", "UTC", "--source", "web2", "-o", "json")
    assert second.actions == {"backup": "conflict", "echo-hello": "conflict"}
    adopted = imported("crontab", "tab", "--tz", "UTC", "--source", "web2", "--adopt", "-o", "json")
    assert (adopted.code, set(adopted.actions.values())) == (0, {"update"})
    assert {schedule["managed_source"] for schedule in schedules(api).values()} == {"web2"}


def test_more_than_fit_into_a_request_are_imported_in_several(
    imported: Import, api: ApiClient, tmp_path: Path
) -> None:
    (tmp_path / "tab").write_text("".join(f"{n % 60} {n % 24} * * * job{n}\n" for n in range(130)))
    said = imported("crontab", "tab", "--tz", "UTC", "-o", "name")
    assert said.code == 0
    assert said.out.splitlines() == [f"job{n}" for n in range(130)]
    assert len(schedules(api)) == 130


def test_a_target_that_no_agent_may_have_is_refused_for_each(
    imported: Import, api: ApiClient, tmp_path: Path
) -> None:
    (tmp_path / "tab").write_text(TAB)
    said = imported("crontab", "tab", "--tz", "UTC", "--target", "http:http://127.0.0.1:9/run")
    assert said.code == 1
    assert said.err.count("internal address") == 2
    assert said.out.count("refused") == 2


def test_an_imported_command_runs_as_its_line_says(imported: Import, api: ApiClient, tmp_path: Path) -> None:
    (tmp_path / "tab").write_text("GREETING=hello\n0 2 1 1 * cat; echo $GREETING >&2%from the input\n")
    assert imported("crontab", "tab", "--tz", "UTC").code == 0
    [schedule] = api.items("schedules").items
    execution_id = api.post(f"schedules/{schedule['schedule_id']}/trigger", {})["execution_id"]
    deadline = time.monotonic() + DEADLINE_S
    while (execution := api.get(f"executions/{execution_id}"))["status"] in ("pending", "running"):
        assert time.monotonic() < deadline, execution
        time.sleep(0.05)
    assert execution["status"] == "success", execution
    lines = {line["message"] for line in api.get(f"executions/{execution_id}/logs")["items"]}
    assert {"from the input", "hello"} <= lines


# --- from a database ----------------------------------------------------------------------------------------


async def make_tables(url: str) -> None:
    """The tables as django-celery-beat has them, with a task of every kind."""
    metadata = MetaData()
    prefix = "django_celery_beat_"

    def table(name: str, *columns: Any) -> Table:
        return Table(prefix + name, metadata, Column("id", Integer, primary_key=True), *columns)

    interval = table("intervalschedule", Column("every", Integer), Column("period", String(24)))
    names = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year", "timezone")
    crontab = table("crontabschedule", *(Column(name, String(240)) for name in names))
    clocked = table("clockedschedule", Column("clocked_time", DateTime(timezone=True)))
    solar = table(
        "solarschedule",
        Column("event", String(24)),
        Column("latitude", Numeric(9, 6)),
        Column("longitude", Numeric(9, 6)),
    )
    kinds = ("interval", "crontab", "clocked", "solar")
    tasks = table(
        "periodictask",
        Column("name", String(200), unique=True),
        Column("task", String(200)),
        *(Column(f"{kind}_id", ForeignKey(f"{prefix}{kind}schedule.id")) for kind in kinds),
        *(Column(name, Text) for name in ("args", "kwargs", "headers", "description")),
        *(Column(name, String(200)) for name in ("queue", "exchange", "routing_key")),
        *(Column(name, Integer) for name in ("priority", "expire_seconds", "total_run_count")),
        *(Column(name, Boolean) for name in ("one_off", "enabled")),
        *(Column(name, DateTime(timezone=True)) for name in ("expires", "start_time", "last_run_at")),
    )
    base = {"task": "proj.a", "args": "[]", "kwargs": "{}", "one_off": False, "enabled": True}
    start = datetime(2026, 5, 1, 3, tzinfo=UTC)
    driver = url.replace("sqlite:", "sqlite+aiosqlite:").replace("postgresql:", "postgresql+asyncpg:")
    engine = create_async_engine(driver)
    async with engine.begin() as connection:
        await connection.run_sync(metadata.create_all)
        await connection.execute(insert(interval), {"id": 1, "every": 10, "period": "minutes"})
        await connection.execute(
            insert(crontab),
            dict(zip(("id", *names), (1, "0", "2", "*", "*", "*", "Asia/Tokyo"), strict=True)),
        )
        at = datetime(2030, 1, 1, tzinfo=UTC)
        await connection.execute(insert(clocked), {"id": 1, "clocked_time": at})
        await connection.execute(insert(solar), {"id": 1, "event": "dawn", "latitude": 1, "longitude": 2})
        rows = (
            {"name": "often", "interval_id": 1, "start_time": start},
            {"name": "nightly", "crontab_id": 1, "enabled": False},
            {"name": "once", "clocked_id": 1, "one_off": True},
            {"name": "dawn", "solar_id": 1},
        )
        for row in rows:
            await connection.execute(insert(tasks), {**base, **row})
    await engine.dispose()


async def test_the_tables_of_django_celery_beat_are_read(database_url: str) -> None:
    await make_tables(database_url)
    told = read(await load(database_url), now=NOW)
    documents = {item.name: item.document for item in told.items}
    assert set(documents) == {"often", "nightly", "once"}
    assert documents["often"]["start_ts"] == "2026-05-01T03:00:00+00:00"
    assert documents["nightly"]["trigger"]["timezone"] == "Asia/Tokyo"
    assert documents["nightly"]["active"] is False
    assert documents["once"]["trigger"]["at"] == "2030-01-01T00:00:00+00:00"
    assert [problem.what for problem in told.problems] == ["dawn"]


async def test_a_connection_to_the_tables_can_not_write(database_url: str) -> None:
    await make_tables(database_url)
    engine = django_celery_beat._engine(database_url)
    async with engine.connect() as connection:
        with pytest.raises(DBAPIError, match=r"read-?only"):
            await connection.execute(text("DELETE FROM django_celery_beat_periodictask"))
    await engine.dispose()


# --- the task function --------------------------------------------------------------------------------------

Run = Callable[..., Any]
on_one_loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shell() -> AsyncIterator[Run]:
    """Runs the task function as a worker does, and keeps what it says."""
    processes = Processes(list(shell_app.tasks))
    runner = FunctionRunner(shell_app.tasks, processes)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FOLIOT_SECRET_KEY", SECRET)
        await processes.start()

    async def run(said: list[LogLine] | None = None, **args: Any) -> Any:
        target = {"kind": "function", "name": "shell", "args": args}
        trigger = {"kind": "cron", "expression": "@daily"}
        spec = ScheduleSpec.parse({"name": "a", "trigger": trigger, "target": target})
        fire = Fire(new_id(), new_id(), "a", NOW, 1)
        lines = said if said is not None else []
        return await runner.run(Assignment(fire, spec, args, DEFAULT_HOST_ID, lines.append))

    yield run
    await processes.close()


@on_one_loop
async def test_what_a_command_prints_is_its_log(shell: Run) -> None:
    said: list[LogLine] = []
    assert await shell(said, command="echo one; echo two >&2") == 0
    assert {(line.logger, line.message) for line in said} == {("stdout", "one"), ("stderr", "two")}


@on_one_loop
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("exit 3", "exit code 3"),
        ("no-such-program", "exit code 127"),
        ("kill -KILL $$", "ended by SIGKILL"),
    ],
)
async def test_a_command_that_does_not_end_well_fails_the_attempt(
    shell: Run, command: str, told: str
) -> None:
    with pytest.raises(AttemptFailedError, match=told) as failure:
        await shell(command=command)
    assert not failure.value.is_permanent, "the schedule's retries decide"


@on_one_loop
async def test_a_command_sees_what_the_schedule_gives_and_nothing_of_the_worker(shell: Run) -> None:
    said: list[LogLine] = []
    await shell(said, command="env", env={"REGION": "eu"})
    seen = dict(line.message.partition("=")[::2] for line in said)
    assert seen["REGION"] == "eu"
    assert {"HOME", "LOGNAME", "PATH", "SHELL"} <= seen.keys()
    assert SECRET not in seen.values()
    assert not [name for name in seen if name.startswith("FOLIOT")]


@on_one_loop
async def test_a_command_gets_its_input_and_starts_where_it_should(shell: Run, tmp_path: Path) -> None:
    said: list[LogLine] = []
    await shell(said, command="pwd; cat", stdin="one\n", directory=str(tmp_path))
    assert [line.message for line in said] == [str(tmp_path), "one"]
    at_home: list[LogLine] = []
    await shell(at_home, command="pwd", env={"HOME": str(tmp_path)})
    assert [line.message for line in at_home] == [str(tmp_path)]


@on_one_loop
async def test_the_shell_is_the_one_that_is_asked_for(shell: Run, tmp_path: Path) -> None:
    own = tmp_path / "own-shell"
    own.write_text('#!/bin/sh\necho "$0 was told: $2"\n')
    own.chmod(0o755)
    said: list[LogLine] = []
    await shell(said, command="anything", env={"SHELL": str(own)})
    assert [line.message for line in said] == [f"{own} was told: anything"]


@on_one_loop
@pytest.mark.parametrize("args", [{"directory": "/no/such/folder"}, {"env": {"SHELL": "/no/such/shell"}}])
async def test_what_is_not_there_is_told_and_not_tried_again(shell: Run, args: dict[str, Any]) -> None:
    with pytest.raises(AttemptFailedError, match="there is no /no/such") as failure:
        await shell(command="true", **args)
    assert failure.value.is_permanent


@on_one_loop
async def test_a_command_that_is_stopped_ends_with_all_that_it_has_started(shell: Run) -> None:
    said: list[LogLine] = []
    command = "trap '' TERM; sleep 60 & echo $$ $!; setsid sleep 61 & echo $!; wait; sleep 62"
    running = asyncio.create_task(shell(said, command=command))
    await until(lambda: len(said) == 2 or running.done())
    pids = [int(pid) for line in said for pid in line.message.split()]
    assert all(psutil.pid_exists(pid) for pid in pids)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    # All were killed by now; that they are gone takes the kernel a moment.
    await until(lambda: not any(_is_running(pid) for pid in pids), every_s=0.001)


def _is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_worker_has_the_task_only_if_it_was_asked_to() -> None:
    from foliot.cli.process.task_modules import load_app

    assert [task.name for task in load_app(["foliot.contrib.shell"]).tasks] == ["shell"]
    assert "shell" not in load_app([]).tasks
