"""Convert wall times to instants, using only the time zone's own data.

A wall time is converted to UTC twice, with fold 0 and fold 1, and converted back. If the result is equal, the
clock really showed this time. If neither result is equal, the time lies in a gap.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


class DstRules(NamedTuple):
    """How wall times are handled when clocks change: in a gap, and in a repeated hour."""

    gap: str = "shift"
    repeat: str = "first"


REAL_TIME = DstRules(gap="skip", repeat="both")
"""Every instant at which the clock shows the wall time."""


def shown_at(wall: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return the instants at which the clock shows this time: none, one or two."""
    found = []
    for fold in (0, 1):
        instant = wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None, fold=0) == wall and instant not in found:
            found.append(instant)
    return sorted(found)


def instants_of(wall: datetime, zone: ZoneInfo, changes: DstRules) -> list[datetime]:
    """Return the instants of a wall time, according to the DST rules."""
    shown = shown_at(wall, zone)
    if not shown:
        return [] if changes.gap == "skip" else [_end_of_gap(wall, zone)]
    if len(shown) == 1 or changes.repeat == "both":
        return shown
    return shown[:1] if changes.repeat == "first" else shown[1:]


def _end_of_gap(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant at which the clock was set forward over this time."""
    before, after = sorted(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    offset = before.astimezone(zone).utcoffset()
    while after - before > SECOND:
        middle = before + (after - before) // SECOND // 2 * SECOND
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    # Clocks change at whole seconds, but the search may begin within a second.
    return after.replace(microsecond=0)


def on_day(
    day: date,
    times: Sequence[timedelta],
    zone: ZoneInfo,
    changes: DstRules,
    first: datetime,
    last: datetime,
) -> list[datetime]:
    """Return the instants of these times of a day, from first to last, in order, each once."""
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a wall time
    offsets = {
        (midnight + shift).replace(tzinfo=zone, fold=fold).utcoffset()
        for shift in (timedelta(0), DAY / 4, DAY / 2, DAY * 3 / 4, DAY)
        for fold in (0, 1)
    }
    if len(offsets) == 1:
        # No clock change on this day: one subtraction for all times.
        begin = midnight.replace(tzinfo=UTC) - (offsets.pop() or timedelta(0))
        low, high = bisect_left(times, first - begin), bisect_right(times, last - begin)
        return [begin + time for time in times[low:high]]
    found = {instant for time in times for instant in instants_of(midnight + time, zone, changes)}
    return sorted(instant for instant in found if first <= instant <= last)
