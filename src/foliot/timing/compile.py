"""From a trigger as users write it to a Recurrence.

Triggers that mean the same share one compiled recurrence, so a million schedules at `@daily` hold one. What a
recurrence is remembered by is only what it depends on: a cron without `H` knows neither anchor nor key.
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
from foliot.timing.cron_fields import POINTER, CronFields, is_hashed, normalise, parse
from foliot.timing.interval import CalendarInterval, DayWalk, Elapsed, MonthWalk
from foliot.timing.once import NoGrid, Once
from foliot.timing.recurrence import Recurrence
from foliot.timing.rrule import rule_times
from foliot.timing.wall import REAL_TIME
from foliot.timing.zone import HIGHEST, LOWEST, check_zone, naive_utc

_REMEMBERED = 32_768
_TIMEZONE = "/trigger/timezone"
_ELAPSED_S = {FrequencyUnit.SECONDS: 1, FrequencyUnit.MINUTES: 60, FrequencyUnit.HOURS: 3600}
_CALENDAR_DAYS = {FrequencyUnit.DAYS: 1, FrequencyUnit.WEEKS: 7}
_NO_GRID = NoGrid()


def compile_trigger(trigger: Trigger, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:
    """The times of a trigger, or an InvalidError that says what is wrong with it and where.

    `anchor` is what intervals and rules count from; `key` tells schedules apart for `H`.
    """
    match trigger:
        case CronTrigger():
            return _compile_cron(trigger, dst, anchor, key)
        case IntervalTrigger():
            return _compile_interval(trigger, dst, _within(anchor, "/start_ts"))
        case OnceTrigger():
            return Once(_within(trigger.at, "/trigger/at"))
        case RRuleTrigger():
            tz = check_zone(trigger.timezone, _TIMEZONE)
            start = _within(anchor, "/start_ts").replace(microsecond=0)
            return _rule(trigger.rule, tz, dst.gap, dst.repeat, start)
        case DelayTrigger():
            return _NO_GRID


def _within(instant: datetime, pointer: str) -> datetime:
    if LOWEST <= naive_utc(instant) < HIGHEST:
        return instant
    raise InvalidError.at(pointer, "out_of_range", "is too far from now to count from", "a year below 9999")


def _compile_cron(trigger: CronTrigger, dst: Dst, anchor: datetime, key: str) -> Recurrence:
    tz = check_zone(trigger.timezone, _TIMEZONE)
    expression = normalise(trigger.expression)
    key = key if is_hashed(expression) else ""
    policy = REAL_TIME if tz.key == "UTC" or _fields(expression, key).follows_real_time else dst
    times = _cron(expression, key, tz, policy.gap, policy.repeat)
    # A day that exists may still never come, if its only time lies in every year's gap and gaps are skipped.
    if times.after(anchor) is None:
        raise InvalidError.at(
            POINTER,
            "never_fires",
            "this expression never fires: the clock is set forward over its only times",
            "choose another time of day, or let dst.gap be shift",
        )
    return times


@lru_cache(maxsize=_REMEMBERED)
def _fields(expression: str, key: str) -> CronFields:
    return parse(expression, key)


@lru_cache(maxsize=_REMEMBERED)
def _cron(expression: str, key: str, tz: ZoneInfo, gap: DstGap, repeat: DstRepeat) -> Recurrence:
    return cron_times(_fields(expression, key), tz, Dst(gap=gap, repeat=repeat))


def _compile_interval(trigger: IntervalTrigger, dst: Dst, anchor: datetime) -> Recurrence:
    unit, amount = trigger.frequency_unit, trigger.frequency_time
    tz = check_zone(trigger.timezone, _TIMEZONE)
    if unit in _ELAPSED_S:
        times = _elapsed(amount * _ELAPSED_S[unit], anchor)
    else:
        times = _calendar(unit, amount, tz, dst.gap, dst.repeat, anchor)
    if times.after(anchor) is None:
        raise InvalidError.at(
            "/trigger/frequency_time",
            "out_of_range",
            "the first step leads past the year 9999",
            "a smaller number",
        )
    return times


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
