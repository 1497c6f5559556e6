"""The times of a recurrence rule.

A rule is evaluated on the wall clock, from the start's wall-clock time in whole seconds, and then put into
its zone. As in dateutil, the start itself is a time only if the rule matches it.
"""

from datetime import datetime, timedelta
from typing import NoReturn
from zoneinfo import ZoneInfo

from foliot.model.policy import Dst
from foliot.timing.day import DayTimes, DayWalls
from foliot.timing.rule_days import RuleDays
from foliot.timing.rule_parts import Frequency, RecurrenceRule, parse_rule, refuse
from foliot.timing.rule_periods import PeriodWalls
from foliot.timing.rule_positions import PickedWalls
from foliot.timing.wall import REAL_TIME, TICK, WallTimes, ZonedRecurrence
from foliot.timing.zone import HIGHEST, naive_utc

_SECOND = timedelta(seconds=1)


def rule_times(text: str, tz: ZoneInfo, dst: Dst, start: datetime) -> ZonedRecurrence:
    """Return the times of a rule that starts at an instant. Raises InvalidError if it never fires."""
    rule = parse_rule(text)
    first = start.astimezone(tz).replace(tzinfo=None, fold=0, microsecond=0)
    walls = _walls(rule, first)
    if walls.after(first - TICK) is None:
        _refuse_silent("no day or time passes all of its parts")
    last = _last(rule, walls, first, tz)
    times = ZonedRecurrence(
        BoundedTimes(walls, first, last), tz, REAL_TIME if rule.follows_real_time else dst
    )
    # Two days earlier, since the start's wall-clock time may mean an instant shortly before the start.
    if times.after(start - timedelta(days=2)) is None:
        _refuse_silent("it ends before its first time")
    return times


def _refuse_silent(why: str) -> NoReturn:
    refuse(f"this rule never fires: {why}", "look at its BY parts, INTERVAL and UNTIL", "never_fires")


def _walls(rule: RecurrenceRule, first: datetime) -> WallTimes:
    if rule.freq >= Frequency.HOURLY:
        return PeriodWalls(rule, first)
    days = RuleDays(rule, first.date())
    times = DayTimes(
        rule.byhour or (first.hour,), rule.byminute or (first.minute,), rule.bysecond or (first.second,)
    )
    return PickedWalls(days, times, rule.bysetpos) if rule.bysetpos else DayWalls(days, times)


def _last(rule: RecurrenceRule, walls: WallTimes, first: datetime, tz: ZoneInfo) -> datetime:
    """Return the last wall-clock time that COUNT or UNTIL allows."""
    if rule.count is not None:
        return _nth(walls, first, rule.count)
    if rule.until is None:
        return HIGHEST
    if rule.until.tzinfo is None:
        return rule.until
    if naive_utc(rule.until) >= HIGHEST:
        return HIGHEST
    return rule.until.astimezone(tz).replace(tzinfo=None, fold=0)


def _nth(walls: WallTimes, first: datetime, n: int) -> datetime:
    """Return the n-th time from `first` on, or HIGHEST if there are fewer. Counts no range twice."""
    low, reach = first, _SECOND
    while (passed := walls.count(low, low + reach)) < n:
        n -= passed
        low += reach
        if low >= HIGHEST:
            return HIGHEST
        reach = min(reach * 2, HIGHEST - low)
    while reach > _SECOND:
        reach = reach // _SECOND // 2 * _SECOND if reach >= 2 * _SECOND else _SECOND
        while (passed := walls.count(low, low + reach)) < n:
            n -= passed
            low += reach
    return low


class BoundedTimes:
    """WallTimes: those of a grid from `first` to `last`, both included."""

    __slots__ = ("_first", "_last", "_walls")

    def __init__(self, walls: WallTimes, first: datetime, last: datetime) -> None:
        self._walls = walls
        self._first = first
        self._last = last

    def after(self, wall: datetime) -> datetime | None:
        found = self._walls.after(max(wall, self._first - TICK))
        return found if found is not None and found <= self._last else None

    def before(self, wall: datetime) -> datetime | None:
        found = self._walls.before(min(wall, self._last + TICK))
        return found if found is not None and found >= self._first else None

    def count(self, first: datetime, end: datetime) -> int:
        low, high = max(first, self._first), min(end, self._last + TICK)
        return self._walls.count(low, high) if low < high else 0
