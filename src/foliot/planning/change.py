"""What creating, editing, pausing, resuming and deleting do to a schedule.

Each function returns the changed schedule, and a decision about times that were already due and can't fire
any more. The store writes both in one transaction, under the schedule's lock. So a leader that still has the
old version in its wheel finds its guarded update refused.
"""

from collections.abc import Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from foliot.model.errors import InvalidError
from foliot.model.execution import SkipReason
from foliot.model.ids import new_id, schedule_id_of, slot_of
from foliot.model.instant import INSTANT
from foliot.model.schedule import ChangeKind, ManagedBy, Schedule, ScheduleSpec, ScheduleState
from foliot.planning.admit import CheckTarget, admit, admit_new, first_fire
from foliot.planning.definition import CompiledSchedule, FiringDefinition, compile_spec, policies_of
from foliot.planning.fire import Due, FireDecision, plan_skip
from foliot.planning.next import Next, next_after, run_ts_of


@dataclass(frozen=True, slots=True)
class Author:
    """Who asked for a change, why, and from where, for the audit log."""

    name: str | None = None
    reason: str | None = None
    credential: str | None = None
    request_id: str | None = None
    address: str | None = None
    trace_context: str | None = None
    """The `traceparent` of the request."""

    def because(self, reason: str | None) -> "Author":
        """Return the author with this reason for the change; None keeps the reason."""
        return self if reason is None else replace(self, reason=reason)


class Owner(NamedTuple):
    """Who manages a schedule."""

    managed_by: ManagedBy
    source: str | None = None
    """Which set of files it comes from; None: none."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A changed schedule, to be stored."""

    kind: ChangeKind
    schedule: Schedule
    decision: FireDecision | None = None
    """Decides the times that were already due and may not fire any more; None: there are none."""


def create(
    spec: ScheduleSpec,
    *,
    host_id: UUID,
    now: datetime,
    author: Author,
    managed_by: ManagedBy = ManagedBy.API,
    managed_source: str | None = None,
    schedule_id: UUID | None = None,
    check_target: CheckTarget | None = None,
    calendars: Set[str] | None = None,
) -> PlannedChange:
    schedule_id = schedule_id or schedule_id_of(new_id(), host_id, spec.name)
    cadence = admit_new(spec, schedule_id, now, check_target=check_target, calendars=calendars)
    upcoming = first_fire(cadence, spec, schedule_id, now, includes_now=True) if spec.active else None
    schedule = Schedule(
        schedule_id=schedule_id,
        host_id=host_id,
        spec=spec,
        slot=slot_of(schedule_id),
        state=ScheduleState.ACTIVE if spec.active else ScheduleState.INACTIVE,
        effective_ts=now,
        next_fire_ts=upcoming and upcoming.fire_ts,
        next_run_ts=upcoming and upcoming.run_ts,
        managed_by=managed_by,
        managed_source=managed_source,
        created_by=author.name,
        created_ts=now,
        updated_by=author.name,
        updated_ts=now,
    )
    return PlannedChange(ChangeKind.CREATED, schedule)


