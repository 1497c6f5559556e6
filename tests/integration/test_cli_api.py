"""Commands that talk to the API, against a real `foliot up`."""

import contextlib
import json
import os
import shlex
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import yaml

from foliot.cli import main
from foliot.cli.support.api_failures import ending
from foliot.cli.support.rest_client import ApiClient
from foliot.cli.support.server_choice import Server
from tests import forked_cli
from tests.integration.cli_server import (
    ADMIN_KEY,
    DEADLINE_S,
    FOLIOT,
    Up,
    plain_environment,
    running_up,
)
from tests.servers import free_port
from tests.waiting import until


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running_up(tmp_path_factory.mktemp("up")) as running:
        yield running


class Cli:
    """Runs commands in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        ended = main(arguments)
        told = self._capsys.readouterr()
        self.err = told.err
        assert ended == code, told.err
        assert "\x1b" not in told.out + told.err
        return told.out

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "-o", "json", code=code))


@pytest.fixture
def cli(up: Up, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    for name in [name for name in os.environ if name.startswith("FOLIOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FOLIOT_URL", up.url)
    monkeypatch.setenv("FOLIOT_KEY", ADMIN_KEY)
    monkeypatch.chdir(tmp_path)
    return Cli(capsys)


@pytest.fixture
def name() -> str:
    """Tests share a server: each has schedules of its own."""
    return f"test-{uuid4().hex[:12]}"


YEARLY = ("--cron", "0 0 1 1 *")


def _greeting(cli: Cli, name: str, *more: str) -> dict[str, Any]:
    made: dict[str, Any] = cli.json("schedule", "create", name, *YEARLY, "--function", "greet", *more)
    return made


def _waiting(cli: Cli, name: str, file: Path) -> str:
    """An execution that runs until the file is there."""
    cli("schedule", "create", name, *YEARLY, "--function", "wait_for", "--arg", f"file={file}")
    execution = cli.json("schedule", "trigger", name)
    identity: str = execution["execution_id"]
    until(lambda: cli.json("execution", "get", identity)["progress"] is not None, "the execution to run")
    return identity


# --- one schedule ----------------------------------------------------------------------------------


def test_a_schedule_is_created_shown_and_listed(cli: Cli, name: str) -> None:
    made = cli.json(
        "schedule", "create", name, "--cron", "0 2 * * *", "--tz", "Europe/Berlin", "--function", "greet",
        "--arg", "name=eu", "--label", f"test={name}", "--timeout", "10m", "--retries", "1",
    )  # fmt: skip
    assert made["trigger"] == {"kind": "cron", "expression": "0 2 * * *", "timezone": "Europe/Berlin"}
    assert made["target"]["args"] == {"name": "eu"}
    assert (made["timeout_seconds"], made["retry"]["max_attempts"]) == (600, 2)
    assert cli.json("schedule", "get", name) == made
    assert cli.json("schedule", "get", made["schedule_id"]) == made
    assert cli.json("schedule", "list", "--label", f"test={name}") == [made]
    assert cli("schedule", "list", "--name", name, "-o", "name") == f"{name}\n"
    table = cli("schedule", "list", "--name", name).splitlines()
    assert table[0].split() == ["NAME", "WHEN", "TARGET", "STATE", "LAST", "NEXT"]
    assert "At 02:00 (Europe/Berlin)  function greet  active" in table[1]
    details = cli("schedule", "get", name)
    assert "\nruns        0 scheduled\n" in details
    assert f"\nid          {made['schedule_id']}\n" in details


def test_an_empty_list_is_an_empty_json_array(cli: Cli, name: str) -> None:
    assert cli("schedule", "list", "--name", name, "-o", "json") == "[]\n"
    assert cli("schedule", "list", "--name", name, "-o", "yaml") == "[]\n"
    assert cli("schedule", "list", "--name", name, "-o", "name") == ""
    assert cli("schedule", "list", "--name", name) == ""
    assert cli.err == "no schedules\n"


def test_a_list_says_that_there_is_more_and_follows_all_pages(cli: Cli, name: str, tmp_path: Path) -> None:
    many = [
        {
            "name": f"{name}-{number:02}",
            "labels": {"test": name},
            "trigger": {"kind": "cron", "expression": "0 0 1 1 *"},
            "target": {"kind": "function", "name": "greet"},
        }
        for number in range(52)
    ]
    (tmp_path / "many.json").write_text(json.dumps(many))
    cli("schedule", "apply", "-f", "many.json", "--source", name)
    mine = ("schedule", "list", "--label", f"test={name}")
    assert len(cli.json(*mine)) == 50
    assert "--all" in cli.err
    assert len(cli.json(*mine, "--all")) == 52
    assert cli.err == ""
    assert len(cli.json(*mine, "--limit", "3")) == 3
    assert cli.err == ""


def test_a_schedule_can_come_from_a_file_with_options_over_it(cli: Cli, name: str, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "trigger: {kind: once, at: 2031-01-01T00:00:00Z}\n"
        "target: {kind: function, name: greet, args: {name: file}}\n"
        "priority: low\n"
    )
    made = cli.json("schedule", "create", name, "-f", "one.yaml", "--cron", "0 0 1 1 *", "--queue", "slow")
    assert made["trigger"]["kind"] == "cron"
    assert (made["priority"], made["queue"], made["target"]["args"]) == ("low", "slow", {"name": "file"})
    other = cli.json("schedule", "create", f"{name}-b", "-f", "one.yaml", "--arg", "name=option")
    assert (other["trigger"]["kind"], other["target"]["args"]) == ("once", {"name": "option"})
    (tmp_path / "bad.yaml").write_text("trigger: 3\ntarget: {kind: function, name: greet}\n")
    cli("schedule", "create", name, "-f", "bad.yaml", "--tz", "UTC", code=2)


def test_a_dry_run_checks_all_shows_the_times_and_makes_nothing(cli: Cli, name: str) -> None:
    what = (name, "--cron", "30 2 * * *", "--tz", "Europe/Berlin", "--function", "greet", "--dry-run")
    shown = cli.json("schedule", "create", *what)
    assert shown["schedule"]["name"] == name
    assert len(shown["preview"]["fires"]) == 10
    # On stderr, so that what is on stdout stays JSON.
    assert "foliot: " in cli.err
    assert cli.json("schedule", "list", "--name", name) == []
    cli("schedule", "create", name, "--cron", "99 * * * *", "--function", "greet", "--dry-run", code=2)
    cli("schedule", "create", name, *YEARLY, "--function", "no_such_task", "--dry-run", code=2)
    _greeting(cli, name)
    cli("schedule", "create", *what, code=5)


def test_set_changes_what_is_named_and_leaves_the_rest(cli: Cli, name: str) -> None:
    made = _greeting(cli, name, "--arg", "name=eu", "--label", "a=1", "--label", "b=2")
    changed = cli.json("schedule", "set", name, "--timeout", "1m", "--label", "b=", "--no-active")
    assert changed["labels"] == {"a": "1"}
    assert (changed["timeout_seconds"], changed["active"], changed["state"]) == (60, False, "inactive")
    same = ("trigger", "target", "retry", "overlap", "queue", "schedule_id")
    assert {field: changed[field] for field in same} == {field: made[field] for field in same}
    cli("schedule", "set", name, "--rename", f"{name}-new")
    cli("schedule", "get", name, code=3)
    assert cli.json("schedule", "get", f"{name}-new")["schedule_id"] == made["schedule_id"]
    cli("schedule", "set", f"{name}-new", code=2)


def test_a_dry_run_of_set_shows_the_change_and_makes_none(cli: Cli, name: str) -> None:
    made = _greeting(cli, name)
    shown = cli("schedule", "set", name, "--cron", "0 0 2 1 *", "--rename", "other", "--dry-run")
    assert 'trigger.expression: "0 0 1 1 *" -> "0 0 2 1 *"' in shown
    assert f'name: "{name}" -> "other"' in shown
    assert cli.json("schedule", "get", name)["aggregate_version"] == made["aggregate_version"]


def test_pausing_has_a_reason_and_an_end(cli: Cli, name: str) -> None:
    _greeting(cli, name)
    paused = cli.json("schedule", "pause", name, "--reason", "moving", "--until", "2h")
    assert (paused["state"], paused["pause_reason"]) == ("paused", "moving")
    assert paused["paused_until_ts"] is not None
    assert "until" in cli.err
    resumed = cli.json("schedule", "resume", name)
    assert (resumed["state"], resumed["pause_reason"]) == ("active", None)
    assert cli("schedule", "pause", name) == ""
    assert cli.err == f"paused {name}\n"


def test_several_are_steered_at_once_and_one_that_fails_does_not_stop_the_others(cli: Cli, name: str) -> None:
    _greeting(cli, f"{name}-a")
    _greeting(cli, f"{name}-b")
    cli("schedule", "pause", f"{name}-a", "missing", f"{name}-b", code=3)
    assert 'foliot: there is no schedule "missing"\n' in cli.err
    assert cli.json("schedule", "get", f"{name}-b")["state"] == "paused"
    cli("schedule", "delete", f"{name}-a", f"{name}-b")
    assert cli.json("schedule", "list", "-q", name) == []


# --- running ---------------------------------------------------------------------------------------


def test_triggering_waits_for_the_end_and_tells_it_by_its_code(cli: Cli, name: str, tmp_path: Path) -> None:
    _greeting(cli, name)
    ended = cli.json("schedule", "trigger", name, "--arg", "name=world", "--wait")
    assert (ended["status"], ended["result"], ended["triggered_by"]) == ("success", "hello world", "api")
    cli("schedule", "create", f"{name}-bad", *YEARLY, "--function", "fail", "--retries", "0")
    failed = cli.json("schedule", "trigger", f"{name}-bad", "--wait", code=1)
    assert (failed["status"], failed["error"]) == ("failed", "ValueError: on purpose")
    file = tmp_path / "go"
    cli("schedule", "create", f"{name}-slow", *YEARLY, "--function", "wait_for", "--arg", f"file={file}")
    assert cli("schedule", "trigger", f"{name}-slow", "--wait", "--timeout", "300ms", code=6) == ""
    assert "is still" in cli.err
    file.touch()


def test_a_triggered_execution_is_in_history_and_fires(cli: Cli, name: str) -> None:
    _greeting(cli, name)
    identity = cli("schedule", "trigger", name, "--wait", "-o", "name").strip()
    assert cli("schedule", "history", name, "-o", "name") == f"{identity}\n"
    assert cli.json("schedule", "history", name, "--status", "failed") == []
    listed = cli.json("execution", "list", "--schedule", name, "--triggered-by", "api", "--from", "1h")
    assert [each["execution_id"] for each in listed] == [identity]
    planned = [each for each in cli.json("schedule", "fires", name, "-n", "3") if each["state"] == "planned"]
    assert len(planned) == 3
    assert "planned" in cli("schedule", "fires", name)


def test_a_backfill_is_awaited_and_says_whether_all_went_well(cli: Cli, name: str) -> None:
    cli("schedule", "create", name, "--cron", "0 * * * *", "--function", "greet")
    done = cli.json("schedule", "backfill", name, "--from", "5h", "--wait")
    assert (done["state"], done["total_count"], done["ended_count"]) == ("done", 5, 5)
    cli("schedule", "create", f"{name}-bad", "--cron", "0 * * * *", "--function", "fail", "--retries", "0")
    cli.json("schedule", "backfill", f"{name}-bad", "--from", "3h", "--to", "now", "--wait", code=1)
    assert "3 of its executions did not succeed" in cli.err


def test_an_execution_is_watched_to_its_end(up: Up, cli: Cli, name: str, tmp_path: Path) -> None:
    file = tmp_path / "go"
    identity = _waiting(cli, name, file)
    watching = _start(up, "execution", "watch", identity, "-o", "json")
    assert watching.stderr is not None
    assert "half way (50%)" in watching.stderr.readline()
    file.touch()
    out, _ = watching.communicate(timeout=DEADLINE_S)
    assert watching.returncode == 0
    assert json.loads(out)["result"] == "done"


def test_logs_are_followed_to_the_end(up: Up, cli: Cli, name: str, tmp_path: Path) -> None:
    file = tmp_path / "go"
    identity = _waiting(cli, name, file)
    following = _start(up, "execution", "logs", identity, "-f", "-o", "json")
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["message"] == "waiting"
    file.touch()
    rest, _ = following.communicate(timeout=DEADLINE_S)
    assert [json.loads(line)["message"] for line in rest.splitlines()] == ["done waiting"]
    assert following.returncode == 0
    assert [line["message"] for line in cli.json("execution", "logs", identity)] == [
        "waiting",
        "done waiting",
    ]
    assert cli("execution", "logs", identity, "-o", "name") == "waiting\ndone waiting\n"
    assert "WARNING waiting" in cli("execution", "logs", identity)


def test_an_execution_is_cancelled_and_retried(cli: Cli, name: str, tmp_path: Path) -> None:
    file = tmp_path / "go"
    identity = _waiting(cli, name, file)
    cli("execution", "cancel", identity, "--reason", "enough")
    assert cli.json("execution", "watch", identity, code=1)["status"] == "cancelled"
    cli("execution", "cancel", identity, code=5)
    file.touch()
    cli("execution", "retry", identity)
    assert cli.json("execution", "watch", identity)["status"] == "success"
    assert "attempt" in cli("execution", "get", identity)


def test_what_code_returns_can_not_steer_the_terminal(cli: Cli, name: str) -> None:
    _greeting(cli, name)
    shown = cli("schedule", "trigger", name, "--arg", 'name="\\u001b[31mred\\u0007"', "--wait")
    assert "hello \\x1b[31mred\\x07" in shown


# --- files -----------------------------------------------------------------------------------------


def _write(folder: Path, name: str, *documents: dict[str, Any]) -> str:
    (folder / name).write_text(yaml.safe_dump_all(documents))
    return name


def _document(name: str, hour: int = 2) -> dict[str, Any]:
    return {
        "name": name,
        "trigger": {"kind": "cron", "expression": f"0 {hour} 1 1 *"},
        "target": {"kind": "function", "name": "greet"},
    }


def test_applying_shows_a_plan_and_brings_schedules_in_step(cli: Cli, name: str, tmp_path: Path) -> None:
    a, b = f"{name}-a", f"{name}-b"
    file = _write(tmp_path, "x.yaml", _document(a), _document(b))
    apply = ("schedule", "apply", "-f", file, "--source", name)
    assert cli(*apply, "--dry-run").splitlines() == [f"+ create {a}", f"+ create {b}", "2 to create"]
    assert cli("schedule", "diff", "-f", file, code=1).splitlines()[0] == f"+ create {a}"
    assert cli.json("schedule", "list", "-q", name) == []
    assert cli(*apply) == f"created {a}\ncreated {b}\n"
    assert f"+ create {a}" in cli.err
    assert cli("schedule", "diff", "-f", file, "--source", name) == "2 unchanged\n"
    assert cli(*apply) == ""
    assert cli.json(*apply)["counts"]["unchanged"] == 2

    _write(tmp_path, "x.yaml", _document(a, hour=3))
    changed = f'~ update {a} (trigger.expression: "0 2 1 1 *" -> "0 3 1 1 *")'
    assert cli("schedule", "diff", "-f", file, "--source", name, code=1).splitlines()[0] == changed
    assert cli(*apply) == f"updated {a}\n"
    # Not in the file any more, and kept: nobody said --prune.
    assert cli.json("schedule", "get", b)["managed_by"] == "file"
    assert cli(*apply, "--prune", code=2) == ""
    assert "-y" in cli.err
    assert cli(*apply, "--prune", "-y") == f"deleted {b}\n"
    cli("schedule", "get", b, code=3)


def test_what_others_manage_is_only_taken_over_when_asked(cli: Cli, name: str, tmp_path: Path) -> None:
    file = _write(tmp_path, "x.yaml", _document(name))
    cli("schedule", "apply", "-f", file, "--source", "one")
    _write(tmp_path, "x.yaml", _document(name, hour=5))
    cli("schedule", "apply", "-f", file, "--source", "two", code=5)
    assert "--adopt" in cli.err
    assert cli.json("schedule", "get", name)["trigger"]["expression"] == "0 2 1 1 *"
    assert cli("schedule", "apply", "-f", file, "--source", "two", "--adopt") == f"updated {name}\n"


def test_a_file_with_a_mistake_changes_nothing_and_says_where(cli: Cli, name: str, tmp_path: Path) -> None:
    bad = {**_document(f"{name}-bad"), "trigger": {"kind": "cron", "expression": "99 * * * *"}}
    file = _write(tmp_path, "x.yaml", _document(name), bad)
    cli("schedule", "apply", "-f", file, code=2)
    assert f'foliot: "{name}-bad" (x.yaml, document 2): trigger.expression: ' in cli.err
    assert cli.json("schedule", "list", "-q", name) == []


def test_an_export_is_applied_back_without_a_change(cli: Cli, name: str, tmp_path: Path) -> None:
    cli(
        "schedule", "create", name, "--every", "90m", "--http", "PUT", "https://agent.example.com/no",
        "--header", "Authorization: Bearer ${secret:token}",
        "--body", '{"on": "off", "n": 1.5, "at": "12:30"}',
        "--days", "mon-fri", "--hours", "9-16", "--label", "country=NO", "--start", "2031-01-01",
        "--retries", "0", "--description", "several\nlines", "--jitter", "5s",
    )  # fmt: skip
    _greeting(cli, f"{name}-b", "--arg", "name=2031-01-01")
    exported = cli("schedule", "export", name, f"{name}-b")
    assert "${secret:token}" in exported
    assert "schedule_id" not in exported
    (tmp_path / "x.yaml").write_text(exported)
    assert cli("schedule", "diff", "-f", "x.yaml") == "2 unchanged\n"
    (tmp_path / "x.json").write_text(cli("schedule", "export", name, f"{name}-b", "-o", "json"))
    assert cli("schedule", "diff", "-f", "x.json") == "2 unchanged\n"
    cli("schedule", "delete", name, f"{name}-b")
    assert cli("schedule", "apply", "-f", "x.yaml") == f"created {name}\ncreated {name}-b\n"
    assert cli("schedule", "export", name, f"{name}-b") == exported
    assert name in cli("schedule", "export")


# --- the rest --------------------------------------------------------------------------------------


def test_a_key_is_printed_once_alone_and_works_until_it_is_revoked(cli: Cli, name: str) -> None:
    key = cli("key", "create", name, "--role", "viewer", "--expires", "90d").strip()
    assert key.startswith("flt_")
    assert " " not in key
    assert key not in cli.err
    assert cli("schedule", "list", "--key", key, "-o", "name") is not None
    cli("schedule", "trigger", "any", "--key", key, code=3)
    cli("schedule", "create", name, *YEARLY, "--function", "greet", "--key", key, code=4)
    listed = next(each for each in cli.json("key", "list", "--all") if each["name"] == name)
    assert key not in json.dumps(listed)
    assert name in cli("key", "list", "--all")
    cli("key", "revoke", name)
    cli("schedule", "list", "--key", key, code=4)
    cli("key", "revoke", name, code=3)
    assert cli.json("key", "create", name, "--role", "viewer")["key"].startswith("flt_")
    cli("key", "create", name, "--role", "king", code=2)


def test_of_keys_with_one_name_the_one_is_named_by_its_id(cli: Cli, name: str) -> None:
    first = cli.json("key", "create", name, "--role", "viewer")["key_id"]
    cli("key", "create", name, "--role", "viewer")
    cli("key", "revoke", name, code=5)
    assert first in cli.err
    cli("key", "revoke", first)
    cli("key", "revoke", name)


def test_a_secret_comes_from_stdin_or_a_file_and_is_never_shown(
    up: Up, cli: Cli, name: str, tmp_path: Path
) -> None:
    secret = name.replace("-", "_")
    ended = up.run("secret", "set", secret, stdin="from stdin\n")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "from stdin" not in ended.stderr
    (tmp_path / "value").write_text("from a file")
    cli("secret", "set", secret, "--value-file", "value")
    assert secret in cli("secret", "list", "--all", "-o", "name").splitlines()
    assert "from a file" not in cli("secret", "list", "--all", "-o", "json")
    cli("secret", "rotate")
    cli("secret", "delete", secret)
    cli("secret", "delete", secret, code=3)
    assert up.run("secret", "set", secret, stdin="\n").returncode == 2
    # There is no place for the value among the arguments.
    cli("secret", "set", secret, "value", code=2)


def test_notification_rules_are_made_by_options_or_a_file_tested_and_deleted(
    cli: Cli, name: str, tmp_path: Path
) -> None:
    rule = ("notification", "rule")
    to = ("--webhook", "https://hooks.example/x", "--secret", "hook_key")
    conditions = ("--on", "failure", "--on", "failures_in_a_row:3", "--on", "did_not_run:3600")
    made = cli.json(*rule, "create", name, *conditions, "--label", "team=pay", *to)
    assert [each["kind"] for each in made["on"]] == ["failure", "failures_in_a_row", "did_not_run"]
    assert made["to"]["secret"] == "${secret:hook_key}"
    assert made["match"] == {"schedules": [], "labels": {"team": "pay"}}
    (tmp_path / "rule.yaml").write_text(
        "on: [{kind: sla_miss}]\nto: {kind: slack, url: 'https://hooks.example/T/B'}\n"
    )
    other = cli.json(*rule, "create", f"{name}-2", "-f", "rule.yaml")
    assert other["to"]["kind"] == "slack"
    listed = cli(*rule, "list", "--all")
    assert f"{name}-2" in listed
    assert "failures_in_a_row:3" in listed
    sent = cli.json(*rule, "test", name)
    assert (sent["type"], sent["rule_name"]) == ("test", name)
    assert sent["notification_id"] in cli("notification", "list", "--all")
    cli(*rule, "create", name, "--on", "failure", *to, code=5)
    cli(*rule, "create", f"{name}-3", "--on", "failure", "--slack", "http://10.0.0.1/", code=2)
    assert "to.url" in cli.err
    cli(*rule, "create", f"{name}-3", "--on", "failure:7", *to, code=2)
    cli(*rule, "create", f"{name}-3", "--on", "failure", "--webhook", "https://hooks.example/", code=2)
    cli(*rule, "delete", name, f"{name}-2")
    cli(*rule, "delete", name, code=3)


def test_notification_rules_are_changed_muted_and_disabled_and_only_dead_messages_sent_again(
    cli: Cli, name: str
) -> None:
    rule = ("notification", "rule")
    slack = ("--slack", "https://hooks.example/x")
    on = ("--on", "failure:every", "--on", "did_not_run:grace=600")
    made = cli.json(*rule, "create", name, *on, "--label", "team=pay", *slack)
    assert (made["on"][0]["every"], made["on"][1]["grace_seconds"]) == (True, 600)
    assert "failure:every did_not_run:grace=600" in cli(*rule, "list", "--all")
    changed = cli.json(*rule, "set", name, "--on", "recovery", "--label", "tier=1")
    assert changed["match"]["labels"] == {"tier": "1"}
    assert ([each["kind"] for each in changed["on"]], changed["to"]) == (["recovery"], made["to"])
    cli(*rule, "set", name, code=2)
    cli(*rule, "set", name, "--on", "did_not_run:grace", code=2)
    for act, state in (
        (("disable", name), "disabled"),
        (("enable", name), "active"),
        (("mute", name, "--until", "2h"), "muted"),
        (("unmute", name), "active"),
    ):
        cli(*rule, *act)
        [line] = [each for each in cli(*rule, "list", "--all").splitlines() if name in each]
        assert line.split()[-1] == state
    sent = cli.json(*rule, "test", name)
    cli("notification", "retry", sent["notification_id"], code=5)
    cli("notification", "retry", "nothing", code=3)
    cli(*rule, "delete", name)


def test_calendars_come_from_files_and_countries_and_stay_while_they_are_used(
    cli: Cli, name: str, tmp_path: Path
) -> None:
    (tmp_path / "days.ics").write_text(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:test\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\n"
        "DTSTART;VALUE=DATE:20261224\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    assert cli.json("calendar", "import", name, "days.ics")["days"] == ["2026-12-24"]
    (tmp_path / "days.yaml").write_text(
        "days: [2026-12-24, {from: 2026-12-27, to: 2026-12-31}]\nweekdays: [7]\n"
    )
    assert cli.json("calendar", "import", name, "days.yaml")["weekdays"] == [7]
    made = cli.json("calendar", "import", name, "--country", "DE-BY", "--tz", "Europe/Berlin")
    assert made["countries"] == [{"country": "DE", "subdivision": "BY", "categories": []}]
    assert "holidays of DE-BY" in cli("calendar", "list", "--all")
    _greeting(cli, name, "--calendar", name)
    cli("calendar", "delete", name, code=5)
    cli("schedule", "set", name, "--calendar", "none")
    cli("calendar", "delete", name)
    cli("calendar", "import", name, code=2)


def test_tasks_instances_queues_and_events_are_listed(cli: Cli, name: str) -> None:
    tasks = {task["name"]: task for task in cli.json("task", "list", "--all")}
    assert tasks["greet"]["worker_count"] == 1
    assert "[name]" in cli("task", "list", "-q", "greet")
    instances = cli.json("instance", "list")
    assert [(each["is_live"], each["leads"]) for each in instances] == [(True, [0])]
    assert "shard 0" in cli("instance", "list")
    cli("queue", "pause", name, "--reason", "full")
    queue = next(each for each in cli.json("queue", "list", "--all") if each["name"] == name)
    assert queue["paused"]
    assert cli.json("queue", "resume", name)["paused"] is False
    assert cli("event", "list", "-o", "json") == "[]\n"


def test_readers_of_events_are_listed_and_removed(cli: Cli, up: Up, name: str) -> None:
    letters = [uuid4().hex, uuid4().hex]
    event = {"id": "1", "type": "OrderDue", "topic": "orders", "offset": 7, "host_id": "h"}
    with contextlib.closing(sqlite3.connect(up.folder / "foliot.db", timeout=30)) as database, database:
        columns = "group_id, partition_id, partitions, next_offset, updated_ts"
        database.execute(f"INSERT INTO consumer_offsets ({columns}) VALUES (?, 0, 1, 1, 1)", (name,))
        columns = "relay_name, instance_id, last_heartbeat, epoch, next_offset"
        database.execute(f"INSERT INTO relay_t ({columns}) VALUES (?, 'one', 1, 1, 1)", (name,))
        columns = "relay_name, event_topic, next_offset, reason, since_ts, tried_ts"
        database.execute(f"INSERT INTO relay_parked_t ({columns}) VALUES (?, 'a/b', 1, 'no', 1, 1)", (name,))
        for each in letters:
            columns = "dead_letter_id, group_id, partition_id, host_id, transaction_id, c_offset, events"
            database.execute(
                f"INSERT INTO dead_letter_queue ({columns}, error, attempts, created_ts) "
                "VALUES (?, ?, 0, ?, ?, 7, ?, 'bad', 3, 1)",
                (each, name, each, each, json.dumps([event])),
            )
    assert [each["group"] for each in cli.json("event", "groups", "list")] == [name]
    cli("event", "groups", "delete", name, "--dry-run")
    assert f"would delete the group {name}" in cli.err
    assert name in cli("event", "groups", "list")
    cli("event", "groups", "delete", name, "-y")
    assert cli.json("event", "groups", "list") == []
    cli("event", "groups", "delete", name, "-y", code=3)
    assert "a/b (no)" in cli("event", "relays", "list")
    cli("event", "relays", "delete", name, "--topic", "a/b", "--dry-run")
    cli("event", "relays", "delete", name, "--topic", "a/b", "-y")
    [relay] = cli.json("event", "relays", "list")
    assert relay["refused_topics"] == []
    cli("event", "relays", "delete", name, "-y")
    assert cli.json("event", "relays", "list") == []
    assert len(cli.json("event", "dead-letters", "list", "--group", name)) == 2
    cli("event", "dead-letters", "replay", code=2)
    cli("event", "dead-letters", "replay", "--group", name, "--dry-run")
    assert "would replay 2 dead letters" in cli.err
    cli("event", "dead-letters", "replay", str(UUID(letters[0])), "-y")
    requested = [each["replay_requested_ts"] for each in cli.json("event", "dead-letters", "list")]
    assert sum(each is not None for each in requested) == 1
    cli("event", "dead-letters", "delete", "--group", name, "-y")
    assert cli.json("event", "dead-letters", "list") == []


# --- how commands end ------------------------------------------------------------------------------


def _start(up: Up, *arguments: str) -> forked_cli.Command:
    return forked_cli.Command(
        *arguments,
        env=up.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("arguments", "settings", "code", "told"),
    [
        (["schedule", "list"], {}, 0, None),
        (["schedule", "diff", "-f", "-"], {}, 1, None),
        (["schedule", "list", "--state", "odd"], {}, 2, "state"),
        (["schedule", "list", "--limit", "0"], {}, 2, "--limit"),
        (["schedule", "get", "no-such-schedule"], {}, 3, "no-such-schedule"),
        (["execution", "get", "no-such-id"], {}, 3, "no-such-id"),
        (["execution", "get", "019ca755-0c80-7d3e-9b1f-3f2a5c6d7e8f"], {}, 3, "019ca755"),
        (["schedule", "list"], {"FOLIOT_KEY": "wrong"}, 4, "FOLIOT_KEY"),
        (["schedule", "list"], {"FOLIOT_URL": "http://127.0.0.1:{port}"}, 7, "can't be reached"),
        (["schedule", "list"], {"FOLIOT_URL": "", "FOLIOT_KEY": ""}, 7, "FOLIOT_URL"),
        (["schedule", "list"], {"FOLIOT_KEY": ""}, 4, "FOLIOT_KEY"),
        (["schedule", "list"], {"FOLIOT_URL": "odd"}, 2, "FOLIOT_URL"),
    ],
)
def test_each_code_as_a_process_sees_it(
    up: Up, tmp_path: Path, arguments: list[str], settings: dict[str, str], code: int, told: str | None
) -> None:
    given = {name: value.format(port=free_port()) for name, value in settings.items()}
    stdin = json.dumps(_document("not-there"))
    ended = up.run(*arguments, stdin=stdin, cwd=tmp_path, environment={**up.environment, **given})
    assert ended.returncode == code, ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    if told is not None:
        assert ended.stdout == ""
        assert ended.stderr.startswith("foliot: ")
        assert ended.stderr.count("\n") == 1
        assert told in ended.stderr


def test_a_server_that_never_answers_is_timed_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = Server(f"http://127.0.0.1:{silent.getsockname()[1]}", "key")
        with ApiClient(server, read_s=0.2) as api:
            assert ending(lambda: api.get("schedules")) == 6


def test_address_and_key_are_enough_in_a_folder_with_settings_of_something_else(
    up: Up, tmp_path: Path
) -> None:
    (tmp_path / "foliot.toml").write_text("no = [toml")
    ended = up.run(
        "schedule", "list", "-o", "json", cwd=tmp_path, environment={**up.environment, "FOLIOT_NONSENSE": "1"}
    )
    assert ended.returncode == 0, ended.stderr
    assert isinstance(json.loads(ended.stdout), list)


def test_without_either_the_up_of_the_folder_is_asked(up: Up) -> None:
    ended = up.run("instance", "list", "-o", "json", cwd=up.folder, environment=plain_environment())
    assert ended.returncode == 0, ended.stderr
    assert len(json.loads(ended.stdout)) == 1
    kept = up.folder / "foliot.db.admin-key"
    assert kept.read_text() == ADMIN_KEY + "\n"
    kept.rename(kept.with_suffix(".away"))
    try:
        environment = plain_environment(FOLIOT_ADMIN_KEY=ADMIN_KEY)
        without_key = up.run("instance", "list", cwd=up.folder, environment=environment)
    finally:
        kept.with_suffix(".away").rename(kept)
    assert without_key.returncode == 4
    assert "FOLIOT_KEY" in without_key.stderr


def test_a_reader_that_has_gone_ends_a_command_quietly(up: Up) -> None:
    process = _start(up, "task", "list", "-o", "json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=DEADLINE_S) == 141
    assert told == ""


def test_an_interrupt_ends_with_130(up: Up, cli: Cli, name: str, tmp_path: Path) -> None:
    file = tmp_path / "go"
    identity = _waiting(cli, name, file)
    process = _start(up, "execution", "watch", identity)
    assert process.stderr is not None
    assert "half way" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert "Traceback" not in told
    file.touch()


@pytest.mark.parametrize("command", [["schedule", "list", "--watch"], ["instance", "list", "--watch"]])
def test_watching_a_list_shows_it_again_until_it_is_interrupted_which_is_its_good_end(
    up: Up, command: list[str]
) -> None:
    process = _start(up, *command, "-o", "name", "--limit", "1")
    assert process.stdout is not None
    first, second = process.stdout.readline(), process.stdout.readline()
    assert first == second
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, told) == (0, "")


def test_names_are_completed_by_asking_the_server(up: Up, cli: Cli, name: str) -> None:
    _greeting(cli, name)
    shell = {
        "_FOLIOT_COMPLETE": "complete_bash",
        "COMP_WORDS": f"foliot schedule get {name[:-2]}",
        "COMP_CWORD": "3",
    }
    assert up.run(environment={**up.environment, **shell}).stdout.split() == [name]
    away = {**up.environment, **shell, "FOLIOT_URL": f"http://127.0.0.1:{free_port()}"}
    ended = up.run(environment=away)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "", "")


def test_completion_can_be_installed(up: Up, tmp_path: Path) -> None:
    # The shell is the one that the command was called from. One that does more than this waits for it.
    command = ["bash", "-c", f"{shlex.quote(FOLIOT)} --install-completion && true"]
    environment = {**up.environment, "HOME": str(tmp_path)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    installed = [file.read_text() for file in tmp_path.rglob("*") if file.is_file()]
    assert any("_FOLIOT_COMPLETE=complete_bash" in text for text in installed)
