"""Errors of commands that use the API, and their exit codes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from foliot.cli.support.text import one_line
from foliot.model.error_codes import Exit, exit_for, verdict_on
from foliot.model.errors import FoliotError, Problem


class CommandError(FoliotError):
    """A command failed. `exit` is its exit code."""

    exit: Exit = Exit.FAILED

    def __init__(self, message: str, ends: Exit | None = None) -> None:
        super().__init__(message)
        if ends is not None:
            self.exit = ends


class UsageError(CommandError):
    """The command line is incomplete or contradictory."""

    exit = Exit.USAGE


class UnreachableError(CommandError):
    """The server does not respond, or its address is not known."""

    exit = Exit.UNREACHABLE


class NoKeyError(CommandError):
    """No API key is known."""

    exit = Exit.AUTH


class TimedOutError(CommandError):
    """A timeout has passed."""

    exit = Exit.TIMED_OUT


class ApiRefusedError(CommandError):
    """The server refused a request: an HTTP status other than 2xx, and the reason."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(document.get("code", ""))
        self.problems = _problems(document.get("errors"))
        self.request_id = str(document.get("request_id", ""))
        super().__init__(self._message_of(document), exit_for(status))

    def _message_of(self, document: Mapping[str, Any]) -> str:
        if self.status == 401:
            return "the key was not accepted: set FOLIOT_KEY or --key to a valid one"
        if self.problems:
            return "; ".join(str(problem) for problem in self.problems)
        said = str(document.get("detail") or document.get("title") or f"the server answered {self.status}")
        return f"{said} (request {self.request_id})" if self.status >= 500 and self.request_id else said


def _problems(found: Any) -> Sequence[Problem]:
    if not isinstance(found, list):
        return ()
    return tuple(
        Problem(*(str(each.get(name, "")) for name in ("pointer", "code", "detail", "hint")))
        for each in found
        if isinstance(each, dict)
    )


def tell(error: FoliotError) -> int:
    """Print an error as one line on stderr and return the exit code."""
    typer.echo(f"foliot: {one_line(str(error))}", err=True)
    return exit_of(error)


def exit_of(error: FoliotError) -> Exit:
    return error.exit if isinstance(error, CommandError) else verdict_on(error).exit


def may_pass(error: CommandError) -> bool:
    """Whether the error may be temporary: the server is unreachable or too slow."""
    return error.exit in (Exit.UNREACHABLE, Exit.TIMED_OUT)


def ending(command: Callable[[], object]) -> object:
    """Run a command. Print a CommandError and return its exit code."""
    try:
        return command()
    except CommandError as error:
        return tell(error)
