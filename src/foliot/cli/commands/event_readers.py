"""`foliot event groups|relays|dead-letters`: readers of the outbox, and events they could not handle."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.support.api_failures import CommandError, UsageError
from foliot.cli.support.instants import both, relative
from foliot.cli.support.lookup import on_each
from foliot.cli.support.options import ChangeOptions, Connection, Listing, grouped
from foliot.cli.support.output import Document, Row, View, say, state
from foliot.cli.support.prompts import may
from foliot.cli.support.watch import show
from foliot.model.error_codes import Exit

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

groups = typer.Typer(help="Groups of consumers: list them, delete those that nobody runs.")
relays = typer.Typer(help="Relays to brokers: list them, delete what nobody runs or the broker refuses.")
dead_letters = typer.Typer(help="Events that could not be handled or sent: list, replay, delete.")

GroupOption = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="Only of this consumer group.")
]


def _group_row(group: Document, now: datetime) -> Row:
    return (
        str(group["group"]),
        state(str(group["state"])),
        str(group["source"]),
        str(group["partitions"] or ""),
        "" if group["next_offset"] is None else str(group["next_offset"]),
        str(group["lag"]),
        relative(group["oldest_unread_ts"], now),
        both(group["seen_ts"], now),
    )


GROUPS = View(
    kind="groups",
    headers=("NAME", "STATE", "SOURCE", "PARTITIONS", "OFFSET", "LAG", "OLDEST", "RAN"),
    row=_group_row,
    name=lambda group: str(group["group"]),
)


def _relay_row(relay: Document, now: datetime) -> Row:
    return (
        str(relay["name"]),
        state(str(relay["state"])),
        str(relay["instance_id"] or ""),
        str(relay["next_offset"]),
        str(relay["lag"]),
        relative(relay["oldest_unread_ts"], now),
        ", ".join(f"{each['topic']} ({each['reason']})" for each in relay["refused_topics"]),
    )


RELAYS = View(
    kind="relays",
    headers=("NAME", "STATE", "ACTIVE", "OFFSET", "LAG", "OLDEST", "REFUSED TOPICS"),
    row=_relay_row,
    name=lambda relay: str(relay["name"]),
)


def _letter_row(letter: Document, now: datetime) -> Row:
    first = letter["events"][0]
    return (
        str(letter["dead_letter_id"]),
        str(letter["group"]),
        str(first["offset"]),
        str(first["topic"]),
        str(first["type"]),
        str(letter["attempts"]),
        both(letter["created_ts"], now),
        "replay requested" if letter["replay_requested_ts"] else str(letter["error"]),
    )


DEAD_LETTERS = View(
    kind="dead letters",
    headers=("ID", "GROUP", "OFFSET", "TOPIC", "TYPE", "ATTEMPTS", "CREATED", "ERROR"),
    row=_letter_row,
    name=lambda letter: str(letter["dead_letter_id"]),
)


@groups.command("list")
@grouped
def list_groups(*, listing: Listing, connection: Connection) -> None:
    """List groups of consumers, and how far each is behind."""
    with connection.open() as api:
        show(listing, lambda: api.items("events/groups", limit=listing.max_items), GROUPS)


@groups.command("delete")
@grouped
def delete_groups(
    *,
    names: Annotated[list[str], typer.Argument(metavar="NAME...")],
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Delete groups that nobody runs: they keep no events from being pruned any more.

    A group that is run again later begins anew. Its dead letters stay.
    """
    with connection.open() as api:

        def act(name: str) -> None:
            if change.dry_run:
                found = [each for each in api.items("events/groups").items if each["group"] == name]
                if not found:
                    raise CommandError(f"there is no consumer group {name}", Exit.NOT_FOUND)
                say(f"would delete the group {name}, which is {found[0]['lag']} events behind")
                return
            if not may(f'Delete the group "{name}"? It forgets how far it has come.', is_yes=change.yes):
                raise CommandError(f"kept {name}")
            api.delete("events/groups", {"group": name})
            say(f"deleted {name}")

        on_each(names, act)


