"""`foliot schedule create`, `set`, `apply`, `diff`: define schedules."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.support.api_failures import CommandError, UsageError
from foliot.cli.support.completion import schedule_names
from foliot.cli.support.definition import ScheduleOptions
from foliot.cli.support.instants import local
from foliot.cli.support.kind_options import KINDS, flags
from foliot.cli.support.lookup import find_schedule
from foliot.cli.support.options import ChangeOptions, Connection, ReasonOption, grouped
from foliot.cli.support.output import (
    Format,
    FormatOption,
    print_json,
    print_rows,
    print_yaml,
    say,
    show_one,
    write,
)
from foliot.cli.support.prompts import is_interactive, may
from foliot.cli.support.schedule_view import SCHEDULES
from foliot.model.error_codes import Exit
from foliot.timing.clock import SystemClock

if TYPE_CHECKING:
    from foliot.cli.support.apply_plan import ApplyPlan, Request
    from foliot.cli.support.rest_client import ApiClient

PREVIEWED = ("name", "trigger", "dst", "window", "calendars", "start_ts", "end_ts", "jitter_seconds")
"""Fields that determine when a schedule fires."""

FileOption = Annotated[
    str | None,
    typer.Option("-f", "--file", metavar="FILE", help="YAML or JSON; - is stdin. Options override it."),
]
FilesOption = Annotated[
    list[str],
    typer.Option("-f", "--file", metavar="FILE_OR_FOLDER", help="YAML or JSON; - is stdin. Repeatable."),
]
PruneOption = Annotated[
    bool, typer.Option("--prune", help="Delete schedules of this source that are no longer in the files.")
]
AdoptOption = Annotated[
    bool, typer.Option("--adopt", help="Take over schedules that code or another source manages.")
]
SourceOption = Annotated[
    str,
    typer.Option(
        "--source",
        metavar="NAME",
        help="Name of this set of files. --prune deletes only schedules of the same set.",
    ),
]


# --- one -------------------------------------------------------------------------------------------


@grouped
def create(
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name. It may be in the file instead.")
    ] = None,
    file: FileOption = None,
    given: ScheduleOptions,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
    context: typer.Context,
) -> None:
    """Create a schedule.

    Say when by one option such as --cron or --every, and what by one such as --function or --http; or give
    a file.
    """
    document = _new(name, file, given, context.meta[KINDS])
    with connection.open() as api:
        if change.dry_run:
            _show_dry_run(api, document, output)
            return
        made = api.post("schedules", document, is_once=True)
    say(f"created {made['name']}")
    show_one(made, output, SCHEDULES, SystemClock().now())


def _new(
    name: str | None, file: str | None, given: ScheduleOptions, kinds: Mapping[str, Any]
) -> dict[str, Any]:
    from foliot.model.kind import TARGETS, TRIGGERS

    base = {} if file is None else _read_one(file)
    patch = given.patch(SystemClock().now(), base, kinds)
    if name is not None:
        patch = {"name": name, **patch}
    document = _merged(base, patch)
    missing = [
        what
        for field, what in (
            ("name", "a name"),
            ("trigger", f"when: {_any_of(flags(TRIGGERS))}"),
            ("target", f"what: {_any_of(flags(TARGETS))}"),
        )
        if field not in document
    ]
    if missing:
        raise UsageError(f"say {'; and '.join(missing)}; or give it all by -f FILE")
    return document


def _any_of(options: list[str]) -> str:
    return f"{', '.join(options[:-1])} or {options[-1]}"


def _read_one(file: str) -> dict[str, Any]:
    from foliot.cli.support.documents import FileError, read_document

    document = read_document(file)
    if isinstance(document, list) or (isinstance(document, dict) and "schedules" in document):
        raise FileError(file, "has a list of schedules, which is for `foliot schedule apply`")
    if not isinstance(document, dict):
        raise FileError(file, "is not a schedule")
    return document


def _merged(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    from foliot.api.http.patch import merge_definition

    if document:
        return merge_definition(document, patch)
    # Without a file, nulls remove nothing and are dropped. Arguments of the target may be null and stay.
    made = {name: value for name, value in patch.items() if value is not None}
    for name in {"labels", "window"} & made.keys():
        made[name] = {part: value for part, value in made[name].items() if value is not None}
    return made


def _show_dry_run(api: "ApiClient", document: dict[str, Any], output: Format) -> None:
    from foliot.cli.support.apply_plan import Request
    from foliot.cli.support.documents import SourcedDocument

    # The server checks the whole definition with the rules for creating.
    planned = Request(schedules=[SourcedDocument(document)]).plan(api).items[0]
    if planned["action"] != "create":
        raise CommandError(f'a schedule named "{document["name"]}" exists already', Exit.CONFLICT)
    preview = api.post("schedules/preview", {name: document[name] for name in PREVIEWED if name in document})
    match output:
        case Format.JSON:
            print_json({"schedule": document, "preview": preview})
        case Format.YAML:
            print_yaml({"schedule": document, "preview": preview})
        case Format.NAME:
            write(str(document["name"]))
        case Format.TABLE:
            print_yaml(document)
            say(f"would create {document['name']}: {preview['description']}")
            print_rows([("next", f"{fire}  ({local(fire)})") for fire in preview["fires"]])
    for warning in preview["warnings"]:
        say(f"foliot: {warning}")


@grouped
def set_schedule(
    *,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name or an id.", autocompletion=schedule_names)
    ],
    file: Annotated[
        str | None,
        typer.Option("-f", "--file", metavar="FILE", help="A JSON merge patch, as YAML or JSON; - is stdin."),
    ] = None,
    rename: Annotated[str | None, typer.Option("--rename", metavar="NAME", help="Its new name.")] = None,
    given: ScheduleOptions,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
    context: typer.Context,
) -> None:
    """Change parts of a schedule; what is not named stays as it is."""
    base = {} if file is None else _read_one(file)
    with connection.open() as api:
        known = find_schedule(api, name)
        patch = _over(base, given.patch(SystemClock().now(), known, context.meta[KINDS]))
        if rename is not None:
            patch["name"] = rename
        if not patch:
            raise UsageError("say what to change; see `foliot schedule set --help`")
        if change.dry_run:
            _show_change(api, known, patch, output)
            return
        changed = api.patch(f"schedules/{known['schedule_id']}", patch)
    is_same = changed["aggregate_version"] == known["aggregate_version"]
    say(f"{changed['name']} has no changes" if is_same else f"changed {changed['name']}")
    show_one(changed, output, SCHEDULES, SystemClock().now())


def _over(patch: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two patches into one. Nulls are kept, because they are part of a patch."""
    both = {**patch, **later}
    for name in patch.keys() & later.keys():
        if isinstance(patch[name], Mapping) and isinstance(later[name], Mapping):
            both[name] = _over(patch[name], later[name])
    return both


