"""How commands fail that ask the API, and how they end then."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from foliot.cli.text import one_line
from foliot.model.errors import FoliotError, Problem
from foliot.model.verdict import Exit, exit_for, verdict_on


class CommandError(FoliotError):
    """A command can't do what it was asked for; `exit` is how it ends."""

    exit: Exit = Exit.FAILED

    def __init__(self, told: str, ends: Exit | None = None) -> None:
        super().__init__(told)
        if ends is not None:
            self.exit = ends


class UsageError(CommandError):
    """The command line does not say what to do."""

    exit = Exit.USAGE


class UnreachableError(CommandError):
    """Nobody answers, or it is not known whom to ask."""

    exit = Exit.UNREACHABLE


class NoKeyError(CommandError):
    """There is no key to show to the server."""

    exit = Exit.AUTH


class TimedOutError(CommandError):
    """It took longer than it may."""

    exit = Exit.TIMED_OUT


class ApiRefusedError(CommandError):
    """The server's answer is no: an HTTP status that is not 2xx, and why."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(document.get("code", ""))
        self.problems = _problems(document.get("errors"))
        self.request_id = str(document.get("request_id", ""))
        super().__init__(self._told(document), exit_for(status))

    def _told(self, document: Mapping[str, Any]) -> str:
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
    """Say what went wrong in one line on stderr; returns how a command ends by it."""
    typer.echo(f"foliot: {one_line(str(error))}", err=True)
    return exit_of(error)


def exit_of(error: FoliotError) -> Exit:
    return error.exit if isinstance(error, CommandError) else verdict_on(error).exit


def may_pass(error: CommandError) -> bool:
    """Whether the server may be there again in a while."""
    return error.exit in (Exit.UNREACHABLE, Exit.TIMED_OUT)


def ending(command: Callable[[], object]) -> object:
    """Run a command; what keeps it from its work is told, and decides how it ends."""
    try:
        return command()
    except CommandError as error:
        return tell(error)
