"""Decides what happens to a due schedule: which rows of the ledger are written, and what is next.

Every due time gets exactly one decision. A decision at `fire_ts` also covers the `missed_count` times right
before it. Overlap is not decided here: it needs the number of open executions under a lock, so the store asks
`planning.overlap` inside the firing transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from foliot.model.event import CancelledExecution, FiredExecution, SkippedExecution
from foliot.model.execution import SkipReason
from foliot.model.instant import INSTANT
from foliot.model.policy import MisfirePolicy
from foliot.planning.definition import CompiledSchedule, FiringDefinition, with_calendars
from foliot.planning.next import Next, next_after, nominal_after, run_ts_of
from foliot.timing.calendar import NO_CALENDARS, CalendarBook, excluded_since, is_excluded
from foliot.timing.window import is_inside

# Named tuples, since these are made for every fire: frozen dataclasses take three times as long to make.

SKIP_AFTER_S = 10.0
"""Maximum lateness under the misfire policy `skip`."""

PLAN_HOLDS = timedelta(seconds=5)
"""Maximum age of a plan when its transaction begins, and again when the database writes it. The leader's
process may be suspended in between. If no other leader took over, it would not notice how late it is."""

CATCHUP_PER_STEP = 10
CATCHUP_PACE_S = 0.1
"""`fire_all` catches up in steps of this many times with this pause, so that it never delays others."""

ALLOWED_WALK = 4_000
"""How many missed times are checked, backwards, for one that window and calendars allow.

It covers an hour of every second. Of each excluded day at most one time is checked.
"""


class Due(NamedTuple):
    """A schedule with a time to decide, as the leader has it in memory."""

    schedule_id: UUID
    host_id: UUID
    aggregate_version: int
    fire_ts: datetime
    run_ts: datetime
    run_count: int
    definition: FiringDefinition


class UnplannedSchedule(NamedTuple):
    """A due schedule that can't be planned, at least not by this version."""

    due: Due
    reason: str


MIN_PARKED_S = 5.0
MAX_PARKED_S = 60.0


def parked_for(overdue: timedelta) -> timedelta:
    """How long to wait before planning is tried again, by how long the schedule has been due."""
    return timedelta(seconds=min(MAX_PARKED_S, max(MIN_PARKED_S, overdue.total_seconds() / 2)))


class FireDecision(NamedTuple):
    """A row of the ledger to be written."""

    fire_ts: datetime
    run_ts: datetime
    reason: SkipReason | None = None
    """Why the time is skipped; None: it fires."""
    missed_count: int = 0
    missed_from_ts: datetime | None = None
    is_catchup: bool = False
    """Whether it is one of several missed times that `fire_all` fires. Overlap holds these, never skips."""


class Firing(NamedTuple):
    """Everything that one step decides for one schedule."""

    due: Due
    decisions: tuple[FireDecision, ...]
    next: Next | None
    """The next time to decide. None: there is none, or for `delay` none before the run has ended."""
    is_completed: bool
    is_delay: bool = False
    after_overlap: Next | None = None
    """The next time if overlap skips the run that would have been the last of `max_runs`."""

    @property
    def fires(self) -> int:
        """How many of the decisions fire."""
        return count_fires(self.decisions)


def count_fires(decisions: tuple[FireDecision, ...]) -> int:
    if len(decisions) == 1:
        return 1 if decisions[0].reason is None else 0
    return sum(1 for decision in decisions if decision.reason is None)


def plan_firing(
    due: Due, cadence: CompiledSchedule, now: datetime, calendars: CalendarBook = NO_CALENDARS
) -> Firing:
    """Decide everything that is due at `now`. Raises MissingCalendarError."""
    if cadence.policies.calendars:
        cadence = with_calendars(cadence, due.host_id, calendars)
    if cadence.delay_s is not None:
        return _plan_delay(due, cadence, now)
    following = next_after(cadence, due.schedule_id, due.fire_ts)
    if following is None or following.run_ts > now:
        decisions: tuple[FireDecision, ...] = (_decide_last(due, cadence, now),)
    else:
        decisions = _plan_missed(due, cadence, now)
    return _finish(due, cadence, decisions, following, now)


