"""Events of what leaves the cluster: consumers, the relay, transports and notifications."""

from dataclasses import dataclass
from uuid import UUID

from foliot.model.event import DomainEvent


@dataclass(frozen=True, slots=True)
class EventsConsumed(DomainEvent):
    """A batch of a partition's events was handled, and its offset moved in the same transaction."""

    group: str
    partition: int
    handled: int
    dead: int
    """Number of events that became dead letters instead."""
    duration_s: float


@dataclass(frozen=True, slots=True)
class EventsDeadLettered(DomainEvent):
    """A handler failed too often with a transaction. Published just before the batch commits."""

    group: str
    transaction_id: UUID
    count: int
    error: str


@dataclass(frozen=True, slots=True)
class TopicRefused(DomainEvent):
    """The broker refuses a topic: the relay continues without it, and retries it."""

    topic: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConsumerLagChanged(DomainEvent):
    """Lag of a group's slowest partition behind the end of the outbox, in offsets."""

    group: str
    lag: int


@dataclass(frozen=True, slots=True)
class RelayTookOver(DomainEvent):
    """This instance is the active relay from now on."""

    epoch: int
    instance_id: str


@dataclass(frozen=True, slots=True)
class RelayLost(DomainEvent):
    """This instance stopped being the active relay unintentionally."""

    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class RelayReleased(DomainEvent):
    """This instance stopped being the active relay because it was asked to stop."""

    epoch: int


@dataclass(frozen=True, slots=True)
class RelayConfirmed(DomainEvent):
    """The broker confirmed more messages, up to this offset."""

    count: int
    offset: int
    lag: int
    """Number of messages that are committed and not yet confirmed."""


@dataclass(frozen=True, slots=True)
class OutboxMeasured(DomainEvent):
    """The active relay, or a scheduler, counted the messages that are committed and not yet confirmed."""

    lag: int


@dataclass(frozen=True, slots=True)
class TransportLost(DomainEvent):
    """A broker has not answered for a while: workers poll the database."""

    kind: str
    address: str
    reason: str


@dataclass(frozen=True, slots=True)
class TransportRecovered(DomainEvent):
    kind: str
    address: str
    away_s: float


@dataclass(frozen=True, slots=True)
class TicketsRepublished(DomainEvent):
    """Executions that had waited too long were published to the broker again."""

    kind: str
    count: int


@dataclass(frozen=True, slots=True)
class NotificationDecided(DomainEvent):
    """A notification is to be sent."""

    kind: str
    """Its type, such as `schedule.failed`."""
    rule_id: UUID
    schedule_id: UUID | None
    """None: it is about several schedules."""


@dataclass(frozen=True, slots=True)
class NotificationDelivered(DomainEvent):
    """A notification was delivered."""

    notification_id: UUID
    kind: str
    attempts: int


@dataclass(frozen=True, slots=True)
class NotificationFailed(DomainEvent):
    """A notification could not be delivered: it is retried or given up."""

    notification_id: UUID
    kind: str
    attempts: int
    error: str
    retry_in_s: float | None
    """Seconds until the retry; None: given up."""
