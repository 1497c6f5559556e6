"""Which past times a backfill fires: the fire times of the schedule's current definition in a range.

A range is half open, [from_ts, to_ts), so that adjacent ranges share no time. Times that the window or a
calendar excludes are not fired. Misfire policies do not apply, since all times are late.
"""

from dataclasses import dataclass
from datetime import datetime

from foliot.model.errors import InvalidError
from foliot.model.instant import EPOCH, INSTANT
from foliot.model.schedule import Schedule
from foliot.planning.definition import CompiledSchedule, with_calendars
from foliot.timing.calendar import NO_CALENDARS, CalendarBook, is_excluded
from foliot.timing.window import is_inside

MAX_TIMES = 100_000
MAX_EXAMINED = 2_000
"""Limit of times that one step examines, so that a narrow window does not make it slow."""


@dataclass(frozen=True, slots=True)
class BackfillStep:
    """What one step of a backfill does."""

    fire_times: tuple[datetime, ...]
    passed_over: int
    position_ts: datetime
    """Where the next step continues."""
    is_last: bool


def admit_backfill(
    schedule: Schedule, cadence: CompiledSchedule, from_ts: datetime, to_ts: datetime, now: datetime
) -> int:
    """Return how many times lie in the range. Raises InvalidError if the range is wrong."""
    if schedule.spec.trigger.counts_from_end:
        raise InvalidError.at(
            "/trigger", "no_times", "a delay counts from the end of a run and has no times of its own"
        )
    if from_ts < EPOCH:
        raise InvalidError.at("/from_ts", "out_of_range", "lies before 1970", "a later from_ts")
    if from_ts >= to_ts:
        raise InvalidError.at("/to_ts", "out_of_range", "must lie after from_ts")
    if to_ts > now:
        raise InvalidError.at("/to_ts", "in_the_future", "lies in the future", "now, or earlier")
    first, last = _bounds(schedule, from_ts, to_ts)
    count = cadence.recurrence.count(first, last) if first <= last else 0
    if count == 0:
        raise InvalidError.at(
            "/from_ts", "no_times", "the schedule has no fire time in this range", _why(schedule)
        )
    if count > MAX_TIMES:
        raise InvalidError.at(
            "/from_ts",
            "too_many",
            f"the range has {count:,} fire times, the limit is {MAX_TIMES:,}",
            "a smaller range",
        )
    return count


def plan_backfill(
    schedule: Schedule,
    cadence: CompiledSchedule,
    position_ts: datetime,
    to_ts: datetime,
    *,
    limit: int,
    calendars: CalendarBook = NO_CALENDARS,
) -> BackfillStep:
    """Return the next times to fire from the position on, up to `limit`. Raises MissingCalendarError."""
    if cadence.policies.calendars:
        cadence = with_calendars(cadence, schedule.host_id, calendars)
    first, last = _bounds(schedule, position_ts, to_ts)
    times: list[datetime] = []
    passed_over = 0
    at = cadence.recurrence.after(first - INSTANT)
    while at is not None and at <= last and len(times) < limit and len(times) + passed_over < MAX_EXAMINED:
        if _would_fire(cadence, at):
            times.append(at)
        else:
            passed_over += 1
        position_ts = at + INSTANT
        at = cadence.recurrence.after(at)
    is_last = at is None or at > last
    return BackfillStep(tuple(times), passed_over, to_ts if is_last else position_ts, is_last)


def _bounds(schedule: Schedule, from_ts: datetime, to_ts: datetime) -> tuple[datetime, datetime]:
    """Limit the range to where the schedule has times."""
    spec = schedule.spec
    first, last = from_ts, to_ts - INSTANT
    if spec.start_ts is not None:
        first = max(first, spec.start_ts)
    elif spec.trigger.counts_from_start:
        # They count from when they were defined; that moment itself is no fire time.
        first = max(first, schedule.effective_ts + INSTANT)
    if spec.end_ts is not None:
        last = min(last, spec.end_ts)
    return first, last


def _would_fire(cadence: CompiledSchedule, fire_ts: datetime) -> bool:
    window = cadence.policies.window
    if window is not None and not is_inside(window, fire_ts):
        return False
    return not (cadence.calendars and is_excluded(cadence.calendars, fire_ts, cadence.zone))


def _why(schedule: Schedule) -> str:
    counts_from_definition = schedule.spec.trigger.counts_from_start
    if counts_from_definition and schedule.spec.start_ts is None:
        return f"without a start_ts its times count from {schedule.effective_ts.isoformat()}"
    return "another range"
