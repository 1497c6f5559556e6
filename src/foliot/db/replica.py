"""Watches the replica: whether it answers, how far it lags, and whether the primary answers.

A service checks once a second, so that a request need not find out by waiting. A replica that has lost its
primary has replayed everything it received, and would report no lag. So the check asks whether the replica
has replayed the primary's latest WAL position.
"""

import asyncio
from dataclasses import dataclass, replace

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.migrate import schema_status
from foliot.model.errors import FoliotError
from foliot.model.event import Observer
from foliot.model.instance_events import ReplicaLost, ReplicaMeasured, ReplicaRecovered
from foliot.service import Wake

EVERY_S = 1.0
PROBE_LIMIT_S = 2.0

_POSITION = text("SELECT CAST(pg_current_wal_lsn() AS text)")
_LAG = text(
    "SELECT CASE"
    " WHEN NOT pg_is_in_recovery() THEN NULL"
    " WHEN pg_last_wal_replay_lsn() >= CAST(CAST(:position AS text) AS pg_lsn) THEN 0"
    " ELSE CAST(greatest(0, extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()))"
    " AS double precision) END"
)


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """State of primary and replica at the last check."""

    is_primary_away: bool = False
    is_replica_away: bool = True
    """It does not answer, or has no schema yet."""
    lag_s: float | None = None
    """Seconds that the replica is behind the primary. None: unknown."""


class ReplicaWatch:
    """A service that updates `standing`. Until the first check, the replica is not read from."""

    name = "replica"

    def __init__(self, primary: Database, replica: Database, observer: Observer, *, max_lag_s: float) -> None:
        self.wake = Wake()
        self.max_lag_s = max_lag_s
        """Max lag in seconds. A replica further behind is not used while the primary answers."""
        self.standing = ReplicaState()
        self._primary = primary
        self._replica = replica
        self._observer = observer
        self._has_schema = False
        self._is_lost = False

    def doubt(self, *, is_primary: bool) -> None:
        """Check at once, because a request got no answer. `is_primary`: the primary did not answer."""
        if is_primary:
            self.standing = replace(self.standing, is_primary_away=True)
        self.wake.set()

    async def step(self) -> float | None:
        position = await self._position()
        try:
            async with asyncio.timeout(PROBE_LIMIT_S):
                lag_s = await self._lag(position)
        except (FoliotError, TimeoutError) as error:
            self._stands(ReplicaState(is_primary_away=position is None), str(error) or "does not answer")
        else:
            self._stands(ReplicaState(position is None, not self._has_schema, lag_s), "has no schema yet")
        return EVERY_S

    async def _position(self) -> str | None:
        """Return the primary's current WAL position. None: it does not answer, or is not the primary."""
        try:
            async with (
                asyncio.timeout(PROBE_LIMIT_S),
                self._primary.read(Pool.LEASE) as connection,
            ):
                position: str = (await connection.execute(_POSITION)).scalar_one()
                return position
        except (FoliotError, DBAPIError, TimeoutError):
            return None

    async def _lag(self, position: str | None) -> float | None:
        async with self._replica.read(Pool.LEASE) as connection:
            lag_s = await _lag_of(connection, position)
        # Migrations only add, so a schema that was usable once stays usable.
        self._has_schema = self._has_schema or (await schema_status(self._replica)).is_usable
        return lag_s

    def _stands(self, standing: ReplicaState, reason: str) -> None:
        self.standing = standing
        if standing.is_replica_away and not self._is_lost:
            self._observer.notify(ReplicaLost(self._replica.url, reason))
        elif self._is_lost and not standing.is_replica_away:
            self._observer.notify(ReplicaRecovered(self._replica.url))
        self._is_lost = standing.is_replica_away
        self._observer.notify(ReplicaMeasured(standing.lag_s))


async def _lag_of(connection: AsyncConnection, position: str | None) -> float | None:
    try:
        lag_s: float | None = (await connection.execute(_LAG, {"position": position})).scalar_one()
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        return None  # servers with their own kind of replication lack these functions
    return lag_s
