"""Predicts the times of a stored schedule, one by one or counted per bin.

A forecast assumes that the scheduler is on time and that nobody changes anything. It ignores jitter, which
delays a run but does not change its fire time, and overlap, which depends on how long runs take.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from foliot.model.errors import InvalidError
from foliot.model.execution import SkipReason
from foliot.model.ids import hash_key
from foliot.model.instant import EPOCH, INSTANT
from foliot.model.policy import Window
from foliot.model.recurrence import Recurrence
from foliot.model.schedule import Schedule
from foliot.planning.change import due_of
from foliot.planning.definition import CompiledSchedule, compile_definition, with_calendars
from foliot.planning.fire import Due
from foliot.timing.calendar import NO_CALENDARS, Calendar, CalendarBook, is_excluded
from foliot.timing.window import is_inside
from foliot.timing.zone import HIGHEST, naive_utc, spans_at, zone

MAX_TIMES = 1_000
MAX_EXAMINED = 5_000
"""Limit of times that are checked one by one, where there is no faster way to count those that fire."""

MAX_BINS = 2_000
MAX_RANGE = timedelta(days=31)
MAX_WORK = 50_000
"""Limit of steps for counting into bins; each takes a few microseconds."""

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_UTC = zone("UTC")


# --- when a schedule may fire --------------------------------------------------------------------------


class TimeRange(NamedTuple):
    """A range of time, from `start` up to but not including `end`."""

    start: datetime
    end: datetime


class Allowance(NamedTuple):
    """When window and calendars allow a schedule to fire. Schedules with equal allowances share results."""

    window: Window | None = None
    calendars: tuple[Calendar, ...] = ()
    tz: ZoneInfo = _UTC
    """The zone for calendars without one."""

    @property
    def is_limited(self) -> bool:
        return self.window is not None or bool(self.calendars)

    def reason(self, instant: datetime) -> SkipReason | None:
        """Return why a time may not fire; None: it may."""
        if self.window is not None and not is_inside(self.window, instant):
            return SkipReason.WINDOW
        if self.calendars and is_excluded(self.calendars, instant, self.tz):
            return SkipReason.CALENDAR
        return None

    def stretch_from(self, instant: datetime, until: datetime) -> TimeRange | None:
        """Return the first range from the instant until `until` in which it may fire; None: there is none.

        Goes from one opening or closing to the next, however many times lie in between. Gives up after
        MAX_EXAMINED of them.
        """
        if not self.is_limited:
            return TimeRange(instant, until) if instant < until else None
        at, end = naive_utc(instant), naive_utc(until)
        start = None
        for _ in range(MAX_EXAMINED):
            if at >= end:
                break
            is_open, change = self._state_at(at)
            if is_open:
                start = at if start is None else start
            elif start is not None:
                break
            at = change
        if start is None:
            return None
        return TimeRange(start.replace(tzinfo=UTC), min(at, end).replace(tzinfo=UTC))

    def _state_at(self, at: datetime) -> tuple[bool, datetime]:
        """Return whether it may fire at a moment (naive UTC), and until when at least this holds."""
        opened, closed = HIGHEST, at
        for is_open, change in self._states_at(at):
            if is_open:
                opened = min(opened, change)
            else:
                closed = max(closed, change)
        return (True, opened) if closed == at else (False, closed)

    def _states_at(self, at: datetime) -> Iterator[tuple[bool, datetime]]:
        if self.window is not None:
            local, offset, end = _wall_at(zone(self.window.timezone), at)
            is_open, hours = _hours_of(self.window)[local.weekday() * 24 + local.hour]
            began = local.replace(minute=0, second=0, microsecond=0)
            # In year 9999 only one hour: a step of up to a week could leave the year.
            ended = began + (hours if local.year < 9999 else 1) * _HOUR - offset
            yield is_open, min(ended, end)
        for calendar in self.calendars:
            local, offset, end = _wall_at(calendar.zone or self.tz, at)
            midnight = local.replace(hour=0, minute=0, second=0, microsecond=0) + _DAY - offset
            yield not calendar.excludes(local.date()), min(midnight, end)


def _wall_at(tz: ZoneInfo, at: datetime) -> tuple[datetime, timedelta, datetime]:
    """Return the local wall-clock time, its UTC offset, and until when (naive UTC) the offset holds."""
    span = next(span for span in spans_at(tz, at) if at < span.end)
    return at + span.offset, span.offset, span.end


@lru_cache(maxsize=1024)
def _hours_of(window: Window) -> tuple[tuple[bool, int], ...]:
    """Return for every hour of the week whether it is open, and for how many hours this holds."""
    is_open = [
        day in window.days_of_week and hour in window.hours_of_day
        for day in range(1, 8)
        for hour in range(24)
    ]
    week = len(is_open)
    return tuple(
        (
            is_open[hour],
            next((more for more in range(1, week) if is_open[(hour + more) % week] != is_open[hour]), week),
        )
        for hour in range(week)
    )


# --- one schedule --------------------------------------------------------------------------------------


class Planned(NamedTuple):
    """A future fire time."""

    fire_ts: datetime
    reason: SkipReason | None = None
    """Why it will be skipped; None: it will fire."""


@dataclass(frozen=True, slots=True)
class Forecast:
    times: tuple[Planned, ...] = ()
    is_cut: bool = False
    """Whether there are more times, or finding them would take too long."""


def forecast(
    schedule: Schedule,
    from_ts: datetime,
    to_ts: datetime,
    *,
    limit: int = MAX_TIMES,
    calendars: CalendarBook = NO_CALENDARS,
) -> Forecast:
    """Return the times in [from_ts, to_ts) that are still to be decided, up to `limit`.

    A schedule that is paused without an end, inactive, completed or in error has none. Of a `delay` only the
    next is known. A schedule that can't be planned any more is skipped at its next time and has no others.
    """
    if not _is_upcoming(schedule) or to_ts <= from_ts:
        return Forecast()
    due = due_of(schedule)
    if to_ts <= due.fire_ts:
        return Forecast()
    try:
        course = _course_of(due, from_ts, to_ts, calendars)
    except (InvalidError, ValidationError):
        is_within = from_ts <= due.fire_ts < to_ts
        return Forecast((Planned(due.fire_ts, SkipReason.ERROR),) if is_within else ())
    if course is None:
        return Forecast(is_cut=True)
    times: list[Planned] = []
    for fire_ts in course.walk():
        if len(times) == limit:
            return Forecast(tuple(times), is_cut=True)
        times.append(Planned(fire_ts, course.allowance.reason(fire_ts)))
    return Forecast(tuple(times))


def _is_upcoming(schedule: Schedule) -> bool:
    has_next = schedule.next_fire_ts is not None and schedule.next_run_ts is not None
    return has_next and schedule.spec.active and schedule.deleted_ts is None


class _Course(NamedTuple):
    """The times of a schedule in a range. Equal courses have equal times, so schedules can share them."""

    recurrence: Recurrence
    first: datetime | None
    """A single time before those of the recurrence: the next to be decided; None: not in the range."""
    after: datetime
    """Times of the recurrence count only after this instant."""
    last: datetime
    allowance: Allowance

    def walk(self) -> Iterator[datetime]:
        """Yield every time, also those that window and calendars exclude."""
        after, last = self.recurrence.after, self.last
        if self.first is not None:
            yield self.first
        at = after(self.after)
        while at is not None and at <= last:
            yield at
            at = after(at)

    def size(self) -> int:
        """Return the number of times, also those that window and calendars exclude."""
        return int(self.first is not None) + self.within(self.after + INSTANT, self.last)

    def within(self, low: datetime, high: datetime) -> int:
        """Return how many times of the recurrence lie between these, both included."""
        low, high = max(low, self.after + INSTANT), min(high, self.last)
        return self.recurrence.count(low, high) if low <= high else 0

    def stretches(self) -> Iterator[TimeRange]:
        """Yield the ranges in which the recurrence may fire, in order."""
        end = self.last + INSTANT
        stretch = self.allowance.stretch_from(self.after + INSTANT, end)
        while stretch is not None:
            yield stretch
            stretch = self.allowance.stretch_from(stretch.end, end)


def _course_of(due: Due, from_ts: datetime, to_ts: datetime, calendars: CalendarBook) -> _Course | None:
    """Return the times in [from_ts, to_ts); None: applying `max_runs` would take too long."""
    cadence = compile_definition(due.definition, due.schedule_id)
    if cadence.policies.calendars:
        cadence = with_calendars(cadence, due.host_id, calendars)
    last = to_ts - INSTANT if cadence.end_ts is None else min(to_ts - INSTANT, cadence.end_ts)
    course = _Course(
        recurrence=_times_of(cadence, due),
        first=due.fire_ts if due.fire_ts <= last else None,
        after=max(due.fire_ts, cadence.effective_ts),
        last=last,
        # Only calendars need a zone; without them schedules of all zones can share a course.
        allowance=Allowance(
            cadence.policies.window, cadence.calendars, cadence.zone if cadence.calendars else _UTC
        ),
    )
    if cadence.max_runs is not None:
        ended = _with_runs(course, cadence.max_runs - due.run_count)
        if ended is None:
            return None
        course = ended
    if due.fire_ts < from_ts:
        course = course._replace(first=None, after=max(course.after, from_ts - INSTANT))
    return course


def _times_of(cadence: CompiledSchedule, due: Due) -> Recurrence:
    """Return the recurrence, one object for all schedules with the same times: it comes from a cache."""
    return cadence.trigger.build(
        dst=cadence.policies.dst, anchor=due.definition.anchor_ts, key=hash_key(due.schedule_id)
    )


def _with_runs(course: _Course, runs: int) -> _Course | None:
    """Cut the course after `runs` times that fire; None: finding the last one would take too long."""
    if course.size() <= runs:
        return course
    if course.first is not None and course.allowance.reason(course.first) is None:
        runs -= 1
    if runs <= 0:
        # Nothing comes after the last run, not even skipped times.
        return course._replace(last=course.first or course.after)
    for examined, stretch in enumerate(course.stretches()):
        found = course.within(stretch.start, stretch.end - INSTANT)
        if found >= runs:
            return course._replace(last=_nth(course, stretch, runs))
        runs -= found
        if examined == MAX_EXAMINED:
            return None
    return course


def _nth(course: _Course, stretch: TimeRange, number: int) -> datetime:
    """Return the time with this number in a range that has it, counted from 1."""
    low, high = stretch.start, stretch.end - INSTANT
    while low < high:
        middle = low + (high - low) // 2
        if course.within(stretch.start, middle) >= number:
            high = middle
        else:
            low = middle + INSTANT
    return low


# --- many schedules ------------------------------------------------------------------------------------

_WIDTHS_S = (1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


@dataclass(frozen=True, slots=True)
class Bins:
    """A range of time in bins of equal width that begin at whole multiples of it in UTC."""

    from_ts: datetime
    width: timedelta
    count: int

    @property
    def to_ts(self) -> datetime:
        return self.from_ts + self.count * self.width

    def start_of(self, number: int) -> datetime:
        return self.from_ts + number * self.width

    def number_of(self, instant: datetime) -> int:
        return (instant - self.from_ts) // self.width

    @classmethod
    def over(cls, from_ts: datetime, to_ts: datetime, *, limit: int = 200) -> "Bins":
        """Return the finest round bins that cover the range with at most `limit` bins. Raises InvalidError.

        The first may begin before the range, the last may end after it.
        """
        if not 1 <= limit <= MAX_BINS:
            raise InvalidError.at("/bins", "out_of_range", f"must be 1 to {MAX_BINS}")
        if from_ts < EPOCH or to_ts > HIGHEST.replace(tzinfo=UTC) - MAX_RANGE:
            raise InvalidError.at("/from", "out_of_range", "lies too far from now", "times since 1970")
        if to_ts <= from_ts:
            raise InvalidError.at("/to", "out_of_range", "must lie after from")
        if to_ts - from_ts > MAX_RANGE:
            raise InvalidError.at("/to", "out_of_range", f"lies more than {MAX_RANGE.days} days after from")
        for width_s in (*_WIDTHS_S, *(days * 86400 for days in range(2, 34))):
            width = timedelta(seconds=width_s)
            first = EPOCH + (from_ts - EPOCH) // width * width
            count = -((first - to_ts) // width)
            if count <= limit:
                return cls(first, width, count)
        # A few days around a month border may need two bins of a month.
        return cls(from_ts, to_ts - from_ts, 1)


@dataclass(frozen=True, slots=True)
class PlannedLoad:
    counts: tuple[int, ...]
    """How many times fire in each bin."""
    fires: Mapping[UUID, int]
    """How many times each schedule fires."""
    left_out: int = 0
    """Number of schedules that are not included because counting them would have taken too long."""
    by_schedule: Mapping[UUID, Mapping[int, int]] = field(default_factory=dict)
    """How many times each schedule fires per bin. Schedules with equal times share one mapping."""


def count_per_bin(
    dues: Iterable[Due],
    bins: Bins,
    *,
    calendars: CalendarBook = NO_CALENDARS,
    max_work: int = MAX_WORK,
) -> PlannedLoad:
    """Count the times that fire per bin. Schedules with equal times are counted once, largest groups first.

    A schedule that can't be planned any more fires nothing. `planning.change.due_of` turns a `Schedule` into
    a Due.
    """
    courses: dict[_Course, list[UUID]] = {}
    fires: dict[UUID, int] = {}
    by_schedule: dict[UUID, Mapping[int, int]] = {}
    left_out = 0
    for due in dues:
        try:
            course = _course_of(due, bins.from_ts, bins.to_ts, calendars)
        except (InvalidError, ValidationError):
            fires[due.schedule_id] = 0
            continue
        if course is None:
            left_out += 1
        else:
            courses.setdefault(course, []).append(due.schedule_id)
    totals = [0] * bins.count
    for course, members in sorted(courses.items(), key=lambda each: -len(each[1])):
        max_work -= _work_of(course, bins)
        if max_work < 0:
            left_out += len(members)
            continue
        counts = _count(course, bins)
        for number, count in counts.items():
            totals[number] += count * len(members)
        fires |= dict.fromkeys(members, sum(counts.values()))
        by_schedule |= dict.fromkeys(members, counts)
    return PlannedLoad(tuple(totals), fires, left_out, by_schedule)


def _work_of(course: _Course, bins: Bins) -> int:
    return 1 + min(course.size(), bins.count * (2 if course.allowance.is_limited else 1))


def _count(course: _Course, bins: Bins) -> Counter[int]:
    """Return how many times fire in each bin; empty bins are left out."""
    counts: Counter[int] = Counter()
    if course.size() <= bins.count:
        is_limited, start, width = course.allowance.is_limited, bins.from_ts, bins.width
        for at in course.walk():
            if not is_limited or course.allowance.reason(at) is None:
                counts[(at - start) // width] += 1
        return counts
    if course.first is not None and course.allowance.reason(course.first) is None:
        counts[bins.number_of(course.first)] += 1
    for stretch in course.stretches():
        for number in range(bins.number_of(stretch.start), bins.number_of(stretch.end - INSTANT) + 1):
            low, high = bins.start_of(number), bins.start_of(number + 1) - INSTANT
            counts[number] += course.within(max(low, stretch.start), min(high, stretch.end - INSTANT))
    return counts
