"""The form of an outbox message at a broker: topic name, headers and body are equal at every broker."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from foliot.model.broker import name_at_broker
from foliot.model.trace import fire_span
from foliot.queries.outbox_list import OutboxMessage

CONTENT_TYPE = "application/cloudevents+json"
LONGEST_TOPIC = 200
"""Maximum length. RabbitMQ accepts names of 255 bytes, Kafka of 249, and a prefix counts too."""


@dataclass(frozen=True, slots=True)
class BrokerMessage:
    """An outbox message, ready to be sent to any broker."""

    id: str
    """Id of the event. It is the same each time the message is sent."""
    topic: str
    key: str
    """Messages with the same key arrive in order."""
    headers: dict[str, str]
    body: bytes
    """The whole CloudEvent, as JSON."""


def pack(message: OutboxMessage) -> BrokerMessage:
    event_id = str(message.id)
    return BrokerMessage(
        id=event_id,
        topic=topic_at_broker(message.event_topic),
        key=message.aggregate_id,
        headers={
            "content-type": CONTENT_TYPE,
            "ce-id": event_id,
            # Header values must be ASCII at some brokers. The body has the original text.
            "ce-type": _ascii(message.event_type),
            "host": str(message.host_id),
            "aggregate_id": _ascii(message.aggregate_id),
            "aggregate_version": str(message.aggregate_version),
            "c_offset": str(message.c_offset),
            "transaction_id": str(message.transaction_id),
            "transaction_ordinal": str(message.transaction_ordinal),
            "transaction_count": str(message.transaction_count),
            # The event's id is its execution's id, so they share the trace.
            "traceparent": str(fire_span(message.id)),
        },
        body=_body(message.payload),
    )


def topic_at_broker(event_topic: str) -> str:
    """Return the topic's name at the broker. Too long a name is cut and ends in a hash of the whole name."""
    name = name_at_broker(event_topic)
    if len(name) <= LONGEST_TOPIC and name not in (".", ".."):
        return name
    digest = hashlib.sha256(event_topic.encode()).hexdigest()[:16]
    return f"{name[: LONGEST_TOPIC - 17]}_{digest}"


def _body(payload: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(payload)
    except TypeError:  # an integer of more than 64 bits, which a document may hold
        return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def _ascii(text: str) -> str:
    return text.encode("ascii", errors="backslashreplace").decode()


def cut(messages: Sequence[BrokerMessage], max_count: int, max_bytes: int) -> Iterator[list[BrokerMessage]]:
    """Split messages into batches of at most `max_count` messages or about `max_bytes`. A large message
    is a batch alone."""
    piece: list[BrokerMessage] = []
    size = 0
    for message in messages:
        if piece and (len(piece) == max_count or size + len(message.body) > max_bytes):
            yield piece
            piece, size = [], 0
        piece.append(message)
        size += len(message.body)
    if piece:
        yield piece
