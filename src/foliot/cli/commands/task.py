"""`foliot task`: the task functions that workers can run."""

from datetime import datetime
from typing import Annotated

import typer

from foliot.cli.support.instants import duration
from foliot.cli.support.options import Connection, Listing, grouped
from foliot.cli.support.output import Document, Row, View
from foliot.cli.support.watch import show

app = typer.Typer(help="See the task functions that workers registered.")


def _arguments(task: Document) -> str:
    schema = task.get("args_schema") or {}
    required = schema.get("required") or ()
    return ", ".join(name if name in required else f"[{name}]" for name in schema.get("properties") or {})


def _row(task: Document, _now: datetime) -> Row:
    return (
        str(task["name"]),
        _arguments(task),
        str(task["queue"] or ""),
        duration(task["default_timeout_seconds"]),
        str(task["worker_count"]),
        "yes" if task["is_active"] else "no",
        str(task["description"]),
    )


TASKS = View(
    kind="task functions",
    headers=("NAME", "ARGUMENTS", "QUEUE", "TIMEOUT", "WORKERS", "ACTIVE", "DESCRIPTION"),
    row=_row,
    name=lambda task: str(task["name"]),
)


@app.command("list")
@grouped
def list_tasks(
    *,
    search: Annotated[
        str | None, typer.Option("-q", "--search", metavar="TEXT", help="A part of the name or description.")
    ] = None,
    active: Annotated[bool | None, typer.Option("--active/--no-active", help="Whether it may run.")] = None,
    listing: Listing,
    connection: Connection,
) -> None:
    """List task functions."""
    wanted = {"q": search, "is_active": active}
    with connection.open() as api:
        show(listing, lambda: api.items("task-functions", wanted, limit=listing.max_items), TASKS)
