"""The objects that routes use: database, commands, clock and secrets."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from foliot.security.callback import CallbackTokens
from foliot.steering import Steering
from foliot.store.database import Database
from foliot.store.replica import ReplicaWatch
from foliot.store.secrets import Secrets
from foliot.timing.clock import ClusterClock

if TYPE_CHECKING:
    # Needs Redis, which is an optional dependency.
    from foliot.api.kept import KeptAnswers

API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Services:
    database: Database
    steering: Steering
    secrets: Secrets
    clock: ClusterClock
    tokens: Callable[[], Awaitable[CallbackTokens]]
    lease_ttl_s: float
    replica: ReplicaWatch | None = None
    kept: "KeptAnswers | None" = None

    def now(self) -> datetime:
        """Return this instance's estimate of the cluster time. For display only, never for decisions."""
        return self.clock.now()
