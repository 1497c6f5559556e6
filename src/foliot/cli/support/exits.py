"""Exit of a command: one line on stderr with the error, and an exit code that scripts can rely on."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import typer

from foliot.cli.support.api_failures import exit_of
from foliot.model.error_codes import Exit
from foliot.model.errors import FoliotError


class ExitReason(NamedTuple):
    message: str
    code: int


def run_command(command: Callable[[], object]) -> int:
    """Run a command and return its exit code. User errors become one line; others are bugs and are raised."""
    try:
        returned = command()
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except Exception as error:
        ending = ending_by(error)
        if ending is None:
            raise
        typer.echo(f"foliot: {ending.message}", err=True)
        return ending.code
    return returned if isinstance(returned, int) else Exit.OK


def ending_by(error: Exception) -> ExitReason | None:
    """Return one line about an error and the exit code. None: the error is a bug."""
    if isinstance(error, FoliotError):
        return ExitReason(" ".join(str(error).split()), exit_of(error))
    if isinstance(error, typer.TyperException):
        message = error.format_message().replace("Value error, ", "").rstrip(".")
        return ExitReason(f"{' '.join(message.split())}; see `foliot --help`", error.exit_code)
    reason = _database_reason(error)
    return None if reason is None else ExitReason(f"the database refused: {reason}", Exit.FAILED)


def _database_reason(error: Exception) -> str | None:
    """Return the database's error message: a missing privilege or a wrong file is not a bug of Foliot."""
    errors = sys.modules.get("sqlalchemy.exc")
    if errors is None or not isinstance(error, errors.DBAPIError):
        return None
    origin = error.orig.__cause__ or error.orig
    return (str(origin) or type(origin).__name__).splitlines()[0]
