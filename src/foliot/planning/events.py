"""Builds the event of a fired event target: a row of `event_store_t` and `outbox_message_t`.

The event's id is the execution's. So consumers that store ids recognise a redelivered event, and an event
leads to its execution. Versions are the schedule's own count of its events, `event_seq`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from pydantic import TypeAdapter

from foliot.model.cloud_event import SPEC_VERSION, read_template
from foliot.model.errors import FoliotError, InvalidError
from foliot.model.kind import BaseTarget, Target

AGGREGATE_TYPE = "Schedule"
NOBODY = UUID(int=0)
"""User id of events that no user asked for."""


class NewEvent(NamedTuple):
    """A row to be written. Its offset is assigned when it is written."""

    id: UUID
    host_id: UUID
    user_id: UUID
    nonce: int
    aggregate_id: str
    aggregate_version: int
    aggregate_type: str
    event_type: str
    event_ts: datetime
    payload: str
    """A whole CloudEvent as JSON."""
    event_topic: str


class UnreadableTargetError(FoliotError):
    """Stored event targets can't be read by this version."""

    def __init__(self, reasons: Mapping[UUID, str]) -> None:
        super().__init__("; ".join(sorted(set(reasons.values()))))
        self.reasons = reasons
        """Error texts by schedule id."""


class _Form(NamedTuple):
    """An event target, parsed once for all of its events."""

    topic: str
    type: str
    user_id: UUID
    aggregate_type: str
    head: str
    """Beginning of the JSON: the attributes that are equal in all events."""
    has_subject: bool
    has_source: bool
    data: Any
    tail: str
    """End of the JSON: the data."""


@cache
def _target() -> TypeAdapter[BaseTarget]:
    return TypeAdapter(Target)


@lru_cache(maxsize=4_096)
def _form_of(target_text: str) -> _Form:
    form = _target().validate_json(target_text, extra="ignore").event()
    if form is None:
        raise ValueError("it writes no event")
    template = read_template(form.data)
    attributes: dict[str, Any] = {
        "user": str(NOBODY),
        "aggregatetype": AGGREGATE_TYPE,
        "type": form.type,
        **template.attributes,
        "specversion": SPEC_VERSION,
    }
    if template.data_base64 is not None:
        data, tail = None, f',"data_base64":{_json(template.data_base64)}}}'
    else:
        attributes.setdefault("datacontenttype", "application/json")
        data, tail = template.data, _with_data(template.data)
    return _Form(
        form.topic,
        template.type or form.type,
        template.user_id or NOBODY,
        template.aggregate_type or AGGREGATE_TYPE,
        _json(attributes)[:-1],
        "subject" in attributes,
        "source" in attributes,
        data,
        tail,
    )


def plan_event(
    target_text: str,
    *,
    execution_id: UUID,
    schedule_id: UUID,
    host_id: UUID,
    event_seq: int,
    fire_ts: datetime,
    args: Mapping[str, Any] | None = None,
) -> NewEvent:
    """Build the event of one fire time. `args` of a manual run override fields of data that is an object.

    Raises UnreadableTargetError, and InvalidError for `args`.
    """
    try:
        form = _form_of(target_text)
    except (ValueError, TypeError) as error:  # orjson raises a TypeError for values it can't serialise
        reason = str(error).partition("\n")[0]
        raise UnreadableTargetError({schedule_id: f"its event target can't be read: {reason}"}) from None
    try:
        tail = _with_data({**form.data, **args}) if args else form.tail
    except TypeError as error:
        detail = f"can't be written as JSON of an event: {error}"
        hint = "integers have at most 64 bits, and objects and lists are nested at most 250 deep"
        raise InvalidError.at("/args", "not_json", detail, hint) from None
    aggregate_id = str(schedule_id)
    subject = "" if form.has_subject else f',"subject":"{aggregate_id}"'
    source = "" if form.has_source else f',"source":"/foliot/schedules/{aggregate_id}"'
    # Built as text for speed, since it runs for every event: only ids, numbers and times vary.
    payload = (
        f'{form.head}{subject}{source},"id":"{execution_id}","time":"{_time(fire_ts)}","host":"{host_id}",'
        f'"nonce":{event_seq},"aggregateversion":{event_seq}{tail}'
    )
    return NewEvent(
        execution_id,
        host_id,
        form.user_id,
        event_seq,
        aggregate_id,
        event_seq,
        form.aggregate_type,
        form.type,
        fire_ts,
        payload,
        form.topic,
    )


def _with_data(data: Any) -> str:
    return f',"data":{_json(data)}}}'


def _time(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _json(document: Any) -> str:
    return orjson.dumps(document).decode()
