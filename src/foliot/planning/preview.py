"""Preview of a trigger before it is saved: a description, its next times, and warnings.

The work is bounded, however often or rarely a trigger fires. A year is counted and never iterated. Times that
window and calendars exclude are skipped a range at a time.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import pairwise
from zoneinfo import ZoneInfo

from foliot.model.errors import InvalidError
from foliot.model.instant import INSTANT
from foliot.model.policy import Dst, DstGap, DstRepeat, Window
from foliot.model.trigger import (
    CronTrigger,
    DelayTrigger,
    IntervalTrigger,
    OnceTrigger,
    RRuleTrigger,
    Trigger,
)
from foliot.planning.forecast import Allowance
from foliot.timing.calendar import Calendar
from foliot.timing.compile import build_trigger, elapsed_step
from foliot.timing.cron_fields import is_hashed, normalise, parse
from foliot.timing.describe import describe
from foliot.timing.recurrence import Recurrence
from foliot.timing.rule_parts import Frequency, parse_rule, require_bounded_count
from foliot.timing.zone import HIGHEST, LOWEST, OffsetSpan, check_zone, naive_utc, spans_at, zone

MAX_FIRES = 1_000
MAX_LOOKED_AT = 1_000
"""Limit of times that are tried until window and calendars allow one: almost three years of daily times."""

HORIZON = timedelta(days=100 * 365)
"""How far ahead times are searched: computing the clock changes takes a millisecond per year."""

OFTEN = timedelta(seconds=10)
_YEAR = timedelta(days=366)
_HOUR = timedelta(hours=1)
_SAMPLE = 61
_HIGHEST = HIGHEST.replace(tzinfo=UTC)
_LOWEST = LOWEST.replace(tzinfo=UTC)


class ClockChange(StrEnum):
    """What changing clocks do to a fire."""

    GAP = "gap"
    """It replaces times that the clock change skips that day."""
    REPEAT = "repeat"
    """Its wall-clock time occurs twice that day."""


@dataclass(frozen=True, slots=True)
class PreviewFire:
    local_ts: datetime
    """The fire time in the trigger's zone."""
    clock_change: ClockChange | None = None


@dataclass(frozen=True, slots=True)
class PreviewWarning:
    """A warning about something that is allowed but perhaps not intended."""

    code: str
    text: str
    at: datetime | None = None
    """The instant that the warning is about; None: no particular one."""


@dataclass(frozen=True, slots=True)
class Preview:
    description: str
    fires: tuple[PreviewFire, ...]
    warnings: tuple[PreviewWarning, ...]


def preview(
    trigger: Trigger,
    *,
    from_ts: datetime,
    n: int = 10,
    dst: Dst = Dst(),  # noqa: B008 - frozen
    window: Window | None = None,
    start_ts: datetime | None = None,
    end_ts: datetime | None = None,
    calendars: Sequence[Calendar] = (),
    jitter_seconds: float = 0,
    key: str | None = None,
) -> Preview:
    """Return the next `n` fire times, as if the trigger were saved at `from_ts`. Raises InvalidError.

    `H` in a cron expression is computed from `key` (see `model.ids.hash_key`). None: the schedule is not
    known, so with an `H` the times are an example, and a warning says so.
    """
    if not 1 <= n <= MAX_FIRES:
        raise InvalidError.at("/n", "out_of_range", f"must be 1 to {MAX_FIRES}")
    if naive_utc(from_ts) >= HIGHEST - 2 * HORIZON:
        raise InvalidError.at("/from_ts", "out_of_range", "is too far from now to count from")
    if window is not None:
        check_zone(window.timezone, "/window/timezone")
    if isinstance(trigger, RRuleTrigger):
        require_bounded_count(trigger.rule)
    now = max(naive_utc(from_ts).replace(tzinfo=UTC), _LOWEST + _YEAR)
    look = _Look.at(trigger, dst, now, start_ts, end_ts, key or "preview")
    allowance = Allowance(window, tuple(calendars), look.tz if isinstance(look.tz, ZoneInfo) else zone("UTC"))
    fires, end = look.fires(n, allowance)
    warnings = [
        *_about_number(look, fires, end),
        *_about_rate(look, has_jitter=jitter_seconds > 0),
        *(_about_hash(trigger) if isinstance(trigger, CronTrigger) and key is None else ()),
        *(_about_cron(trigger, look.key) if isinstance(trigger, CronTrigger) else ()),
        *(_about_rule(trigger, look) if isinstance(trigger, RRuleTrigger) else ()),
        *_about_clocks(look, allowance),
    ]
    return Preview(describe(trigger), tuple(look.marked(fires)), tuple(warnings))


