"""Times of the form "on these days, at these times of day", the common shape of cron and most rules."""

from bisect import bisect_left
from datetime import date, datetime, time
from typing import Protocol


class Days(Protocol):
    """A set of calendar days. Methods also accept a datetime, for its day."""

    def has(self, day: date) -> bool: ...

    def after(self, day: date) -> date | None:
        """Return the first day after this one, or None."""
        ...

    def before(self, day: date) -> date | None:
        """Return the last day before this one, or None."""
        ...

    def count(self, first: date, end: date) -> int:
        """Return how many days lie in [first, end)."""
        ...


class DayTimes:
    """Every combination of some hours, minutes and seconds, in order and numbered from 0."""

    __slots__ = ("_per_hour", "_per_minute", "count", "hours", "minutes", "seconds")

    def __init__(self, hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> None:
        self.hours = hours
        self.minutes = minutes
        self.seconds = seconds
        self._per_minute = len(seconds)
        self._per_hour = len(minutes) * len(seconds)
        self.count = len(hours) * self._per_hour

    def number(self, hour: int, minute: int, second: int) -> int:
        """Return how many times of day come before this one; `second` may be 60."""
        hours, minutes = self.hours, self.minutes
        i = bisect_left(hours, hour)
        number = i * self._per_hour
        if i == len(hours) or hours[i] != hour:
            return number
        j = bisect_left(minutes, minute)
        number += j * self._per_minute
        if j == len(minutes) or minutes[j] != minute:
            return number
        return number + bisect_left(self.seconds, second)

    def at(self, number: int) -> time:
        """Return the time of day with this number, counted from 0."""
        i, rest = divmod(number, self._per_hour)
        j, k = divmod(rest, self._per_minute)
        return time(self.hours[i], self.minutes[j], self.seconds[k])


class DayWalls:
    """WallTimes on some days, at some times of day."""

    __slots__ = ("_days", "_times")

    def __init__(self, days: Days, times: DayTimes) -> None:
        self._days = days
        self._times = times

    def after(self, wall: datetime) -> datetime | None:
        times = self._times
        if self._days.has(wall):
            number = times.number(wall.hour, wall.minute, wall.second + 1)
            if number < times.count:
                return datetime.combine(wall, times.at(number))
        day = self._days.after(wall)
        return None if day is None else datetime.combine(day, times.at(0))

    def before(self, wall: datetime) -> datetime | None:
        if self._days.has(wall):
            number = self._before_in_day(wall)
            if number:
                return datetime.combine(wall, self._times.at(number - 1))
        day = self._days.before(wall)
        return None if day is None else datetime.combine(day, self._times.at(self._times.count - 1))

    def count(self, first: datetime, end: datetime) -> int:
        total = self._days.count(first, end) * self._times.count
        if self._days.has(first):
            total -= self._before_in_day(first)
        if self._days.has(end):
            total += self._before_in_day(end)
        return total

    def _before_in_day(self, wall: datetime) -> int:
        """Return how many times of day come before this moment."""
        return self._times.number(wall.hour, wall.minute, wall.second + (wall.microsecond > 0))
