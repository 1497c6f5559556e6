"""`foliot simulate`: simulate schedules in virtual time."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.support.options import Connection, grouped
from foliot.cli.support.output import Output, OutputOption, print_json, print_rows, say
from foliot.model.errors import InvalidError

if TYPE_CHECKING:
    from foliot.model.schedule import Schedule, ScheduleSpec
    from foliot.planning.simulate import Outage, Simulated

MAX_SCHEDULES = 1_000

NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Schedules of the server.", show_default="all")
]
FilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--file",
        metavar="FILE_OR_FOLDER",
        help="Read schedules from files instead of a server. Repeatable.",
    ),
]
OutagesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--outage",
        metavar="FROM/TO",
        help="An outage, in which nothing is decided: 2026-03-29T01:00/2026-03-29T05:00. Repeatable.",
    ),
]


@grouped
def simulate(
    *,
    names: NamesArgument = None,
    files: FilesOption = None,
    from_: Annotated[str | None, typer.Option("--from", metavar="TIME", show_default="now")] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="TIME", show_default="a day later")] = None,
    outages: OutagesOption = None,
    count: Annotated[int, typer.Option("-n", help="Maximum number of decisions to show.", min=1)] = 100,
    output: OutputOption = Output.TABLE,
    connection: Connection,
) -> None:
    """Show what would fire when, given outages: every decision that a scheduler would make, in virtual time.

    Misfire policies, windows, jitter and changes of clocks count; calendars do not, and runs are taken to end
    at once. A schedule goes on from where it stands; with --from, or from a file, it begins anew. Changes
    nothing.
    """
    from foliot.timing.clock import SystemClock

    now = SystemClock().now()
    first = now if from_ is None else _instant(from_, "--from", now)
    last = first + timedelta(days=1) if to is None else _instant(to, "--to", now)
    if last <= first:
        raise InvalidError.at("--to", "order", "is not after --from", "a later time")
    broken = [_outage(text, now) for text in outages or ()]
    found = (
        _in_files(files, first)
        if files
        else _on_server(connection, names or [], first, anew=from_ is not None)
    )
    rows = _decisions(list(found), last, broken, count + 1)
    shown = rows[:count]
    if output is Output.JSON:
        print_json([_document(name, each) for name, each in shown])
    else:
        print_rows([_row(name, each) for name, each in shown], headers=("DECIDED", "SCHEDULE", "DUE", "WHAT"))
    if len(rows) > count:
        say("there are more: -n shows them, --to ends earlier")


# --- input ----------------------------------------------------------------------------------------------


def _instant(text: str, option: str, now: datetime) -> datetime:
    from foliot.cli.support.instants import instant_of

    return datetime.fromisoformat(instant_of(text, option, now, is_ahead=True))


def _outage(text: str, now: datetime) -> "Outage":
    from foliot.planning.simulate import Outage

    begin, slash, end = text.partition("/")
    if not slash:
        hint = "2026-03-29T01:00/2026-03-29T05:00"
        raise InvalidError.at("--outage", "outage", f'"{text}" is not FROM/TO', hint)
    found = Outage(_instant(begin, "--outage", now), _instant(end, "--outage", now))
    if found.to_ts <= found.from_ts:
        raise InvalidError.at("--outage", "order", f'"{text}" ends before it begins', "a later end")
    return found


def _in_files(files: Sequence[str], first: datetime) -> "Iterator[Schedule]":
    from foliot.cli.support.documents import read_schedules
    from foliot.model.schedule import ScheduleSpec

    for sourced in read_schedules(files):
        yield _begun(ScheduleSpec.parse(sourced.document), first)


def _on_server(
    connection: Connection, names: Sequence[str], first: datetime, *, anew: bool
) -> "Iterator[Schedule]":
    from foliot.cli.support.lookup import find_schedule
    from foliot.model.schedule import ScheduleSpec

    with connection.open() as api:
        if names:
            documents = [find_schedule(api, name) for name in dict.fromkeys(names)]
        else:
            documents = api.items("schedules", limit=MAX_SCHEDULES).items
    for document in documents:
        fields = {name: value for name, value in document.items() if name in ScheduleSpec.model_fields}
        spec = ScheduleSpec.parse(fields)
        if document["state"] != "active":
            say(f"{spec.name} is {document['state']}: it decides nothing")
        elif anew:
            yield _begun(spec, first)
        else:
            yield _going_on(spec, document)


# --- schedules in virtual time ----------------------------------------------------------------------------


def _begun(spec: "ScheduleSpec", now: datetime) -> "Schedule":
    from foliot.model.ids import DEFAULT_HOST_ID
    from foliot.planning.change import Author, create

    return create(_without_calendars(spec), host_id=DEFAULT_HOST_ID, now=now, author=Author()).schedule


def _going_on(spec: "ScheduleSpec", document: dict[str, Any]) -> "Schedule":
    """Return a schedule in its current state. Its next fire time can be the anchor of its trigger."""
    from dataclasses import replace
    from uuid import UUID

    from foliot.cli.support.instants import read_instant

    fire_ts, run_ts = (read_instant(document[name]) for name in ("next_fire_ts", "next_run_ts"))
    begun = _begun(spec, fire_ts or datetime.fromisoformat(document["updated_ts"]))
    return replace(
        begun,
        schedule_id=UUID(document["schedule_id"]),
        next_fire_ts=fire_ts,
        next_run_ts=run_ts,
        run_count=int(document["run_count"]),
    )


def _without_calendars(spec: "ScheduleSpec") -> "ScheduleSpec":
    if not spec.calendars:
        return spec
    say(f"{spec.name}: its calendars are left out of this")
    return spec.model_copy(update={"calendars": type(spec.calendars)()})


def _decisions(
    schedules: "Sequence[Schedule]", last: datetime, outages: "Sequence[Outage]", limit: int
) -> "list[tuple[str, Simulated]]":
    from heapq import merge
    from itertools import islice

    from foliot.planning.simulate import simulate as decide

    def named(schedule: "Schedule") -> "Iterator[tuple[str, Simulated]]":
        for each in decide(schedule, last, outages):
            yield schedule.spec.name, each

    streams = [named(schedule) for schedule in schedules]
    return list(islice(merge(*streams, key=lambda each: (each[1].decided_ts, each[0])), limit))


# --- output -------------------------------------------------------------------------------------------------


def _what(each: "Simulated") -> str:
    missed = f", for {each.missed_count} missed before it" if each.missed_count else ""
    return ("fires" if each.reason is None else f"skipped: {each.reason}") + missed


def _row(name: str, each: "Simulated") -> tuple[str, ...]:
    return (_local(each.decided_ts), name, _local(each.fire_ts), _what(each))


def _local(instant: datetime) -> str:
    return instant.astimezone().isoformat(sep=" ", timespec="seconds")


def _document(name: str, each: "Simulated") -> dict[str, Any]:
    return {
        "schedule": name,
        "decided_ts": each.decided_ts.isoformat(),
        "fire_ts": each.fire_ts.isoformat(),
        "fires": each.reason is None,
        "reason": each.reason,
        "missed_count": each.missed_count,
        "missed_from_ts": each.missed_from_ts and each.missed_from_ts.isoformat(),
    }
