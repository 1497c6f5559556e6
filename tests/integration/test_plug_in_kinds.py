"""Kinds of a package from outside, used through REST, the command line, the SDK and a worker."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from tests.plug_in import PlugInServer, install
from tests.waiting import until

JOBS = dedent(
    """
    from example_kinds import AppendTarget, GrowingTrigger
    from foliot import Foliot

    app = Foliot()
    app.schedule(
        "from code",
        AppendTarget(path="{path}", line="from code"),
        when=GrowingTrigger(seconds=0.5),
    )
    """
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plug-in")


@pytest.fixture(scope="module")
def lines(folder: Path) -> Path:
    (folder / "lines.txt").touch()
    return folder / "lines.txt"


@pytest.fixture(scope="module")
def server(folder: Path, lines: Path) -> Iterator[PlugInServer]:
    (folder / "jobs.py").write_text(JOBS.format(path=lines))
    server = PlugInServer(folder, install(folder / "installed"))
    with server.running("--tasks", "jobs.py"):
        yield server


def test_kinds_name_it(server: PlugInServer) -> None:
    status, kinds = server.ask("GET", "kinds")
    assert status == 200
    named = {(each["family"], each["name"]): each for each in kinds["items"]}
    growing, append = named["trigger", "growing"], named["target", "append"]
    assert growing["display_name"] == "Growing pauses"
    assert growing["is_available"]
    assert append["is_available"]
    assert growing["schema"]["properties"]["factor"]["maximum"] == 10
    assert [each["name"] for each in kinds["items"]][:2] == ["interval", "cron"], "Foliot's own come first"


def test_a_schedule_by_rest_is_described_previewed_and_run(server: PlugInServer, lines: Path) -> None:
    trigger = {"kind": "growing", "seconds": 0.3}
    status, preview = server.ask("POST", "schedules/preview", {"trigger": trigger, "n": 3})
    assert status == 200
    assert preview["description"] == "0.3 seconds after the start, then 2 times as long each time"
    assert len(preview["fires"]) == 3
    target = {"kind": "append", "path": str(lines), "line": "by rest", "names": {"region": "eu"}}
    status, made = server.ask("POST", "schedules", {"name": "by rest", "trigger": trigger, "target": target})
    assert status == 201
    assert made["target_description"] == "append to lines.txt"
    until(lambda: "by rest region=eu" in lines.read_text())
    status, listed = server.ask("GET", "schedules?target=append&name=by%20rest")
    assert (status, len(listed["items"])) == (200, 1)
    status, _ = server.ask(
        "POST", f"schedules/{made['schedule_id']}/trigger", {"args": {"region": "us", "by": "hand"}}
    )
    assert status in (201, 202)
    until(lambda: "by rest region=us by=hand" in lines.read_text())


@pytest.mark.parametrize(
    ("trigger", "target", "pointer"),
    [
        ({"kind": "growing", "seconds": 0}, {}, "/trigger/seconds"),
        ({"kind": "growing", "seconds": 1, "factor": True}, {}, "/trigger/factor"),
        ({"kind": "growing", "seconds": 1, "step": 3}, {}, "/trigger/step"),
        ({"kind": "shrinking"}, {}, "/trigger"),
        ({}, {"kind": "append", "line": "x"}, "/target/path"),
        ({}, {"kind": "append", "path": "here.txt", "line": "x"}, "/target/path"),
    ],
)
def test_bad_input_names_its_field(
    server: PlugInServer, trigger: dict[str, object], target: dict[str, object], pointer: str
) -> None:
    document = {
        "name": "bad",
        "trigger": trigger or {"kind": "growing", "seconds": 1},
        "target": target or {"kind": "append", "path": "/tmp/x", "line": "x"},
    }
    status, problem = server.ask("POST", "schedules", document)
    assert status == 422
    assert [each["pointer"] for each in problem["errors"]] == [pointer]


def test_the_command_line_has_their_options(server: PlugInServer, lines: Path) -> None:
    assert "--growing DURATION" in server.run("schedule", "create", "--help")
    server.run(
        *("schedule", "create", "by command", "--growing", "200ms"),
        *("--append", str(lines), "by command", "--arg", "who=me"),
    )
    until(lambda: "by command who=me" in lines.read_text())
    assert "append to lines.txt" in server.run("schedule", "list")
    server.run("schedule", "set", "by command", "--growing", "1h")
    assert "3600 seconds after the start" in server.run("schedule", "get", "by command")
    exported = server.run("schedule", "export", "by command")
    assert "kind: growing" in exported
    assert "kind: append" in exported


def test_code_declares_it_and_the_worker_runs_it(server: PlugInServer, lines: Path) -> None:
    until(lambda: "from code" in lines.read_text())
    assert "0.5 seconds after the start" in server.run("schedule", "get", "from code")


def test_verify_checks_its_times(server: PlugInServer) -> None:
    printed = server.run("verify")
    assert "growing" not in printed, "its times are compared, not left out"


def test_where_it_is_not_installed_nothing_else_stops(tmp_path: Path) -> None:
    growing = {"kind": "growing", "seconds": 0.2}
    event = {"kind": "event", "event_topic": "t", "event_type": "E"}
    with PlugInServer(tmp_path, install(tmp_path / "installed")).running() as server:
        status, _ = server.ask("POST", "schedules", {"name": "other", "trigger": growing, "target": event})
        assert status == 201
    plain = {"name": "plain", "trigger": {"kind": "interval", "seconds": 1}, "target": event}
    with PlugInServer(tmp_path, None).running() as server:
        status, refused = server.ask("POST", "schedules", {**plain, "trigger": growing})
        assert (status, refused["errors"][0]["pointer"]) == (422, "/trigger")
        status, made = server.ask("POST", "schedules", plain)
        assert status == 201
        path = f"executions?status=success&schedule_id={made['schedule_id']}"
        until(lambda: server.ask("GET", path)[1]["items"] != [])
        for path in ("schedules", "status", "executions", "timeline"):
            assert server.ask("GET", path)[0] == 200
