"""The times of a cron expression.

cronsim parses the fields, but is not used to step through time: it loses times at Lord Howe's half-hour
changes, has no DST policies, and iterates where a bisection is enough.
"""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from datetime import date
from functools import lru_cache
from zoneinfo import ZoneInfo

from foliot.model.errors import InvalidError
from foliot.model.policy import Dst
from foliot.timing.cron_fields import POINTER, CronFields, parse
from foliot.timing.day import DayTimes, DayWalls
from foliot.timing.wall import ZonedRecurrence

__all__ = ["CronDays", "cron_times", "parse"]


def cron_times(fields: CronFields, tz: ZoneInfo, dst: Dst) -> ZonedRecurrence:
    """Return the times of the fields in a zone under a DST policy. Raises InvalidError if no day matches."""
    days = _days_of(fields)
    if days is None:
        raise InvalidError.at(
            POINTER,
            "never_fires",
            "this expression never fires: no month of it has such a day",
            "look at day-of-month and month; 31 4 and 30 2 do not exist",
        )
    times = DayTimes(fields.hours, fields.minutes, fields.seconds)
    return ZonedRecurrence(DayWalls(days, times), tz, dst)


_REMEMBERED = 4096
_known_days: dict[object, "CronDays | None"] = {}


def _days_of(fields: CronFields) -> "CronDays | None":
    """Return the days of the day fields, shared by equal expressions; None: there are none."""
    key = (
        fields.months,
        fields.days,
        fields.is_last_day,
        fields.is_last_weekday,
        fields.nearest_weekdays,
        fields.weekdays,
        fields.nth_weekdays,
        fields.last_weekdays,
        fields.days_must_agree,
    )
    if key not in _known_days:
        if len(_known_days) >= _REMEMBERED:
            _known_days.clear()
        days = CronDays(fields)
        _known_days[key] = None if days.is_empty() else days
    return _known_days[key]


@lru_cache(maxsize=2048)
def _shape(year: int, month: int) -> tuple[int, int]:
    """Return the weekday on which a month begins (0 = Monday), and its number of days."""
    return monthrange(year, month)


class CronDays:
    """The days on which a cron expression fires.

    The matching days of a month depend only on its first weekday and its length. So there are at most 28
    different months, each computed once.
    """

    __slots__ = ("_by_shape", "_fields", "_months")

    def __init__(self, fields: CronFields) -> None:
        self._fields = fields
        self._months = fields.months
        self._by_shape: dict[tuple[int, int], tuple[int, ...]] = {}

    def has(self, day: date) -> bool:
        return day.month in self._months and day.day in self._of_month(day.year, day.month)

    def after(self, day: date) -> date | None:
        year, month, past = day.year, day.month, day.day
        while year <= 9999:
            if month in self._months:
                days = self._of_month(year, month)
                i = bisect_right(days, past)
                if i < len(days):
                    return date(year, month, days[i])
            past = 0
            month += 1
            if month > 12:
                year, month = year + 1, 1
        return None

    def before(self, day: date) -> date | None:
        year, month, limit = day.year, day.month, day.day
        while year >= 1:
            if month in self._months:
                days = self._of_month(year, month)
                i = bisect_left(days, limit)
                if i:
                    return date(year, month, days[i - 1])
            limit = 32
            month -= 1
            if month < 1:
                year, month = year - 1, 12
        return None

    def count(self, first: date, end: date) -> int:
        total = -self._before_in_month(first)
        year, month = first.year, first.month
        while (year, month) != (end.year, end.month):
            if month in self._months:
                total += len(self._of_month(year, month))
            month += 1
            if month > 12:
                year, month = year + 1, 1
        return total + self._before_in_month(end)

    def is_empty(self) -> bool:
        """Whether no day matches at all. Sooner or later every month begins on every weekday."""
        lengths = {2: (28, 29), 4: (30,), 6: (30,), 9: (30,), 11: (30,)}
        return not any(
            self._of_shape((weekday, length))
            for length in {length for month in self._months for length in lengths.get(month, (31,))}
            for weekday in range(7)
        )

    def _before_in_month(self, day: date) -> int:
        if day.month not in self._months:
            return 0
        return bisect_left(self._of_month(day.year, day.month), day.day)

    def _of_month(self, year: int, month: int) -> tuple[int, ...]:
        shape = _shape(year, month)
        days = self._by_shape.get(shape)
        return self._of_shape(shape) if days is None else days

    def _of_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        first_weekday, length = shape
        by_date = self._by_date(first_weekday, length)
        by_weekday = self._by_weekday(first_weekday, length)
        days = by_date & by_weekday if self._fields.days_must_agree else by_date | by_weekday
        self._by_shape[shape] = found = tuple(sorted(days))
        return found

    def _by_date(self, first_weekday: int, length: int) -> set[int]:
        found = {day for day in self._fields.days if day <= length}
        if self._fields.is_last_day:
            found.add(length)
        if self._fields.is_last_weekday:
            found.add(_nearest_weekday(length, first_weekday, length))
        for day in self._fields.nearest_weekdays:
            if day <= length:
                found.add(_nearest_weekday(day, first_weekday, length))
        return found

    def _by_weekday(self, first_weekday: int, length: int) -> set[int]:
        fields = self._fields
        found = set()
        for day in range(1, length + 1):
            weekday = (first_weekday + day) % 7  # 0 = Sunday; first_weekday has 0 = Monday, days begin at 1
            if (
                weekday in fields.weekdays
                or (weekday, (day + 6) // 7) in fields.nth_weekdays
                or (weekday in fields.last_weekdays and day + 7 > length)
            ):
                found.add(day)
        return found


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    """Return the Monday to Friday nearest to a day, within its month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    if weekday == 6:
        return day + 1 if day < length else day - 2
    return day
