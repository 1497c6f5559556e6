"""Fire times by definition, the slow way: walk every minute of real time and look at the clock on the wall.

Shares nothing with the product: no import of it, no arithmetic on offsets, no search for transitions. What a
trigger means is decided minute by minute (or second by second) from the texts users write.
"""

import calendar
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)

CHANGES = (
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("America/Santiago", datetime(2026, 4, 5, 3, tzinfo=UTC)),  # 24:00 becomes 23:00: crosses a date
    ("America/Santiago", datetime(2026, 9, 6, 4, tzinfo=UTC)),  # 00:00 becomes 01:00: no midnight
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),  # half an hour
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),  # a whole day left out
    ("UTC", datetime(2026, 1, 1, tzinfo=UTC)),
)


@dataclass(frozen=True)
class Walk:
    """Real time around a clock change, and what the wall clock showed at each step."""

    steps: tuple[tuple[datetime, datetime], ...]
    """(instant, wall time)"""
    shown: dict[datetime, list[datetime]]
    """Wall time to the instants at which it was shown."""
    step: timedelta


@lru_cache(maxsize=64)
def walk(zone: str, around: datetime, reach: timedelta = timedelta(days=3), step: timedelta = MINUTE) -> Walk:
    tz = ZoneInfo(zone)
    steps = []
    shown: dict[datetime, list[datetime]] = {}
    instant = around - reach
    while instant <= around + reach:
        wall = instant.astimezone(tz).replace(tzinfo=None, fold=0)
        steps.append((instant, wall))
        shown.setdefault(wall, []).append(instant)
        instant += step
    return Walk(tuple(steps), shown, step)


def walls_of(walked: Walk) -> Iterable[datetime]:
    """Every wall time between the first and the last of the walk, whether a clock showed it or not."""
    wall, last = walked.steps[0][1], walked.steps[-1][1]
    while wall <= last:
        yield wall
        wall += walked.step


def in_real_time(matches: Callable[[datetime], bool], walked: Walk) -> list[datetime]:
    """Every instant at which the clock shows a time that matches."""
    return [instant for instant, wall in walked.steps if matches(wall)]


def at_fixed_times(
    matches: Callable[[datetime], bool], walked: Walk, gap: str, repeat: str
) -> list[datetime]:
    """The instants of every wall time that matches, as the policies for gap and repeat say."""
    found: set[datetime] = set()
    for wall in walls_of(walked):
        if matches(wall):
            found.update(instants(wall, walked, gap, repeat))
    return sorted(found)


def instants(wall: datetime, walked: Walk, gap: str, repeat: str) -> list[datetime]:
    shown = walked.shown.get(wall, [])
    if not shown:
        if gap == "skip":
            return []
        return [next(instant for instant, later in walked.steps if later > wall)]
    if len(shown) == 1 or repeat == "both":
        return shown
    return shown[:1] if repeat == "first" else shown[1:]


# --- cron ------------------------------------------------------------------------------------------


def numbers(text: str, low: int, high: int) -> set[int]:
    """The numbers that a field of numbers, ranges, steps and lists names."""
    found: set[int] = set()
    for term in text.split(","):
        body, _, step = term.partition("/")
        if body in ("*", "?"):
            first, last = low, high
        elif "-" in body:
            first, last = (int(end) for end in body.split("-"))
        else:
            first = int(body)
            last = high if step else first
        found |= {number for number in range(first, last + 1) if (number - first) % int(step or 1) == 0}
    return found


def cron_matches(expression: str) -> Callable[[datetime], bool]:
    parts = expression.split()
    second, minute, hour, day, month, weekday = parts if len(parts) == 6 else ["0", *parts]
    seconds, minutes, hours = numbers(second, 0, 59), numbers(minute, 0, 59), numbers(hour, 0, 23)
    months = numbers(month, 1, 12)
    both = day[0] in "*?" or weekday[0] in "*?"

    @lru_cache(maxsize=4096)
    def is_day(at: date) -> bool:
        by_day = any(_is_month_day(term, at) for term in day.split(","))
        by_weekday = any(_is_weekday(term, at) for term in weekday.split(","))
        return at.month in months and ((by_day and by_weekday) if both else (by_day or by_weekday))

    def matches(wall: datetime) -> bool:
        return (
            wall.second in seconds and wall.minute in minutes and wall.hour in hours and is_day(wall.date())
        )

    return matches


def follows_real_time(expression: str) -> bool:
    parts = expression.split()
    return parts[-5].startswith("*") or parts[-4].startswith("*")


def _last(at: date) -> int:
    return calendar.monthrange(at.year, at.month)[1]


