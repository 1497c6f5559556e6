"""How a command ends: one line on stderr that says what went wrong, and a code that scripts can rely on."""

import sys
from collections.abc import Callable
from enum import IntEnum

import typer

from foliot.model.calendar import CalendarInUseError
from foliot.model.errors import (
    DatabaseUnreachableError,
    FencedError,
    FoliotError,
    IllegalTransitionError,
    InvalidError,
    NameTakenError,
    NotFoundError,
    SchemaError,
    SettingError,
    StaleVersionError,
)


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    """It failed, or what was compared differs."""
    USAGE = 2
    NOT_FOUND = 3
    AUTH = 4
    CONFLICT = 5
    TIMED_OUT = 6
    UNREACHABLE = 7
    INTERRUPTED = 130
    """As shells report a program that SIGINT has ended."""


EXIT_OF: dict[type[Exception], Exit] = {
    SettingError: Exit.USAGE,
    InvalidError: Exit.USAGE,
    NotFoundError: Exit.NOT_FOUND,
    NameTakenError: Exit.CONFLICT,
    StaleVersionError: Exit.CONFLICT,
    CalendarInUseError: Exit.CONFLICT,
    IllegalTransitionError: Exit.CONFLICT,
    FencedError: Exit.CONFLICT,
    DatabaseUnreachableError: Exit.UNREACHABLE,
    SchemaError: Exit.FAILED,
    FoliotError: Exit.FAILED,
}
"""The most specific class of an error decides."""


def exit_of(error: FoliotError) -> Exit:
    return next(EXIT_OF[kind] for kind in type(error).__mro__ if kind in EXIT_OF)


def run_command(command: Callable[[], object]) -> int:
    """Run a command; what a user can act on becomes one line, anything else is a bug and is raised."""
    try:
        returned = command()
    except FoliotError as error:
        return _fail(str(error), exit_of(error))
    except typer.TyperException as error:
        told = error.format_message().replace("Value error, ", "").rstrip(".")
        return _fail(f"{told}; see `foliot --help`", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return Exit.INTERRUPTED
    except Exception as error:
        reason = _told_by_database(error)
        if reason is None:
            raise
        return _fail(f"the database refused: {reason}", Exit.FAILED)
    return returned if isinstance(returned, int) else Exit.OK


def _fail(message: str, code: int) -> int:
    typer.echo("foliot: " + " ".join(message.split()), err=True)
    return code


def _told_by_database(error: Exception) -> str | None:
    """What the database said: a missing privilege, a file that is no database … are no bugs of ours."""
    errors = sys.modules.get("sqlalchemy.exc")
    if errors is None or not isinstance(error, errors.DBAPIError):
        return None
    origin = error.orig.__cause__ or error.orig
    return (str(origin) or type(origin).__name__).splitlines()[0]
