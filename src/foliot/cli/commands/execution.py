"""`foliot execution`: show, follow, cancel and retry executions, and read their logs."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.commands.schedule import FromOption, StatusOption, ToOption, TriggeredByOption
from foliot.cli.support.completion import queue_names, schedule_names
from foliot.cli.support.execution_view import ATTEMPTS, EXECUTIONS, logged_line
from foliot.cli.support.instants import instant_of
from foliot.cli.support.lookup import execution_path, find_schedule, on_each
from foliot.cli.support.options import ChangeOptions, Connection, Listing, ReasonOption, grouped
from foliot.cli.support.output import (
    Document,
    Format,
    FormatOption,
    print_json,
    print_yaml,
    say,
    show_list,
    show_one,
    write,
)
from foliot.cli.support.progress import ExecutionBar
from foliot.cli.support.text import one_line, visible
from foliot.cli.support.watch import OPEN, follow, poll, show
from foliot.model.error_codes import Exit
from foliot.timing.clock import SystemClock
from foliot.timing.duration import seconds_of

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

app = typer.Typer(help="See what ran and what runs; retry and cancel it.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of an execution.")]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of executions.")]


@app.command("list")
@grouped
def list_executions(
    *,
    schedule: Annotated[
        list[str] | None,
        typer.Option("--schedule", metavar="NAME", help="Repeatable.", autocompletion=schedule_names),
    ] = None,
    status: StatusOption = None,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", help="Repeatable.", autocompletion=queue_names),
    ] = None,
    triggered_by: TriggeredByOption = None,
    start: FromOption = None,
    end: ToOption = None,
    listing: Listing,
    connection: Connection,
) -> None:
    """List executions, the latest first."""
    now = SystemClock().now()
    with connection.open() as api:
        wanted = {
            "schedule_id": [find_schedule(api, name)["schedule_id"] for name in schedule or ()],
            "status": status,
            "queue": queue,
            "triggered_by": triggered_by,
            "fire_from": start and instant_of(start, "--from", now),
            "fire_to": end and instant_of(end, "--to", now),
        }
        show(listing, lambda: api.items("executions", wanted, limit=listing.max_items), EXECUTIONS)


@app.command("get")
@grouped
def get(*, execution_id: IdArgument, output: FormatOption = Format.TABLE, connection: Connection) -> None:
    """Show an execution, and its attempts if there were several."""
    with connection.open() as api:
        execution = api.get(execution_path(execution_id))
        several = output is Format.TABLE and execution["attempt"] > 1
        attempts = api.page(execution_path(execution_id, "attempts")).items if several else []
    now = SystemClock().now()
    show_one(execution, output, EXECUTIONS, now)
    if attempts:
        write("")
        show_list(attempts, output, ATTEMPTS, now)


@app.command("watch")
@grouped
def watch(
    *,
    execution_id: IdArgument,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="Stop waiting after this time, with exit code 6."),
    ] = None,
    output: FormatOption = Format.TABLE,
    connection: Connection,
) -> None:
    """Follow an execution until it has ended.

    Exit 1 if it did not succeed.
    """
    timeout_s = None if timeout is None else seconds_of(timeout, "--timeout")
    with connection.open() as api:
        execution: Document = api.get(execution_path(execution_id))
        with ExecutionBar(str(execution.get("schedule_name") or execution_id)) as bar:
            execution = follow(api, execution, bar.show, timeout_s=timeout_s)
    show_one(execution, output, EXECUTIONS, SystemClock().now())
    if execution["status"] != "success":
        raise typer.Exit(Exit.FAILED)


@app.command("retry")
@grouped
def retry(
    *,
    execution_ids: IdsArgument,
    reason: ReasonOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Try executions again that ended badly, with their whole budget of attempts."""
    _apply_to_each(connection, execution_ids, "retry", reason, "retrying", output, change)


@app.command("cancel")
@grouped
def cancel(
    *,
    execution_ids: IdsArgument,
    reason: ReasonOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Cancel executions: what waits ends at once, what runs is stopped."""
    _apply_to_each(connection, execution_ids, "cancel", reason, "cancelling", output, change)


def _apply_to_each(
    connection: Connection,
    ids: list[str],
    act: str,
    reason: str | None,
    participle: str,
    output: Format,
    change: ChangeOptions,
) -> None:
    changed: list[dict[str, Any]] = []
    with connection.open() as api:

        def apply_to_one(execution_id: str) -> None:
            if change.dry_run:
                status = api.get(execution_path(execution_id))["status"]
                change.is_only_shown(f"{act} {execution_id}, which is {status}")
                return
            changed.append(api.post(execution_path(execution_id, act), {"reason": reason}))
            say(f"{participle} {execution_id}")

        try:
            on_each(ids, apply_to_one)
        finally:
            if output is not Format.TABLE and changed:
                now = SystemClock().now()
                if len(ids) == 1:
                    show_one(changed[0], output, EXECUTIONS, now)
                else:
                    show_list(changed, output, EXECUTIONS, now)


# --- logs ------------------------------------------------------------------------------------------


@app.command("logs")
@grouped
def logs(
    *,
    execution_id: IdArgument,
    is_following: Annotated[
        bool,
        typer.Option(
            "-f",
            "--follow",
            help="Keep watching until the execution has ended. With -o json: one object per line.",
        ),
    ] = False,
    output: FormatOption = Format.TABLE,
    connection: Connection,
) -> None:
    """Show what an execution logged."""
    with connection.open() as api:
        log = _Log(api, execution_id)
        if not is_following:
            _print_log(list(log.more()), output)
            return

        def check() -> bool:
            # Read the status first: then all lines of an ended execution are included.
            is_open = api.get(execution_path(execution_id))["status"] in OPEN
            for line in log.more():
                _print_line(line, output)
            return not is_open

        poll(check)


class _Log:
    """Reads new log lines. The last page has no token for what follows, so it is read again."""

    def __init__(self, api: "ApiClient", execution_id: str) -> None:
        self._api = api
        self._path = execution_path(execution_id, "logs")
        self._token = ""
        self._seen = 0

    def more(self) -> Iterator[dict[str, Any]]:
        while True:
            page = self._api.page(self._path, {"page_size": 500, "page_token": self._token or None})
            yield from page.items[self._seen :]
            self._seen = len(page.items)
            if not page.token:
                return
            self._token, self._seen = page.token, 0


def _print_log(lines: list[dict[str, Any]], output: Format) -> None:
    match output:
        case Format.JSON:
            print_json(lines)
        case Format.YAML:
            print_yaml(lines)
        case _ if lines:
            write("\n".join(_shown(line, output) for line in lines))
        case _:
            say("nothing was logged")


def _print_line(line: dict[str, Any], output: Format) -> None:
    match output:
        case Format.JSON:
            write(json.dumps(line))
        case Format.YAML:
            print_yaml([line])
        case _:
            write(_shown(line, output))


def _shown(line: Document, output: Format) -> str:
    return one_line(str(line["message"])) if output is Format.NAME else visible(logged_line(line))