def _decide_last(due: Due, cadence: CompiledSchedule, now: datetime) -> FireDecision:
    """Decide the only due time."""
    run_ts = due.run_ts
    if run_ts > due.fire_ts:
        # `run_ts` may be later than its jitter: the time may be the last of a catch-up, with its pause, or
        # it could not be planned before.
        run_ts = min(run_ts, run_ts_of(cadence, due.schedule_id, due.fire_ts))
    decision = _decide(cadence, due.fire_ts, run_ts, now)
    if run_ts == due.run_ts or cadence.policies.misfire.policy is not MisfirePolicy.FIRE_ALL:
        return decision
    return decision._replace(is_catchup=decision.reason is None)


def plan_skip(due: Due, cadence: CompiledSchedule, now: datetime, reason: SkipReason) -> FireDecision:
    """Return one row that decides every nominal time up to `now`; the schedule may not fire any more.

    This includes a time that still waits for its jitter, since it would not be decided later.
    """
    last = _last_nominal(due, cadence, now)
    return _row(due, cadence, last, _count(due, cadence, last), reason)


def _finish(
    due: Due,
    cadence: CompiledSchedule,
    decisions: tuple[FireDecision, ...],
    following: Next | None,
    now: datetime,
) -> Firing:
    if cadence.max_runs is not None:
        decisions = _within_max_runs(decisions, cadence.max_runs - due.run_count)
    last = decisions[-1].fire_ts
    upcoming = following if last == due.fire_ts else next_after(cadence, due.schedule_id, last)
    if upcoming is not None and upcoming.run_ts <= now:
        upcoming = Next(upcoming.fire_ts, now + timedelta(seconds=CATCHUP_PACE_S))
    if cadence.max_runs is not None and due.run_count + count_fires(decisions) >= cadence.max_runs:
        return Firing(due, decisions, None, is_completed=True, after_overlap=upcoming)
    return Firing(due, decisions, upcoming, is_completed=upcoming is None)


def _within_max_runs(decisions: tuple[FireDecision, ...], left: int) -> tuple[FireDecision, ...]:
    kept = []
    for decision in decisions:
        kept.append(decision)
        left -= decision.reason is None
        if left <= 0:
            break
    return tuple(kept)


def _plan_delay(due: Due, cadence: CompiledSchedule, now: datetime) -> Firing:
    decision = _decide(cadence, due.fire_ts, due.run_ts, now)
    if decision.reason is None:
        completes = cadence.max_runs is not None and due.run_count + 1 >= cadence.max_runs
        if completes or not due.definition.is_event:
            return Firing(due, (decision,), None, is_completed=completes, is_delay=True)
    # It was skipped, or it is an event, which ends when it fires.
    upcoming = next_after_end(cadence, now)
    return Firing(due, (decision,), upcoming, is_completed=upcoming is None, is_delay=True)


def next_after_end(cadence: CompiledSchedule, ended_ts: datetime) -> Next | None:
    """Return the next time of a `delay` trigger after its last run ended at `ended_ts`."""
    assert cadence.delay_s is not None
    fire_ts = ended_ts + timedelta(seconds=cadence.delay_s)
    if cadence.end_ts is not None and fire_ts > cadence.end_ts:
        return None
    return Next(fire_ts, fire_ts)


def _decide(cadence: CompiledSchedule, fire_ts: datetime, run_ts: datetime, now: datetime) -> FireDecision:
    """Decide a single time."""
    reason = None
    if cadence.calendars or cadence.policies.window is not None:
        reason = _forbidden(cadence, fire_ts)
    if reason is None and _is_late(cadence, run_ts, now):
        reason = SkipReason.MISFIRE
    return FireDecision(fire_ts, run_ts, reason)


def _is_late(cadence: CompiledSchedule, run_ts: datetime, now: datetime) -> bool:
    """Whether `run_ts` is too long ago to fire."""
    misfire = cadence.policies.misfire
    late_s = (now - run_ts).total_seconds()
    return late_s > misfire.grace_seconds or (misfire.policy is MisfirePolicy.SKIP and late_s >= SKIP_AFTER_S)


def _latest_s(cadence: CompiledSchedule) -> float:
    """Return how late a time may be and still fire, in seconds."""
    misfire = cadence.policies.misfire
    grace_s = misfire.grace_seconds
    return min(grace_s, SKIP_AFTER_S) if misfire.policy is MisfirePolicy.SKIP else grace_s