# --- the times ------------------------------------------------------------------------------------------


class _End(StrEnum):
    """Why no more times are shown."""

    ENOUGH = "as many as asked for"
    NO_MORE = "there is none"
    FORBIDDEN = "window and calendars forbid all that is in sight"
    TOO_FAR = "the next is more than 100 years from now"


@dataclass(frozen=True, slots=True)
class _Look:
    """A trigger, compiled as if it were saved at a given moment."""

    trigger: Trigger
    dst: Dst
    key: str
    tz: tzinfo
    anchor: datetime
    times: Recurrence
    first: datetime
    """The first instant of the preview; `last` is the last. Both are included."""
    last: datetime
    counts_from_now: bool
    """Whether its times depend on when it is saved."""

    @classmethod
    def at(
        cls,
        trigger: Trigger,
        dst: Dst,
        now: datetime,
        start_ts: datetime | None,
        end_ts: datetime | None,
        key: str,
    ) -> "_Look":
        anchor = start_ts or now
        times = build_trigger(trigger, dst=dst, anchor=anchor, key=key)
        counts_from_now = start_ts is None and isinstance(trigger, IntervalTrigger | RRuleTrigger)
        if isinstance(trigger, DelayTrigger):
            first = (
                start_ts
                if start_ts is not None and start_ts > now
                else now + timedelta(seconds=trigger.seconds)
            )
        else:
            # A trigger that counts from when it is saved does not fire at that moment.
            first = now + INSTANT if counts_from_now else max(now, anchor)
        last = _HIGHEST if end_ts is None else min(end_ts, _HIGHEST)
        return cls(trigger, dst, key, _zone_of(trigger), anchor, times, first, last, counts_from_now)

    def fires(self, n: int, allowance: Allowance) -> "tuple[list[datetime], _End]":
        """Return the first `n` times that fire, and why there are no more."""
        if isinstance(self.trigger, DelayTrigger):
            is_one = self.first <= self.last and allowance.reason(self.first) is None
            return ([self.first] if is_one else []), _End.ENOUGH
        found: list[datetime] = []
        horizon = _ahead(self.first, HORIZON)
        at = self.times.after(self.first - INSTANT)
        for _ in range(MAX_LOOKED_AT):
            if len(found) == n:
                return found, _End.ENOUGH
            if at is None or at > self.last:
                return found, _End.NO_MORE
            if at >= horizon:
                return found, _End.TOO_FAR
            stretch = allowance.stretch_from(at, horizon)
            if stretch is None:
                break
            if stretch.start > at:
                at = self.times.after(stretch.start - INSTANT)
                continue
            while at is not None and at < stretch.end and at <= self.last and len(found) < n:
                found.append(at)
                at = self.times.after(at)
        return found, _End.FORBIDDEN

    def marked(self, fires: Iterable[datetime]) -> Iterator[PreviewFire]:
        skipping = _rebuilt(self, self.trigger, Dst(gap=DstGap.SKIP, repeat=self.dst.repeat))
        for fire in fires:
            local = fire.astimezone(self.tz)
            change = None
            if local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset():
                change = ClockChange.REPEAT
            elif isinstance(self.tz, ZoneInfo) and _opens_after_gap(self.tz, fire):
                is_shifted = skipping is None or not skipping.count(fire, fire)
                change = ClockChange.GAP if is_shifted else None
            yield PreviewFire(local, change)

    def follows_real_time(self) -> bool:
        """Whether it fires by elapsed time through clock changes, so that no DST policy applies."""
        match self.trigger:
            case CronTrigger(expression=expression):
                return parse(expression, self.key).follows_real_time
            case RRuleTrigger(rule=rule):
                return parse_rule(rule).follows_real_time
            case _:
                return False

    def on_wall(self) -> Recurrence | None:
        """Return the wall-clock times as if they were UTC; None: the trigger does not use the wall clock."""
        trigger = self.trigger
        if isinstance(trigger, OnceTrigger | DelayTrigger) or elapsed_step(trigger) is not None:
            return None
        return _rebuilt(self, trigger.model_copy(update={"timezone": "UTC"}), self.dst)


