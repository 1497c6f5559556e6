"""The next nominal time of a schedule, and when to act on it."""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from foliot.model.instant import INSTANT
from foliot.planning.definition import CompiledSchedule
from foliot.timing.jitter import jitter_s


class Next(NamedTuple):
    fire_ts: datetime
    run_ts: datetime


def next_after(cadence: CompiledSchedule, schedule_id: UUID, instant: datetime) -> Next | None:
    """Return the first time after the instant at which the schedule may fire; None: there is none."""
    fire_ts = nominal_after(cadence, instant)
    if fire_ts is None:
        return None
    return Next(fire_ts, run_ts_of(cadence, schedule_id, fire_ts))


def nominal_after(cadence: CompiledSchedule, instant: datetime) -> datetime | None:
    if instant < cadence.effective_ts:
        instant = cadence.effective_ts
    fire_ts = cadence.recurrence.after(instant)
    if fire_ts is None or (cadence.end_ts is not None and fire_ts > cadence.end_ts):
        return None
    return fire_ts


def run_ts_of(cadence: CompiledSchedule, schedule_id: UUID, fire_ts: datetime) -> datetime:
    """Return the nominal time plus jitter: equal on every node, and before the next nominal time."""
    max_s = cadence.policies.jitter_seconds
    if not max_s:
        return fire_ts
    following = cadence.recurrence.after(fire_ts)
    if following is not None:
        max_s = min(max_s, (following - fire_ts).total_seconds())
    run_ts = fire_ts + timedelta(seconds=jitter_s(schedule_id, fire_ts, max_s))
    return run_ts if following is None else min(run_ts, following - INSTANT)
