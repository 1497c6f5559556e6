"""Events as handlers get them, and the options that a handler is registered with."""

import base64
import binascii
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.model.broker import BrokerKind, kind_of
from foliot.model.errors import InvalidError

MAX_GROUP_LENGTH = 126
MAX_PARTITIONS = 1024
MAX_BATCH = 10_000
DEFAULT_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event, as it was committed."""

    id: UUID
    type: str
    subject: str
    time: datetime
    """The fire time of the event."""
    host_id: UUID
    aggregate_id: str
    aggregate_version: int
    topic: str
    offset: int
    """Offset in the outbox. For events that did not come from an outbox: in the broker's partition."""
    payload: Mapping[str, Any]
    """The whole CloudEvent."""

    @property
    def data(self) -> Any:
        """The CloudEvent's data; bytes if it is binary."""
        binary = self.payload.get("data_base64")
        if not isinstance(binary, str):
            return self.payload.get("data")
        try:
            return base64.b64decode(binary, validate=True)
        except binascii.Error:
            return binary

    def document(self) -> dict[str, Any]:
        """Return the event as JSON, for a dead letter."""
        return {
            "id": str(self.id),
            "type": self.type,
            "subject": self.subject,
            "time": self.time.isoformat(),
            "host_id": str(self.host_id),
            "aggregate_id": self.aggregate_id,
            "aggregate_version": self.aggregate_version,
            "topic": self.topic,
            "offset": self.offset,
            "payload": dict(self.payload),
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "Event":
        return cls(
            id=UUID(document["id"]),
            type=document["type"],
            subject=document["subject"],
            time=datetime.fromisoformat(document["time"]),
            host_id=UUID(document["host_id"]),
            aggregate_id=document["aggregate_id"],
            aggregate_version=document["aggregate_version"],
            topic=document["topic"],
            offset=document["offset"],
            payload=document["payload"],
        )


@dataclass(frozen=True, slots=True)
class EventTransaction:
    """Events that were committed together. Only those of this consumer's partition and topics."""

    transaction_id: UUID
    events: tuple[Event, ...]
    connection: AsyncConnection
    """Connection in the transaction that moves the offset. What you write here commits with the offset, or
    not at all."""
    attempt: int = 1


Handler = Callable[[EventTransaction], Awaitable[None]]
Start = Literal["earliest", "latest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSpec:
    """The handler of a consumer group and its options. Wrong values raise InvalidError."""

    group: str
    handler: Handler
    topics: tuple[str, ...] | None = None
    """None: all topics."""
    partitions: int = 1
    batch: int = 100
    """Events per transaction. A transaction of the outbox is never split."""
    max_attempts: int = 3
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Maximum seconds of one call of the handler."""
    start: Start = "earliest"
    """Where a new group starts."""
    source: str = BrokerKind.DATABASE.value
    """`database`, or the address of the Kafka cluster that a relay publishes to."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.group) <= MAX_GROUP_LENGTH or "\0" in self.group:
            _refuse("/group", f"must have 1 to {MAX_GROUP_LENGTH} characters", '"billing"')
        if not inspect.iscoroutinefunction(self.handler):
            _refuse("/handler", "must be an async function", "async def handle(transaction): …")
        if self.topics is not None and (not self.topics or not all(self.topics)):
            _refuse("/topics", "must name topics", "leave it out for all of them")
        for name, limit in (("partitions", MAX_PARTITIONS), ("batch", MAX_BATCH), ("max_attempts", 100)):
            if not 1 <= getattr(self, name) <= limit:
                _refuse(f"/{name}", f"must be 1 to {limit}", f"it is {getattr(self, name)}")
        if not 0 < self.timeout_s <= 86400:
            _refuse("/timeout", "must be more than nothing and at most a day", '"60s"')
        if self.start not in ("earliest", "latest"):
            _refuse("/start", 'must be "earliest" or "latest"', '"earliest"')
        self._check_source()

    def _check_source(self) -> None:
        try:
            kind = kind_of(self.source)
        except ValueError:
            kind = None
        if kind not in (BrokerKind.DATABASE, BrokerKind.KAFKA):
            _refuse("/source", "must be the database or a Kafka", '"database", "kafka://host:9092"')
        if kind is BrokerKind.KAFKA and self.topics is None:
            _refuse("/topics", "must be named where events come from Kafka", 'topics=["orders"]')

    @property
    def is_of_database(self) -> bool:
        return self.source == BrokerKind.DATABASE


def _refuse(pointer: str, detail: str, hint: str) -> None:
    raise InvalidError.at(pointer, "consumer", detail, hint)
