"""The days of a recurrence rule.

dateutil says which days of a year the rule's filters allow. The answer depends only on the first weekday of
the year and on leap years, so at most 21 years are ever computed. INTERVAL is arithmetic. dateutil
is never used to search: if a rule has no times, its loop runs on to the year 9999, whatever `until` says. So
it is only asked about the last years before that.
"""

from bisect import bisect_left, bisect_right
from calendar import isleap, monthrange
from datetime import date, datetime
from math import gcd

from dateutil.rrule import YEARLY, rrule, weekday

from foliot.timing.rule_parts import Frequency, RecurrenceRule

# The calendar repeats after 400 years; here as periods of each frequency.
_CYCLE = {
    Frequency.YEARLY: 400,
    Frequency.MONTHLY: 4800,
    Frequency.WEEKLY: 20_871,
    Frequency.DAILY: 146_097,
}


class RuleDays:
    """The days that a daily, weekly, monthly or yearly rule allows, before and after its start alike."""

    __slots__ = ("_by_shape", "_by_year", "_freq", "_interval", "_phase", "_rule", "_start", "_wkst", "reach")

    def __init__(self, rule: RecurrenceRule, start: date) -> None:
        self._freq = rule.freq
        self._interval = rule.interval
        self._wkst = rule.wkst
        self._rule = rule
        self._start = start
        self._phase = self.period(start.toordinal()) % rule.interval
        self._by_shape: dict[tuple[int, bool, bool], tuple[int, ...]] = {}
        self._by_year: dict[int, tuple[int, ...]] = {}
        self.reach = 400 * rule.interval // gcd(rule.interval, _CYCLE[rule.freq])
        """After this many years both the calendar and the interval repeat."""

    def has(self, day: date) -> bool:
        ordinal = day.toordinal()
        ordinals = self.of_year(day.year)
        i = bisect_left(ordinals, ordinal)
        return i < len(ordinals) and ordinals[i] == ordinal

    def after(self, day: date) -> date | None:
        ordinal = day.toordinal()
        for year in range(day.year, min(day.year + self.reach, 9999) + 1):
            ordinals = self.of_year(year)
            i = bisect_right(ordinals, ordinal)
            if i < len(ordinals):
                return date.fromordinal(ordinals[i])
        return None

    def before(self, day: date) -> date | None:
        ordinal = day.toordinal()
        for year in range(day.year, max(day.year - self.reach, 1) - 1, -1):
            ordinals = self.of_year(year)
            i = bisect_left(ordinals, ordinal)
            if i:
                return date.fromordinal(ordinals[i - 1])
        return None

    def count(self, first: date, end: date) -> int:
        total = sum(self._count_of_year(year) for year in range(first.year, end.year))
        total -= bisect_left(self.of_year(first.year), first.toordinal())
        return total + bisect_left(self.of_year(end.year), end.toordinal())

    def period(self, ordinal: int) -> int:
        """Return the number of the period (year, month, week or day, by the frequency) of a day."""
        match self._freq:
            case Frequency.DAILY:
                return ordinal
            case Frequency.WEEKLY:
                return (ordinal - 1 - self._wkst) // 7  # ordinal 1 was a Monday
            case Frequency.MONTHLY:
                day = date.fromordinal(ordinal)
                return day.year * 12 + day.month
            case _:
                return date.fromordinal(ordinal).year

    def period_year(self, ordinal: int) -> int:
        """Return the year in which the period of a day begins."""
        if self._freq is Frequency.WEEKLY:
            ordinal = max(1, self.period(ordinal) * 7 + 1 + self._wkst)
        return date.fromordinal(ordinal).year

    def of_year(self, year: int) -> tuple[int, ...]:
        """Return the ordinals of the matching days in one year."""
        found = self._by_year.get(year)
        if found is None:
            if len(self._by_year) >= 8:
                self._by_year.clear()
            first = date(year, 1, 1).toordinal()
            found = tuple(first + number for number in self._allowed(year))
            self._by_year[year] = found = found if self._interval == 1 else self._in_phase(year, found)
        return found

    def _count_of_year(self, year: int) -> int:
        return len(self._allowed(year)) if self._interval == 1 else len(self.of_year(year))

    def _in_phase(self, year: int, ordinals: tuple[int, ...]) -> tuple[int, ...]:
        """Return the days whose period INTERVAL does not skip."""
        interval, phase, shift = self._interval, self._phase, 1 + self._wkst
        match self._freq:
            case Frequency.DAILY:
                return tuple(ordinal for ordinal in ordinals if ordinal % interval == phase)
            case Frequency.WEEKLY:
                return tuple(ordinal for ordinal in ordinals if (ordinal - shift) // 7 % interval == phase)
            case Frequency.MONTHLY:
                found: tuple[int, ...] = ()
                for month in range(1, 13):
                    if (year * 12 + month) % interval == phase:
                        first = date(year, month, 1).toordinal()
                        end = first + monthrange(year, month)[1]
                        found += ordinals[bisect_left(ordinals, first) : bisect_left(ordinals, end)]
                return found
            case _:
                return ordinals if year % interval == phase else ()

    def _allowed(self, year: int) -> tuple[int, ...]:
        """Return the days of a year that the filters allow, numbered from 0."""
        shape = _shape(year)
        found = self._by_shape.get(shape)
        if found is None:
            self._by_shape[shape] = found = _allowed_days(self._rule, self._start, _YEAR_OF_SHAPE[shape])
        return found


def _shape(year: int) -> tuple[int, bool, bool]:
    # The previous year affects the number of a week that began in it.
    return date(year, 1, 1).weekday(), isleap(year), isleap(year - 1)


_YEAR_OF_SHAPE = {_shape(year): year for year in range(9972, 10_000)}


def _allowed_days(rule: RecurrenceRule, start: date, year: int) -> tuple[int, ...]:
    """Return the days of a year that the filters allow, numbered from 0, regardless of INTERVAL."""
    bymonth, bymonthday, byday = rule.bymonth, rule.bymonthday, rule.byday
    if not (rule.byweekno or rule.byyearday or bymonthday or byday):
        # Parts that a rule leaves open come from the start's day.
        match rule.freq:
            case Frequency.YEARLY:
                bymonth, bymonthday = bymonth or (start.month,), (start.day,)
            case Frequency.MONTHLY:
                bymonthday = (start.day,)
            case Frequency.WEEKLY:
                byday = ((start.weekday(), 0),)
            case _:
                bymonthday = tuple(range(1, 32))
    # Filters mean the same for every frequency, except a numbered BYDAY: MONTHLY counts it within the month,
    # as does YEARLY with BYMONTH. So YEARLY serves for all, and is fastest: one step a year.
    if rule.freq is Frequency.MONTHLY:
        bymonth = bymonth or tuple(range(1, 13))
    found: set[int] = set()
    # dateutil would allow only days that match both a numbered and a plain weekday, so ask separately.
    numbered = [each for each in byday if each[1]]
    plain = [each for each in byday if not each[1]]
    for some in [each for each in (numbered, plain) if each] or [[]]:
        days = rrule(
            YEARLY,
            dtstart=datetime(year, 1, 1),  # noqa: DTZ001
            until=datetime(year, 12, 31),  # noqa: DTZ001
            wkst=rule.wkst,
            bymonth=bymonth or None,
            bymonthday=bymonthday or None,
            byyearday=rule.byyearday or None,
            byweekno=rule.byweekno or None,
            byweekday=[weekday(day, nth or None) for day, nth in some] or None,
            byhour=0,
            byminute=0,
            bysecond=0,
        )
        found.update(day.timetuple().tm_yday - 1 for day in days)
    return tuple(sorted(found))