def _rebuilt(look: _Look, trigger: Trigger, dst: Dst) -> Recurrence | None:
    """Compile the previewed trigger with another zone or DST policy; None: then it never fires."""
    anchor = look.anchor
    if getattr(trigger, "timezone", "") != getattr(look.trigger, "timezone", ""):
        anchor = anchor.astimezone(look.tz).replace(tzinfo=UTC, fold=0)
    try:
        return build_trigger(trigger, dst=dst, anchor=anchor, key=look.key)
    except InvalidError:
        return None


def _zone_of(trigger: Trigger) -> tzinfo:
    match trigger:
        case CronTrigger(timezone=name) | IntervalTrigger(timezone=name) | RRuleTrigger(timezone=name):
            return zone(name)
        case OnceTrigger(at=at) if at.tzinfo is not None:
            return at.tzinfo
        case _:
            return UTC


def _ahead(instant: datetime, reach: timedelta) -> datetime:
    """Return the instant plus `reach`, limited to the last possible instant."""
    return instant + reach if instant < _HIGHEST - reach else _HIGHEST


def _opens_after_gap(tz: ZoneInfo, instant: datetime) -> bool:
    moment = naive_utc(instant)
    return any(span.start == moment and span.offset_before < span.offset for span in spans_at(tz, moment))


# --- warnings about number and rate ---------------------------------------------------------------------


def _about_number(look: _Look, fires: list[datetime], end: _End) -> Iterator[PreviewWarning]:
    if isinstance(look.trigger, DelayTrigger):
        yield PreviewWarning("after_each_run", "the times after the first depend on when each run ends")
        return
    if not fires:
        yield PreviewWarning("never_fires", f"never fires: {_why_none(look, end)}")
        return
    last = fires[-1].astimezone(look.tz).isoformat()
    if end is not _End.ENOUGH:
        yield PreviewWarning("few_fires", f"after {last} {end}", fires[-1])
    passed_over = look.times.count(look.first, fires[-1]) - len(fires)
    if passed_over:
        text = f"window or calendars forbid {passed_over:,} of its times up to {last}; these are skipped"
        yield PreviewWarning("skipped", text)


def _why_none(look: _Look, end: _End) -> str:
    if end is not _End.NO_MORE:
        return end
    if isinstance(look.trigger, OnceTrigger) and look.trigger.at < look.first:
        return "its time has passed"
    if look.times.after(look.first - INSTANT) is not None:
        return "its first time lies after end_ts"
    return "it has no time to come"


def _about_rate(look: _Look, *, has_jitter: bool) -> Iterator[PreviewWarning]:
    if isinstance(look.trigger, DelayTrigger):
        if look.trigger.seconds < OFTEN.total_seconds():
            yield _often(timedelta(seconds=look.trigger.seconds))
        return
    sample = list(_first_of(look, _SAMPLE))
    gaps = [later - earlier for earlier, later in pairwise(sample)]
    if gaps and min(gaps) < OFTEN:
        yield _often(min(gaps))
    if not gaps or has_jitter or look.counts_from_now:
        return
    busy = None
    if _are_midnights(at.astimezone(look.tz) for at in sample) or _are_midnights(sample):
        busy = "at midnight"
    elif all(at.minute == at.second == 0 for at in sample) and set(gaps) == {_HOUR}:
        busy = "on the hour"
    if busy is not None:
        other = ", or H in place of the minute" if isinstance(look.trigger, CronTrigger) else ""
        text = f"fires {busy}, when many others do; jitter_seconds spreads the load{other}"
        yield PreviewWarning("busy_minute", text)


