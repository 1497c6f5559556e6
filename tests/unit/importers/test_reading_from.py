"""Where `foliot import` reads from: the zone of the machine, modules, crontabs."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import typer

from foliot.cli.commands import import_schedules
from foliot.cli.commands.import_schedules import machine_zone
from foliot.cli.support.api_failures import ending
from foliot.cli.support.documents import read_schedules
from foliot.cli.support.exits import run_command
from foliot.model.errors import SettingError


def run(*arguments: str) -> int:
    command = typer.main.get_command(import_schedules.app)
    return run_command(lambda: ending(lambda: command.main(args=arguments, standalone_mode=False)))


@pytest.fixture(autouse=True)
def nobody_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No server, no settings, and the modules of one test are not those of the next."""
    monkeypatch.chdir(tmp_path)
    for name in ("FOLIOT_URL", "FOLIOT_KEY"):
        monkeypatch.delenv(name, raising=False)
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


# --- the zone of the machine ------------------------------------------------------------------------------


def test_the_zone_of_the_machine_is_that_of_tz(tmp_path: Path) -> None:
    assert machine_zone({"TZ": ":Asia/Tokyo"}, tmp_path) == "Asia/Tokyo"


def test_else_the_one_that_localtime_links_to(tmp_path: Path) -> None:
    (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert machine_zone({}, tmp_path) == "Europe/Berlin"


def test_else_the_one_that_is_written_in_timezone(tmp_path: Path) -> None:
    (tmp_path / "localtime").write_bytes(b"TZif")
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert machine_zone({}, tmp_path) == "Asia/Tokyo"


def test_a_machine_without_a_zone_is_in_utc_and_one_with_a_nameless_zone_is_asked_about(
    tmp_path: Path,
) -> None:
    assert machine_zone({}, tmp_path) == "UTC"
    (tmp_path / "localtime").write_bytes(b"TZif")
    with pytest.raises(SettingError, match="--tz"):
        machine_zone({}, tmp_path)


UNSET = dedent(
    """
    class Conf:
        def __getattr__(self, name):
            raise ImportError("no settings")

    class App:
        conf = Conf()
        timezone = None

    app = App()
    """
)


# --- crontabs ---------------------------------------------------------------------------------------------


def test_yaml_is_what_apply_reads_and_needs_no_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tab").write_text("MAILTO=a\\nb: c\n0 2 * * * thing%one%two\n@reboot x\n*/5 * * * * other\n")
    assert run("crontab", "tab", "--tz", "Europe/Berlin", "-o", "yaml") == 0
    told = capsys.readouterr()
    (tmp_path / "out.yaml").write_text(told.out)
    documents = [each.document for each in read_schedules(["out.yaml"])]
    assert [document["name"] for document in documents] == ["thing", "other"]
    assert documents[0]["target"]["args"] == {"command": "thing", "stdin": "one\ntwo\n"}
    assert documents[1]["trigger"]["expression"] == "*/5 * * * *"
    assert "left out: line 3: @reboot x" in told.err


def test_without_a_file_the_users_crontab_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "bin" / "crontab"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = -l ] && echo "0 1 * * * listed"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/bin:/usr/bin")
    assert run("crontab", "-o", "yaml", "--tz", "UTC") == 0
    assert "name: listed" in capsys.readouterr().out
    program.write_text("#!/bin/sh\necho no crontab for me >&2\nexit 1\n")
    assert run("crontab", "-o", "yaml", "--tz", "UTC") == 2
    assert "no crontab for me" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("crontab", "-o", "yaml", "--tz", "UTC") == 2
    assert "name the file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["crontab", "missing", "--tz", "UTC"], 2, "missing: no such file"),
        (["crontab", "tab", "--tz", "UTC", "--target", "ftp:x"], 2, "--target"),
        (["crontab", "tab", "--tz", "UTC", "--target", "http:agent"], 2, "--target"),
        (["crontab", "tab", "--tz", "UTC"], 7, "FOLIOT_URL"),
        (["celery-beat", "--app", "no_such_module:app"], 2, "--app no_such_module:app can't be imported"),
        (["celery-beat", "--app", "empty"], 2, "has no app or celery"),
        (["celery-beat", "--app", "empty:x"], 2, "is no Celery application"),
        (["celery-beat", "--app", "empty:x", "--target", "http"], 2, "celery or function"),
        (["celery-beat", "--app", "leaving"], 2, "SystemExit: 3"),
        (["celery-beat", "--app", "unset"], 2, "ImportError: no settings"),
        (["celery-beat"], 2, "--app"),
        (["apscheduler", "--scheduler", "empty:x"], 2, "no scheduler"),
        (["apscheduler", "--scheduler", "empty:y"], 2, "the module has no y"),
        (["django-celery-beat", "--database", "sqlite:///missing"], 2, "there is no such file"),
        (["django-celery-beat", "--database", "mysql://x/y"], 2, "can't be read"),
        (["django-celery-beat", "--database", "what"], 2, "can't be read"),
        (["django-celery-beat", "--database", "sqlite:///tab"], 7, "tables can't be read"),
    ],
)
def test_what_can_not_be_read_is_told_in_one_line(
    arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tab").write_text("0 1 * * * thing\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "unset.py").write_text(UNSET)
    assert run(*arguments) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert told in said.err.splitlines()[-1]
    assert not (tmp_path / "missing").exists(), "looking makes no file"


# --- modules ----------------------------------------------------------------------------------------------

CELERY = dedent(
    """
    print("talk of the module")

    class Settings:
        beat_scheduler = ""
        beat_schedule = {"often": {"task": "proj.a", "schedule": 10.0}}

    class Loader:
        def import_default_modules(self):
            Settings.beat_schedule["added by a task's module"] = {"task": "proj.b", "schedule": 20.0}

    class App:
        conf = Settings()
        loader = Loader()
        timezone = None

        def finalize(self):
            Settings.beat_schedule["added at last"] = {"task": "proj.c", "schedule": 30.0}

    app = App()
    """
)


def documents_of(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "out.yaml").write_text(capsys.readouterr().out)
    return {each.document["name"]: each.document for each in read_schedules(["out.yaml"])}


def test_a_celery_application_is_loaded_as_beat_does_and_its_talk_is_kept_off_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "proj_beat.py").write_text(CELERY)
    assert run("celery-beat", "--app", "proj_beat", "-o", "yaml") == 0
    assert set(documents_of(capsys, tmp_path)) == {"often", "added by a task's module", "added at last"}


def test_nothing_found_is_no_failure_and_an_empty_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sched.py").write_text(
        "class S:\n    def get_jobs(self):\n        return []\nscheduler = S()\n"
    )
    assert run("apscheduler", "--scheduler", "sched", "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["items"], told["left_out"]) == ([], [])
