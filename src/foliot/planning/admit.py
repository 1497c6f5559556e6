"""Checks whether a definition makes sense, before it is stored."""

import difflib
from collections.abc import Callable, Set
from datetime import datetime, timedelta
from uuid import UUID

from foliot.model.errors import InvalidError, Problem
from foliot.model.instant import INSTANT
from foliot.model.kind import SYSTEM_PREFIX
from foliot.model.schedule import ScheduleSpec
from foliot.planning.definition import CompiledSchedule, compile_spec
from foliot.planning.next import Next, next_after, run_ts_of
from foliot.timing.zone import check_zone

MAX_DOCUMENT_BYTES = 256 * 1024

CheckTarget = Callable[[ScheduleSpec], list[Problem]]


def admit(
    spec: ScheduleSpec,
    schedule_id: UUID,
    now: datetime,
    *,
    check_target: CheckTarget | None = None,
    calendars: Set[str] | None = None,
) -> CompiledSchedule:
    """Compile the definition, or raise an InvalidError that names every wrong field.

    `calendars` are the names of the host's calendars; None: not known, so not checked.
    """
    problems = [
        *_check_zones(spec),
        *([] if calendars is None else _check_calendars(spec, calendars)),
        *(_check_system(spec) or (check_target(spec) if check_target else [])),
    ]
    if len(spec.model_dump_json()) > MAX_DOCUMENT_BYTES:
        problems.append(Problem("", "too_large", f"is larger than {MAX_DOCUMENT_BYTES} bytes"))
    cadence: CompiledSchedule | None = None
    if not problems:
        try:
            cadence = compile_spec(spec, schedule_id, now)
            first_fire(cadence, spec, schedule_id, now)
        except InvalidError as error:
            problems.extend(error.problems)
        except OverflowError:
            detail = "has times that no calendar holds"
            problems.append(Problem("/trigger", "out_of_range", detail, "times between the years 2 and 9998"))
    if problems or cadence is None:
        raise InvalidError(problems)
    return cadence


def admit_new(
    spec: ScheduleSpec,
    schedule_id: UUID,
    now: datetime,
    *,
    check_target: CheckTarget | None = None,
    calendars: Set[str] | None = None,
) -> CompiledSchedule:
    """Compile a definition with new timing. It must also have a fire time from now on."""
    spec.trigger.check_new()
    cadence = admit(spec, schedule_id, now, check_target=check_target, calendars=calendars)
    if spec.active and first_fire(cadence, spec, schedule_id, now, includes_now=True) is None:
        raise InvalidError.at(*_why_never(spec))
    return cadence


def first_fire(
    cadence: CompiledSchedule,
    spec: ScheduleSpec,
    schedule_id: UUID,
    now: datetime,
    *,
    includes_now: bool = False,
) -> Next | None:
    """Return the first fire time from now on. `includes_now`: now itself counts if it is the start."""
    if spec.trigger.fires_once:
        # A time that has just passed still fires, within `misfire.grace_seconds`.
        oldest = now - timedelta(seconds=spec.misfire.grace_seconds)
        at = cadence.recurrence.after(oldest - INSTANT)
        if at is None or (spec.end_ts is not None and at > spec.end_ts):
            return None
        return Next(at, run_ts_of(cadence, schedule_id, at))
    if cadence.delay_s is not None:
        fire_ts = now + timedelta(seconds=cadence.delay_s)
        if spec.start_ts is not None and spec.start_ts > now:
            fire_ts = spec.start_ts
        return None if spec.end_ts is not None and fire_ts > spec.end_ts else Next(fire_ts, fire_ts)
    if includes_now and spec.start_ts == now:
        cadence = cadence._replace(effective_ts=now - INSTANT)
        return next_after(cadence, schedule_id, now - INSTANT)
    return next_after(cadence, schedule_id, now)


def _why_never(spec: ScheduleSpec) -> tuple[str, str, str, str]:
    if spec.trigger.fires_once and spec.end_ts is None:
        return (
            "/trigger/at",
            "in_the_past",
            "lies further in the past than misfire.grace_seconds",
            "give a time to come, or a longer grace",
        )
    if spec.end_ts is not None:
        return ("/end_ts", "never_fires", "no fire time lies before it", "a later end_ts, or none")
    return ("/trigger", "never_fires", "never fires", "a trigger with at least one time to come")


def _check_zones(spec: ScheduleSpec) -> list[Problem]:
    found: list[Problem] = []
    zones = []
    if spec.trigger.zone_name is not None:
        zones.append((spec.trigger.zone_name, "/trigger/timezone"))
    if spec.window is not None:
        zones.append((spec.window.timezone, "/window/timezone"))
    for name, pointer in zones:
        try:
            check_zone(name, pointer)
        except InvalidError as error:
            found.extend(error.problems)
    return found


def _check_system(spec: ScheduleSpec) -> list[Problem]:
    name = spec.target.task_name
    if name is None or not name.startswith(SYSTEM_PREFIX):
        return []
    detail = f'"{name}" is one of Foliot\'s own system functions, which run by themselves'
    hint = f"a task function of your own, whose name does not begin with {SYSTEM_PREFIX}"
    return [Problem(f"/target/{spec.target.task_field}", "system_task", detail, hint)]


def _check_calendars(spec: ScheduleSpec, known: Set[str]) -> list[Problem]:
    return [
        Problem(
            f"/calendars/{index}",
            "not_found",
            f'there is no calendar named "{name}"',
            _nearest(name, known),
        )
        for index, name in enumerate(spec.calendars)
        if name not in known
    ]


def _nearest(name: str, known: Set[str]) -> str:
    spelled = {each.casefold(): each for each in sorted(known)}
    near = difflib.get_close_matches(name.casefold(), spelled, n=1, cutoff=0.6)
    return f'did you mean "{spelled[near[0]]}"?' if near else "make the calendar first, or leave it out"
