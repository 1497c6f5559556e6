"""Preview of a trigger before it is saved: a description, its next times, and warnings.

The work is bounded, however often or rarely a trigger fires. A year is counted and never iterated. Times that
window and calendars exclude are skipped a range at a time.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import pairwise
from zoneinfo import ZoneInfo

from foliot.model.errors import InvalidError
from foliot.model.instant import INSTANT
from foliot.model.kind import BaseTrigger, PreviewWarning
from foliot.model.policy import Dst, DstGap, DstRepeat, Window
from foliot.model.recurrence import Recurrence
from foliot.planning.forecast import Allowance
from foliot.timing.calendar import Calendar
from foliot.timing.zone import HIGHEST, LOWEST, OffsetSpan, check_zone, naive_utc, spans_at, zone

MAX_FIRES = 1_000
MAX_EXAMINED = 1_000
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
class Preview:
    description: str
    fires: tuple[PreviewFire, ...]
    warnings: tuple[PreviewWarning, ...]


def preview(
    trigger: BaseTrigger,
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
    trigger.check_new()
    now = max(naive_utc(from_ts).replace(tzinfo=UTC), _LOWEST + _YEAR)
    previewed = _PreviewedTrigger.at(trigger, dst, now, start_ts, end_ts, key or "preview")
    allowance = Allowance(
        window, tuple(calendars), previewed.tz if isinstance(previewed.tz, ZoneInfo) else zone("UTC")
    )
    fires, end = previewed.fires(n, allowance)
    warnings = [
        *_about_number(previewed, fires, end),
        *_about_rate(previewed, has_jitter=jitter_seconds > 0),
        *trigger.warnings(previewed.anchor.astimezone(previewed.tz), key),
        *_about_clocks(previewed, allowance),
    ]
    return Preview(trigger.describe(), tuple(previewed.marked(fires)), tuple(warnings))


# --- the times ------------------------------------------------------------------------------------------


class _End(StrEnum):
    """Why no more times are shown."""

    ENOUGH = "as many as asked for"
    NO_MORE = "there is none"
    FORBIDDEN = "window and calendars forbid all that is in sight"
    TOO_FAR = "the next is more than 100 years from now"


@dataclass(frozen=True, slots=True)
class _PreviewedTrigger:
    """A trigger, compiled as if it were saved at a given moment."""

    trigger: BaseTrigger
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
        trigger: BaseTrigger,
        dst: Dst,
        now: datetime,
        start_ts: datetime | None,
        end_ts: datetime | None,
        key: str,
    ) -> "_PreviewedTrigger":
        anchor = start_ts or now
        times = trigger.build(dst=dst, anchor=anchor, key=key)
        counts_from_now = start_ts is None and trigger.counts_from_start
        if trigger.delay_s is not None:
            first = now + timedelta(seconds=trigger.delay_s)
            if start_ts is not None and start_ts > now:
                first = start_ts
        else:
            # A trigger that counts from when it is saved does not fire at that moment.
            first = now + INSTANT if counts_from_now else max(now, anchor)
        last = _HIGHEST if end_ts is None else min(end_ts, _HIGHEST)
        return cls(trigger, dst, key, _zone_of(trigger), anchor, times, first, last, counts_from_now)

    def fires(self, n: int, allowance: Allowance) -> "tuple[list[datetime], _End]":
        """Return the first `n` times that fire, and why there are no more."""
        if self.trigger.counts_from_end:
            is_one = self.first <= self.last and allowance.reason(self.first) is None
            return ([self.first] if is_one else []), _End.ENOUGH
        found: list[datetime] = []
        horizon = _ahead(self.first, HORIZON)
        at = self.times.after(self.first - INSTANT)
        for _ in range(MAX_EXAMINED):
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
        return self.trigger.follows_real_time(self.key)

    def on_wall(self) -> Recurrence | None:
        """Return the wall-clock times as if they were UTC; None: the trigger does not use the wall clock."""
        trigger = self.trigger
        if trigger.zone_name is None or trigger.step is not None:
            return None
        return _rebuilt(self, trigger.model_copy(update={"timezone": "UTC"}), self.dst)


def _rebuilt(previewed: _PreviewedTrigger, trigger: BaseTrigger, dst: Dst) -> Recurrence | None:
    """Compile the previewed trigger with another zone or DST policy; None: then it never fires."""
    anchor = previewed.anchor
    if trigger.zone_name != previewed.trigger.zone_name:
        anchor = anchor.astimezone(previewed.tz).replace(tzinfo=UTC, fold=0)
    try:
        return trigger.build(dst=dst, anchor=anchor, key=previewed.key)
    except InvalidError:
        return None


def _zone_of(trigger: BaseTrigger) -> tzinfo:
    return trigger.shown_zone or UTC if trigger.zone_name is None else zone(trigger.zone_name)


def _ahead(instant: datetime, reach: timedelta) -> datetime:
    """Return the instant plus `reach`, limited to the last possible instant."""
    return instant + reach if instant < _HIGHEST - reach else _HIGHEST


def _opens_after_gap(tz: ZoneInfo, instant: datetime) -> bool:
    moment = naive_utc(instant)
    return any(span.start == moment and span.offset_before < span.offset for span in spans_at(tz, moment))


# --- warnings about number and rate ---------------------------------------------------------------------


def _about_number(previewed: _PreviewedTrigger, fires: list[datetime], end: _End) -> Iterator[PreviewWarning]:
    if previewed.trigger.counts_from_end:
        yield PreviewWarning("after_each_run", "the times after the first depend on when each run ends")
        return
    if not fires:
        yield PreviewWarning("never_fires", f"never fires: {_why_none(previewed, end)}")
        return
    last = fires[-1].astimezone(previewed.tz).isoformat()
    if end is not _End.ENOUGH:
        yield PreviewWarning("few_fires", f"after {last} {end}", fires[-1])
    passed_over = previewed.times.count(previewed.first, fires[-1]) - len(fires)
    if passed_over:
        text = f"window or calendars forbid {passed_over:,} of its times up to {last}; these are skipped"
        yield PreviewWarning("skipped", text)


def _why_none(previewed: _PreviewedTrigger, end: _End) -> str:
    if end is not _End.NO_MORE:
        return end
    if previewed.trigger.fires_once and previewed.times.before(previewed.first) is not None:
        return "its time has passed"
    if previewed.times.after(previewed.first - INSTANT) is not None:
        return "its first time lies after end_ts"
    return "it has no time to come"


def _about_rate(previewed: _PreviewedTrigger, *, has_jitter: bool) -> Iterator[PreviewWarning]:
    if previewed.trigger.delay_s is not None:
        if previewed.trigger.delay_s < OFTEN.total_seconds():
            yield _often(timedelta(seconds=previewed.trigger.delay_s))
        return
    sample = list(_first_of(previewed, _SAMPLE))
    gaps = [later - earlier for earlier, later in pairwise(sample)]
    if gaps and min(gaps) < OFTEN:
        yield _often(min(gaps))
    if not gaps or has_jitter or previewed.counts_from_now:
        return
    busy = None
    if _are_midnights(at.astimezone(previewed.tz) for at in sample) or _are_midnights(sample):
        busy = "at midnight"
    elif all(at.minute == at.second == 0 for at in sample) and set(gaps) == {_HOUR}:
        busy = "on the hour"
    if busy is not None:
        other = f", or {previewed.trigger.spread_hint}" if previewed.trigger.spread_hint else ""
        text = f"fires {busy}, when many others do; jitter_seconds spreads the load{other}"
        yield PreviewWarning("busy_minute", text)


def _first_of(previewed: _PreviewedTrigger, limit: int) -> Iterator[datetime]:
    at = previewed.times.after(previewed.first - INSTANT)
    while at is not None and at <= previewed.last and limit:
        yield at
        limit -= 1
        at = previewed.times.after(at)


def _are_midnights(sample: Iterable[datetime]) -> bool:
    # Not all: where a clock change skips midnight, the time is an hour later.
    times = [(at.hour, at.minute, at.second) == (0, 0, 0) for at in sample]
    return sum(times) * 10 >= len(times) * 9


def _often(gap: timedelta) -> PreviewWarning:
    amount = f"{gap.total_seconds():.3g}"
    text = f"fires as often as every {amount} s, and each time is a row of the history"
    return PreviewWarning("very_often", text)


# --- warnings about clock changes -----------------------------------------------------------------------


def _about_clocks(previewed: _PreviewedTrigger, allowance: Allowance) -> Iterator[PreviewWarning]:
    """Warn about the clock changes of the next year that affect its times."""
    grid = previewed.on_wall()
    if grid is None or not isinstance(previewed.tz, ZoneInfo):
        return
    for span in _changes(previewed.tz, previewed.first, min(_ahead(previewed.first, _YEAR), previewed.last)):
        before, after = (span.start + each for each in (span.offset_before, span.offset))
        low, high = (each.replace(tzinfo=UTC) for each in (min(before, after), max(before, after)))
        count = grid.count(low, high - INSTANT)
        if not count or (previewed.follows_real_time() and _is_even(grid, low, high, count)):
            continue
        wall = grid.after(low - INSTANT)
        assert wall is not None
        warn = _gap if before < after else _repeat
        caution = warn(previewed, span.start.replace(tzinfo=UTC), wall.replace(tzinfo=None), count)
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


def _gap(previewed: _PreviewedTrigger, opening: datetime, wall: datetime, count: int) -> PreviewWarning:
    """Warn about skipped times. `wall` is the first of them; `opening` is the first instant after the gap."""
    is_one = count == 1
    text = f"{wall.isoformat()}{_and_more(count)} {'is' if is_one else 'are'} left out by the clocks that day"
    if previewed.dst.gap is DstGap.SHIFT and not previewed.follows_real_time():
        instead = opening.astimezone(previewed.tz).isoformat()
        text += f" and fires at {instead} instead" if is_one else f" and fire once, at {instead}"
    else:
        text += f" and {'does' if is_one else 'do'} not fire"
    return PreviewWarning("dst_gap", text, opening)


def _repeat(previewed: _PreviewedTrigger, _opening: datetime, wall: datetime, count: int) -> PreviewWarning:
    """Warn about repeated times. `wall` is the first of them. Fire times are shown with their offset."""
    repeat = DstRepeat.BOTH if previewed.follows_real_time() else previewed.dst.repeat
    how, folds = {
        DstRepeat.FIRST: ("the first time only", (0,)),
        DstRepeat.SECOND: ("the second time only", (1,)),
        DstRepeat.BOTH: ("both times", (0, 1)),
    }[repeat]
    is_one = count == 1
    comes = f"comes twice that day and fires {how}" if is_one else f"come twice that day and fire {how}"
    fires = [wall.replace(tzinfo=previewed.tz, fold=fold) for fold in folds]
    when = " and ".join(
        f"at {fire.isoformat()}" if is_one else f"from {fire.isoformat()} on" for fire in fires
    )
    text = f"{wall.isoformat()}{_and_more(count)} {comes}: {when}"
    return PreviewWarning("dst_repeat", text, fires[0].astimezone(UTC))


def _and_more(count: int) -> str:
    return "" if count == 1 else f" and {count - 1:,} more"