def _forbidden(cadence: CompiledSchedule, fire_ts: datetime) -> SkipReason | None:
    """Return why window or calendars exclude a time; None: they allow it."""
    window = cadence.policies.window
    if window is not None and not is_inside(window, fire_ts):
        return SkipReason.WINDOW
    if cadence.calendars and is_excluded(cadence.calendars, fire_ts, cadence.zone):
        return SkipReason.CALENDAR
    return None


def _plan_missed(due: Due, cadence: CompiledSchedule, now: datetime) -> tuple[FireDecision, ...]:
    """Decide several due times by the misfire policy."""
    match cadence.policies.misfire.policy:
        case MisfirePolicy.FIRE_ONCE:
            return _fire_once(due, cadence, now)
        case MisfirePolicy.FIRE_ALL:
            return _fire_latest(due, cadence, now, cadence.policies.misfire.max_catchup, is_catchup=True)
        case MisfirePolicy.SKIP:
            # Times are at least a second apart, so at most this many are less than SKIP_AFTER_S late.
            return _fire_latest(due, cadence, now, int(SKIP_AFTER_S) + 1, is_catchup=False)


def _fire_once(due: Due, cadence: CompiledSchedule, now: datetime) -> tuple[FireDecision, ...]:
    last, count = _last_due(due, cadence, now)
    chosen = _latest_allowed(due, cadence, last)
    if chosen is None or chosen == last:
        decision = _decide(cadence, last, run_ts_of(cadence, due.schedule_id, last), now)
        return (_row(due, cadence, last, count, decision.reason),)
    # The latest allowed time covers those before it; those after it were not allowed.
    forbidden_from = nominal_after(cadence, chosen)
    assert forbidden_from is not None
    forbidden = cadence.recurrence.count(forbidden_from, last)
    decision = _decide(cadence, chosen, run_ts_of(cadence, due.schedule_id, chosen), now)
    return (
        _row(due, cadence, chosen, count - forbidden, decision.reason),
        _row_from(due, cadence, forbidden_from, last, forbidden, _forbidden(cadence, last)),
    )


def _latest_allowed(due: Due, cadence: CompiledSchedule, last: datetime) -> datetime | None:
    """Return the latest time up to `last` that window and calendars allow; None: none within the limit."""
    if cadence.policies.window is None and not cadence.calendars:
        return last
    candidate = last
    for _ in range(ALLOWED_WALK):
        if _forbidden(cadence, candidate) is None:
            return candidate
        if candidate <= due.fire_ts:
            return None
        candidate = _before(due, cadence, _forbidden_since(cadence, candidate))
    return None


def _forbidden_since(cadence: CompiledSchedule, fire_ts: datetime) -> datetime:
    """Return an instant since which nothing was allowed until `fire_ts`, which is excluded itself."""
    if not cadence.calendars:
        return fire_ts
    return excluded_since(cadence.calendars, fire_ts, cadence.zone) or fire_ts


def _fire_latest(
    due: Due, cadence: CompiledSchedule, now: datetime, limit: int, *, is_catchup: bool
) -> tuple[FireDecision, ...]:
    """Fire the latest `limit` times that are not too late, oldest first; one row skips the earlier ones.

    The cost does not grow with `limit`: one step of a catch-up fires only a few times.
    """
    last, count = _last_due(due, cadence, now)
    oldest = due.fire_ts if count <= limit else _nth_latest(cadence, due.fire_ts, last, limit)
    first = _first_not_late(due, cadence, oldest, last, now)
    kept = 0 if first is None else _count_from(cadence, first, last)
    rows: list[FireDecision] = []
    if kept < count:
        last_given_up = last if first is None else _before(due, cadence, first)
        rows.append(_row(due, cadence, last_given_up, count - kept, SkipReason.MISFIRE))
    at = first
    for _ in range(min(kept, CATCHUP_PER_STEP)):
        assert at is not None
        decision = _decide(cadence, at, run_ts_of(cadence, due.schedule_id, at), now)
        rows.append(decision._replace(is_catchup=is_catchup and decision.reason is None))
        at = nominal_after(cadence, at)
    return tuple(rows)


