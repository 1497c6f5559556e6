"""JSON documents of schedules and executions, and how an edited schedule document is read back."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic_core import to_jsonable_python

from foliot.api.api_document import ApiDocument
from foliot.model.errors import InvalidError, Problem
from foliot.model.execution import Execution, Status, TriggeredBy
from foliot.model.kind import TRIGGERS, BaseTrigger
from foliot.model.policy import Priority
from foliot.model.schedule import ManagedBy, Schedule, ScheduleSpec, ScheduleState
from foliot.planning.change import as_of


class RecentExecutionDocument(ApiDocument):
    """One of the latest executions of a schedule."""

    execution_id: UUID
    status: Status
    fire_ts: datetime
    duration_seconds: float | None


class ScheduleDocument(ScheduleSpec):
    """A schedule: its definition, and, read-only, where it stands."""

    model_config = ConfigDict(title="Schedule")

    schedule_id: UUID
    host_id: UUID
    state: ScheduleState
    state_reason: str | None = None
    trigger_description: str = Field(default="", description="The trigger in words.")
    target_description: str = Field(default="", description="The target in words.")
    next_run_ts: datetime | None = Field(default=None, description="When it will be acted on, with jitter.")
    next_fire_ts: datetime | None = Field(default=None, description="The nominal time that is next.")
    last_run_ts: datetime | None = None
    last_status: Status | None = None
    last_execution_id: UUID | None = None
    paused: bool
    pause_reason: str | None = None
    paused_until_ts: datetime | None = None
    run_count: int = Field(
        description="How often its trigger has fired it, up to `max_runs`; not runs by hand or backfills."
    )
    aggregate_version: int = Field(description="Grows with every change; the ETag.")
    managed_by: ManagedBy
    managed_source: str | None = None
    created_by: str | None = None
    created_ts: datetime
    updated_by: str | None = None
    updated_ts: datetime


class ListedScheduleDocument(ScheduleDocument):
    """A schedule in a list."""

    model_config = ConfigDict(title="ListedSchedule")

    recent: list[RecentExecutionDocument] | None = Field(
        default=None, description="Its latest executions, latest first, if they were asked for."
    )


READ_ONLY = tuple(name for name in ScheduleDocument.model_fields if name not in ScheduleSpec.model_fields)


_MERGED = ("trigger", "target", "misfire", "overlap", "retry", "dst", "window")
"""Objects that a patch may contain in part."""


def _patch() -> type[BaseModel]:
    fields: dict[str, Any] = {
        name: (dict[str, Any] | None if name in _MERGED else (info.annotation or Any) | None, None)
        for name, info in ScheduleDocument.model_fields.items()
    }
    doc = (
        "Any fields of a schedule, each with its new value, or null for its default. "
        "Read-only ones may come back as they were read."
    )
    return create_model("SchedulePatch", __config__=ConfigDict(extra="forbid"), __doc__=doc, **fields)


def _replacement() -> type[BaseModel]:
    read_only: dict[str, Any] = {
        name: (ScheduleDocument.model_fields[name].annotation, None) for name in READ_ONLY
    }
    doc = "The definition of a schedule. Read-only fields may come back as they were read."
    return create_model("ScheduleReplacement", __base__=ScheduleSpec, __doc__=doc, **read_only)


SchedulePatch = _patch()
ScheduleReplacement = _replacement()
"""`SchedulePatch` and `ScheduleReplacement` are only for the OpenAPI document. They don't parse bodies."""


def schedule_document(
    schedule: Schedule,
    now: datetime,
    *,
    last_run_ts: datetime | None = None,
    last_status: Status | None = None,
    last_execution_id: UUID | None = None,
) -> dict[str, Any]:
    schedule = as_of(schedule, now)
    return {
        **_written(schedule),
        **{name: getattr(schedule, name, None) for name in READ_ONLY},
        "trigger_description": in_words(schedule.spec.trigger),
        "target_description": schedule.spec.target.describe(),
        "last_run_ts": last_run_ts,
        "last_status": last_status,
        "last_execution_id": last_execution_id,
    }


_MAX_REMEMBERED = 5_000
_documents: dict[tuple[UUID, int], dict[str, Any]] = {}


def _written(schedule: Schedule) -> dict[str, Any]:
    """Return the definition as JSON, cached by version."""
    version = (schedule.schedule_id, schedule.aggregate_version)
    known = _documents.get(version)
    if known is None:
        if len(_documents) >= _MAX_REMEMBERED:
            _documents.clear()
        known = _documents[version] = schedule.spec.model_dump(mode="json")
    return known


