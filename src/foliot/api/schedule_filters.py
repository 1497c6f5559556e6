"""Filters and sort order of schedule lists, as query parameters or as part of a body."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Query
from pydantic import Field

from foliot.api.http.request_body import Form
from foliot.api.paging import PageRequest, bad_token, read_id, read_instant
from foliot.model.errors import InvalidError
from foliot.model.execution import Status
from foliot.model.kind import TARGETS
from foliot.model.policy import Priority
from foliot.model.schedule import ManagedBy, QueueName, ScheduleState
from foliot.queries.schedule_list import ScheduleFilter, SchedulePosition, ScheduleSort

TargetName = Literal[*TARGETS]  # type: ignore[valid-type]
Name = Annotated[str, Field(max_length=126, pattern=r"^[^\x00]*$")]
LabelText = Annotated[str, Field(max_length=301, pattern=r"^[^\x00]*$")]
Search = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]
_MAX_VALUES = 50
_LABELS = "As `name:value`, of several all must hold."
_SEARCH = "A part of the name or of the description."


@dataclass(frozen=True, slots=True)
class ScheduleQuery:
    """Filters as query parameters (a FastAPI dependency). A repeated parameter matches any of its values."""

    name: Annotated[list[Name] | None, Query(max_length=_MAX_VALUES)] = None
    q: Annotated[Search, Query(description=_SEARCH)] = ""
    active: bool | None = None
    queue: Annotated[list[QueueName] | None, Query(max_length=_MAX_VALUES)] = None
    priority: Annotated[list[Priority] | None, Query(max_length=_MAX_VALUES)] = None
    target: Annotated[
        list[TargetName] | None, Query(max_length=_MAX_VALUES, description="Kinds of target.")
    ] = None
    last_status: Annotated[list[Status] | None, Query(max_length=_MAX_VALUES)] = None
    state: Annotated[list[ScheduleState] | None, Query(max_length=_MAX_VALUES)] = None
    managed_by: Annotated[list[ManagedBy] | None, Query(max_length=_MAX_VALUES)] = None
    calendar: Annotated[list[Name] | None, Query(max_length=_MAX_VALUES)] = None
    label: Annotated[list[LabelText] | None, Query(max_length=_MAX_VALUES, description=_LABELS)] = None

    def filter_for(self, host_id: UUID) -> ScheduleFilter:
        return _filter(host_id, self)


class ScheduleFilterForm(Form):
    """Which schedules, as in the list of them; an empty one means all."""

    name: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
    q: Search = Field(default="", description=_SEARCH)
    active: bool | None = None
    queue: Annotated[tuple[QueueName, ...], Field(max_length=_MAX_VALUES)] = ()
    priority: Annotated[tuple[Priority, ...], Field(max_length=_MAX_VALUES)] = ()
    target: Annotated[tuple[TargetName, ...], Field(max_length=_MAX_VALUES)] = ()
    last_status: Annotated[tuple[Status, ...], Field(max_length=_MAX_VALUES)] = ()
    state: Annotated[tuple[ScheduleState, ...], Field(max_length=_MAX_VALUES)] = ()
    managed_by: Annotated[tuple[ManagedBy, ...], Field(max_length=_MAX_VALUES)] = ()
    calendar: Annotated[tuple[Name, ...], Field(max_length=_MAX_VALUES)] = ()
    label: Annotated[tuple[LabelText, ...], Field(max_length=_MAX_VALUES, description=_LABELS)] = ()

    def filter_for(self, host_id: UUID) -> ScheduleFilter:
        return _filter(host_id, self)


def _filter(host_id: UUID, asked: ScheduleQuery | ScheduleFilterForm) -> ScheduleFilter:
    return ScheduleFilter(
        host_id=host_id,
        names=asked.name or (),
        q=asked.q,
        active=asked.active,
        queues=asked.queue or (),
        priorities=asked.priority or (),
        targets=asked.target or (),
        last_statuses=asked.last_status or (),
        states=asked.state or (),
        managed_by=asked.managed_by or (),
        calendars=asked.calendar or (),
        labels=_labels(asked.label or ()),
    )


def _labels(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, value = text.partition(":")
        if not sign or not name:
            raise InvalidError.at("/label", "label", f'"{text}" is not a label', "write it as team:pay")
        found[name] = value
    return found


_SORTS = tuple(sign + sort.value for sort in ScheduleSort for sign in ("", "-"))


@dataclass(frozen=True, slots=True)
class ScheduleOrder:
    """The sort order as a query parameter (a FastAPI dependency)."""

    sort: Annotated[
        Literal[_SORTS],  # type: ignore[valid-type]
        Query(description="With `-` the other way round. What has nothing to sort by comes last."),
    ] = "name"

    @property
    def by(self) -> ScheduleSort:
        return ScheduleSort(str(self.sort).removeprefix("-"))

    @property
    def is_descending(self) -> bool:
        return str(self.sort).startswith("-")

    def position(self, page: PageRequest) -> SchedulePosition | None:
        values = page.position()
        if values is None:
            return None
        if len(values) != 3 or values[0] != self.sort:
            raise bad_token()
        value: Any = values[1]
        if value is not None and self.by is not ScheduleSort.NAME:
            value = read_instant(value)
        return SchedulePosition(value, read_id(values[2]))

    def place_of(self, position: SchedulePosition) -> list[Any]:
        """Return the values to put in a page token, which `position` parses again."""
        return [self.sort, position.value, position.schedule_id]
