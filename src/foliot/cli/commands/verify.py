"""`foliot verify`: was every due time decided exactly once?"""

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.support.output import Output, OutputOption, print_json, print_rows, say, write
from foliot.model.error_codes import Exit

if TYPE_CHECKING:
    from foliot.verify.finding import Finding, Report

SHOWN = 100
"""Maximum number of findings in a table. JSON has all."""
_STYLE_OF = {"valid": "green", "invalid": "red", "unknown": "yellow"}


def verify(
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Start of the checked time.",
            show_default="the oldest history that is kept",
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="End of the checked time.", show_default="now")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check the stored history against the schedules.

    Works out every due time anew, from every version of every schedule and by a walker of its own, and looks
    for the row that decides it: gaps, doubles, rows for times that are none, early and late ones; attempts
    out of order, executions in impossible states, epochs that fell, gaps and disorder in the outbox.
    Reads FOLIOT_DATABASE_URL directly and writes nothing. A TIME is 2026-03-29, 2026-03-29T02:30+01:00 or 2h
    (ago). Exit 0 if all is valid or there is nothing to check, 1 if anything is wrong.
    """
    report = asyncio.run(_report(from_, to))
    if output is Output.JSON:
        print_json(_document(report))
    else:
        _print(report)
    if report.findings:
        raise typer.Exit(Exit.FAILED)


async def _report(from_: str | None, to: str | None) -> "Report":
    from foliot.cli.process.database import missing_file, opened
    from foliot.cli.support.api_failures import CommandError
    from foliot.cli.support.instants import instant_of
    from foliot.db.migrate import require_schema
    from foliot.instance.settings import load_settings
    from foliot.timing.clock import SystemClock
    from foliot.verify.verifier import VerifyRequest
    from foliot.verify.verifier import verify as verify_history

    settings = load_settings()
    missing = missing_file(settings)
    if missing is not None:
        raise CommandError(f"there is no database {missing}: `foliot db upgrade` or `foliot up` makes it")
    now = SystemClock().now()
    first, last = (
        None if text is None else datetime.fromisoformat(instant_of(text, option, now))
        for text, option in ((from_, "--from"), (to, "--to"))
    )
    async with opened(settings) as store:
        await require_schema(store.database)
        wanted = VerifyRequest(timedelta(days=settings.retention_days), first, last)
        return await verify_history(store.database, wanted)


def _print(report: "Report") -> None:
    shown = report.findings[:SHOWN]
    if shown:
        print_rows([_row(each) for each in shown], headers=("WHAT", "SCHEDULE", "TIME", "WRONG", "RIGHT"))
        write("")
    if len(report.findings) > SHOWN:
        say(f"{len(report.findings) - SHOWN} more: `-o json` shows all")
    tally = report.tally
    rows = [
        ("from", _first_text(report)),
        ("to", report.span.last.isoformat()),
        ("schedules", f"{tally.schedules:,}"),
        ("due times", f"{tally.due_times:,}"),
        ("still to decide", f"{tally.waiting:,}"),
        ("rows", f"{tally.executions:,}"),
        ("messages", f"{tally.messages:,}"),
        ("worst lateness", f"{tally.worst_late_s:.3f} s"),
        *((f"not checked: {count:,}", reason) for reason, count in sorted(tally.not_checked.items())),
        *((f"{kind} found", f"{count:,}") for kind, count in report.counts.items()),
    ]
    print_rows(rows)
    print_rows([(report.verdict.value,)], styles=[_STYLE_OF[report.verdict]])


def _first_text(report: "Report") -> str:
    if report.is_cut:
        return f"{report.span.first.isoformat()}, since retention may have deleted what is older"
    return "the beginning" if report.span.first.year == 1970 else report.span.first.isoformat()


def _row(finding: "Finding") -> tuple[str, ...]:
    kind = finding.kind.value if finding.count == 1 else f"{finding.kind.value} x {finding.count:,}"
    at = "" if finding.at is None else finding.at.isoformat()
    return (kind, finding.schedule_name or "", at, finding.wrong, finding.right)


def _document(report: "Report") -> dict[str, Any]:
    tally = report.tally
    return {
        "from_ts": report.span.first.isoformat(),
        "to_ts": report.span.last.isoformat(),
        "is_cut_by_retention": report.is_cut,
        "schedules": tally.schedules,
        "due_times": tally.due_times,
        "waiting": tally.waiting,
        "executions": tally.executions,
        "messages": tally.messages,
        "worst_late_seconds": tally.worst_late_s,
        "not_checked": dict(sorted(tally.not_checked.items())),
        "epochs": {str(shard): epoch for shard, epoch in report.epochs.items()},
        "findings": [
            {
                "kind": each.kind.value,
                "schedule_name": each.schedule_name,
                "schedule_id": None if each.schedule_id is None else str(each.schedule_id),
                "at": None if each.at is None else each.at.isoformat(),
                "wrong": each.wrong,
                "right": each.right,
                "count": each.count,
            }
            for each in report.findings
        ],
        "counts": {kind.value: count for kind, count in report.counts.items()},
        "verdict": report.verdict.value,
    }
