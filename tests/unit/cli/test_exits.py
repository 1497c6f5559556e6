"""How commands end."""

import pytest
import typer
from sqlalchemy.exc import DatabaseError

from foliot.api.http.http_server import CannotListenError
from foliot.cli.support.exits import run_command
from foliot.model.errors import (
    DatabaseUnreachableError,
    FoliotError,
    InvalidError,
    NameTakenError,
    NotFoundError,
    SchemaError,
    SettingError,
)


def _raising(error: BaseException) -> int:
    def command() -> None:
        raise error

    return run_command(command)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingError("x"), 2),
        (InvalidError.at("/name", "x", "is wrong"), 2),
        (NotFoundError("schedule", "x"), 3),
        (NameTakenError("x"), 5),
        (DatabaseUnreachableError("x"), 7),
        (SchemaError("x"), 1),
        (CannotListenError("here", 8700, "in use"), 1),
        (FoliotError("x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert _raising(error) == code


def test_an_error_is_told_in_one_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    _raising(SettingError("FOLIOT_X is wrong:\n  it must be\n  right"))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "foliot: FOLIOT_X is wrong: it must be right\n"


def test_what_a_database_refuses_is_told_in_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    refused = DatabaseError("SELECT 1", None, RuntimeError("permission denied for schema public"))
    assert _raising(refused) == 1
    assert capsys.readouterr().err == "foliot: the database refused: permission denied for schema public\n"


def test_a_usage_error_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert _raising(typer.BadParameter("no such queue.")) == 2
    assert capsys.readouterr().err == "foliot: Invalid value: no such queue; see `foliot --help`\n"


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        _raising(ZeroDivisionError())


def test_a_command_that_returns_ends_well_and_one_that_exits_keeps_its_code() -> None:
    assert run_command(lambda: None) == 0
    assert run_command(lambda: 1) == 1
