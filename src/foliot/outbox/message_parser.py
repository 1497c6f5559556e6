"""Converts a broker's message to an Event: the reverse of `message_format.py`, but more tolerant. Messages of
other producers are accepted if they are CloudEvents."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson

from foliot.db.types import storable
from foliot.outbox.handlers import Event

UNREADABLE = "unreadable"
NO_HOST = UUID(int=0)
LARGEST_OFFSET = 2**63 - 1


class ReceivedMessage(NamedTuple):
    """A message and its position at the broker."""

    topic: str
    partition: int
    offset: int
    sent_ts: datetime
    headers: Mapping[str, str]
    value: bytes


class ParsedMessage(NamedTuple):
    """An event read from a message, or the error that prevented it."""

    event: Event
    transaction_id: UUID
    error: str | None = None
    """Why the message can't be read; then the event holds its text. None: it was read."""


def unpack(arrived: ReceivedMessage) -> ParsedMessage:
    try:
        document = _whole(orjson.loads(arrived.value))
        if not isinstance(document, dict) or not isinstance(document.get("id"), str):
            raise ValueError("it is no CloudEvent")
        event = _event(arrived, document)
    except (ValueError, TypeError, RecursionError) as error:
        text = storable(arrived.value.decode(errors="replace"))
        return _unreadable(arrived, text, f"the message can't be read: {error}")
    return ParsedMessage(event, _uuid(arrived.headers.get("transaction_id")) or event.id)


def _event(arrived: ReceivedMessage, document: dict[str, Any]) -> Event:
    subject = str(document.get("subject") or "")
    offset = int(arrived.headers.get("c_offset", arrived.offset))
    if not 0 <= offset <= LARGEST_OFFSET:
        raise ValueError("its c_offset is none")
    return Event(
        id=_uuid(document["id"]) or uuid5(NAMESPACE_URL, f"{document.get('source')}#{document['id']}"),
        type=str(document.get("type") or ""),
        subject=subject,
        time=_instant(document.get("time")) or arrived.sent_ts,
        host_id=_uuid(document.get("host")) or NO_HOST,
        aggregate_id=arrived.headers.get("aggregate_id", subject),
        aggregate_version=int(document.get("aggregateversion") or 0),
        topic=arrived.topic,
        offset=offset,
        payload=document,
    )


def _unreadable(arrived: ReceivedMessage, text: str, error: str) -> ParsedMessage:
    identity = uuid5(NAMESPACE_URL, f"{arrived.topic}/{arrived.partition}/{arrived.offset}")
    event = Event(
        id=identity,
        type=UNREADABLE,
        subject="",
        time=arrived.sent_ts,
        host_id=NO_HOST,
        aggregate_id="",
        aggregate_version=0,
        topic=arrived.topic,
        offset=arrived.offset,
        payload={"data": text},
    )
    return ParsedMessage(event, identity, error)


def instant_of_millis(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)


def _instant(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    instant = datetime.fromisoformat(value)
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def _uuid(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _whole(value: Any) -> Any:
    """Make a document storable in every database, since it may become a dead letter."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(name): _whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return value