def _show_change(
    api: "ApiClient", known: Mapping[str, Any], patch: Mapping[str, Any], output: Format
) -> None:
    from foliot.api.http.patch import merge_definition
    from foliot.cli.support.apply_plan import Request
    from foliot.cli.support.documents import SourcedDocument
    from foliot.cli.support.export_form import definition

    # Use the old name: with a new one, the plan would be about another schedule.
    document = {**merge_definition(definition(known), patch), "name": known["name"]}
    planned = Request(schedules=[SourcedDocument(document)], adopts=True).plan(api)
    item = planned.items[0]
    changes = item["changes"]
    if patch.get("name", known["name"]) != known["name"]:
        changes = [{"pointer": "/name", "before": known["name"], "after": patch["name"]}, *changes]
    shown = {**item, "changes": changes, "detail": "", "action": "update" if changes else "unchanged"}
    _print_plan(type(planned)({**planned.document, "items": [shown]}), output)


# --- many ------------------------------------------------------------------------------------------


@grouped
def apply(
    *,
    files: FilesOption,
    prune: PruneOption = False,
    adopt: AdoptOption = False,
    source: SourceOption = "default",
    reason: ReasonOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Bring schedules in step with files.

    Shows what would change, asks on a terminal, and does it. Without a terminal it goes ahead, unless
    something would be deleted: that takes -y. Nothing is deleted without --prune. Exit 1 if a part of it
    failed.
    """
    request = _request(files, source, prune=prune, adopt=adopt, reason=reason)
    with connection.open() as api:
        plan = request.plan(api)
        if change.dry_run:
            _print_plan(plan, output)
            _refuse_conflicts(plan)
            return
        _tell_plan(plan)
        _refuse_conflicts(plan)
        if not plan.has_changes:
            _print_done(plan.as_done(), output)
            return
        _ask(plan, is_yes=change.yes)
        done = request.carry_out(api)
    _print_done(done, output)
    for item in done.failed:
        say(f"foliot: {item['name']}: {item['error']}")
    if done.failed:
        raise typer.Exit(Exit.FAILED)


@grouped
def diff(
    *,
    files: FilesOption,
    prune: PruneOption = False,
    adopt: AdoptOption = False,
    source: SourceOption = "default",
    output: FormatOption = Format.TABLE,
    connection: Connection,
) -> None:
    """Show how schedules differ from files, and change nothing.

    Exit 1 if they differ.
    """
    request = _request(files, source, prune=prune, adopt=adopt)
    with connection.open() as api:
        plan = request.plan(api)
    _print_plan(plan, output)
    if plan.has_changes:
        raise typer.Exit(Exit.FAILED)


def _request(
    files: list[str], source: str, *, prune: bool, adopt: bool, reason: str | None = None
) -> "Request":
    from foliot.cli.support.apply_plan import Request
    from foliot.cli.support.documents import read_schedules

    return Request(schedules=read_schedules(files), source=source, prunes=prune, adopts=adopt, reason=reason)


def _print_plan(plan: "ApplyPlan", output: Format) -> None:
    from foliot.cli.support.apply_plan import painted

    match output:
        case Format.JSON:
            print_json(plan.document)
        case Format.YAML:
            print_yaml(plan.document)
        case Format.NAME:
            names = [item["name"] for item in plan.of("create", "update", "delete", "conflict")]
            if names:
                write("\n".join(names))
        case Format.TABLE:
            write(painted(plan.lines(), is_err=False))


def _tell_plan(plan: "ApplyPlan") -> None:
    from foliot.cli.support.apply_plan import painted

    typer.echo(painted(plan.lines(), is_err=True), err=True)


def _refuse_conflicts(plan: "ApplyPlan") -> None:
    conflicts = plan.of("conflict")
    if conflicts:
        details = "; ".join(f'"{item["name"]}" {item["detail"]}' for item in conflicts)
        raise CommandError(
            f"nothing was done: {details}".replace("adopt would", "--adopt would"), Exit.CONFLICT
        )


def _ask(plan: "ApplyPlan", *, is_yes: bool) -> None:
    if is_yes:
        return
    deleted = plan.of("delete")
    if deleted and not is_interactive():
        raise UsageError(f"the plan deletes {len(deleted)}: confirm it by -y; nothing was done")
    if not may("Go ahead?", is_yes=False):
        say("nothing was done")
        raise typer.Exit(Exit.FAILED)


def _print_done(done: "ApplyPlan", output: Format) -> None:
    if output is not Format.TABLE:
        _print_plan(done, output)
    elif done.done():
        write("\n".join(done.done()))