@relays.command("list")
@grouped
def list_relays(*, listing: Listing, connection: Connection) -> None:
    """List relays, how far each is behind, and the topics that its broker refuses."""
    with connection.open() as api:
        show(listing, lambda: api.items("events/relays", limit=listing.max_items), RELAYS)


@relays.command("delete")
@grouped
def delete_relay(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            help="Only discard what waits for this topic, which the broker refuses.",
        ),
    ] = None,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Delete a relay that nobody runs, or give up the events of a topic that its broker refuses.

    A relay that is run again later begins with the first event that there is.
    """
    what = f"the relay {name}" if topic is None else f"the refused topic {topic} of the relay {name}"
    with connection.open() as api:
        if change.dry_run:
            found = [each for each in api.items("events/relays").items if each["name"] == name]
            topics = [each["topic"] for relay in found for each in relay["refused_topics"]]
            if not found or (topic is not None and topic not in topics):
                raise CommandError(f"there is no {what.removeprefix('the ')}", Exit.NOT_FOUND)
            change.is_only_shown(f"delete {what}")
            return
        if not may(f"Delete {what}? What it has not sent is not sent.", is_yes=change.yes):
            raise CommandError(f"kept {what}")
        api.delete("events/relays", {"name": name, "topic": topic})
        say(f"deleted {what}")


@dead_letters.command("list")
@grouped
def list_dead_letters(*, group: GroupOption = None, listing: Listing, connection: Connection) -> None:
    """List events that a group could not handle, or a broker did not take (group relay:default)."""
    with connection.open() as api:
        show(
            listing,
            lambda: api.items("events/dead-letters", {"group": group}, limit=listing.max_items),
            DEAD_LETTERS,
        )


IdsArgument = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", show_default=False)]


@dead_letters.command("replay")
@grouped
def replay(
    *,
    ids: IdsArgument = None,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="NAME", help="All dead letters of this group, instead of ids."),
    ] = None,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Have dead letters tried once more, by a process of their group."""
    from foliot.cli.support.rest_client import path_of

    with connection.open() as api:
        wanted = _wanted(api, ids, group)
        if change.dry_run:
            _require_listed(api, wanted)
            say(f"would replay {len(wanted)} dead letters")
            return
        if not may(f"Replay {len(wanted)} dead letters?", is_yes=change.yes or len(wanted) == 1):
            raise CommandError("replayed nothing")

        def act(dead_letter_id: str) -> None:
            api.post(path_of("events", "dead-letters", dead_letter_id, "replay"))
            say(f"requested a replay of {dead_letter_id}")

        on_each(wanted, act)


@dead_letters.command("delete")
@grouped
def delete_dead_letters(
    *,
    ids: IdsArgument = None,
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="NAME", help="All dead letters of this group, instead of ids."),
    ] = None,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Give dead letters up for good."""
    from foliot.cli.support.rest_client import path_of

    with connection.open() as api:
        wanted = _wanted(api, ids, group)
        if change.dry_run:
            _require_listed(api, wanted)
            say(f"would delete {len(wanted)} dead letters")
            return
        if not may(f"Delete {len(wanted)} dead letters? Their events are lost.", is_yes=change.yes):
            raise CommandError("deleted nothing")

        def act(dead_letter_id: str) -> None:
            api.delete(path_of("events", "dead-letters", dead_letter_id))
            say(f"deleted {dead_letter_id}")

        on_each(wanted, act)


def _require_listed(api: "ApiClient", ids: Sequence[str]) -> None:
    """Raise CommandError for an unknown id, so that a dry run fails like the command itself."""
    listed = {str(each["dead_letter_id"]) for each in api.items("events/dead-letters").items}
    for each in ids:
        if each not in listed:
            raise CommandError(f'there is no dead letter "{each}"', Exit.NOT_FOUND)


def _wanted(api: "ApiClient", ids: Sequence[str] | None, group: str | None) -> list[str]:
    if bool(ids) == (group is not None):
        raise UsageError("name the dead letters by their ids, or a group by --group")
    if ids:
        return list(ids)
    found = api.items("events/dead-letters", {"group": group})
    return [str(each["dead_letter_id"]) for each in found.items]