def _first_of(look: _Look, most: int) -> Iterator[datetime]:
    at = look.times.after(look.first - INSTANT)
    while at is not None and at <= look.last and most:
        yield at
        most -= 1
        at = look.times.after(at)


def _are_midnights(sample: Iterable[datetime]) -> bool:
    # Not all: where a clock change skips midnight, the time is an hour later.
    times = [(at.hour, at.minute, at.second) == (0, 0, 0) for at in sample]
    return sum(times) * 10 >= len(times) * 9


def _often(gap: timedelta) -> PreviewWarning:
    amount = f"{gap.total_seconds():.3g}"
    text = f"fires as often as every {amount} s, and each time is a row of the history"
    return PreviewWarning("very_often", text)


# --- warnings about expressions -------------------------------------------------------------------------

_STEPPED = (("second", 60, "minute"), ("minute", 60, "hour"), ("hour", 24, "day"))
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_LENGTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}


def _about_hash(trigger: CronTrigger) -> Iterator[PreviewWarning]:
    if is_hashed(normalise(trigger.expression)):
        text = "H depends on the schedule: these times are an example; give its name or its id for its own"
        yield PreviewWarning("hash_unknown", text)


def _about_cron(trigger: CronTrigger, key: str) -> Iterator[PreviewWarning]:
    expression = normalise(trigger.expression)
    parts = expression.split()
    fields = parse(expression, key)
    day, weekday = parts[-3], parts[-1]
    if not fields.days_must_agree:
        text = (
            "day-of-month and day-of-week are both set: it fires when either matches, not only when both do"
        )
        yield PreviewWarning("either_day", text)
    elif day not in ("*", "?") and weekday not in ("*", "?"):
        text = "day-of-month and day-of-week are both set, one of them from *: it fires only when both match"
        yield PreviewWarning("both_days", text)
    if not day.startswith("*"):
        yield from _about_short_months(fields.days | fields.nearest_weekdays, fields.months, "L")
    if parts[-5] == "*" and len(fields.hours) == 1 and not is_hashed(parts[-4]):
        text = f"fires in every minute of hour {fields.hours[0]}; with 0 for the minute it fires once"
        yield PreviewWarning("every_minute", text)
    for part, (unit, size, whole) in zip(parts[-4::-1], reversed(_STEPPED), strict=False):
        step = re.fullmatch(r"\*/(\d+)", part)
        if step is not None and size % int(step[1]):
            last = (size - 1) // int(step[1]) * int(step[1])
            text = f"{part} begins anew every {whole}: {unit} {last} is followed by {unit} 0"
            yield PreviewWarning("uneven_step", text)
    if re.fullmatch(r"\*/([2-9]|\d\d+)", day):
        text = f"{day} begins anew every month: after its last day comes day 1, however long ago that was"
        yield PreviewWarning("uneven_step", text)


def _about_rule(trigger: RRuleTrigger, look: _Look) -> Iterator[PreviewWarning]:
    rule = parse_rule(trigger.rule)
    days = rule.bymonthday
    is_by_month = rule.freq in (Frequency.MONTHLY, Frequency.YEARLY)
    if not days and is_by_month and not (rule.byday or rule.byyearday or rule.byweekno):
        # Then the day of the start applies.
        days = (look.anchor.astimezone(look.tz).day,)
    if is_by_month and not rule.bysetpos:
        months = rule.bymonth or range(1, 13)
        if rule.freq is Frequency.YEARLY and not rule.bymonth and not rule.bymonthday:
            months = (look.anchor.astimezone(look.tz).month,)
        yield from _about_short_months(days, months, "BYMONTHDAY=-1")


