"""Compiles triggers, as users write them, to Recurrences.

Triggers with the same meaning share one compiled recurrence, so a million schedules at `@daily` hold one. The
cache key contains only what the recurrence depends on: for a cron without `H`, neither anchor nor key.
"""

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from foliot.model.errors import InvalidError
from foliot.model.policy import Dst, DstGap, DstRepeat
from foliot.model.trigger import (
    CronTrigger,
    DelayTrigger,
    FrequencyUnit,
    IntervalTrigger,
    OnceTrigger,
    RRuleTrigger,
    Trigger,
)
from foliot.timing.cron import cron_times
from foliot.timing.cron_fields import POINTER, is_hashed, normalise, parse
from foliot.timing.interval import CalendarInterval, DayWalk, Elapsed, MonthWalk
from foliot.timing.once import NoTimes, Once
from foliot.timing.recurrence import Recurrence
from foliot.timing.rrule import rule_times
from foliot.timing.wall import REAL_TIME
from foliot.timing.zone import HIGHEST, LOWEST, check_zone, naive_utc

_REMEMBERED = 32_768
_TIMEZONE = "/trigger/timezone"
_ELAPSED_S = {FrequencyUnit.SECONDS: 1, FrequencyUnit.MINUTES: 60, FrequencyUnit.HOURS: 3600}
_CALENDAR_DAYS = {FrequencyUnit.DAYS: 1, FrequencyUnit.WEEKS: 7}
_NO_GRID = NoTimes()


def compile_trigger(trigger: Trigger, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:
    """Compile a trigger, or raise an InvalidError that says what is wrong with it and where.

    Intervals and rules count from `anchor`. `key` makes `H` differ between schedules.
    """
    times = build_trigger(trigger, dst=dst, anchor=anchor, key=key)
    if isinstance(trigger, CronTrigger | IntervalTrigger) and times.after(anchor) is None:
        raise InvalidError.at(*_why_never(trigger))
    return times


def build_trigger(trigger: Trigger, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:
    """Compile a trigger that was accepted before, without checking whether it ever fires."""
    match trigger:
        case CronTrigger():
            return _build_cron(trigger, dst, key)
        case IntervalTrigger():
            return _build_interval(trigger, dst, anchor)
        case OnceTrigger():
            return Once(_within(trigger.at, "/trigger/at"))
        case RRuleTrigger():
            tz = check_zone(trigger.timezone, _TIMEZONE)
            start = _within(anchor, "/start_ts").replace(microsecond=0)
            return _rule(trigger.rule, tz, dst.gap, dst.repeat, start)
        case DelayTrigger():
            return _NO_GRID


def elapsed_step(trigger: Trigger) -> timedelta | None:
    """Return the length of an interval of seconds, minutes or hours; None: it depends on the calendar."""
    if not isinstance(trigger, IntervalTrigger) or trigger.frequency_unit not in _ELAPSED_S:
        return None
    return timedelta(seconds=trigger.frequency_time * _ELAPSED_S[trigger.frequency_unit])


def _within(instant: datetime, pointer: str) -> datetime:
    if LOWEST <= naive_utc(instant) < HIGHEST:
        return instant
    raise InvalidError.at(pointer, "out_of_range", "is too far from now to count from", "a year below 9999")


def _why_never(trigger: CronTrigger | IntervalTrigger) -> tuple[str, str, str, str]:
    if isinstance(trigger, IntervalTrigger):
        return (
            "/trigger/frequency_time",
            "out_of_range",
            "the first step leads past the year 9999",
            "a smaller number",
        )
    # An existing day may still never fire, if its only time is in a gap every year and gaps are skipped.
    return (
        POINTER,
        "never_fires",
        "this expression never fires: the clock is set forward over its only times",
        "choose another time of day, or let dst.gap be shift",
    )


def _build_cron(trigger: CronTrigger, dst: Dst, key: str) -> Recurrence:
    tz = check_zone(trigger.timezone, _TIMEZONE)
    expression = normalise(trigger.expression)
    return _cron(expression, key if is_hashed(expression) else "", tz, dst.gap, dst.repeat)


@lru_cache(maxsize=_REMEMBERED)
def _cron(expression: str, key: str, tz: ZoneInfo, gap: DstGap, repeat: DstRepeat) -> Recurrence:
    fields, policy = parse(expression, key), Dst(gap=gap, repeat=repeat)
    if policy != REAL_TIME and (tz.key == "UTC" or fields.follows_real_time):
        # The policy makes no difference here, so all policies share one recurrence.
        return _cron(expression, key, tz, REAL_TIME.gap, REAL_TIME.repeat)
    return cron_times(fields, tz, policy)


def _build_interval(trigger: IntervalTrigger, dst: Dst, anchor: datetime) -> Recurrence:
    unit, amount = trigger.frequency_unit, trigger.frequency_time
    anchor = _within(anchor, "/start_ts")
    tz = check_zone(trigger.timezone, _TIMEZONE)
    elapsed_s = _ELAPSED_S.get(unit)
    if elapsed_s is not None:
        return _elapsed(amount * elapsed_s, anchor)
    return _calendar(unit, amount, tz, dst.gap, dst.repeat, anchor)


@lru_cache(maxsize=_REMEMBERED)
def _elapsed(seconds: int, anchor: datetime) -> Recurrence:
    return Elapsed(anchor, timedelta(seconds=seconds))


@lru_cache(maxsize=_REMEMBERED)
def _calendar(
    unit: FrequencyUnit, amount: int, tz: ZoneInfo, gap: DstGap, repeat: DstRepeat, anchor: datetime
) -> Recurrence:
    wall = anchor.astimezone(tz).replace(tzinfo=None, fold=0)
    if unit is FrequencyUnit.MONTHS:
        walls: DayWalk | MonthWalk = MonthWalk(wall, amount)
    else:
        walls = DayWalk(wall, min(amount * _CALENDAR_DAYS[unit], timedelta.max.days))
    return CalendarInterval(anchor, walls, tz, Dst(gap=gap, repeat=repeat))


@lru_cache(maxsize=_REMEMBERED)
def _rule(rule: str, tz: ZoneInfo, gap: DstGap, repeat: DstRepeat, start: datetime) -> Recurrence:
    return rule_times(rule, tz, Dst(gap=gap, repeat=repeat), start)
