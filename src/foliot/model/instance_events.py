"""Events of instances: leading, requests, failing services and dependencies."""

from dataclasses import dataclass

from foliot.model.event import DomainEvent


@dataclass(frozen=True, slots=True)
class InstanceStarted(DomainEvent):
    instance_id: str
    roles: tuple[str, ...]
    version: str
    database: str


@dataclass(frozen=True, slots=True)
class InstanceStopped(DomainEvent):
    instance_id: str


@dataclass(frozen=True, slots=True)
class MemoryLimitPassed(DomainEvent):
    """A worker has passed its memory limit: it drains and ends."""

    instance_id: str
    resident_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class LeaseAttempted(DomainEvent):
    """A follower asked for a lease: `acquired`, `held` by another, or `contended` (lost a race)."""

    shard: int
    result: str


@dataclass(frozen=True, slots=True)
class LeaderElected(DomainEvent):
    shard: int
    epoch: int
    instance_id: str


@dataclass(frozen=True, slots=True)
class LeaseLost(DomainEvent):
    """This instance stopped leading unintentionally."""

    shard: int
    epoch: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseReleased(DomainEvent):
    """This instance stopped leading on purpose: it stops, or hands over to another."""

    shard: int
    epoch: int


@dataclass(frozen=True, slots=True)
class LeaseProviderLost(DomainEvent):
    """etcd or Redis has not answered for a TTL: the database alone decides who leads."""

    provider: str
    address: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeaseProviderReached(DomainEvent):
    """etcd or Redis answered for the first time, or again."""

    provider: str
    address: str
    away_s: float


@dataclass(frozen=True, slots=True)
class WriteFenced(DomainEvent):
    """A write under a lost lease was refused by the database."""

    shard: int
    epoch: int


@dataclass(frozen=True, slots=True)
class CredentialRefused(DomainEvent):
    """A credential was missing or not valid. The client does not get to know the reason."""

    why: str
    address: str
    request_id: str


@dataclass(frozen=True, slots=True)
class RequestAnswered(DomainEvent):
    """The API has begun to answer a request."""

    method: str
    path: str
    status_code: int
    duration_s: float
    """Seconds until the first byte: a stream continues as long as its client listens."""
    request_id: str


@dataclass(frozen=True, slots=True)
class RequestFailed(DomainEvent):
    """An unhandled exception in the API: a defect. The client received only the request id."""

    request_id: str
    error: Exception


@dataclass(frozen=True, slots=True)
class ServiceFailed(DomainEvent):
    """A step of a service raised; it is retried after a pause."""

    service: str
    error: str
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class ServiceRecovered(DomainEvent):
    service: str


@dataclass(frozen=True, slots=True)
class ClockObserved(DomainEvent):
    """Offset of this machine's clock to the database's."""

    offset_s: float


@dataclass(frozen=True, slots=True)
class ReplicaLost(DomainEvent):
    """The replica can't be read from: all reads go to the primary."""

    database: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReplicaRecovered(DomainEvent):
    database: str


@dataclass(frozen=True, slots=True)
class ReplicaMeasured(DomainEvent):
    """Lag of the replica; None: not known."""

    lag_s: float | None


@dataclass(frozen=True, slots=True)
class RedisFailed(DomainEvent):
    """A call to Redis failed; Foliot continues without it."""

    what: str
    """`hints`, `rates`, `cache`, `lease`, `transport` or `relay`."""
    error: str
