"""All commands of the command line, found by walking the command tree."""

from collections.abc import Iterator

import typer
from typer.main import get_command

from foliot.cli.app import app

READS = {
    "calendar list",
    "cluster status",
    "cron explain",
    "cron matches",
    "db status",
    "doctor",
    "event dead-letters list",
    "event groups list",
    "event list",
    "event relays list",
    "event tail",
    "execution get",
    "execution list",
    "execution logs",
    "execution watch",
    "instance list",
    "key list",
    "notification list",
    "notification rule list",
    "queue list",
    "schedule diff",
    "schedule export",
    "schedule fires",
    "schedule get",
    "schedule history",
    "schedule list",
    "secret list",
    "simulate",
    "task list",
    "verify",
    "version",
}
"""Commands that change nothing. A command that is neither here nor in ROLES changes something."""

ROLES = {"up", "api", "scheduler", "worker", "relay"}
"""Commands that run a process until it is stopped."""


def _commands(command: typer.core.TyperCommand, name: str = "") -> Iterator[tuple[str, set[str]]]:
    if not isinstance(command, typer.core.TyperGroup):
        yield name, {option for each in command.params for option in each.opts}
        return
    for part, each in command.commands.items():
        yield from _commands(each, f"{name} {part}".strip())  # type: ignore[arg-type]


COMMANDS = dict(_commands(get_command(app)))  # type: ignore[arg-type]
"""The options of each command."""
CHANGES = sorted(COMMANDS.keys() - READS - ROLES)