def _first_not_late(
    due: Due, cadence: CompiledSchedule, oldest: datetime, last: datetime, now: datetime
) -> datetime | None:
    """Return the first time that may still fire, or that window or calendars exclude; None: there is none.

    The same step decides all times before it, so a catch-up checks each time once.
    """
    at = oldest
    if cadence.policies.window is None and not cadence.calendars:
        # Jitter is shorter than the gap between times, so it is this time or one of the next two.
        at = max(at, min(last, _before(due, cadence, now - timedelta(seconds=_latest_s(cadence)))))
    for _ in range(ALLOWED_WALK):
        decision = _decide(cadence, at, run_ts_of(cadence, due.schedule_id, at), now)
        if decision.reason is not SkipReason.MISFIRE:
            return at
        following = nominal_after(cadence, at) if at < last else None
        if following is None:
            return None
        at = following
    return at


def _nth_latest(cadence: CompiledSchedule, first: datetime, last: datetime, number: int) -> datetime:
    """Return the `number`-th time counted back from the last. `first` must have more times after it."""
    low, high = nominal_after(cadence, first), last + INSTANT
    assert low is not None
    while high - low > INSTANT:
        middle = low + (high - low) // 2
        if cadence.recurrence.count(middle, last) >= number:
            low = middle
        else:
            high = middle
    return low


def _before(due: Due, cadence: CompiledSchedule, instant: datetime) -> datetime:
    """Return the due time right before an instant; at least `due.fire_ts`, even if the trigger changed."""
    earlier = cadence.recurrence.before(instant)
    if earlier is None or earlier < due.fire_ts or earlier <= cadence.effective_ts:
        return due.fire_ts
    return earlier


def _last_due(due: Due, cadence: CompiledSchedule, now: datetime) -> tuple[datetime, int]:
    """Return the latest time that is due, and the number of due times up to it."""
    last = _last_nominal(due, cadence, now)
    # Jitter is shorter than the gap between times, so only the last time can still be waiting for it.
    if last > due.fire_ts and run_ts_of(cadence, due.schedule_id, last) > now:
        last = _before(due, cadence, last)
    return last, _count(due, cadence, last)


def _last_nominal(due: Due, cadence: CompiledSchedule, now: datetime) -> datetime:
    """Return the latest nominal time up to now; at least `due.fire_ts`, even if the trigger changed."""
    following = nominal_after(cadence, due.fire_ts)
    until = now if cadence.end_ts is None else min(now, cadence.end_ts)
    if following is None or following > until:
        return due.fire_ts
    last = cadence.recurrence.before(until + INSTANT)
    assert last is not None
    return last


def _count(due: Due, cadence: CompiledSchedule, last: datetime) -> int:
    """Return how many times are due from the first up to `last`."""
    return _count_from(cadence, due.fire_ts, last)


def _count_from(cadence: CompiledSchedule, first: datetime, last: datetime) -> int:
    following = None if last <= first else nominal_after(cadence, first)
    return 1 if following is None else 1 + cadence.recurrence.count(following, last)


def _row(
    due: Due, cadence: CompiledSchedule, last: datetime, count: int, reason: SkipReason | None
) -> FireDecision:
    return _row_from(due, cadence, due.fire_ts, last, count, reason)


def _row_from(
    due: Due,
    cadence: CompiledSchedule,
    first: datetime,
    last: datetime,
    count: int,
    reason: SkipReason | None,
) -> FireDecision:
    run_ts = due.run_ts if last == due.fire_ts else run_ts_of(cadence, due.schedule_id, last)
    if count == 1:
        return FireDecision(last, run_ts, reason)
    return FireDecision(last, run_ts, reason, count - 1, first)


@dataclass(frozen=True, slots=True)
class Fired:
    """Result of a firing transaction."""

    fired: Sequence[FiredExecution]
    skipped: Sequence[SkippedExecution]
    refused: Sequence[Due]
    """Schedules that had changed since they were planned. Nothing was written for them."""
    has_replaced: bool = False
    """Running executions were asked to stop, because new ones replace them."""
    held: frozenset[UUID] = frozenset()
    """Fired executions that wait for another run of their schedule (overlap)."""
    cancelled: Sequence[CancelledExecution] = ()
    """Executions that were replaced and ended at once. Running ones end later."""
    waiting: Sequence[Due] = ()
    """Schedules with fire times that must not be skipped, while the limit of held executions is reached.
    They stay undecided and are retried soon."""
