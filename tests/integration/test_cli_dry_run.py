"""--dry-run of commands that change something, against a real `foliot up`: it says what would happen."""

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foliot.cli import main
from tests.commands import CHANGES
from tests.integration.cli_server import Up, running_up

SLACK = ("--slack", "https://hooks.slack.com/services/x")
"""Of a rule about a schedule that is not there: nothing is ever sent."""
CASES = {
    "calendar delete": ["free-days"],
    "calendar import": ["other-days", "--country", "DE"],
    "cluster drain": ["INSTANCE"],
    "cluster reshard": ["4"],
    "execution cancel": ["EXECUTION"],
    "execution retry": ["EXECUTION"],
    "key create": ["someone", "--role", "viewer"],
    "key revoke": ["ci"],
    "notification rule create": [
        "another",
        "--on",
        "failure",
        "--slack",
        "https://hooks.slack.com/services/x",
    ],
    "notification rule delete": ["tell-us"],
    "notification rule disable": ["tell-us"],
    "notification rule enable": ["tell-us"],
    "notification rule mute": ["tell-us", "--until", "2h"],
    "notification rule set": ["tell-us", "--on", "recovery"],
    "notification rule test": ["tell-us"],
    "notification rule unmute": ["tell-us"],
    "queue pause": ["default"],
    "queue resume": ["default"],
    "schedule apply": ["-f", "new.yaml"],
    "schedule backfill": ["greeting", "--from", "2020-01-01T00:00:00Z", "--to", "2021-01-02T00:00:00Z"],
    "schedule create": ["new", "--every", "1h", "--function", "greet"],
    "schedule delete": ["greeting"],
    "schedule pause": ["greeting", "--until", "2h"],
    "schedule resume": ["greeting"],
    "schedule set": ["greeting", "--every", "1h"],
    "schedule trigger": ["greeting", "--arg", "name=eu"],
    "secret delete": ["token"],
    "secret rotate": [],
    "secret set": ["other", "--value-file", "value"],
    "sign-in": [],
    "db upgrade": [],
}
APPLIED = "name: new\ntrigger: {kind: interval, hours: 1}\ntarget: {kind: function, name: greet}\n"
VOLATILE = {"instance_t", "scheduler_lock_t", "relay_t", "rate_t", "cluster_t"}
"""Written by the running instance itself."""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running_up(tmp_path_factory.mktemp("up")) as running:
        (running.folder / "new.yaml").write_text(APPLIED)
        (running.folder / "value").write_text("a value")
        yield running


class Cli:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        ended = main(arguments)
        told = self._capsys.readouterr()
        assert ended == code, told.err
        return told.err + told.out

    def one(self, *arguments: str) -> dict[str, Any]:
        self._capsys.readouterr()
        assert main([*arguments, "-o", "json"]) == 0
        items: list[dict[str, Any]] = json.loads(self._capsys.readouterr().out)
        return items[0]


@pytest.fixture
def cli(up: Up, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    for name in [name for name in os.environ if name.startswith("FOLIOT_")]:
        monkeypatch.delenv(name)
    # Key and address are those of the folder.
    monkeypatch.chdir(up.folder)
    return Cli(capsys)


@pytest.fixture
def names(cli: Cli, made: list[str]) -> dict[str, str]:
    """One of each thing that a command may change; of what the server named itself, the name."""
    if not made:
        cli("schedule", "create", "greeting", "--cron", "0 0 1 1 *", "--function", "greet")
        cli("schedule", "create", "failing", "--cron", "0 0 1 1 *", "--function", "fail")
        cli("schedule", "trigger", "failing", "--wait", code=1)
        cli("key", "create", "ci", "--role", "viewer")
        cli("calendar", "import", "free-days", "--country", "US")
        cli("secret", "set", "token", "--value-file", "value")
        cli("notification", "rule", "create", "tell-us", "--on", "recovery", "--schedule", "nothing", *SLACK)
        made.append("all")
    return {
        "INSTANCE": cli.one("instance", "list")["instance_id"],
        "EXECUTION": cli.one("execution", "list", "--status", "failed")["execution_id"],
    }


@pytest.fixture(scope="module")
def made() -> list[str]:
    return []


def _rows(folder: Path) -> dict[str, list[Any]]:
    with sqlite3.connect(f"file:{folder / 'foliot.db'}?mode=ro", uri=True) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = [name for name in tables if name not in VOLATILE]
        found = {name: sorted(map(repr, database.execute(f'SELECT * FROM "{name}"'))) for name in kept}
        # Whether an instance drains is a change; how it fares is not.
        found["draining"] = database.execute("SELECT instance_id, draining FROM instance_t").fetchall()
        found["shards"] = database.execute("SELECT COUNT(*) FROM scheduler_lock_t").fetchall()
    database.close()
    return found


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_dry_run_says_what_would_happen_and_changes_nothing(
    up: Up, cli: Cli, names: dict[str, str], name: str
) -> None:
    before = _rows(up.folder)
    told = cli(*name.split(), *(names.get(each, each) for each in CASES[name]), "--dry-run", "-y")
    assert "would" in told or "1 to create" in told or "1 to update" in told
    assert _rows(up.folder) == before


def test_every_command_that_changes_something_is_tried() -> None:
    elsewhere = ("import ", "event ", "notification retry")
    """Tried with what they import, with events, and below."""
    assert [name for name in CHANGES if name not in CASES and not name.startswith(elsewhere)] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["schedule", "delete", "nothing"],
        ["schedule", "trigger", "nothing"],
        ["secret", "delete", "nothing"],
        ["calendar", "delete", "nothing"],
        ["key", "revoke", "nothing"],
        ["cluster", "drain", "nothing"],
        ["execution", "cancel", "0197aaaa-0000-7000-8000-000000000000"],
        ["notification", "retry", "0197aaaa-0000-7000-8000-000000000000"],
    ],
)
def test_a_dry_run_on_what_is_not_there_ends_as_the_command_would(cli: Cli, arguments: list[str]) -> None:
    cli(*arguments, "--dry-run", code=3)


def test_a_dry_run_of_an_upgrade_makes_no_database(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "would apply to the database at foliot.db" in cli("db", "upgrade", "--dry-run")
    assert list(tmp_path.iterdir()) == []
