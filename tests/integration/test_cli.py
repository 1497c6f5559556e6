"""Commands that look at a database, on both databases; and how commands that can't start say so."""

import asyncio
import json
import os
import socket
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml

from foliot.cli import main
from foliot.cli.process.checks import CheckResult, ok
from tests import forked_cli
from tests.servers import free_port

DEADLINE_S = 60

Json = Callable[..., tuple[int, Any]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test starts in a folder of its own, without settings."""
    for name in [name for name in os.environ if name.startswith("FOLIOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def on_database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", database_url)
    return database_url


@pytest.fixture
def as_json(capsys: pytest.CaptureFixture[str]) -> Json:
    """Runs a command with `-o json`; its exit code and its data."""

    def run(*arguments: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = main([*arguments, "-o", "json"])
        return code, json.loads(capsys.readouterr().out)

    return run


def _run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return forked_cli.run(*arguments, env={**os.environ, **settings}, timeout=DEADLINE_S)


def _statuses(findings: list[dict[str, str]]) -> dict[str, str]:
    return {finding["check"]: finding["status"] for finding in findings}


# --- db --------------------------------------------------------------------------------------------


def test_an_upgrade_brings_an_empty_database_up_to_date_and_says_what_it_did(
    folder: Path, as_json: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    code, before = as_json("db", "status")
    assert (code, before["current"], before["is_usable"]) == (1, None, False)
    assert before["pending"][-1] == before["wanted"]

    assert main(["db", "upgrade"]) == 0
    told = capsys.readouterr().out
    assert all(f"applied {revision}" in told for revision in before["pending"])

    code, after = as_json("db", "status")
    assert (code, after["current"], after["pending"]) == (0, before["wanted"], [])


def test_a_second_upgrade_finds_nothing_to_do(on_database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["db", "upgrade"]) == 0
    capsys.readouterr()
    assert main(["db", "upgrade"]) == 0
    assert "is up to date" in capsys.readouterr().out


def test_looking_at_a_database_file_that_is_not_there_does_not_make_it(folder: Path, as_json: Json) -> None:
    as_json("db", "status")
    as_json("doctor")
    assert list(folder.iterdir()) == []


def test_a_file_that_is_no_database_is_told_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "foliot.db").write_text("this is a text of mine, not a database\n" * 100)
    assert main(["db", "status"]) == 1
    assert capsys.readouterr().err == "foliot: the database refused: file is not a database\n"


# --- doctor ----------------------------------------------------------------------------------------


def test_a_database_in_order_passes_every_check(on_database: str, as_json: Json) -> None:
    assert main(["db", "upgrade"]) == 0
    code, findings = as_json("doctor")
    assert code == 0
    statuses = _statuses(findings)
    assert {statuses[name] for name in ("settings", "database", "schema", "clock", "tzdata")} == {"ok"}
    assert statuses["locks"] == "warn"  # nobody leads, since nothing runs


def test_a_postgres_that_may_lose_commits_is_warned_of(
    postgres_url: str, as_json: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", postgres_url)
    code, findings = as_json("doctor")
    assert code == 0
    # The tests' own server does not flush.
    assert _statuses(findings)["durability"] == "warn"


def test_a_database_that_takes_no_writes_fails(
    postgres_url: str, as_json: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", postgres_url)
    asyncio.run(_make_read_only(postgres_url))
    code, findings = as_json("doctor")
    assert code == 1
    assert "takes no writes" in next(each["detail"] for each in findings if each["check"] == "database")


async def _make_read_only(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    finally:
        await connection.close()


def test_an_empty_schema_fails_with_what_to_do(folder: Path, as_json: Json) -> None:
    sqlite3.connect(folder / "foliot.db").execute("CREATE TABLE mine (id)").connection.close()
    code, findings = as_json("doctor")
    assert code == 1
    schema = next(each for each in findings if each["check"] == "schema")
    assert (schema["status"], schema["advice"]) == ("fail", "run `foliot db upgrade`")


def test_a_missing_lock_row_fails(folder: Path, as_json: Json) -> None:
    assert main(["db", "upgrade"]) == 0
    database = sqlite3.connect(folder / "foliot.db")
    database.execute("DELETE FROM scheduler_lock_t")
    database.commit()
    database.close()
    code, findings = as_json("doctor")
    assert (code, _statuses(findings)["locks"]) == (1, "fail")


def test_a_wrong_setting_fails_and_the_rest_is_still_looked_at(
    as_json: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_SHARD", "3")
    code, findings = as_json("doctor")
    assert code == 1
    assert _statuses(findings) == {"settings": "fail", "tzdata": "ok"}
    assert "FOLIOT_SHARDS" in findings[0]["detail"]


def test_a_database_out_of_reach_fails(as_json: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", f"postgresql://user:hidden@127.0.0.1:{free_port()}/none")
    code, findings = as_json("doctor")
    assert code == 1
    assert _statuses(findings) == {"settings": "ok", "database": "fail", "tzdata": "ok"}
    assert "hidden" not in json.dumps(findings)


def test_a_collector_that_is_no_address_fails(as_json: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    # The one that all of OpenTelemetry shares is no setting of Foliot's, and still would not let it start.
    for name in ("FOLIOT_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        with monkeypatch.context() as patched:
            patched.setenv(name, "http://collector:notaport")
            code, findings = as_json("doctor")
        assert (code, findings[0]["status"]) == (1, "fail")
        assert findings[0]["detail"].startswith(f"{name}: ")


def test_a_folder_of_secrets_that_is_not_there_fails(
    folder: Path, as_json: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["db", "upgrade"]) == 0
    monkeypatch.setenv("FOLIOT_SECRETS_DIR", str(folder / "mounted"))
    code, findings = as_json("doctor")
    assert (code, _statuses(findings)["secret-files"]) == (1, "fail")
    (folder / "mounted").mkdir()
    code, findings = as_json("doctor")
    assert (code, _statuses(findings)["secret-files"]) == (0, "ok")


def test_findings_are_shown_as_every_other_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["db", "upgrade"]) == 0
    capsys.readouterr()
    assert main(["doctor", "-o", "yaml"]) == 0
    findings = yaml.safe_load(capsys.readouterr().out)
    assert set(findings[0]) == {"check", "status", "detail", "advice"}
    assert main(["doctor", "-o", "name"]) == 0
    assert capsys.readouterr().out.splitlines() == [each["check"] for each in findings]


def test_what_is_found_is_shown_before_what_takes_longer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    async def examine(_clock: object) -> AsyncIterator[CheckResult]:
        for check in ("settings", "durability"):
            yield ok(check, "all well")
            shown.append(capsys.readouterr().out)

    monkeypatch.setattr("foliot.cli.process.checks.examine", examine)
    assert main(["doctor"]) == 0
    assert shown == ["ok    settings      all well\n", "ok    durability    all well\n"]


def test_the_table_has_a_line_for_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["db", "upgrade"]) == 0
    capsys.readouterr()
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == [
        "settings",
        "database",
        "schema",
        "clock",
        "locks",
        "firing",
        "tasks",
        "queues",
        "events",
        "secrets",
        "tzdata",
        "journal",
    ]
    assert "\x1b" not in "".join(lines)


# --- commands that can't start ---------------------------------------------------------------------


def _assert_one_line(ended: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    assert ended.returncode == code, ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("foliot: ")
    assert all(part in last for part in parts), last
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def _assert_last_of_log(ended: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    assert ended.returncode == code, ended.stderr
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert (lines[-1]["event"], lines[-1]["level"], lines[-1]["exit_code"]) == (
        "process_failed",
        "error",
        code,
    )
    assert all(part in lines[-1]["error"] for part in parts), lines[-1]
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("role", ["scheduler", "worker"])
def test_a_role_refuses_a_database_without_schema(role: str, folder: Path) -> None:
    _assert_last_of_log(_run(role), 1, "has no schema yet", "foliot db upgrade")


@pytest.mark.parametrize("command", ["up", "scheduler", "worker", "api", "relay"])
def test_a_database_out_of_reach_ends_with_7(command: str) -> None:
    url = f"postgresql://user:hidden@127.0.0.1:{free_port()}/none"
    settings = {
        "FOLIOT_API_PORT": "0",
        "FOLIOT_RELAY": "redis://127.0.0.1:1",
        "FOLIOT_ADMIN_KEY": "k" * 32,
        "FOLIOT_METRICS_PORT": "0",
    }
    ended = _run(command, FOLIOT_DATABASE_URL=url, **settings)
    _assert_last_of_log(ended, 7, "can't be reached", "FOLIOT_DATABASE_URL")
    assert "hidden" not in ended.stderr
    assert all("instance_id" in json.loads(line) for line in ended.stderr.splitlines())


def test_on_the_console_what_ends_a_role_is_a_plain_line() -> None:
    url = f"postgresql://user:hidden@127.0.0.1:{free_port()}/none"
    ended = _run("scheduler", FOLIOT_DATABASE_URL=url, FOLIOT_LOG_FORMAT="console")
    _assert_one_line(ended, 7, "can't be reached", "FOLIOT_DATABASE_URL")


def test_a_taken_port_is_told_before_anything_starts(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _assert_last_of_log(_run("up", "--port", str(port)), 1, f"127.0.0.1:{port}", "--port")
    assert list(folder.iterdir()) == []


def test_a_module_that_is_not_there_is_a_usage_error() -> None:
    _assert_one_line(_run("up", "--tasks", "no.such.module"), 2, "--tasks no.such.module", "no.such")


def test_an_unknown_zone_in_a_module_is_a_usage_error(folder: Path) -> None:
    (folder / "jobs.py").write_text(
        "from foliot import Foliot, cron\n"
        "app = Foliot()\n"
        "app.task(name='greet')(lambda: None)\n"
        "app.schedule('greeting', 'greet', when=cron('@daily', tz='Mars/Base'))\n"
    )
    _assert_one_line(_run("worker", "--tasks", "jobs.py"), 2, "Mars/Base", "jobs.py, line 4")


@pytest.mark.parametrize(
    ("arguments", "settings", "named"),
    [
        (["up", "--port", "70000"], {}, "FOLIOT_API_PORT"),
        (["worker", "--concurrency", "0"], {}, "FOLIOT_WORKER_CONCURRENCY"),
        (["scheduler"], {"FOLIOT_SHARD": "2"}, "FOLIOT_SHARDS"),
        (["scheduler"], {"FOLIOT_DATABASE_URL": "mysql://x/y"}, "mysql"),
    ],
)
def test_a_wrong_setting_is_a_usage_error_that_names_it(
    arguments: list[str], settings: dict[str, str], named: str
) -> None:
    _assert_one_line(_run(*arguments, **settings), 2, named)
