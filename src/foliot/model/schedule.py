"""A schedule: the definition that a user writes, and the stored record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from foliot.model.document import Document
from foliot.model.errors import InvalidError, Problem
from foliot.model.kind import TARGETS, TRIGGERS, Target, Trigger
from foliot.model.moment import Moment
from foliot.model.policy import Delivery, Dst, Misfire, Overlap, Priority, RetryPolicy, Window

QueueName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.:-]+$")]
Label = Annotated[str, Field(max_length=200)]


class ScheduleSpec(Document):
    """The definition of a schedule. Only name, trigger and target are required."""

    # Kinds are found when the first definition is read: their modules may import this one.
    model_config = ConfigDict(defer_build=True)

    name: str = Field(min_length=1, max_length=126)
    description: str = Field(default="", max_length=2000)
    active: bool = True
    priority: Priority = Priority.MEDIUM
    queue: QueueName = "default"
    trigger: Trigger
    target: Target
    start_ts: Moment | None = None
    end_ts: Moment | None = None
    max_runs: int | None = Field(default=None, ge=1, le=1_000_000_000)
    timeout_seconds: float = Field(default=300, gt=0, le=30 * 86400)
    misfire: Misfire = Misfire()
    overlap: Overlap = Overlap()
    retry: RetryPolicy = RetryPolicy()
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    dst: Dst = Dst()
    labels: dict[Annotated[str, Field(min_length=1, max_length=100)], Label] = Field(default_factory=dict)
    window: Window | None = None
    calendars: tuple[Annotated[str, Field(min_length=1, max_length=126)], ...] = ()
    jitter_seconds: float = Field(default=0, ge=0, le=86400)

    @field_validator("name")
    @classmethod
    def _trimmed(cls, value: str) -> str:
        if value != value.strip() or not value.isprintable():
            raise ValueError("must be printable text without spaces around it")
        return value

    @model_validator(mode="after")
    def _ends_after_start(self) -> Self:
        if self.start_ts and self.end_ts and self.end_ts < self.start_ts:
            raise ValueError("end_ts must not be before start_ts")
        return self

    @field_validator("description", "labels", "target", "calendars")
    @classmethod
    def _can_be_stored(cls, value: Any) -> Any:
        _require_storable(value.model_dump() if isinstance(value, Document) else value, "")
        return value

    @classmethod
    def parse(cls, document: Any) -> "ScheduleSpec":
        """Parse what a user wrote. Raises an InvalidError that names each wrong field."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise InvalidError(problems_of(error)) from None


_ADDED: dict[str, dict[str, Any]] = {
    "overlap": {"max_queued": Overlap.model_fields["max_queued"].default},
}
"""Fields that older versions refuse to read, with their defaults."""


def stored_document(document: Document) -> dict[str, Any]:
    """Return a definition, or its policies, as JSON for the database.

    Fields that were added to policies later are left out if they have their default: the previous version,
    which may run at the same time, refuses unknown fields.
    """
    stored = document.model_dump(mode="json")
    for name, defaults in _ADDED.items():
        policy = stored[name]
        stored[name] = {key: value for key, value in policy.items() if defaults.get(key, _NONE) != value}
    return stored


_NONE = object()


def _require_storable(value: Any, path: str) -> None:
    """Refuse text with NUL or with half of a surrogate pair, which databases can't store."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError(f"{path} must not contain NUL".strip())
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{path} must be whole characters, no halves of a pair".strip()) from None
    elif isinstance(value, dict):
        for key, item in value.items():
            _require_storable(key, f"a name in {path}".rstrip())
            _require_storable(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _require_storable(item, f"{path}.{index}".lstrip("."))


def problems_of(error: ValidationError) -> list[Problem]:
    """Convert Pydantic's errors to Foliot's problems, one per field."""
    found = []
    for item in error.errors(include_url=False, include_context=True):
        context = item.get("ctx", {})
        message = item["msg"].removeprefix("Value error, ")
        hint = f"one of: {context['expected']}" if "expected" in context else ""
        if "expected_tags" in context:
            message, hint = "is not a known kind", f"one of: {context['expected_tags']}"
        path = _written(item["loc"]) + ([context["field"]] if "field" in context else [])
        found.append(Problem(pointer_to(path), item["type"], message, hint))
    return found


def _written(path: Sequence[int | str]) -> list[int | str]:
    """Remove the chosen kind from the path: Pydantic adds it for a discriminated union."""
    return [
        part
        for before, part in pairwise(("", *path))
        if not (before == "trigger" and part in TRIGGERS) and not (before == "target" and part in TARGETS)
    ]


def pointer_to(path: Iterable[object]) -> str:
    """Return the path as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


class ScheduleState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    INACTIVE = "inactive"
    COMPLETED = "completed"
    ERROR = "error"


class ManagedBy(StrEnum):
    API = "api"
    UI = "ui"
    CODE = "code"
    FILE = "file"


class ChangeKind(StrEnum):
    """Why a version of a schedule exists."""

    CREATED = "created"
    EDITED = "edited"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A stored schedule: its definition, its state, and who changed it."""

    schedule_id: UUID
    host_id: UUID
    spec: ScheduleSpec
    slot: int
    state: ScheduleState
    state_reason: str | None = None
    effective_ts: datetime
    """The trigger yields only times after this: when it was created or its timing last changed."""
    next_fire_ts: datetime | None = None
    """The nominal time that is decided next. It identifies the execution; the next is computed from it."""
    next_run_ts: datetime | None = None
    """When to act on it, with jitter. None: nothing will become due."""
    run_count: int = 0
    """How often its trigger has fired it. Manual runs and backfills don't count."""
    paused: bool = False
    paused_until_ts: datetime | None = None
    pause_reason: str | None = None
    managed_by: ManagedBy = ManagedBy.API
    managed_source: str | None = None
    """The set of files that it comes from, if `apply` manages it."""
    aggregate_version: int = 1
    created_by: str | None = None
    created_ts: datetime
    updated_by: str | None = None
    updated_ts: datetime
    deleted_ts: datetime | None = None

    @property
    def anchor_ts(self) -> datetime:
        """The instant that intervals and rules count from."""
        return self.spec.start_ts or self.effective_ts
