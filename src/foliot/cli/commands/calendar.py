"""`foliot calendar`: named sets of days on which schedules don't fire."""

from datetime import datetime
from typing import Annotated, Any

import typer

from foliot.cli.support.api_failures import CommandError, UsageError
from foliot.cli.support.completion import calendar_names
from foliot.cli.support.instants import both
from foliot.cli.support.lookup import on_each, require_named
from foliot.cli.support.options import ChangeOptions, Connection, Listing, grouped
from foliot.cli.support.output import Document, Format, FormatOption, Row, View, say, show_one
from foliot.cli.support.prompts import may
from foliot.cli.support.watch import show
from foliot.timing.clock import SystemClock

app = typer.Typer(help="Import, list and delete calendars of excluded days.")

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def _days(calendar: Document) -> str:
    countries = [
        each["country"] + (f"-{each['subdivision']}" if each.get("subdivision") else "")
        for each in calendar["countries"]
    ]
    weekdays = [_WEEKDAYS[day - 1] for day in calendar["weekdays"]]
    count = len(calendar["days"])
    parts = [f"holidays of {', '.join(countries)}"] if countries else []
    parts += [f"every {', '.join(weekdays)}"] if weekdays else []
    parts += [f"{count} days or ranges"] if count else []
    return "; ".join(parts)


def _row(calendar: Document, now: datetime) -> Row:
    return (
        str(calendar["name"]),
        _days(calendar),
        str(calendar["timezone"] or ""),
        both(calendar["updated_ts"], now),
        str(calendar["description"]),
    )


CALENDARS = View(
    kind="calendars",
    headers=("NAME", "EXCLUDES", "ZONE", "SET", "DESCRIPTION"),
    row=_row,
    name=lambda calendar: str(calendar["name"]),
)


@app.command("import")
@grouped
def import_calendar(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=calendar_names)],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="iCalendar (.ics), or a calendar as YAML or JSON; - is iCalendar on stdin."
        ),
    ] = None,
    country: Annotated[
        list[str] | None,
        typer.Option(
            "--country", metavar="DE|DE-BY", help="The holidays of a country or a part. Repeatable."
        ),
    ] = None,
    tz: Annotated[
        str | None,
        typer.Option(
            "--tz", metavar="ZONE", help="Time zone of the days.", show_default="the trigger's zone"
        ),
    ] = None,
    description: Annotated[str, typer.Option("--description", metavar="TEXT")] = "",
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Make a calendar, or replace it, from a file or from the holidays of countries."""
    if (file is None) == (not country):
        raise UsageError("give a FILE, or --country")
    shared = {"description": description or None, "timezone": tz}
    given = {field: value for field, value in shared.items() if value is not None}
    from foliot.cli.support.rest_client import path_of

    ical = None
    if country:
        document = {**given, "countries": [_country(each) for each in country]}
    elif file is not None and file.endswith((".yaml", ".yml", ".json")):
        document = {**_read(file), **given, "name": name}
    else:
        from foliot.cli.support.documents import read_text

        ical = read_text(str(file))
        document = {"name": name, "ical": ical, **given}
    with connection.open() as api:
        if change.is_only_shown(f"import {name}"):
            return
        if ical is None:
            made = api.put(path_of("calendars", name), document)
        else:
            made = api.post("calendars/import", document)
    say(f"imported {made['name']}")
    show_one(made, output, CALENDARS, SystemClock().now())


def _country(text: str) -> dict[str, str]:
    country, _, subdivision = text.partition("-")
    return {"country": country, **({"subdivision": subdivision} if subdivision else {})}


def _read(file: str) -> dict[str, Any]:
    from foliot.cli.support.documents import FileError, read_document

    document = read_document(file)
    if not isinstance(document, dict):
        raise FileError(file, "is not a calendar")
    return document


@app.command("list")
@grouped
def list_calendars(*, listing: Listing, connection: Connection) -> None:
    """List calendars."""
    with connection.open() as api:
        show(listing, lambda: api.items("calendars", limit=listing.max_items), CALENDARS)


@app.command("delete")
@grouped
def delete(
    *,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", autocompletion=calendar_names)],
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Delete calendars. One that schedules use stays, and it is said which."""
    from foliot.cli.support.rest_client import path_of

    with connection.open() as api:

        def act(name: str) -> None:
            if change.dry_run:
                require_named(api, "calendars", name, "calendar")
                change.is_only_shown(f"delete {name}")
                return
            if not may(f'Delete the calendar "{name}"?', is_yes=change.yes):
                raise CommandError(f"kept {name}")
            api.delete(path_of("calendars", name))
            say(f"deleted {name}")

        on_each(names, act)