def _about_short_months(days: Iterable[int], months: Iterable[int], better: str) -> Iterator[PreviewWarning]:
    known = frozenset(days)
    # A day right after another listed day belongs to a range, which may well end with the month.
    for day in sorted(day for day in known if day > 28 and day - 1 not in known):
        short = [
            month for month in sorted(months) if _LENGTHS.get(month, 31) < day or (month, day) == (2, 29)
        ]
        if short:
            names = ", ".join(_MONTHS[month - 1] for month in short)
            except_leap = " except in leap years" if day == 29 else ""
            text = f"there is no day {day} in {names}{except_leap}; {better} is the last day of a month"
            yield PreviewWarning("short_months", text)


# --- warnings about clock changes -----------------------------------------------------------------------


def _about_clocks(look: _Look, allowance: Allowance) -> Iterator[PreviewWarning]:
    """Warn about the clock changes of the next year that affect its times."""
    grid = look.on_wall()
    if grid is None or not isinstance(look.tz, ZoneInfo):
        return
    for span in _changes(look.tz, look.first, min(_ahead(look.first, _YEAR), look.last)):
        before, after = (span.start + each for each in (span.offset_before, span.offset))
        low, high = (each.replace(tzinfo=UTC) for each in (min(before, after), max(before, after)))
        count = grid.count(low, high - INSTANT)
        if not count or (look.follows_real_time() and _is_even(grid, low, high, count)):
            continue
        wall = grid.after(low - INSTANT)
        assert wall is not None
        told = _gap if before < after else _repeat
        caution = told(look, span.start.replace(tzinfo=UTC), wall.replace(tzinfo=None), count)
        if caution.at is not None and allowance.reason(caution.at) is None:
            yield caution


def _changes(tz: ZoneInfo, first: datetime, last: datetime) -> Iterator[OffsetSpan]:
    low, high = naive_utc(first), naive_utc(last)
    for year in range(low.year, high.year + 1):
        for span in spans_at(tz, datetime(year, 1, 2)):  # noqa: DTZ001
            if span.offset != span.offset_before and low <= span.start <= high:
                yield span


def _is_even(grid: Recurrence, low: datetime, high: datetime, count: int) -> bool:
    """Whether it fires as often before and after as in the skipped or repeated hour."""
    length = high - low
    return count == grid.count(low - length, low - INSTANT) == grid.count(high, high + length - INSTANT)


def _gap(look: _Look, opening: datetime, wall: datetime, count: int) -> PreviewWarning:
    """Warn about skipped times. `wall` is the first of them; `opening` is the first instant after the gap."""
    is_one = count == 1
    text = f"{wall.isoformat()}{_and_more(count)} {'is' if is_one else 'are'} left out by the clocks that day"
    if look.dst.gap is DstGap.SHIFT and not look.follows_real_time():
        instead = opening.astimezone(look.tz).isoformat()
        text += f" and fires at {instead} instead" if is_one else f" and fire once, at {instead}"
    else:
        text += f" and {'does' if is_one else 'do'} not fire"
    return PreviewWarning("dst_gap", text, opening)


def _repeat(look: _Look, _opening: datetime, wall: datetime, count: int) -> PreviewWarning:
    """Warn about repeated times. `wall` is the first of them. Fire times are shown with their offset."""
    repeat = DstRepeat.BOTH if look.follows_real_time() else look.dst.repeat
    how, folds = {
        DstRepeat.FIRST: ("the first time only", (0,)),
        DstRepeat.SECOND: ("the second time only", (1,)),
        DstRepeat.BOTH: ("both times", (0, 1)),
    }[repeat]
    is_one = count == 1
    comes = f"comes twice that day and fires {how}" if is_one else f"come twice that day and fire {how}"
    fires = [wall.replace(tzinfo=look.tz, fold=fold) for fold in folds]
    when = " and ".join(
        f"at {fire.isoformat()}" if is_one else f"from {fire.isoformat()} on" for fire in fires
    )
    text = f"{wall.isoformat()}{_and_more(count)} {comes}: {when}"
    return PreviewWarning("dst_repeat", text, fires[0].astimezone(UTC))


def _and_more(count: int) -> str:
    return "" if count == 1 else f" and {count - 1:,} more"
