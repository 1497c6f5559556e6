"""`foliot cron`: cron expressions, explained."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.support.output import Output, OutputOption, print_json, print_rows

if TYPE_CHECKING:
    from foliot.kinds.cron_trigger import CronTrigger
    from foliot.planning.preview import Preview

app = typer.Typer(help="Explain cron expressions.")

_INSTANT = timedelta(microseconds=1)


@app.command()
def explain(
    expression: Annotated[
        str,
        typer.Argument(help="A cron expression: 5 fields, 6 with seconds first, or an alias such as @daily."),
    ],
    tz: Annotated[str, typer.Option(help="Time zone of the expression.")] = "UTC",
    count: Annotated[int, typer.Option("-n", help="How many times to show.", min=1, max=1000)] = 10,
    start: Annotated[
        str | None, typer.Option("--from", help="Show times from here on (ISO 8601).", show_default="now")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say in words when an expression fires, and show its next times."""
    from foliot.planning.preview import preview
    from foliot.timing.zone import check_zone

    check_zone(tz, "/tz")
    previewed = preview(_trigger(expression, tz), from_ts=_instant(start, tz), n=count)
    local = [fire.local_ts for fire in previewed.fires]
    warnings = _warnings(previewed)
    if output is Output.JSON:
        fires = [each.isoformat() for each in local]
        print_json({"description": previewed.description, "fires": fires, "warnings": warnings})
        return
    typer.echo(previewed.description)
    print_rows([(each.isoformat(), each.strftime("%a")) for each in local])
    for warning in warnings:
        typer.echo(f"foliot: {warning}", err=True)


def _trigger(expression: str, tz: str) -> "CronTrigger":
    from pydantic import ValidationError

    from foliot.kinds.cron_trigger import CronTrigger
    from foliot.model.errors import InvalidError
    from foliot.model.schedule import problems_of

    try:
        return CronTrigger(expression=expression, timezone=tz)
    except ValidationError as error:
        raise InvalidError(problems_of(error)) from None


def _instant(text: str | None, tz: str) -> datetime:
    """Parse an ISO time. Without an offset, it is local time of the zone `tz`. None: now."""
    from foliot.model.errors import InvalidError
    from foliot.timing.clock import SystemClock
    from foliot.timing.zone import zone

    if text is None:
        return SystemClock().now()
    try:
        read = datetime.fromisoformat(text)
        instant = (read if read.tzinfo is not None else read.replace(tzinfo=zone(tz))).astimezone(UTC)
        return max(instant, datetime.min.replace(tzinfo=UTC) + _INSTANT)
    except (ValueError, OverflowError):
        hint = "2026-03-29 or 2026-03-29T02:30+01:00"
        raise InvalidError.at("/from", "datetime", f'"{text}" is not an ISO time', hint) from None


def _warnings(previewed: "Preview") -> list[str]:
    """Return warnings about the expression, and those about instants within the shown times."""
    last = previewed.fires[-1].local_ts if previewed.fires else None
    return [
        each.text for each in previewed.warnings if each.at is None or (last is not None and each.at <= last)
    ]
