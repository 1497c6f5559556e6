"""Asking people: only on a terminal, and never where a script would wait for ever."""

import sys

import typer

from foliot.cli.output import is_terminal
from foliot.cli.text import one_line


def is_interactive() -> bool:
    """Whether somebody is there to be asked."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def may(question: str, *, is_yes: bool) -> bool:
    """Whether to go ahead; without a terminal nobody is asked, and it does."""
    if is_yes or not is_interactive():
        return True
    return typer.confirm(one_line(question), err=True)


def hidden(question: str) -> str:
    """A value that is typed twice and not shown."""
    return str(typer.prompt(question, hide_input=True, confirmation_prompt=True, err=True))
