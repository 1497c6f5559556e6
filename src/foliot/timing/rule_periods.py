"""The times of an hourly, minutely or secondly rule, by arithmetic alone.

Whether a period passes BYDAY, BYHOUR and BYMINUTE depends only on its position in the week. Counted in steps
of INTERVAL this pattern repeats, at the latest after as many steps as a week has periods. It is computed
once. Then every query is a division and a bisection. A pattern without any period never fires.
"""

from bisect import bisect_left
from datetime import datetime, timedelta
from math import gcd

from foliot.timing.rule_parts import Frequency, RecurrenceRule

_ORIGIN = datetime(1, 1, 1)  # noqa: DTZ001
"""A Monday."""
_SECOND = timedelta(seconds=1)
_UNIT_S = {Frequency.HOURLY: 3600, Frequency.MINUTELY: 60, Frequency.SECONDLY: 1}
_WEEK_S = 604_800


class PeriodWalls:
    """WallTimes every n hours, minutes or seconds where filters allow."""

    __slots__ = ("_cycle", "_first", "_interval", "_offsets", "_pattern", "_unit_s")

    def __init__(self, rule: RecurrenceRule, start: datetime) -> None:
        self._unit_s = _UNIT_S[rule.freq]
        self._interval = rule.interval
        self._first = (start - _ORIGIN) // (self._unit_s * _SECOND)
        self._offsets = _offsets(rule, start)
        if rule.freq is Frequency.SECONDLY:
            self._cycle = 1
        else:
            week = _WEEK_S // self._unit_s
            self._cycle = week // gcd(self._interval, week)
        self._pattern = tuple(
            step for step in range(self._cycle) if _is_allowed(rule, self._first + step * self._interval)
        )

    def after(self, wall: datetime) -> datetime | None:
        return self._at(self._number(_seconds(wall) + 1))

    def before(self, wall: datetime) -> datetime | None:
        number = self._number(_seconds(wall) + (wall.microsecond > 0))
        return self._at(number - 1) if number else None

    def count(self, first: datetime, end: datetime) -> int:
        low, high = (self._number(_seconds(wall) + (wall.microsecond > 0)) for wall in (first, end))
        return high - low

    def _number(self, second: int) -> int:
        """Return how many times come before a second of the calendar."""
        period, offset = divmod(second, self._unit_s)
        step, between = divmod(period - self._first, self._interval)
        if step < 0:
            return 0
        if between:
            return self._steps_before(step + 1) * len(self._offsets)
        number = self._steps_before(step) * len(self._offsets)
        if self._steps_before(step + 1) > self._steps_before(step):
            number += bisect_left(self._offsets, offset)
        return number

    def _steps_before(self, step: int) -> int:
        rounds, rest = divmod(step, self._cycle)
        return rounds * len(self._pattern) + bisect_left(self._pattern, rest)

    def _at(self, number: int) -> datetime | None:
        if not self._pattern:
            return None
        passed, i = divmod(number, len(self._offsets))
        rounds, j = divmod(passed, len(self._pattern))
        period = self._first + (rounds * self._cycle + self._pattern[j]) * self._interval
        try:
            return _ORIGIN + timedelta(seconds=period * self._unit_s + self._offsets[i])
        except OverflowError:
            return None


def _seconds(wall: datetime) -> int:
    return (wall - _ORIGIN) // _SECOND


def _offsets(rule: RecurrenceRule, start: datetime) -> tuple[int, ...]:
    """Return the seconds within a period at which it fires."""
    if rule.freq is Frequency.SECONDLY:
        return (0,)
    seconds = rule.bysecond or (start.second,)
    if rule.freq is Frequency.MINUTELY:
        return seconds
    return tuple(minute * 60 + second for minute in rule.byminute or (start.minute,) for second in seconds)


def _is_allowed(rule: RecurrenceRule, period: int) -> bool:
    if rule.freq is Frequency.SECONDLY:
        return True
    if rule.freq is Frequency.MINUTELY:
        period, minute = divmod(period, 60)
        if rule.byminute and minute not in rule.byminute:
            return False
    day, hour = divmod(period, 24)
    if rule.byhour and hour not in rule.byhour:
        return False
    return not rule.byday or (day % 7, 0) in rule.byday
