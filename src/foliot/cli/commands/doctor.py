"""`foliot doctor`: a self-check that says what to do."""

import asyncio
from typing import TYPE_CHECKING

import typer

from foliot.cli.support.output import Format, FormatOption, print_json, print_rows, print_yaml, write
from foliot.model.error_codes import Exit

if TYPE_CHECKING:
    from foliot.cli.process.checks import CheckResult

_STYLE_OF = {"ok": "green", "warn": "yellow", "fail": "red"}
_LEVEL_WIDTH, _CHECK_WIDTH = 4, len("secret-files")
"""Fixed widths, so that each line can be printed before the next check has finished."""


def doctor(output: FormatOption = Format.TABLE) -> None:
    """Check that everything is in order.

    Looks at settings, database, schema, clocks, locks, secrets and time zones, and says what to do. Exit 1 if
    anything failed.
    """
    findings = asyncio.run(_examine(is_shown=output is Format.TABLE))
    match output:
        case Format.JSON:
            print_json([_document_of(each) for each in findings])
        case Format.YAML:
            print_yaml([_document_of(each) for each in findings])
        case Format.NAME:
            write("\n".join(each.check for each in findings))
    if any(each.level == "fail" for each in findings):
        raise typer.Exit(Exit.FAILED)


async def _examine(*, is_shown: bool) -> "list[CheckResult]":
    """Return the results. Print each at once if `is_shown`, because a hanging database delays the next."""
    from foliot.cli.process.checks import examine
    from foliot.timing.clock import SystemClock

    findings = []
    async for finding in examine(SystemClock()):
        findings.append(finding)
        if is_shown:
            _show(finding)
    return findings


def _show(finding: "CheckResult") -> None:
    level, check = finding.level.ljust(_LEVEL_WIDTH), finding.check.ljust(_CHECK_WIDTH)
    text = finding.detail + (f"; {finding.advice}" if finding.advice else "")
    print_rows([(level, check, text)], styles=[_STYLE_OF[finding.level]])


def _document_of(finding: "CheckResult") -> dict[str, str]:
    return {
        "check": finding.check,
        "status": str(finding.level),
        "detail": finding.detail,
        "advice": finding.advice,
    }