def edit(
    schedule: Schedule,
    spec: ScheduleSpec,
    *,
    now: datetime,
    author: Author,
    check_target: CheckTarget | None = None,
    calendars: Set[str] | None = None,
) -> PlannedChange | None:
    """Replace the definition. Return None if it is equal and the schedule is not in state `error`.

    A time that is already due fires once, with the new version. A changed trigger counts from now. Other
    edits do not move the fire times. A pause stays.
    """
    was_parked = schedule.state is ScheduleState.ERROR
    if spec == schedule.spec and not was_parked:
        return None
    schedule = as_of(schedule, now)
    is_retimed = _timing_of(spec) != _timing_of(schedule.spec)
    effective_ts = now if is_retimed else schedule.effective_ts
    check = admit_new if is_retimed else admit
    check(spec, schedule.schedule_id, now, check_target=check_target, calendars=calendars)
    cadence = compile_spec(spec, schedule.schedule_id, effective_ts)
    changed = replace(
        _touched(schedule, now, author), spec=spec, effective_ts=effective_ts, state_reason=None
    )
    if not spec.active:
        return PlannedChange(
            ChangeKind.EDITED,
            replace(changed, state=ScheduleState.INACTIVE, next_fire_ts=None, next_run_ts=None),
            decide_due(schedule, now, SkipReason.INACTIVE),
        )
    if schedule.paused:
        changed = replace(changed, state=ScheduleState.PAUSED)
        upcoming = _while_paused(changed, cadence, schedule.paused_until_ts, now)
        return PlannedChange(ChangeKind.EDITED, _with_next(changed, upcoming, ScheduleState.PAUSED))
    if is_due(schedule, now):
        if was_parked:
            changed = replace(changed, next_run_ts=now)  # don't wait for the time of the next retry
        return _edit_due(schedule, changed, now, is_retimed=is_retimed)
    upcoming = _after_edit(schedule, changed, cadence, now, is_retimed=is_retimed)
    return PlannedChange(ChangeKind.EDITED, _activated(changed, upcoming))


def adopt(
    schedule: Schedule,
    change: PlannedChange | None,
    owner: Owner,
    *,
    now: datetime,
    author: Author,
) -> PlannedChange | None:
    """Extend an edit (None: no edit) by a change of the owner."""
    if (schedule.managed_by, schedule.managed_source) == owner:
        return change
    edited = change or PlannedChange(ChangeKind.EDITED, _touched(schedule, now, author))
    owned = replace(edited.schedule, managed_by=owner.managed_by, managed_source=owner.source)
    return replace(edited, schedule=owned)


def without_next(change: PlannedChange) -> PlannedChange:
    """Return the change as completed: the schedule's only remaining time was decided before."""
    return replace(change, schedule=_with_next(change.schedule, None, ScheduleState.COMPLETED))


def _edit_due(schedule: Schedule, changed: Schedule, now: datetime, *, is_retimed: bool) -> PlannedChange:
    """Keep what is due. If the new timing has none of several due times, only the latest fires."""
    changed = replace(changed, state=ScheduleState.ACTIVE)
    end_ts = changed.spec.end_ts
    if not is_retimed and (end_ts is None or end_ts >= now):
        return PlannedChange(ChangeKind.EDITED, changed)
    due = due_of(schedule)
    cadence = _compiled(schedule)
    if cadence is None:
        # The due times are not known any more: one row decides the first, for all of them.
        mended = compile_spec(changed.spec, schedule.schedule_id, changed.effective_ts)
        changed = replace(changed, next_fire_ts=None, next_run_ts=None)
        upcoming = _after_edit(changed, changed, mended, now, is_retimed=is_retimed)
        decision = FireDecision(due.fire_ts, due.run_ts, SkipReason.ERROR)
        return PlannedChange(ChangeKind.EDITED, _activated(changed, upcoming), decision)
    everything = plan_skip(due, cadence, now, SkipReason.MISFIRE)
    is_cut_off = end_ts is not None and everything.fire_ts > end_ts
    if everything.missed_count == 0 or not (is_retimed or is_cut_off):
        return PlannedChange(ChangeKind.EDITED, changed)
    earlier = cadence.recurrence.before(everything.fire_ts)
    last_given_up = due.fire_ts if everything.missed_count == 1 or earlier is None else earlier
    decision = FireDecision(
        last_given_up,
        run_ts_of(cadence, schedule.schedule_id, last_given_up),
        SkipReason.MISFIRE,
        everything.missed_count - 1,
        due.fire_ts if everything.missed_count > 1 else None,
    )
    changed = replace(changed, next_fire_ts=everything.fire_ts, next_run_ts=everything.run_ts)
    return PlannedChange(ChangeKind.EDITED, changed, decision)


