"""`foliot notification`: messages about schedules that fail, recover, do not run or are late."""

from typing import Annotated
from uuid import UUID

import typer

from foliot.cli.commands.notification_rule import app as rules
from foliot.cli.support.api_failures import CommandError
from foliot.cli.support.lookup import on_each
from foliot.cli.support.notification_view import MESSAGES
from foliot.cli.support.options import ChangeOptions, Connection, Listing, grouped, one_of
from foliot.cli.support.output import say
from foliot.cli.support.watch import show
from foliot.model.error_codes import Exit

app = typer.Typer(help="List messages, send them again, and manage the rules for them.")
app.add_typer(rules, name="rule")


@app.command("list")
@grouped
def list_notifications(
    *,
    status: Annotated[
        list[str] | None,
        typer.Option("--status", help="Repeatable.", **one_of("pending", "delivered", "dead")),
    ] = None,
    listing: Listing,
    connection: Connection,
) -> None:
    """List messages, latest first, and how far their delivery has come."""
    with connection.open() as api:
        wanted = {"status": status} if status else {}
        show(listing, lambda: api.items("notifications", wanted, limit=listing.max_items), MESSAGES)


@app.command("retry")
@grouped
def retry(
    *,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of messages.")],
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Send messages again that were given up, or not sent while nobody wanted to hear them."""
    with connection.open() as api:

        def act(given: str) -> None:
            if (notification_id := _id_of(given)) is None:
                raise CommandError(f'there is no notification "{given}"', Exit.NOT_FOUND)
            if change.dry_run:
                api.get(f"notifications/{notification_id}")
                change.is_only_shown(f"send {notification_id} again")
                return
            api.post(f"notifications/{notification_id}/retry")
            say(f"{notification_id} is sent again")

        on_each(ids, act)


def _id_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
