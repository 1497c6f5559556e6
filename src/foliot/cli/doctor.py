"""`foliot doctor`: a self-check that says what to do."""

import asyncio
from typing import TYPE_CHECKING

import typer

from foliot.cli.output import Output, OutputOption, print_json, print_rows
from foliot.model.verdict import Exit

if TYPE_CHECKING:
    from foliot.cli.checks import Finding

_STYLE_OF = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(output: OutputOption = Output.TABLE) -> None:
    """Check that everything is in order.

    Looks at settings, database, schema, clocks, locks, secrets and time zones, and says what to do. Exit 1 if
    anything failed.
    """
    findings = asyncio.run(_findings())
    if output is Output.JSON:
        print_json(
            [
                {"check": each.check, "status": each.level, "detail": each.detail, "advice": each.advice}
                for each in findings
            ]
        )
    else:
        rows = [
            (each.level, each.check, each.detail + (f"; {each.advice}" if each.advice else ""))
            for each in findings
        ]
        print_rows(rows, styles=[_STYLE_OF[each.level] for each in findings])
    if any(each.level == "fail" for each in findings):
        raise typer.Exit(Exit.FAILED)


async def _findings() -> "list[Finding]":
    from foliot.cli.checks import examine
    from foliot.timing.clock import SystemClock

    return [finding async for finding in examine(SystemClock())]