def _after_edit(
    schedule: Schedule, changed: Schedule, cadence: CompiledSchedule, now: datetime, *, is_retimed: bool
) -> Next | None:
    spec = changed.spec
    if _has_run_enough(changed):
        return None
    if is_retimed:
        return first_fire(cadence, spec, changed.schedule_id, now)
    if schedule.next_fire_ts is not None:
        fire_ts = schedule.next_fire_ts
        if spec.end_ts is not None and fire_ts > spec.end_ts:
            return None
        return Next(fire_ts, run_ts_of(cadence, changed.schedule_id, fire_ts))
    if cadence.delay_s is not None and schedule.state is ScheduleState.ACTIVE:
        return None  # a run is in progress; its end sets the next time
    return _from_now_on(changed, cadence, now)


def pause(
    schedule: Schedule, *, now: datetime, author: Author, until_ts: datetime | None = None
) -> PlannedChange | None:
    """Pause the schedule. A time that is already due becomes `skipped: paused`."""
    if schedule.paused and (schedule.pause_reason, schedule.paused_until_ts) == (author.reason, until_ts):
        return None
    schedule = as_of(schedule, now)
    changed = replace(
        _touched(schedule, now, author),
        paused=True,
        paused_until_ts=until_ts,
        pause_reason=author.reason,
        state_reason=None,
    )
    upcoming = None
    if until_ts is not None:
        cadence = compile_spec(schedule.spec, schedule.schedule_id, schedule.effective_ts)
        upcoming = _while_paused(changed, cadence, until_ts, now)
    state = schedule.state if _is_at_rest(schedule) else ScheduleState.PAUSED
    return PlannedChange(
        ChangeKind.PAUSED, _with_next(changed, upcoming, state), decide_due(schedule, now, SkipReason.PAUSED)
    )


def resume(schedule: Schedule, *, now: datetime, author: Author) -> PlannedChange | None:
    """End the pause. Continue with the first fire time after now, of the same sequence as before.

    Raises InvalidError if the definition can't be planned.
    """
    if not schedule.paused:
        return None
    changed = replace(
        _touched(schedule, now, author),
        paused=False,
        paused_until_ts=None,
        pause_reason=None,
        state_reason=None,
    )
    if _is_at_rest(schedule):
        return PlannedChange(ChangeKind.RESUMED, changed)
    if is_due(schedule, now):  # the pause has ended by itself: what became due since then still fires
        return PlannedChange(ChangeKind.RESUMED, replace(changed, state=ScheduleState.ACTIVE))
    cadence = compile_spec(schedule.spec, schedule.schedule_id, schedule.effective_ts)
    return PlannedChange(ChangeKind.RESUMED, _activated(changed, _from_now_on(changed, cadence, now)))


def delete(schedule: Schedule, *, now: datetime, author: Author) -> PlannedChange:
    changed = replace(
        _touched(schedule, now, author),
        deleted_ts=now,
        next_fire_ts=None,
        next_run_ts=None,
    )
    return PlannedChange(ChangeKind.DELETED, changed, decide_due(schedule, now, SkipReason.DELETED))


def is_due(schedule: Schedule, now: datetime) -> bool:
    """Whether a fire time has come that is not decided yet."""
    if schedule.next_fire_ts is None or schedule.next_run_ts is None or schedule.deleted_ts is not None:
        return False
    return schedule.next_fire_ts <= now


def decide_due(schedule: Schedule, now: datetime, reason: SkipReason) -> FireDecision | None:
    """Return the decision for what is already due on a schedule that may not fire any more."""
    if not is_due(schedule, now):
        return None
    due, cadence = due_of(schedule), _compiled(schedule)
    if cadence is None:
        return FireDecision(due.fire_ts, due.run_ts, reason)
    return plan_skip(due, cadence, now, reason)


