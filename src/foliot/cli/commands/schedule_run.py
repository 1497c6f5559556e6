"""`foliot schedule trigger` and `backfill`: run a schedule in addition to its fire times."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.support.completion import schedule_names
from foliot.cli.support.definition import arguments_of
from foliot.cli.support.execution_view import EXECUTIONS
from foliot.cli.support.instants import instant_of
from foliot.cli.support.lookup import schedule_path
from foliot.cli.support.options import ChangeOptions, Connection, ReasonOption, grouped
from foliot.cli.support.output import Document, Format, FormatOption, say, show_one
from foliot.cli.support.progress import Bar, ExecutionBar
from foliot.cli.support.schedule_view import BACKFILLS
from foliot.cli.support.watch import follow, poll
from foliot.model.error_codes import Exit
from foliot.timing.clock import SystemClock
from foliot.timing.duration import seconds_of

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A name or an id.", autocompletion=schedule_names)
]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait until it has ended. Exit code 1 if it did not succeed.")
]
WaitTimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="DURATION", help="With --wait: stop waiting after this time, with exit code 6."
    ),
]
BAD_ENDS = ("failed", "timeout", "cancelled", "unknown")


@grouped
def trigger(
    *,
    name: NameArgument,
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            metavar="NAME=VALUE",
            help="An argument that overrides the schedule's. JSON if possible, else text. Repeatable.",
        ),
    ] = None,
    reason: ReasonOption = None,
    wait: WaitOption = False,
    timeout: WaitTimeoutOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Run a schedule now, besides its own times, and also while it is paused."""
    body: dict[str, Any] = {"reason": reason}
    if arg:
        body["args"] = arguments_of(arg)
    timeout_s = _timeout(timeout, is_waiting=wait)
    with connection.open() as api:
        path = schedule_path(api, name, "trigger")
        given = f" with the arguments {json.dumps(body['args'])}" if arg else ""
        if change.is_only_shown(f"run {name} now{given}"):
            return
        execution: Document = api.post(path, body, is_once=True)
        if wait:
            with ExecutionBar(name) as bar:
                execution = follow(api, execution, bar.show, timeout_s=timeout_s)
    show_one(execution, output, EXECUTIONS, SystemClock().now())
    if wait and execution["status"] != "success":
        raise typer.Exit(Exit.FAILED)


@grouped
def backfill(
    *,
    name: NameArgument,
    start: Annotated[
        str, typer.Option("--from", metavar="ISO_TIME|DURATION", help="Start at this time, or this long ago.")
    ],
    end: Annotated[
        str, typer.Option("--to", metavar="ISO_TIME|DURATION", help="Up to, not including, this time.")
    ] = "now",
    reason: ReasonOption = None,
    wait: WaitOption = False,
    timeout: WaitTimeoutOption = None,
    output: FormatOption = Format.TABLE,
    change: ChangeOptions,
    connection: Connection,
) -> None:
    """Run a schedule for the times that it would have had in a range of the past."""
    now = SystemClock().now()
    body = {
        "from_ts": instant_of(start, "--from", now),
        "to_ts": instant_of(end, "--to", now),
        "reason": reason,
    }
    timeout_s = _timeout(timeout, is_waiting=wait)
    with connection.open() as api:
        path = schedule_path(api, name, "backfill")
        if change.is_only_shown(f"run {name} for its times from {body['from_ts']} to {body['to_ts']}"):
            return
        made: Document = api.post(path, body, is_once=True)
        bad = 0
        if wait:
            made = _await_backfill(api, made, name, timeout_s)
            bad = _count_bad(api, made)
    show_one(made, output, BACKFILLS, SystemClock().now())
    if bad or (wait and made["state"] == "cancelled"):
        say(f"foliot: {bad}{'+' if bad == _MAX_COUNTED else ''} of its executions did not succeed")
        raise typer.Exit(Exit.FAILED)


def _timeout(text: str | None, *, is_waiting: bool) -> float | None:
    if text is not None and not is_waiting:
        raise typer.BadParameter("goes with --wait", param_hint="--timeout")
    return None if text is None else seconds_of(text, "--timeout")


_MAX_COUNTED = 500


def _await_backfill(api: "ApiClient", backfill: Document, name: str, timeout_s: float | None) -> Document:
    with Bar(f"backfill of {name}") as bar:

        def check() -> bool:
            nonlocal backfill
            backfill = api.get(f"backfills/{backfill['backfill_id']}")
            total = backfill["total_count"]
            ended = backfill["ended_count"] + backfill["existing_count"]
            bar.update(ended, f"{ended} of {total}", total=total)
            is_ended = backfill["ended_count"] >= backfill["created_count"]
            return bool(backfill["state"] != "running" and is_ended)

        what = f"backfill {backfill['backfill_id']} still goes on"
        poll(check, timeout_s=timeout_s, what=what)
    return backfill


def _count_bad(api: "ApiClient", backfill: Document) -> int:
    wanted = {
        "triggered_by": "backfill",
        "status": list(BAD_ENDS),
        "fire_from": backfill["from_ts"],
        "fire_to": backfill["to_ts"],
    }
    path = f"schedules/{backfill['schedule_id']}/executions"
    return len(api.items(path, wanted, limit=_MAX_COUNTED).items)
