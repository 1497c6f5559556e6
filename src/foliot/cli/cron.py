"""`foliot cron`: cron expressions, explained."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.output import Output, OutputOption, print_json, print_rows

if TYPE_CHECKING:
    from foliot.model.policy import Dst
    from foliot.model.trigger import CronTrigger

app = typer.Typer(help="Explain cron expressions.")

_INSTANT = timedelta(microseconds=1)


@app.command()
def explain(
    expression: Annotated[str, typer.Argument(help="5 fields, 6 with seconds first, or @daily and its kin.")],
    tz: Annotated[str, typer.Option(help="The time zone it is read in.")] = "UTC",
    count: Annotated[int, typer.Option("-n", help="How many times to show.", min=1, max=1000)] = 10,
    start: Annotated[
        str | None, typer.Option("--from", help="Show times from here on (ISO 8601).", show_default="now")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say in words when an expression fires, and show its next times."""
    from foliot.model.policy import Dst
    from foliot.timing.describe import describe
    from foliot.timing.zone import check_zone

    zone = check_zone(tz, "/tz")
    trigger = _trigger(expression, tz)
    first = _instant(start, tz)
    fires = _fires(trigger, Dst(), first, count=count)
    words = describe(trigger)
    local = [fire.astimezone(zone) for fire in fires]
    warnings = _warnings(trigger, first, fires)
    if output is Output.JSON:
        told = {"description": words, "fires": [each.isoformat() for each in local], "warnings": warnings}
        print_json(told)
        return
    typer.echo(words)
    print_rows([(each.isoformat(), each.strftime("%a")) for each in local])
    for warning in warnings:
        typer.echo(f"foliot: {warning}", err=True)


def _trigger(expression: str, tz: str) -> "CronTrigger":
    from pydantic import ValidationError

    from foliot.model.errors import InvalidError
    from foliot.model.schedule import problems_of
    from foliot.model.trigger import CronTrigger

    try:
        return CronTrigger(expression=expression, timezone=tz)
    except ValidationError as error:
        raise InvalidError(problems_of(error)) from None


def _instant(text: str | None, tz: str) -> datetime:
    """An ISO time; one without an offset is a time of the zone."""
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


def _fires(
    trigger: "CronTrigger", dst: "Dst", first: datetime, *, count: int, last: datetime | None = None
) -> list[datetime]:
    """Up to `count` times from `first` on, and none after `last`."""
    from foliot.timing.compile import compile_trigger

    recurrence = compile_trigger(trigger, dst=dst, anchor=first, key="preview")
    found: list[datetime] = []
    fire = recurrence.after(first - _INSTANT)
    while fire is not None and len(found) < count and (last is None or fire <= last):
        found.append(fire)
        fire = recurrence.after(fire)
    return found


def _warnings(trigger: "CronTrigger", first: datetime, fires: list[datetime]) -> list[str]:
    """What changing clocks do to these times: those that another DST policy would leave out, or add."""
    from foliot.model.errors import InvalidError
    from foliot.model.policy import Dst, DstGap, DstRepeat
    from foliot.timing.zone import zone

    if not fires or trigger.timezone == "UTC":
        return []
    local = zone(trigger.timezone)
    both = _fires(trigger, Dst(repeat=DstRepeat.BOTH), first, count=2 * len(fires), last=fires[-1])
    try:
        kept = _fires(trigger, Dst(gap=DstGap.SKIP), first, count=len(fires), last=fires[-1])
    except InvalidError:  # all its times lie in gaps
        kept = []
    told = dict.fromkeys(set(fires) - set(kept), "stands for a time that the clocks leave out that day")
    told |= dict.fromkeys(set(both) - set(fires), "comes twice that day and fires the first time only")
    return [f"{fire.astimezone(local).isoformat()} {words}" for fire, words in sorted(told.items())]
