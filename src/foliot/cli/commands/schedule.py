"""`foliot schedule`: show, pause, resume and delete schedules. Defining and running are in other files."""

from typing import Annotated, Any, Literal

import typer

from foliot.cli.commands import schedule_define, schedule_run
from foliot.cli.support.api_failures import CommandError
from foliot.cli.support.completion import queue_names, schedule_names
from foliot.cli.support.execution_view import EXECUTIONS
from foliot.cli.support.instants import instant_of, local
from foliot.cli.support.kind_options import KindCommand
from foliot.cli.support.lookup import find_schedule, on_each, schedule_path
from foliot.cli.support.options import ChangeOptions, Connection, Listing, ReasonOption, grouped, one_of
from foliot.cli.support.output import Format, FormatOption, print_json, say, show_list, show_one, write
from foliot.cli.support.prompts import may
from foliot.cli.support.schedule_view import FIRES, SCHEDULES
from foliot.cli.support.text import escaped
from foliot.cli.support.watch import show
from foliot.timing.clock import SystemClock

app = typer.Typer(help="List, define, pause and run schedules.")

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A name or an id.", autocompletion=schedule_names)
]
NamesArgument = Annotated[
    list[str], typer.Argument(metavar="NAME...", help="Names or ids.", autocompletion=schedule_names)
]
StatusOption = Annotated[
    list[str] | None,
    typer.Option(
        "--status",
        help="Repeatable: any of these.",
        **one_of(
            "pending",
            "running",
            "retrying",
            "success",
            "failed",
            "timeout",
            "cancelled",
            "skipped",
            "unknown",
        ),
    ),
]
TriggeredByOption = Annotated[
    list[str] | None,
    typer.Option("--triggered-by", help="Repeatable.", **one_of("scheduler", "manual", "api", "backfill")),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="ISO_TIME|DURATION",
        help="Only fire times from here on: a time, or a duration before now.",
    ),
]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="ISO_TIME|DURATION",
        help="Only fire times before this: a time, or a duration before now.",
    ),
]


def _target_kinds() -> list[str]:
    from foliot.model.kind import TARGETS

    return list(TARGETS)


@app.command("list")
@grouped
def list_schedules(
    *,
    name: Annotated[
        list[str] | None, typer.Option("--name", metavar="NAME", help="Exact name. Repeatable.")
    ] = None,
    search: Annotated[
        str | None, typer.Option("-q", "--search", metavar="TEXT", help="A part of the name or description.")
    ] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--no-active", help="Whether the definition is active.")
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state", help="Repeatable.", **one_of("active", "paused", "inactive", "completed", "error")
        ),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", help="Repeatable.", autocompletion=queue_names),
    ] = None,
    priority: Annotated[
        list[str] | None, typer.Option("--priority", help="Repeatable.", **one_of("high", "medium", "low"))
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="KIND",
            help="A kind of target, such as function or http. Repeatable.",
            autocompletion=_target_kinds,
        ),
    ] = None,
    last_status: Annotated[
        list[str] | None,
        typer.Option("--last-status", metavar="STATUS", help="Status of the last run. Repeatable."),
    ] = None,
    managed_by: Annotated[
        list[str] | None,
        typer.Option("--managed-by", help="Repeatable.", **one_of("api", "ui", "code", "file")),
    ] = None,
    calendar: Annotated[
        list[str] | None,
        typer.Option("--calendar", metavar="NAME", help="Only schedules that use this calendar. Repeatable."),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="Of several, all must match.")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            help="A - before it reverses the order.",
            **one_of("name", "next_run_ts", "last_run_ts", "created_ts", "updated_ts"),
        ),
    ] = None,
    listing: Listing,
    connection: Connection,
) -> None:
    """List schedules."""
    wanted = {
        "name": name,
        "q": search,
        "active": active,
        "state": state,
        "queue": queue,
        "priority": priority,
        "target": target,
        "last_status": last_status,
        "managed_by": managed_by,
        "calendar": calendar,
        "label": [each.replace("=", ":", 1) for each in label or ()],
        "sort": sort,
    }
    with connection.open() as api:
        show(listing, lambda: api.items("schedules", wanted, limit=listing.max_items), SCHEDULES)


@app.command("get")
@grouped
def get(*, name: NameArgument, output: FormatOption = Format.TABLE, connection: Connection) -> None:
    """Show a schedule."""
    with connection.open() as api:
        show_one(find_schedule(api, name), output, SCHEDULES, SystemClock().now())


app.command("create", cls=KindCommand)(schedule_define.create)
app.command("set", cls=KindCommand)(schedule_define.set_schedule)
app.command("apply")(schedule_define.apply)
app.command("diff")(schedule_define.diff)


