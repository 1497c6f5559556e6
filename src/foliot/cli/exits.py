"""How a command ends: one line on stderr that says what went wrong, and a code that scripts can rely on."""

import sys
from collections.abc import Callable

import typer

from foliot.model.errors import FoliotError
from foliot.model.verdict import Exit, verdict_on


def run_command(command: Callable[[], object]) -> int:
    """Run a command; what a user can act on becomes one line, anything else is a bug and is raised."""
    try:
        returned = command()
    except FoliotError as error:
        return _fail(str(error), verdict_on(error).exit)
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