def _compiled(schedule: Schedule) -> CompiledSchedule | None:
    """Compile the definition; None: it can't be planned, at least not by this version."""
    try:
        return compile_spec(schedule.spec, schedule.schedule_id, schedule.effective_ts)
    except InvalidError:
        return None


def due_of(schedule: Schedule) -> Due:
    assert schedule.next_fire_ts is not None
    assert schedule.next_run_ts is not None
    spec = schedule.spec
    return Due(
        schedule_id=schedule.schedule_id,
        host_id=schedule.host_id,
        aggregate_version=schedule.aggregate_version,
        fire_ts=schedule.next_fire_ts,
        run_ts=schedule.next_run_ts,
        run_count=schedule.run_count,
        definition=FiringDefinition(
            trigger=spec.trigger.model_dump_json(),
            policies=policies_of(spec).model_dump_json(),
            anchor_ts=schedule.anchor_ts,
            effective_ts=schedule.effective_ts,
            end_ts=spec.end_ts,
            max_runs=spec.max_runs,
            queue=spec.queue,
            priority=spec.priority,
            is_event=spec.target.is_event,
        ),
    )


def _timing_of(spec: ScheduleSpec) -> tuple[object, ...]:
    return (spec.trigger, spec.start_ts, spec.dst)


def _is_at_rest(schedule: Schedule) -> bool:
    """Whether it will not fire for a reason that has nothing to do with a pause."""
    return schedule.state in (ScheduleState.INACTIVE, ScheduleState.COMPLETED)


def _has_run_enough(schedule: Schedule) -> bool:
    return schedule.spec.max_runs is not None and schedule.run_count >= schedule.spec.max_runs


def as_of(schedule: Schedule, now: datetime) -> Schedule:
    """Return the schedule without a pause whose end has passed, since the row may still show it."""
    if not schedule.paused or schedule.paused_until_ts is None or schedule.paused_until_ts > now:
        return schedule
    state = ScheduleState.ACTIVE if schedule.state is ScheduleState.PAUSED else schedule.state
    return replace(schedule, paused=False, paused_until_ts=None, pause_reason=None, state=state)


def _touched(schedule: Schedule, now: datetime, author: Author) -> Schedule:
    return replace(
        schedule,
        aggregate_version=schedule.aggregate_version + 1,
        updated_by=author.name,
        updated_ts=now,
    )


def _with_next(schedule: Schedule, upcoming: Next | None, state: ScheduleState) -> Schedule:
    return replace(
        schedule,
        next_fire_ts=upcoming and upcoming.fire_ts,
        next_run_ts=upcoming and upcoming.run_ts,
        state=state,
    )


def _activated(schedule: Schedule, upcoming: Next | None) -> Schedule:
    is_delay = schedule.spec.trigger.counts_from_end
    waits_for_end = upcoming is None and is_delay and not _has_run_enough(schedule)
    is_over = upcoming is None and not waits_for_end
    return _with_next(schedule, upcoming, ScheduleState.COMPLETED if is_over else ScheduleState.ACTIVE)


def _while_paused(
    schedule: Schedule, cadence: CompiledSchedule, until_ts: datetime | None, now: datetime
) -> Next | None:
    """Return the next time of a paused schedule: the first at or after the end of the pause, if any."""
    if until_ts is None or _is_at_rest(schedule) or _has_run_enough(schedule):
        return None
    if cadence.delay_s is not None:
        is_over = cadence.end_ts is not None and until_ts > cadence.end_ts
        return None if is_over else Next(until_ts, until_ts)
    return next_after(cadence, schedule.schedule_id, max(until_ts - INSTANT, now))


def _from_now_on(schedule: Schedule, cadence: CompiledSchedule, now: datetime) -> Next | None:
    spec = schedule.spec
    if _has_run_enough(schedule):
        return None
    if cadence.delay_s is not None:
        return first_fire(cadence, spec, schedule.schedule_id, now)
    return next_after(cadence, schedule.schedule_id, now)