def _is_month_day(term: str, at: date) -> bool:
    if term == "L":
        return at.day == _last(at)
    if term == "LW":
        return at.day == max(day for day in range(1, _last(at) + 1) if at.replace(day=day).weekday() < 5)
    if term.endswith("W"):
        wanted = int(term[:-1])
        working = [day for day in range(1, _last(at) + 1) if at.replace(day=day).weekday() < 5]
        # A Saturday goes back a day and a Sunday on a day, unless that would leave the month.
        return wanted <= _last(at) and at.day == min(working, key=lambda day: abs(day - wanted))
    return at.day in numbers(term, 1, 31)


def _is_weekday(term: str, at: date) -> bool:
    sunday_based = at.isoweekday() % 7
    if term.endswith("L"):
        return int(term[:-1]) % 7 == sunday_based and (at + timedelta(days=7)).month != at.month
    if "#" in term:
        weekday, nth = (int(number) for number in term.split("#"))
        same = [day for day in range(1, _last(at) + 1) if at.replace(day=day).isoweekday() == at.isoweekday()]
        return weekday % 7 == sunday_based and len(same) >= nth and same[nth - 1] == at.day
    return bool({sunday_based, sunday_based or 7} & numbers(term, 0, 7))


# --- intervals -------------------------------------------------------------------------------------


def month_later(wall: datetime, months: int) -> datetime:
    """One month after another, keeping the day in mind where a month has no such day."""
    year, month = wall.year, wall.month
    for _ in range(months):
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return wall.replace(year=year, month=month, day=min(wall.day, calendar.monthrange(year, month)[1]))


# --- rules -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlainRule:
    """A rule without numbered weekdays, week numbers or positions: each moment can be judged by itself."""

    freq: str
    interval: int = 1
    months: frozenset[int] = frozenset()
    month_days: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    minutes: frozenset[int] = frozenset()

    def text(self) -> str:
        names = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
        parts = [f"FREQ={self.freq}", f"INTERVAL={self.interval}"]
        for name, values in (
            ("BYMONTH", self.months),
            ("BYMONTHDAY", self.month_days),
            ("BYHOUR", self.hours),
            ("BYMINUTE", self.minutes),
        ):
            if values:
                parts.append(f"{name}={','.join(str(value) for value in sorted(values))}")
        if self.weekdays:
            parts.append("BYDAY=" + ",".join(names[value] for value in sorted(self.weekdays)))
        return ";".join(parts)

    def follows_real_time(self) -> bool:
        return (self.freq in ("HOURLY", "MINUTELY") and not self.hours) or (
            self.freq == "MINUTELY" and not self.minutes
        )

    def matches(self, start: datetime) -> Callable[[datetime], bool]:
        @lru_cache(maxsize=8192)
        def is_day(at: date) -> bool:
            return self._is_day(start.date(), at)

        def judge(wall: datetime) -> bool:
            return (
                wall >= start
                and wall.second == start.second
                and self._is_time(start, wall)
                and is_day(wall.date())
            )

        return judge

    def _is_time(self, start: datetime, wall: datetime) -> bool:
        hours, minutes = self.hours, self.minutes
        if self.freq == "MINUTELY":
            passed = (wall.replace(second=0) - start.replace(second=0)) // MINUTE
        elif self.freq == "HOURLY":
            passed = (wall.replace(minute=0, second=0) - start.replace(minute=0, second=0)) // (60 * MINUTE)
            minutes = minutes or frozenset({start.minute})
        else:
            passed = 0
            hours, minutes = hours or frozenset({start.hour}), minutes or frozenset({start.minute})
        return (
            passed % self.interval == 0
            and (not hours or wall.hour in hours)
            and (not minutes or wall.minute in minutes)
        )

    def _is_day(self, start: date, at: date) -> bool:
        month_days, weekdays, months = self.month_days, self.weekdays, self.months
        if not month_days and not weekdays:
            if self.freq in ("MONTHLY", "YEARLY"):
                month_days = frozenset({start.day})
            if self.freq == "YEARLY":
                months = months or frozenset({start.month})
            if self.freq == "WEEKLY":
                weekdays = frozenset({start.weekday()})
        if months and at.month not in months:
            return False
        if month_days and not {at.day, at.day - _last(at) - 1} & month_days:
            return False
        if weekdays and at.weekday() not in weekdays:
            return False
        monday = [day - timedelta(days=day.weekday()) for day in (start, at)]
        passed = {
            "YEARLY": at.year - start.year,
            "MONTHLY": (at.year - start.year) * 12 + at.month - start.month,
            "WEEKLY": (monday[1] - monday[0]).days // 7,
            "DAILY": (at - start).days,
        }
        return passed.get(self.freq, 0) % self.interval == 0
