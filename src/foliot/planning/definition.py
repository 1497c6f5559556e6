"""The part of a schedule that firing needs, small enough to keep half a million of them in memory.

A FiringDefinition holds the stored JSON texts and is compiled only when it is planned. Equal schedules share
the texts, and compiled recurrences are in bounded caches.
"""

from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import Field, TypeAdapter

from foliot.model.document import Document
from foliot.model.errors import InvalidError, Problem
from foliot.model.ids import hash_key
from foliot.model.instant import EPOCH, INSTANT
from foliot.model.kind import BaseTrigger, Trigger
from foliot.model.policy import (
    Delivery,
    Dst,
    Misfire,
    Overlap,
    Priority,
    RetryPolicy,
    Window,
)
from foliot.model.recurrence import Recurrence
from foliot.model.schedule import ScheduleSpec
from foliot.timing.calendar import Calendar, CalendarBook
from foliot.timing.interval import Elapsed
from foliot.timing.zone import zone


class Policies(Document):
    """The policies of a schedule, as one stored document."""

    misfire: Misfire = Misfire()
    overlap: Overlap = Overlap()
    retry: RetryPolicy = RetryPolicy()
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    dst: Dst = Dst()
    window: Window | None = None
    calendars: tuple[str, ...] = ()
    jitter_seconds: float = Field(default=0, ge=0)


POLICY_FIELDS = tuple(Policies.model_fields)


def policies_of(spec: ScheduleSpec) -> Policies:
    return Policies(**{name: getattr(spec, name) for name in POLICY_FIELDS})


class FiringDefinition(NamedTuple):
    """The part of a schedule's definition that firing reads. Equal definitions are one object."""

    trigger: str
    policies: str
    anchor_ts: datetime
    effective_ts: datetime
    end_ts: datetime | None
    max_runs: int | None
    queue: str
    priority: Priority
    is_event: bool = False
    """Whether its target is an event, so that the execution ends in the firing transaction."""
    unknown_priority: str | None = None
    """The priority as stored, if only a newer version knows it."""


class CompiledSchedule(NamedTuple):
    """A FiringDefinition, compiled for one schedule."""

    trigger: BaseTrigger
    recurrence: Recurrence
    policies: Policies
    effective_ts: datetime
    """The schedule has only times after this: when its timing was set, or just before its `start_ts`."""
    end_ts: datetime | None
    max_runs: int | None
    calendars: tuple[Calendar, ...] = ()
    """The calendars that `policies.calendars` names, after lookup."""

    @property
    def zone(self) -> ZoneInfo:
        """The zone for calendar days: the trigger's, else UTC."""
        return zone(self.trigger.zone_name or "UTC")

    @property
    def delay_s(self) -> float | None:
        """The delay of a `delay` trigger in seconds; None: another kind of trigger."""
        return self.trigger.delay_s


@cache
def _trigger() -> TypeAdapter[BaseTrigger]:
    return TypeAdapter(Trigger)


@lru_cache(maxsize=16_384)
def _trigger_of(text: str) -> BaseTrigger:
    return _trigger().validate_json(text, extra="ignore")


@lru_cache(maxsize=4_096)
def policies_from(text: str) -> Policies:
    """Parse the stored document. Schedules with the same text share the result."""
    return Policies.model_validate_json(text, extra="ignore")


class _Remembering:
    """A recurrence that many schedules share. It caches the last answer of `after` for all of them."""

    __slots__ = ("_asked", "_found", "_times", "before", "count")

    def __init__(self, times: Recurrence) -> None:
        self._times = times
        self._asked = EPOCH
        self._found = times.after(EPOCH)
        self.before = times.before
        self.count = times.count

    def after(self, instant: datetime) -> datetime | None:
        if instant != self._asked:
            # Compute first: a caller in between must not see an answer to another question.
            found = self._times.after(instant)
            self._asked, self._found = instant, found
        return self._found


class _Parsed(NamedTuple):
    """The parsed texts of a definition, and what can be compiled without the schedule."""

    trigger: BaseTrigger
    policies: Policies
    shared: Recurrence | None
    """The recurrence, if it depends on the trigger alone: then all schedules with this trigger share it."""
    step: timedelta | None
    """The length of an interval of elapsed time; None: another kind of trigger."""


@lru_cache(maxsize=16_384)
def _parsed(trigger_text: str, policies_text: str) -> _Parsed:
    trigger, policies = _trigger_of(trigger_text), policies_from(policies_text)
    shared = None
    if trigger.is_shared:
        shared = _Remembering(trigger.build(dst=policies.dst, anchor=EPOCH, key=""))
    return _Parsed(trigger, policies, shared, trigger.step)


def compile_definition(definition: FiringDefinition, schedule_id: UUID) -> CompiledSchedule:
    """Compile a stored definition. Raises InvalidError or ValidationError if this version can't read it."""
    if definition.unknown_priority is not None:
        raise InvalidError.at("/priority", "enum", f'"{definition.unknown_priority}" is not known')
    trigger, policies, recurrence, step = _parsed(definition.trigger, definition.policies)
    if recurrence is None:
        if step is not None:
            recurrence = Elapsed(definition.anchor_ts, step)
        else:
            recurrence = trigger.build(
                dst=policies.dst, anchor=definition.anchor_ts, key=hash_key(schedule_id)
            )
    return CompiledSchedule(
        trigger=trigger,
        recurrence=recurrence,
        policies=policies,
        effective_ts=_earliest(definition.effective_ts, definition.anchor_ts),
        end_ts=definition.end_ts,
        max_runs=definition.max_runs,
    )


def compile_spec(spec: ScheduleSpec, schedule_id: UUID, effective_ts: datetime) -> CompiledSchedule:
    """Compile a definition that a user has written. Raises InvalidError."""
    anchor_ts = spec.start_ts or effective_ts
    return CompiledSchedule(
        trigger=spec.trigger,
        recurrence=spec.trigger.compile(dst=spec.dst, anchor=anchor_ts, key=hash_key(schedule_id)),
        policies=policies_of(spec),
        effective_ts=_earliest(effective_ts, anchor_ts),
        end_ts=spec.end_ts,
        max_runs=spec.max_runs,
    )


class MissingCalendarError(InvalidError):
    """A schedule names a calendar that its host does not have (any more)."""


def with_calendars(cadence: CompiledSchedule, host_id: UUID, book: CalendarBook) -> CompiledSchedule:
    """Return the cadence with its calendars looked up. Raises MissingCalendarError."""
    names = cadence.policies.calendars
    missing = [
        Problem(f"/calendars/{index}", "not_found", f'there is no calendar named "{name}"')
        for index, name in enumerate(names)
        if (host_id, name) not in book
    ]
    if missing:
        raise MissingCalendarError(missing)
    return cadence._replace(calendars=tuple(book[host_id, name] for name in names))


def _earliest(effective_ts: datetime, anchor_ts: datetime) -> datetime:
    """Return the instant after which times may come. The anchor itself is a time if it is `start_ts`."""
    return effective_ts if anchor_ts <= effective_ts else anchor_ts - INSTANT
