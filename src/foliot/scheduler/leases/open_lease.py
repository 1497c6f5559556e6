"""Opens the lease provider that the settings name."""

from dataclasses import dataclass
from typing import Literal

from foliot.model.broker import EXTRAS, BrokerKind
from foliot.model.errors import SettingError
from foliot.model.event import Observer
from foliot.scheduler.leases.database_lease import DatabaseLeases
from foliot.scheduler.leases.external_lease import QUIET, WitnessedLeases
from foliot.scheduler.leases.leadership import MARGIN
from foliot.scheduler.leases.lease_provider import ExternalLeases, LeaseProvider
from foliot.scheduler.leases.leases_sql import Leases
from foliot.scheduler.leases.second_witness import Witness
from foliot.timing.clock import ClusterClock


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    instance_id: str
    ttl_s: float
    heartbeat_s: float
    kind: Literal["database", "etcd", "redis"] = "database"
    address: str = ""
    """Address of the witness; empty for the database."""

    @property
    def key_ttl_s(self) -> float:
        """TTL of a key at the witness.

        Short enough that a dead leader's key has expired when its row is quiet, even if the key was extended
        a heartbeat later than the row. Long enough to last from one extension to the next.
        """
        return max(self.ttl_s * QUIET - self.heartbeat_s, 1.5 * self.heartbeat_s)

    @property
    def call_s(self) -> float:
        return self.ttl_s / 3


def open_leases(
    options: LeaseOptions, store: Leases, clock: ClusterClock, observer: Observer
) -> tuple[LeaseProvider, Witness | None]:
    """Return the provider, and its witness if it has one: a service to run and close. Does not connect yet.

    Raises SettingError if a required package is not installed.
    """
    if options.kind == "database":
        return DatabaseLeases(store, options.instance_id, options.ttl_s), None
    witness = Witness(
        _open_external(options),
        clock,
        observer,
        patience_s=options.ttl_s,
        trusted_s=options.ttl_s * (1 - MARGIN),
        heartbeat_s=options.heartbeat_s,
    )
    return WitnessedLeases(store, witness, clock, options.instance_id, options.ttl_s), witness


def _open_external(options: LeaseOptions) -> ExternalLeases:
    ttl_s, call_s = options.key_ttl_s, options.call_s
    if options.kind == "etcd":
        from foliot.scheduler.leases.etcd_keys import EtcdLeases

        return EtcdLeases(options.address, options.instance_id, ttl_s=ttl_s, call_s=call_s)
    try:
        from foliot.scheduler.leases.redis_keys import RedisLeases
    except ImportError as error:
        raise SettingError(
            f"FOLIOT_LEASE_PROVIDER=redis needs a library that is not installed ({error.name}): "
            f'pip install "foliot[{EXTRAS[BrokerKind.REDIS]}]"'
        ) from None
    return RedisLeases(options.address, options.instance_id, ttl_s=ttl_s, call_s=call_s)
