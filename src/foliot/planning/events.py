"""What a fired event target says, as a row of `event_store_t` and `outbox_message_t`.

The row's id is the execution's: whoever keeps ids sees a redelivered event for what it is, and from an event
one finds the execution that it was. Versions are the schedule's own count of its events, `event_seq`.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from pydantic import TypeAdapter

from foliot.model.cloud_event import SPEC_VERSION, CloudEventTemplate, read_template
from foliot.model.errors import FoliotError
from foliot.model.target import EventTarget

AGGREGATE_TYPE = "Schedule"
NOBODY = UUID(int=0)
"""The user of events that no user has asked for."""


class NewEvent(NamedTuple):
    """A row about to be written. Its offset is given out when it is."""

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
    """A whole CloudEvent, as JSON."""
    event_topic: str


class UnreadableTargetError(FoliotError):
    """What is stored of an event target can't be understood any more."""

    def __init__(self, schedule_id: UUID, reason: str) -> None:
        super().__init__(reason)
        self.schedule_id = schedule_id


class _Form(NamedTuple):
    """A target, read once for all the events that it says."""

    topic: str
    type: str
    template: CloudEventTemplate
    data: orjson.Fragment


_TARGET: TypeAdapter[EventTarget] = TypeAdapter(EventTarget)


@lru_cache(maxsize=4_096)
def _form_of(target_text: str) -> _Form:
    target = _TARGET.validate_json(target_text, extra="ignore")
    template = read_template(target.event_data)
    return _Form(
        target.event_topic,
        template.type or target.event_type,
        template,
        orjson.Fragment(_json(template.data)),
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
    """The event of one fire time. `args` of a manual run go over the data that is an object.

    Raises UnreadableTargetError.
    """
    try:
        form = _form_of(target_text)
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise UnreadableTargetError(schedule_id, f"its event target can't be read: {reason}") from None
    template = form.template
    user_id, aggregate_type = template.user_id or NOBODY, template.aggregate_type or AGGREGATE_TYPE
    aggregate_id = str(schedule_id)
    document: dict[str, Any] = {
        "source": f"/foliot/schedules/{aggregate_id}",
        "subject": aggregate_id,
        "user": str(user_id),
        "aggregatetype": aggregate_type,
        **template.attributes,
        "specversion": SPEC_VERSION,
        "id": str(execution_id),
        "type": form.type,
        "time": fire_ts,
        "host": str(host_id),
        "nonce": event_seq,
        "aggregateversion": event_seq,
    }
    if template.data_base64 is not None:
        document["data_base64"] = template.data_base64
    else:
        document.setdefault("datacontenttype", "application/json")
        document["data"] = {**template.data, **args} if args else form.data
    return NewEvent(
        execution_id,
        host_id,
        user_id,
        event_seq,
        aggregate_id,
        event_seq,
        aggregate_type,
        form.type,
        fire_ts,
        _json(document).decode(),
        form.topic,
    )


def takes_arguments(target: EventTarget) -> bool:
    """Whether a manual run may bring data of its own: only an object can be laid over another."""
    return isinstance(read_template(target.event_data).data, dict)


def _json(document: Any) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_UTC_Z)
