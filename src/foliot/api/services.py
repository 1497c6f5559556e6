"""The objects that routes use: database, commands, clock and secrets."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from foliot.access.callback_tokens import CallbackTokens
from foliot.access.secrets_sql import Secrets
from foliot.commands import Commands
from foliot.db.database import Database
from foliot.db.replica import ReplicaWatch
from foliot.timing.clock import ClusterClock

if TYPE_CHECKING:
    # Needs Redis, which is an optional dependency.
    from foliot.api.access.response_cache import ResponseCache

API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Services:
    database: Database
    commands: Commands
    secrets: Secrets
    clock: ClusterClock
    tokens: Callable[[], Awaitable[CallbackTokens]]
    lease_ttl_s: float
    replica: ReplicaWatch | None = None
    kept: "ResponseCache | None" = None

    def now(self) -> datetime:
        """Return this instance's estimate of the cluster time. For display only, never for decisions."""
        return self.clock.now()
