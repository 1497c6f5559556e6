"""Simulates a schedule in virtual time, with outages during which nothing is decided.

It makes the decisions of a leader: what falls into an outage is decided at its end, by the misfire policy.
Runs are assumed to end at once, so overlap has no effect.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from foliot.model.execution import SkipReason
from foliot.model.schedule import Schedule
from foliot.planning.change import due_of
from foliot.planning.definition import compile_definition
from foliot.planning.fire import next_after_end, plan_firing
from foliot.timing.calendar import NO_CALENDARS, CalendarBook


class Outage(NamedTuple):
    """A range of time in which nothing is decided."""

    from_ts: datetime
    to_ts: datetime


class Simulated(NamedTuple):
    """A simulated row of the ledger."""

    decided_ts: datetime
    fire_ts: datetime
    reason: SkipReason | None
    """Why it is skipped; None: it fires."""
    missed_count: int
    missed_from_ts: datetime | None


def simulate(
    schedule: Schedule,
    until: datetime,
    outages: Sequence[Outage] = (),
    calendars: CalendarBook = NO_CALENDARS,
) -> Iterator[Simulated]:
    """Yield the decisions up to an instant, in order. Raises MissingCalendarError."""
    while schedule.next_run_ts is not None:
        due = due_of(schedule)
        now = _when_decided(due.run_ts, outages)
        if now > until:
            return
        cadence = compile_definition(due.definition, due.schedule_id)
        firing = plan_firing(due, cadence, now, calendars)
        for each in firing.decisions:
            yield Simulated(now, each.fire_ts, each.reason, each.missed_count, each.missed_from_ts)
        upcoming = firing.next
        if upcoming is None and firing.is_delay and not firing.is_completed:
            upcoming = next_after_end(cadence, now)
        schedule = replace(
            schedule,
            next_fire_ts=upcoming and upcoming.fire_ts,
            next_run_ts=upcoming and upcoming.run_ts,
            run_count=schedule.run_count + firing.fires,
        )


def _when_decided(run_ts: datetime, outages: Sequence[Outage]) -> datetime:
    for outage in sorted(outages):
        if outage.from_ts <= run_ts < outage.to_ts:
            run_ts = outage.to_ts
    return run_ts
