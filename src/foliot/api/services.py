"""What routes work with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from foliot.security.callback import CallbackTokens
from foliot.steering import Steering
from foliot.store.replica import ReplicaWatch
from foliot.store.secrets import Secrets
from foliot.store.sql import SqlStore
from foliot.timing.clock import ClusterClock

if TYPE_CHECKING:
    # Redis is an extra.
    from foliot.api.kept import KeptAnswers

API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Services:
    store: SqlStore
    steering: Steering
    secrets: Secrets
    clock: ClusterClock
    tokens: Callable[[], Awaitable[CallbackTokens]]
    lease_ttl_s: float
    replica: ReplicaWatch | None = None
    kept: "KeptAnswers | None" = None

    def now(self) -> datetime:
        """The cluster's time, as well as this instance knows it: for showing, never for deciding."""
        return self.clock.now()
