"""`foliot key`: manage API keys."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.support.api_failures import CommandError
from foliot.cli.support.instants import instant_of, read_instant, relative
from foliot.cli.support.lookup import on_each
from foliot.cli.support.options import ChangeOptions, Connection, Listing, grouped, one_of
from foliot.cli.support.output import Document, Format, FormatOption, Row, View, say, show_one, state, write
from foliot.cli.support.prompts import may
from foliot.cli.support.watch import show
from foliot.model.error_codes import Exit
from foliot.timing.clock import SystemClock

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

app = typer.Typer(help="Make, list and revoke API keys.")


def _state(key: Document, now: datetime) -> str:
    expires = read_instant(key["expires_ts"])
    if key["revoked_ts"]:
        return "revoked"
    return "expired" if expires is not None and expires <= now else "active"


def _row(key: Document, now: datetime) -> Row:
    return (
        str(key["key_id"]),
        str(key["name"]),
        str(key["role"]),
        state(_state(key, now)),
        relative(key["expires_ts"], now) or "never",
        relative(key["last_used_ts"], now) or "never",
        relative(key["created_ts"], now),
        str(key["created_by"] or ""),
    )


KEYS = View(
    kind="keys",
    headers=("ID", "NAME", "ROLE", "STATE", "EXPIRES", "USED", "MADE", "BY"),
    row=_row,
    name=lambda key: str(key["key_id"]),
)


@app.command("create")
@grouped
def create(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who or what uses it.")],
    role: Annotated[
        str,
        typer.Option("--role", help="Role of the key.", **one_of("viewer", "operator", "editor", "admin")),
    ],
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires", metavar="ISO_TIME|DURATION", help="Expiry: a time, or a duration such as 90d."
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="HOST_ID", help="For another host; takes the operator's own key."),
    ] = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Make an API key, and print it.

    It is shown this once: the server keeps only a hash of it.
    """
    now = SystemClock().now()
    expires_ts = None if expires is None else instant_of(expires, "--expires", now, is_ahead=True)
    body = {"name": name, "role": role, "expires_ts": expires_ts, "host_id": host}
    with connection.open() as api:
        if change.is_only_shown(f"make a key for {name} with the role {role}"):
            return
        made = api.post("keys", {field: value for field, value in body.items() if value is not None})
    say(f"made the key {made['key_id']} ({made['name']}, {made['role']}); it can't be shown again")
    if output is Format.TABLE:
        write(str(made["key"]))
    else:
        show_one(made, output, KEYS, now)


@app.command("list")
@grouped
def list_keys(*, listing: Listing, connection: Connection) -> None:
    """List keys, also those that are revoked or have expired; never the keys themselves."""
    with connection.open() as api:
        show(listing, lambda: api.items("keys", limit=listing.max_items), KEYS)


@app.command("revoke")
@grouped
def revoke(
    *,
    keys: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Ids of keys, or names that only one has.")
    ],
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Revoke keys at once, with every browser that is signed in by them."""
    from foliot.cli.support.rest_client import path_of

    with connection.open() as api:

        def act(id_or_name: str) -> None:
            key = _find(api, id_or_name)
            if change.is_only_shown(f"revoke {key['key_id']} ({key['name']})"):
                return
            if not may(f'Revoke the key {key["key_id"]} ("{key["name"]}")?', is_yes=change.yes):
                raise CommandError(f"kept {key['key_id']}")
            api.delete(path_of("keys", str(key["key_id"])))
            say(f"revoked {key['key_id']} ({key['name']})")

        on_each(keys, act)


def _find(api: "ApiClient", id_or_name: str) -> Document:
    keys = api.items("keys").items
    by_id = [key for key in keys if key["key_id"] == id_or_name]
    named = by_id or [key for key in keys if key["name"] == id_or_name and not key["revoked_ts"]]
    if not named:
        raise CommandError(f'there is no key "{id_or_name}"', Exit.NOT_FOUND)
    if len(named) > 1:
        ids = ", ".join(str(key["key_id"]) for key in named)
        raise CommandError(
            f'several keys are named "{id_or_name}": name one by its id, of {ids}', Exit.CONFLICT
        )
    return named[0]
