"""The times of an interval: the anchor, and multiples of the interval after it.

Seconds, minutes and hours are elapsed time. Days, weeks and months are calendar steps on the wall clock of
the anchor. Each is counted from the anchor, so a month that is too short does not shift the next one.
"""

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from foliot.model.policy import Dst
from foliot.timing.wall import TICK, WallTimes, ZonedRecurrence
from foliot.timing.zone import HIGHEST, naive_utc


class Elapsed:
    """The anchor plus k × a fixed length of time."""

    __slots__ = ("_anchor", "_step")

    def __init__(self, anchor: datetime, step: timedelta) -> None:
        self._anchor = naive_utc(anchor)
        self._step = step

    def after(self, instant: datetime) -> datetime | None:
        moment = naive_utc(instant)
        anchor = self._anchor
        if moment < anchor:
            return anchor.replace(tzinfo=UTC)
        try:
            found = anchor + ((moment - anchor) // self._step + 1) * self._step
        except OverflowError:
            return None
        return found.replace(tzinfo=UTC) if found < HIGHEST else None

    def before(self, instant: datetime) -> datetime | None:
        moment = min(naive_utc(instant), HIGHEST)
        anchor = self._anchor
        if moment <= anchor:
            return None
        return (anchor + (moment - TICK - anchor) // self._step * self._step).replace(tzinfo=UTC)

    def count(self, first: datetime, last: datetime) -> int:
        low = max(naive_utc(first), self._anchor)
        high = min(naive_utc(last), HIGHEST - TICK)
        if high < low:
            return 0
        # Steps up to `high` minus steps before `low`; a negative quotient rounds down to −1.
        return (high - self._anchor) // self._step - (low - TICK - self._anchor) // self._step


class CalendarInterval:
    """The anchor, and its wall-clock time every n days or months after it."""

    __slots__ = ("_anchor", "_rest")

    def __init__(self, anchor: datetime, walls: WallTimes, tz: ZoneInfo, dst: Dst) -> None:
        # The anchor is an instant and needs no policy; in a repeated hour its wall-clock time means two.
        self._anchor = anchor.astimezone(UTC)
        self._rest = ZonedRecurrence(walls, tz, dst)

    def after(self, instant: datetime) -> datetime | None:
        return self._anchor if instant < self._anchor else self._rest.after(instant)

    def before(self, instant: datetime) -> datetime | None:
        found = self._rest.before(instant)
        if found is None and self._anchor < instant:
            return self._anchor
        return found

    def count(self, first: datetime, last: datetime) -> int:
        return (first <= self._anchor <= last) + self._rest.count(first, last)


class DayWalk:
    """WallTimes: a wall-clock time plus k × n days, k = 1, 2, …"""

    __slots__ = ("_start", "_step")

    def __init__(self, start: datetime, days: int) -> None:
        self._start = start
        self._step = timedelta(days=days)

    def after(self, wall: datetime) -> datetime | None:
        return self._at(max(1, (wall - self._start) // self._step + 1))

    def before(self, wall: datetime) -> datetime | None:
        steps = (wall - TICK - self._start) // self._step
        return self._at(steps) if steps >= 1 else None

    def count(self, first: datetime, end: datetime) -> int:
        steps = (wall - TICK - self._start for wall in (end, first))
        last, passed = (max(0, step // self._step) for step in steps)
        return last - passed

    def _at(self, steps: int) -> datetime | None:
        try:
            return self._start + steps * self._step
        except OverflowError:
            return None


class MonthWalk:
    """WallTimes: a wall-clock time plus k × n months, k = 1, 2, …; the last day if a month is too short."""

    __slots__ = ("_start", "_step")

    def __init__(self, start: datetime, months: int) -> None:
        self._start = start
        self._step = months

    def after(self, wall: datetime) -> datetime | None:
        return self._at(max(1, self._steps_until(wall) + 1))

    def before(self, wall: datetime) -> datetime | None:
        steps = self._steps_until(wall - TICK)
        return self._at(steps) if steps >= 1 else None

    def count(self, first: datetime, end: datetime) -> int:
        last, passed = (max(0, self._steps_until(wall - TICK)) for wall in (end, first))
        return last - passed

    def _steps_until(self, wall: datetime) -> int:
        """Return the number of the last step at or before the wall time; 0 or less: none."""
        start = self._start
        steps = ((wall.year - start.year) * 12 + wall.month - start.month) // self._step
        found = self._at(steps) if steps > 0 else None
        return steps - 1 if found is not None and found > wall else steps

    def _at(self, steps: int) -> datetime | None:
        start = self._start
        year, month0 = divmod(start.year * 12 + start.month - 1 + steps * self._step, 12)
        if year > 9999:
            return None
        day = min(start.day, monthrange(year, month0 + 1)[1])
        return start.replace(year=year, month=month0 + 1, day=day)
