"""Ask the user questions, but only on a terminal: a script would wait forever."""

import sys

import typer

from foliot.cli.support.output import is_terminal
from foliot.cli.support.text import one_line


def is_interactive() -> bool:
    """Whether stdin and stderr are a terminal, so that the user can be asked."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def may(question: str, *, is_yes: bool) -> bool:
    """Ask whether to continue. Without a terminal, or with `is_yes`, return True without asking."""
    if is_yes or not is_interactive():
        return True
    return typer.confirm(one_line(question), err=True)


def hidden(question: str) -> str:
    """Ask for a value without showing it. The user types it twice."""
    return str(typer.prompt(question, hide_input=True, confirmation_prompt=True, err=True))
