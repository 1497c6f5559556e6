"""`foliot queue`: the queues in which executions wait."""

from datetime import datetime
from typing import Annotated, Literal

import typer

from foliot.cli.support.completion import queue_names
from foliot.cli.support.instants import relative
from foliot.cli.support.lookup import on_each
from foliot.cli.support.options import ChangeOptions, Connection, Listing, ReasonOption, grouped
from foliot.cli.support.output import Document, Format, FormatOption, Row, View, say, show_one, state
from foliot.cli.support.watch import show
from foliot.timing.clock import SystemClock

app = typer.Typer(help="See what waits; pause and resume queues.")

NamesArgument = Annotated[list[str], typer.Argument(metavar="NAME...", autocompletion=queue_names)]


def _row(queue: Document, now: datetime) -> Row:
    depth = queue["depth"]
    more = "+" if queue["is_capped"] else ""
    return (
        str(queue["name"]),
        state("paused" if queue["paused"] else "active"),
        *(f"{depth.get(priority, 0)}{more}" for priority in ("high", "medium", "low")),
        f"{queue['running_count']}{'+' if queue['is_running_capped'] else ''}",
        relative(queue["oldest_ready_ts"], now),
        str(queue["sla_missed_count"]),
    )


QUEUES = View(
    kind="queues",
    headers=("NAME", "STATE", "HIGH", "MEDIUM", "LOW", "RUNNING", "OLDEST", "LATE"),
    row=_row,
    name=lambda queue: str(queue["name"]),
)


@app.command("list")
@grouped
def list_queues(*, listing: Listing, connection: Connection) -> None:
    """List queues: what waits in each, by priority, and what runs."""
    with connection.open() as api:
        show(listing, lambda: api.items("queues", limit=listing.max_items), QUEUES)


@app.command("pause")
@grouped
def pause(
    *,
    names: NamesArgument,
    reason: ReasonOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Pause queues: workers take nothing from them; what runs goes on."""
    _apply_to_each(connection, names, "pause", reason, output, change)


@app.command("resume")
@grouped
def resume(
    *,
    names: NamesArgument,
    reason: ReasonOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Resume queues."""
    _apply_to_each(connection, names, "resume", reason, output, change)


def _apply_to_each(
    connection: Connection,
    names: list[str],
    act: Literal["pause", "resume"],
    reason: str | None,
    output: Format,
    change: ChangeOptions,
) -> None:
    from foliot.cli.support.rest_client import path_of

    with connection.open() as api:

        def apply_to_one(name: str) -> None:
            if change.is_only_shown(f"{act} {name}"):
                return
            queue = api.post(path_of("queues", name, act), {"reason": reason})
            say(f"{act}d {name}")
            if output is not Format.TABLE:
                show_one(queue, output, QUEUES, SystemClock().now())

        on_each(names, apply_to_one)