@app.command("delete")
@grouped
def delete(*, names: NamesArgument, change: ChangeOptions, connection: Connection) -> None:
    """Delete schedules.

    Their names are free again, what waits is cancelled, what runs goes on to its end. Their history stays.
    """
    with connection.open() as api:

        def act(name: str) -> None:
            schedule = find_schedule(api, name)
            if change.is_only_shown(f"delete {schedule['name']}"):
                return
            if not may(f'Delete the schedule "{schedule["name"]}"?', is_yes=change.yes):
                raise CommandError(f"kept {schedule['name']}")
            api.delete(f"schedules/{schedule['schedule_id']}")
            say(f"deleted {schedule['name']}")

        on_each(names, act)


@app.command("export")
@grouped
def export(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="Names or ids.", autocompletion=schedule_names, show_default="all"
        ),
    ] = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="yaml or json.")] = Format.YAML,
    connection: Connection,
) -> None:
    """Write schedules as files that `schedule apply` takes.

    Definitions alone: what is not there has its default. Secrets are named in them, never shown.
    """
    from foliot.cli.support.documents import to_documents
    from foliot.cli.support.export_form import exported

    if output not in (Format.YAML, Format.JSON):
        raise typer.BadParameter("yaml or json", param_hint="-o")
    with connection.open() as api:
        found: list[dict[str, Any]] = (
            [find_schedule(api, name) for name in dict.fromkeys(names)]
            if names
            else api.items("schedules").items
        )
    documents = [exported(schedule) for schedule in found]
    if output is Format.JSON:
        print_json(documents)
    elif documents:
        write(escaped(to_documents(documents)).rstrip("\n"))


@app.command("pause")
@grouped
def pause(
    *,
    names: NamesArgument,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Reason, shown to others.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="ISO_TIME|DURATION", help="End: a time, or a duration such as 2h."),
    ] = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Pause schedules: nothing of them becomes due until they are resumed.

    Pausing again changes reason and end.
    """
    now = SystemClock().now()
    until_ts = None if until is None else instant_of(until, "--until", now, is_ahead=True)
    body = {"reason": reason, "until_ts": until_ts}
    end = f" until {local(until_ts)}" if until_ts else ""
    _apply_to_each(connection, names, "pause", body, end, output, change)


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
    """Resume schedules: they go on with their first time after now."""
    _apply_to_each(connection, names, "resume", {"reason": reason}, "", output, change)


def _apply_to_each(
    connection: Connection,
    names: list[str],
    act: Literal["pause", "resume"],
    body: dict[str, Any],
    end: str,
    output: Format,
    change: ChangeOptions,
) -> None:
    changed: list[dict[str, Any]] = []
    with connection.open() as api:

        def apply_to_one(name: str) -> None:
            schedule = find_schedule(api, name)
            if change.is_only_shown(f"{act} {schedule['name']}{end}"):
                return
            schedule = api.post(f"schedules/{schedule['schedule_id']}/{act}", body)
            say(f"{act}d {schedule['name']}{end}")
            changed.append(schedule)

        try:
            on_each(names, apply_to_one)
        finally:
            if output is not Format.TABLE and changed:
                now = SystemClock().now()
                if len(names) == 1:
                    show_one(changed[0], output, SCHEDULES, now)
                else:
                    show_list(changed, output, SCHEDULES, now)


app.command("trigger")(schedule_run.trigger)
app.command("backfill")(schedule_run.backfill)


@app.command("fires")
@grouped
def fires(
    *,
    name: NameArgument,
    count: Annotated[
        int, typer.Option("-n", help="Number of past and of future fire times.", min=1, max=1000)
    ] = 10,
    start: FromOption = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="ISO_TIME|DURATION",
            help="Only fire times before this: a time, or a duration from now.",
        ),
    ] = None,
    output: FormatOption = Format.TABLE,
    connection: Connection,
) -> None:
    """Show when a schedule fired, was skipped and why, and will fire."""
    now = SystemClock().now()
    wanted = {
        "n": count,
        "from": start and instant_of(start, "--from", now),
        "to": end and instant_of(end, "--to", now, is_ahead=True),
    }
    with connection.open() as api:
        found = api.page(schedule_path(api, name, "fires"), wanted).items
    show_list(found, output, FIRES, now)


@app.command("history")
@grouped
def history(
    *,
    name: NameArgument,
    status: StatusOption = None,
    triggered_by: TriggeredByOption = None,
    start: FromOption = None,
    end: ToOption = None,
    listing: Listing,
    connection: Connection,
) -> None:
    """List the executions of a schedule, the latest fire time first."""
    now = SystemClock().now()
    wanted = {
        "status": status,
        "triggered_by": triggered_by,
        "fire_from": start and instant_of(start, "--from", now),
        "fire_to": end and instant_of(end, "--to", now),
    }
    with connection.open() as api:
        path = schedule_path(api, name, "executions")
        show(listing, lambda: api.items(path, wanted, limit=listing.max_items), EXECUTIONS)
