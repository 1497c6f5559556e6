"""The command line as a whole: help, version, usage errors."""

import json

import pytest

from foliot.cli import main
from foliot.version import __version__


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith(f"foliot {__version__} ")


def test_the_version_is_shown_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == __version__


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    for command in ("up", "scheduler", "worker", "db", "doctor", "cron", "version"):
        assert f"\n  {command} " in told


def test_no_command_shows_the_help_on_stderr_and_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("Usage: foliot")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["bogus"], "bogus"),
        (["version", "--bogus"], "--bogus"),
        (["version", "-o", "xml"], "xml"),
        (["up", "--port", "many"], "--port"),
        (["worker", "--queues", " , "], "--queues"),
        (["db"], "command"),
    ],
)
def test_a_usage_error_is_one_line_that_names_it(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert told.err.startswith("foliot: ")
    assert named in told.err
