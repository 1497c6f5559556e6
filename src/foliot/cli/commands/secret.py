"""`foliot secret`: values for `${secret:name}`. They can be written, but never read."""

import sys
from datetime import datetime
from typing import Annotated

import typer

from foliot.cli.support.api_failures import CommandError, UsageError
from foliot.cli.support.completion import secret_names
from foliot.cli.support.instants import both
from foliot.cli.support.lookup import on_each, require_named
from foliot.cli.support.options import ChangeOptions, Connection, Listing, grouped
from foliot.cli.support.output import Document, Format, FormatOption, Row, View, is_terminal, say, show_one
from foliot.cli.support.prompts import hidden, may
from foliot.cli.support.watch import show
from foliot.timing.clock import SystemClock

app = typer.Typer(help="Set, list, delete and rotate secrets.")


def _row(secret: Document, now: datetime) -> Row:
    return str(secret["name"]), both(secret["updated_ts"], now)


SECRETS = View(
    kind="secrets",
    headers=("NAME", "SET"),
    row=_row,
    name=lambda secret: str(secret["name"]),
)


@app.command("set")
@grouped
def set_secret(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=secret_names)],
    value_file: Annotated[
        str | None, typer.Option("--value-file", metavar="FILE", help="Read the value from a file.")
    ] = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Set a secret.

    The value comes from --value-file, from stdin, or is asked for on a terminal without being shown; a line
    break at its end is left out. It can't be an argument: everybody on the machine can read the arguments of
    a command while it runs, and the shell keeps them in its history.
    """
    value = _value(name, value_file)
    with connection.open() as api:
        if change.is_only_shown(f"set the secret {name}"):
            return
        made = api.post("secrets", {"name": name, "value": value})
    say(f"set the secret {name}")
    if output is not Format.TABLE:
        show_one(made, output, SECRETS, SystemClock().now())


def _value(name: str, file: str | None) -> str:
    from foliot.cli.support.documents import STDIN, read_text

    if file is None and is_terminal(sys.stdin):
        return hidden(f"Value of {name}")
    value = read_text(STDIN if file is None else file)
    value = value.removesuffix("\n").removesuffix("\r")
    if not value:
        raise UsageError("the value is empty")
    return value


@app.command("list")
@grouped
def list_secrets(*, listing: Listing, connection: Connection) -> None:
    """List the names of secrets."""
    with connection.open() as api:
        show(listing, lambda: api.items("secrets", limit=listing.max_items), SECRETS)


@app.command("delete")
@grouped
def delete(
    *,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", autocompletion=secret_names)],
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Delete secrets. What refers to them fails from then on."""
    from foliot.cli.support.rest_client import path_of

    with connection.open() as api:

        def act(name: str) -> None:
            if change.dry_run:
                require_named(api, "secrets", name, "secret")
                change.is_only_shown(f"delete {name}")
                return
            if not may(f'Delete the secret "{name}"?', is_yes=change.yes):
                raise CommandError(f"kept {name}")
            api.delete(path_of("secrets", name))
            say(f"deleted {name}")

        on_each(names, act)


@app.command("rotate")
@grouped
def rotate(*, change: ChangeOptions, connection: Connection) -> None:
    """Encrypt all secrets anew, under the first key of FOLIOT_SECRET_KEY.

    Then its other keys can be taken out. For all hosts; takes the operator's own key.
    """
    with connection.open() as api:
        if change.is_only_shown("encrypt all secrets anew, under the first key of FOLIOT_SECRET_KEY"):
            return
        say(f"encrypted {api.post('secrets/rotate')['rotated']} secrets anew")