@lru_cache(maxsize=20_000)
def in_words(trigger: BaseTrigger) -> str:
    """Describe a trigger in words. Cached: describing one takes half a millisecond, and triggers repeat."""
    return trigger.describe()


def definition_of(document: Mapping[str, Any], shown: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the definition in a document that a client read, edited and sent back. Raises InvalidError.

    Read-only fields may come back with the values that were shown. A changed one is refused.
    """
    standing = to_jsonable_python({name: shown[name] for name in (*READ_ONLY, "trigger")})
    trigger = TRIGGERS[standing.pop("trigger")["kind"]]
    changed = [
        Problem(
            f"/{name}", "read_only", "is set by Foliot and can't be changed", "leave it as it was, or out"
        )
        for name in READ_ONLY
        if name in document
        and not _is_same(document[name], standing[name])
        and not _was_so(name, document, standing, now, is_delay=trigger.counts_from_end)
    ]
    if changed:
        raise InvalidError(changed)
    return {name: value for name, value in document.items() if name not in standing and name != "recent"}


def _is_same(given: Any, shown: Any) -> bool:
    if given == shown and isinstance(given, bool) == isinstance(shown, bool):
        return True
    # A client may send the same instant in another format.
    instant = _instant(given)
    return instant is not None and instant == _instant(shown)


def _was_so(
    name: str, given: Mapping[str, Any], shown: Mapping[str, Any], now: datetime, *, is_delay: bool
) -> bool:
    """Whether a read-only field may have had the given value when the client read the document.

    The schedule continues to run while somebody edits its document.
    """
    match name:
        case "run_count":
            return type(given[name]) is int and 0 <= given[name] < shown[name]
        case "next_run_ts" | "next_fire_ts":
            instant = _instant(given[name])
            if instant is None:
                # A delay has no next time while it runs.
                return given[name] is None and is_delay
            return instant <= now
        case "paused" | "pause_reason" | "paused_until_ts":
            return _had_pause(given, shown, now)
        case "last_run_ts" | "last_status" | "last_execution_id":
            last, known = _instant(given.get("last_run_ts")), _instant(shown["last_run_ts"])
            return known is not None and "last_run_ts" in given and (last is None or last < known)
        case "state":
            if given[name] == "paused":
                return _had_pause(given, shown, now)
            return given[name] == "active" and shown[name] in ("completed", "error")
        case "state_reason":
            return given[name] is None and shown["state"] == "error"
        case _:
            return False


def _had_pause(given: Mapping[str, Any], shown: Mapping[str, Any], now: datetime) -> bool:
    """Whether the given document shows a pause that has ended by itself since."""
    until_ts = _instant(given.get("paused_until_ts"))
    return given.get("paused") is True and not shown["paused"] and until_ts is not None and until_ts <= now


def _instant(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None


class ExecutionDocument(ApiDocument):
    """An execution: what became of a fire time, a trigger by hand, or a time of a backfill."""

    execution_id: UUID
    schedule_id: UUID
    schedule_name: str | None = Field(description="The present name; null once the schedule is forgotten.")
    aggregate_version: int = Field(description="The version of the schedule that it runs.")
    fire_ts: datetime = Field(description="The nominal time that it decides.")
    missed_count: int = Field(description="How many earlier times it decides too.")
    missed_from_ts: datetime | None
    status: Status
    reason: str | None
    triggered_by: TriggeredBy
    triggered_by_user: str | None
    scheduler_instance_id: str | None
    external_id: str | None
    attempt: int
    args: dict[str, Any] | None = Field(description="Arguments that were given by hand, over the schedule's.")
    queue: str
    priority: Priority
    ready_ts: datetime | None
    started_ts: datetime | None
    ended_ts: datetime | None
    duration_seconds: float | None
    progress: dict[str, Any] | None
    result: Any
    error: str | None
    traceback: str | None
    worker_id: str | None
    trace_id: str = Field(description="Of its trace: 32 hex digits.")
    cancel_requested: bool
    created_ts: datetime


_EXECUTION_FIELDS = tuple(ExecutionDocument.model_fields)


def execution_document(execution: Execution) -> dict[str, Any]:
    return {name: getattr(execution, name) for name in _EXECUTION_FIELDS}
