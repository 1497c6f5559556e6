"""The times of a recurrence rule with BYSETPOS: the times at some positions of each period.

A period may have millions of times (every second of a year), so they are never listed. The positions depend
only on the number of days of the period. A division turns a position into a day and a time of day.
"""

from bisect import bisect_left
from datetime import date, datetime
from itertools import groupby

from foliot.timing.day import DayTimes
from foliot.timing.rule_days import RuleDays

Group = tuple[int, ...]
"""The days of one period, as ordinals."""


class PickedWalls:
    """WallTimes at some positions of each period."""

    __slots__ = ("_by_length", "_by_year", "_days", "_positions", "_times")

    def __init__(self, days: RuleDays, times: DayTimes, positions: tuple[int, ...]) -> None:
        self._days = days
        self._times = times
        self._positions = positions
        self._by_year: dict[int, list[Group]] = {}
        self._by_length: dict[int, tuple[int, ...]] = {}

    def after(self, wall: datetime) -> datetime | None:
        first = self._days.period_year(wall.toordinal())
        for year in range(first, min(first + self._days.reach, 9999) + 1):
            for group in self._of_year(year):
                if group[-1] >= wall.toordinal():
                    numbers = self._numbers(len(group))
                    i = self._passed(group, numbers, wall, seconds=1)
                    if i < len(numbers):
                        return self._at(group, numbers[i])
        return None

    def before(self, wall: datetime) -> datetime | None:
        first = self._days.period_year(wall.toordinal())
        for year in range(first, max(first - self._days.reach, 1) - 1, -1):
            for group in reversed(self._of_year(year)):
                if group[0] <= wall.toordinal():
                    numbers = self._numbers(len(group))
                    i = self._passed(group, numbers, wall, seconds=wall.microsecond > 0)
                    if i:
                        return self._at(group, numbers[i - 1])
        return None

    def count(self, first: datetime, end: datetime) -> int:
        years = [self._days.period_year(wall.toordinal()) for wall in (first, end)]
        total = sum(self._count(self._of_year(year)) for year in range(*years))
        return total - self._count_before(years[0], first) + self._count_before(years[1], end)

    def _count(self, groups: list[Group]) -> int:
        return sum(len(self._numbers(len(group))) for group in groups)

    def _count_before(self, year: int, wall: datetime) -> int:
        """Return how many times of the periods that begin in a year come before the wall time."""
        total = 0
        for group in self._of_year(year):
            if group[0] > wall.toordinal():
                break
            total += self._passed(group, self._numbers(len(group)), wall, seconds=wall.microsecond > 0)
        return total

    def _passed(self, group: Group, numbers: tuple[int, ...], wall: datetime, seconds: int) -> int:
        """Return how many of a period's picked times come before the wall time plus some seconds."""
        i = bisect_left(group, wall.toordinal())
        number = i * self._times.count
        if i < len(group) and group[i] == wall.toordinal():
            number += self._times.number(wall.hour, wall.minute, wall.second + seconds)
        return bisect_left(numbers, number)

    def _numbers(self, length: int) -> tuple[int, ...]:
        """Return the picked times of a period with `length` days, as indexes into all of its times."""
        found = self._by_length.get(length)
        if found is None:
            size = length * self._times.count
            picked = {position - 1 if position > 0 else size + position for position in self._positions}
            self._by_length[length] = found = tuple(sorted(n for n in picked if 0 <= n < size))
        return found

    def _at(self, group: Group, number: int) -> datetime:
        i, time_number = divmod(number, self._times.count)
        return datetime.combine(date.fromordinal(group[i]), self._times.at(time_number))

    def _of_year(self, year: int) -> list[Group]:
        """Return the days of each period that begins in a year; the last week may end in the next year."""
        found = self._by_year.get(year)
        if found is None:
            if len(self._by_year) >= 8:
                self._by_year.clear()
            later = self._days.of_year(year + 1)[:7] if year < 9999 else ()
            groups = (
                tuple(days) for _, days in groupby((*self._days.of_year(year), *later), self._days.period)
            )
            found = [group for group in groups if self._days.period_year(group[0]) == year]
            self._by_year[year] = found
        return found
