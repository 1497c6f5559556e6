"""Converts wall-clock times to instants, also where clocks are changed.

A WallTimes is a grid of naive times without a zone. OnWall puts it into one. It divides UTC into stretches
with a constant offset, and assigns every wall time to the stretch that owns it:

- times in a gap belong to the stretch after it, at its first instant (`shift`), or to none (`skip`);
- times in a repeated hour belong to the stretch before (`first`), after (`second`) or to both.

So within a stretch everything is plain arithmetic, and instants are strictly increasing. Following real time
through every change is just one of these policies: REAL_TIME.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo

from foliot.model.policy import Dst, DstGap, DstRepeat
from foliot.timing.zone import HIGHEST, LOWEST, OffsetSpan, naive_utc, spans_at

REAL_TIME = Dst(gap=DstGap.SKIP, repeat=DstRepeat.BOTH)
"""Every real instant whose wall clock matches: both hours of a repeat, and nothing in a gap."""

TICK = timedelta(microseconds=1)
# A jump to a distant wall time lands this much before it, which is more than any offset.
_APPROACH = timedelta(days=2)
# If all times of a grid fall into gaps, the search ends after this many stretches: about a century.
_PATIENCE = 300


class WallTimes(Protocol):
    """A strictly increasing grid of naive wall-clock times."""

    def after(self, wall: datetime) -> datetime | None:
        """Return the first time strictly after, or None."""
        ...

    def before(self, wall: datetime) -> datetime | None:
        """Return the last time strictly before, or None."""
        ...

    def count(self, first: datetime, end: datetime) -> int:
        """Return how many times lie in [first, end)."""
        ...


@dataclass(frozen=True, slots=True)
class WallTimeRange:
    """A stretch of UTC [start, end) with one offset, and the wall times [floor, ceiling) that it owns."""

    start: datetime
    end: datetime
    offset: timedelta
    floor: datetime
    below: datetime
    """One tick below the floor."""
    ceiling: datetime

    @classmethod
    def of(cls, span: OffsetSpan, dst: Dst) -> "WallTimeRange":
        floor, ceiling = span.start + span.offset, span.end + span.offset
        opens_gap = span.offset_before < span.offset
        opens_repeat = span.offset_before > span.offset
        if (opens_gap and dst.gap is DstGap.SHIFT) or (opens_repeat and dst.repeat is DstRepeat.FIRST):
            floor = span.start + span.offset_before
        if span.offset_after < span.offset and dst.repeat is DstRepeat.SECOND:
            ceiling = span.end + span.offset_after
        return cls(span.start, span.end, span.offset, floor, floor - TICK, ceiling)

    def instant(self, wall: datetime) -> datetime:
        """Return the instant of a wall time that this stretch owns."""
        moment = wall - self.offset
        return (moment if moment > self.start else self.start).replace(tzinfo=UTC)


class ZoneStretches:
    """The stretches of one zone under one policy. Caches the last one found."""

    __slots__ = ("_dst", "_last", "_tz", "_years")

    def __init__(self, tz: ZoneInfo, dst: Dst) -> None:
        self._tz = tz
        self._dst = dst
        self._years: dict[datetime, tuple[WallTimeRange, ...]] = {}
        self._last = self._find(datetime(2000, 1, 1))  # noqa: DTZ001

    def at(self, instant: datetime) -> WallTimeRange:
        """Return the stretch that contains an instant (naive UTC, within LOWEST and HIGHEST)."""
        last = self._last
        if last.start <= instant < last.end:
            return last
        self._last = found = self._find(instant)
        return found

    def _find(self, instant: datetime) -> WallTimeRange:
        spans = spans_at(self._tz, instant)
        key = spans[0].start
        stretches = self._years.get(key)
        if stretches is None:
            stretches = tuple(WallTimeRange.of(span, self._dst) for span in spans)
            if len(self._years) > 200:
                self._years.clear()
            self._years[key] = stretches
        for stretch in stretches:
            if instant < stretch.end:
                return stretch
        return stretches[-1]


@lru_cache(maxsize=4096)
def stretches(tz: ZoneInfo, gap: DstGap, repeat: DstRepeat) -> ZoneStretches:
    """Return the stretches of a zone, shared by all users of the same policy."""
    return ZoneStretches(tz, Dst(gap=gap, repeat=repeat))


class ZonedRecurrence:
    """A Recurrence: a grid of wall-clock times in a zone."""

    __slots__ = ("_stretches", "_walls")

    def __init__(self, walls: WallTimes, tz: ZoneInfo, dst: Dst) -> None:
        self._walls = walls
        self._stretches = stretches(tz, dst.gap, dst.repeat)

    def after(self, instant: datetime) -> datetime | None:
        moment = naive_utc(instant)
        if not LOWEST <= moment < HIGHEST:
            if moment >= HIGHEST:
                return None
            moment = LOWEST
        stretch = self._stretches.at(moment)
        searched = moment + stretch.offset
        if searched < stretch.below:
            searched = stretch.below
        wall = self._walls.after(searched)
        if wall is not None and wall < stretch.ceiling:
            return stretch.instant(wall)
        return self._in_later(stretch, searched, wall)

    def _in_later(self, stretch: WallTimeRange, searched: datetime, wall: datetime | None) -> datetime | None:
        """Return the first instant in a later stretch; `wall` is the first wall time after `searched`."""
        for _ in range(_PATIENCE):
            if stretch.end >= HIGHEST:
                return None
            stretch = self._stretches.at(stretch.end)
            # `wall` stays the next one, unless the clock was set back to before `searched`.
            if stretch.below < searched or (wall is not None and wall <= stretch.below):
                searched = stretch.below
                wall = self._walls.after(searched)
            if wall is None:
                return None
            if wall < stretch.ceiling:
                return stretch.instant(wall)
            near = wall - _APPROACH
            if near >= stretch.end:
                if near >= HIGHEST:
                    return None
                stretch = self._stretches.at(self._stretches.at(near).start - TICK)
        return None

    def before(self, instant: datetime) -> datetime | None:
        moment = min(naive_utc(instant), HIGHEST)
        if moment <= LOWEST:
            return None
        stretch = self._stretches.at(moment - TICK)
        limit = moment + stretch.offset
        if limit > stretch.ceiling:
            limit = stretch.ceiling
        wall = self._walls.before(limit)
        if wall is not None and wall >= stretch.floor:
            return stretch.instant(wall)
        return self._in_earlier(stretch, limit, wall)

    def _in_earlier(self, stretch: WallTimeRange, limit: datetime, wall: datetime | None) -> datetime | None:
        """Return the last instant in an earlier stretch; `wall` is the last wall time before `limit`."""
        for _ in range(_PATIENCE):
            if stretch.start <= LOWEST:
                return None
            stretch = self._stretches.at(stretch.start - TICK)
            # `wall` stays the last one, unless the earlier stretch owns times beyond `limit`.
            if stretch.ceiling > limit or (wall is not None and wall >= stretch.ceiling):
                limit = stretch.ceiling
                wall = self._walls.before(limit)
            if wall is None:
                return None
            if wall >= stretch.floor:
                return stretch.instant(wall)
            near = wall + _APPROACH
            if near < stretch.start:
                if near <= LOWEST:
                    return None
                stretch = self._stretches.at(self._stretches.at(near).end)
        return None

    def count(self, first: datetime, last: datetime) -> int:
        moment = max(naive_utc(first), LOWEST)
        end = min(naive_utc(last), HIGHEST - TICK) + TICK
        total = 0
        while moment < end:
            stretch = self._stretches.at(moment)
            until = min(end, stretch.end)
            total += self._count_in(stretch, moment, until)
            moment = until
        return total

    def _count_in(self, stretch: WallTimeRange, start: datetime, end: datetime) -> int:
        """Return how many instants lie in [start, end), both within the stretch."""
        opening = stretch.start + stretch.offset
        low = max(start + stretch.offset, stretch.floor)
        high = min(end + stretch.offset, stretch.ceiling)
        total = self._walls.count(low, high) if low < high else 0
        if start > stretch.start or stretch.floor >= opening:
            return total
        # All times of the preceding gap happen at the first instant, together with that instant's own time.
        if self._walls.count(stretch.floor, opening) and not self._walls.count(opening, opening + TICK):
            total += 1
        return total
