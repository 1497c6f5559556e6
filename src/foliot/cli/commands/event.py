"""`foliot event`: the outbox, in order."""

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.commands import event_readers
from foliot.cli.support.instants import local
from foliot.cli.support.options import Connection, Listing, grouped
from foliot.cli.support.output import Document, Format, FormatOption, Row, View, print_yaml, write
from foliot.cli.support.text import one_line
from foliot.cli.support.watch import poll, show

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient, ListedItems

app = typer.Typer(help="Read the events that schedules wrote; see who reads them, and what went wrong.")
app.add_typer(event_readers.groups, name="groups")
app.add_typer(event_readers.relays, name="relays")
app.add_typer(event_readers.dead_letters, name="dead-letters")

PAGE = 500
LARGEST_OFFSET = 2**62

AfterOption = Annotated[
    int, typer.Option("--after", metavar="OFFSET", help="Only events after this offset.", min=0)
]


def _row(event: Document, _now: datetime) -> Row:
    return (
        str(event["offset"]),
        local(event["event_ts"]),
        str(event["event_type"]),
        str(event["event_topic"] or ""),
        str(event["aggregate_id"]),
        str(event["aggregate_version"]),
    )


EVENTS = View(
    kind="events",
    headers=("OFFSET", "TIME", "TYPE", "TOPIC", "SCHEDULE", "VERSION"),
    row=_row,
    name=lambda event: str(event["offset"]),
)


@app.command("list")
@grouped
def list_events(*, after: AfterOption = 0, listing: Listing, connection: Connection) -> None:
    """List events, oldest first."""
    with connection.open() as api:
        show(listing, lambda: _events(api, after, listing.max_items), EVENTS)


@app.command("tail")
@grouped
def tail(
    *,
    after: Annotated[
        int | None,
        typer.Option(
            "--after", metavar="OFFSET", help="Start after this offset.", show_default="the last", min=0
        ),
    ] = None,
    output: FormatOption = Format.TABLE,
    connection: Connection,
) -> None:
    """Show events as they come, until Ctrl-C; as JSON, one object per line."""
    with connection.open() as api, suppress(KeyboardInterrupt):
        position = last_offset(lambda offset: _has_events(api, offset)) if after is None else after

        def check() -> bool:
            nonlocal position
            for event in _events(api, position, None).items:
                _print(event, output)
                position = int(event["offset"])
            return False

        poll(check)


def _events(api: "ApiClient", after: int, limit: int | None) -> "ListedItems":
    from foliot.cli.support.rest_client import ListedItems

    found: list[dict[str, Any]] = []
    while True:
        wanted = PAGE if limit is None else min(PAGE, limit - len(found))
        page = api.page("events", {"after": after, "page_size": wanted})
        found += page.items
        if not page.token or (limit is not None and len(found) >= limit):
            return ListedItems(found, bool(page.token))
        after = int(page.token)


def _has_events(api: "ApiClient", after: int) -> bool:
    return bool(api.page("events", {"after": after, "page_size": 1}).items)


def last_offset(has_events: Callable[[int], bool]) -> int:
    """Return the offset of the last event, by a binary search with `has_events(after)`. 0: no events."""
    low, high = 0, 1
    if not has_events(0):
        return 0
    while has_events(high):
        low, high = high, min(2 * high, LARGEST_OFFSET)
    # Invariant: there are events after `low`, and none after `high`.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if has_events(middle) else (low, middle)
    return high


def _print(event: Document, output: Format) -> None:
    match output:
        case Format.JSON:
            write(json.dumps(event))
        case Format.YAML:
            print_yaml([event])
        case Format.NAME:
            write(EVENTS.name(event))
        case Format.TABLE:
            data = json.dumps((event.get("payload") or {}).get("data"), ensure_ascii=False)
            cells = (
                event["offset"],
                local(event["event_ts"]),
                event["event_type"],
                event["event_topic"] or "",
            )
            write(one_line("  ".join([*(str(cell) for cell in cells), data])))
