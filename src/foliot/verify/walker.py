"""Compute the due times of a trigger in the simplest way: day by day, or step by step.

This is another way than firing computes them. Only kinds of other packages are computed by their own code.

The input is the stored JSON document of a schedule. Equal triggers are computed once per span.
"""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from foliot.model.instant import INSTANT
from foliot.model.kind import TRIGGERS, BaseTrigger
from foliot.model.policy import Dst
from foliot.verify.cron import UnsupportedExpressionError, cron_times, read_expression
from foliot.verify.finding import VerifiedSpan
from foliot.verify.rules import read_rule, rule_times
from foliot.verify.wall_times import DstRules, instants_of

Document = Mapping[str, Any]

_UNITS = {"SECONDS": 1, "MINUTES": 60, "HOURS": 3600}
_DAYS = {"DAYS": 1, "WEEKS": 7}
_REMEMBERED = 5_000_000
"""Maximum number of cached due times, roughly. Then the cache is cleared."""


def instant_in(value: str) -> datetime:
    """Parse an instant of a document."""
    return datetime.fromisoformat(value).astimezone(UTC)


class Walker:
    """Computes the due times of triggers in one span, and caches those that schedules share."""

    def __init__(self, span: VerifiedSpan) -> None:
        self._span = span
        self._known: dict[object, Sequence[datetime]] = {}
        self._kept = 0

    def times(
        self, document: Document, anchor: datetime, key: str, first: datetime, last: datetime
    ) -> Sequence[datetime]:
        """Return the times of the document's trigger from first to last, both included, in order.

        Both ends must be in the span. `anchor`: the start of intervals and rules. `key`: the input of the
        hash for `H`. Raises UnsupportedExpressionError.
        """
        trigger = document["trigger"]
        if trigger["kind"] == "once":
            at = instant_in(trigger["at"])
            return (at,) if first <= at <= last else ()
        if trigger["kind"] == "interval" and trigger["frequency_unit"] in _UNITS:
            step = timedelta(seconds=trigger["frequency_time"] * _UNITS[trigger["frequency_unit"]])
            return elapsed(anchor, step, first, last)
        found = self._shared(document, anchor, key)
        low, high = bisect_left(found, first), bisect_right(found, last)
        return found if (low, high) == (0, len(found)) else found[low:high]

    def _shared(self, document: Document, anchor: datetime, key: str) -> Sequence[datetime]:
        trigger = document["trigger"]
        identity = _identity(document, anchor, key)
        found = self._known.get(identity)
        if found is None:
            changes = changes_of(document)
            try:
                found = list(_walk(trigger, changes, anchor, key, self._span))
            except (ZoneInfoNotFoundError, KeyError, ValueError, OverflowError) as error:
                raise UnsupportedExpressionError(f"a trigger of kind {trigger.get('kind')}") from error
            if self._kept > _REMEMBERED:
                self._known.clear()
                self._kept = 0
            self._known[identity] = found
            self._kept += len(found)
        return found


def changes_of(document: Document) -> DstRules:
    dst = document.get("dst") or {}
    return DstRules(dst.get("gap", "shift"), dst.get("repeat", "first"))


def _identity(document: Document, anchor: datetime, key: str) -> object:
    trigger = document["trigger"]
    if trigger["kind"] == "cron":
        expression = trigger["expression"].upper()
        own = key if "H" in expression else ""
        return (expression, trigger.get("timezone"), changes_of(document), own)
    return (tuple(sorted(trigger.items())), changes_of(document), anchor)


def _walk(
    trigger: Document, changes: DstRules, anchor: datetime, key: str, span: VerifiedSpan
) -> Iterator[datetime]:
    first, last = span.first, span.last
    match trigger["kind"]:
        case "cron":
            read = read_expression(trigger["expression"], key)
            yield from cron_times(read, _zone(trigger), changes, first, last)
        case "interval":
            yield from _by_calendar(trigger, changes, anchor, first, last)
        case "rrule":
            rule, start = read_rule(trigger["rule"]), anchor.replace(microsecond=0)
            yield from rule_times(rule, start, _zone(trigger), changes, first, last)
        case kind:
            yield from _by_kind(TRIGGERS[kind], trigger, changes, anchor, key, span)


def _by_kind(
    kind: type[BaseTrigger],
    trigger: Document,
    changes: DstRules,
    anchor: datetime,
    key: str,
    span: VerifiedSpan,
) -> Iterator[datetime]:
    """Yield the times as the kind computes them: for kinds of other packages there is no second way."""
    policy = Dst.model_validate(changes._asdict())
    times = kind.model_validate(trigger, extra="ignore").build(dst=policy, anchor=anchor, key=key)
    at = times.after(span.first - INSTANT)
    while at is not None and at <= span.last:
        yield at
        at = times.after(at)


def _zone(trigger: Document) -> ZoneInfo:
    return ZoneInfo(trigger.get("timezone") or "UTC")


def elapsed(anchor: datetime, step: timedelta, first: datetime, last: datetime) -> list[datetime]:
    """Return the anchor and every step after it, from first to last, both included."""
    skipped = max(0, -((anchor - first) // step))
    found, instant = [], anchor + skipped * step
    while instant <= last:
        found.append(instant)
        instant += step
    return found


def _by_calendar(
    trigger: Document, changes: DstRules, anchor: datetime, first: datetime, last: datetime
) -> Iterator[datetime]:
    """Yield the anchor, and its wall time every `amount` days, weeks or months after it."""
    zone, unit, amount = _zone(trigger), trigger["frequency_unit"], trigger["frequency_time"]
    if first <= anchor <= last:
        yield anchor
    wall = anchor.astimezone(zone).replace(tzinfo=None, fold=0)
    end = last.astimezone(zone).replace(tzinfo=None, fold=0) + timedelta(days=2)
    number, latest = 1, anchor
    while (step := _stepped(wall, unit, amount, number)) is not None and step <= end:
        for instant in instants_of(step, zone, changes):
            if instant > latest:
                latest = instant
                if first <= instant <= last:
                    yield instant
        number += 1


def _stepped(wall: datetime, unit: str, amount: int, number: int) -> datetime | None:
    """Return the wall time `number` steps later. None: beyond the range of dates."""
    try:
        if unit in _DAYS:
            return wall + timedelta(days=_DAYS[unit] * amount * number)
        year, month = divmod(wall.year * 12 + wall.month - 1 + amount * number, 12)
        return wall.replace(year=year, month=month + 1, day=min(wall.day, monthrange(year, month + 1)[1]))
    except (OverflowError, ValueError):
        return None
