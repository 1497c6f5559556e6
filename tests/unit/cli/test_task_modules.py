"""Loading what `--tasks` names."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from foliot.cli.process.task_modules import load_app, merge
from foliot.kinds.interval_trigger import every
from foliot.model.errors import SettingError
from foliot.sdk.app import Foliot

MODULE = """
    from foliot import Foliot, every

    app = Foliot({url})

    @app.task
    async def {task}() -> str:
        return "{task}"

    app.schedule("{schedule}", {task}, when=every(seconds={seconds}))
"""


def _module(task: str = "greet", schedule: str = "greeting", seconds: int = 1, url: str = "") -> str:
    return dedent(MODULE.format(task=task, schedule=schedule, seconds=seconds, url=repr(url) if url else ""))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder of the test; what it makes Python import is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_a_module_of_the_current_folder_brings_its_tasks_and_schedules(folder: Path) -> None:
    (folder / "jobs_one.py").write_text(_module())
    app = load_app(["jobs_one"])
    assert [task.name for task in app.tasks] == ["greet"]
    assert list(app.schedules) == ["greeting"]


def test_a_file_is_imported_by_its_path_with_its_neighbours_in_reach(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "neighbour.py").write_text("NAME = 'greeting-of-neighbour'")
    text = _module(schedule="{NAME}").replace('"{NAME}"', "NAME")
    (folder / "deep" / "my-jobs.py").write_text("from neighbour import NAME\n" + text)
    assert list(load_app(["deep/my-jobs.py"]).schedules) == ["greeting-of-neighbour"]


def test_files_of_the_same_name_in_two_folders_are_both_imported(folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "jobs_twin.py").write_text(_module(task=name, schedule=name))
    app = load_app(["one/jobs_twin.py", "two/jobs_twin.py"])
    assert sorted(app.schedules) == ["one", "two"]


def test_a_file_that_is_named_twice_counts_once(folder: Path) -> None:
    (folder / "jobs_two.py").write_text(_module())
    assert list(load_app(["jobs_two.py", "jobs_two", "./jobs_two.py"]).schedules) == ["greeting"]


def test_the_database_that_a_module_names_is_taken_over(folder: Path) -> None:
    (folder / "jobs_three.py").write_text(_module(url="sqlite:///three.db"))
    assert load_app(["jobs_three"]).url == "sqlite:///three.db"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "ModuleNotFoundError: No module named 'jobs_bad'"),
        ("", "has no Foliot object"),
        ("def broken(:", "SyntaxError"),
        ("\n\n1 / 0", "ZeroDivisionError: division by zero (jobs_bad.py, line 3)"),
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("from foliot import Foliot, cron\nFoliot().schedule('x', 'y', when=cron('* * * * *'))", "line 2"),
        ("from foliot import Foliot\napp = Foliot()\napp.run()", "__main__"),
    ],
)
def test_a_module_that_cannot_be_used_is_named_with_the_reason(
    text: str | None, told: str, folder: Path
) -> None:
    if text is not None:
        (folder / "jobs_bad.py").write_text(text)
    with pytest.raises(SettingError) as caught:
        load_app(["jobs_bad"])
    assert str(caught.value).startswith("--tasks jobs_bad ")
    assert told in str(caught.value)


def test_a_file_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(SettingError, match=r"--tasks gone\.py can't be imported: there is no such file"):
        load_app(["gone.py"])


def test_a_file_that_failed_can_be_imported_again(folder: Path) -> None:
    file = folder / "jobs_four.py"
    file.write_text("1 / 0")
    with pytest.raises(SettingError):
        load_app(["jobs_four.py"])
    file.write_text(_module())
    assert list(load_app(["jobs_four.py"]).schedules) == ["greeting"]


def _app(*, returns: str = "a", seconds: int = 1, url: str | None = None) -> Foliot:
    app = Foliot(url)

    def one() -> str:
        return "a"

    def other() -> str:
        return "b"

    app.task(name="greet")(one if returns == "a" else other)
    app.schedule("greeting", "greet", when=every(seconds=seconds))
    return app


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(SettingError, match=r'task function "greet" is defined twice'):
        merge([_app(), _app(returns="b")])


def test_two_different_schedules_of_one_name_are_refused() -> None:
    with pytest.raises(SettingError, match=r'schedule "greeting" is declared twice'):
        merge([_app(), _app(seconds=2)])


def test_the_same_code_seen_twice_is_no_contradiction() -> None:
    assert list(merge([_app(), _app()]).schedules) == ["greeting"]


def test_different_databases_are_refused() -> None:
    with pytest.raises(SettingError, match="different databases"):
        merge([_app(url="sqlite:///a.db"), _app(url="sqlite:///b.db")])
