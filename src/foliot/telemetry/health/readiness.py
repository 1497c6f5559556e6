"""Readiness: whether an instance can do its work.

A process that starts, drains or waits for its database is alive, but not ready. A leader whose firing loop
hangs still sends heartbeats, so readiness also watches its ticks. For essential services (campaigning,
loading, firing, housekeeping, claiming, renewing, settling, shipping) it checks how long each has been in one
step or has failed.
"""

import asyncio
from collections.abc import Callable, Mapping

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.migrate import schema_status
from foliot.db.replica import ReplicaWatch
from foliot.model.event import BatchFired, DomainEvent, TickCompleted
from foliot.model.instance_events import LeaderElected, LeaseLost, LeaseReleased
from foliot.telemetry.health.cached_result import Recent
from foliot.timing.clock import Clock

PROBE_LIMIT_S = 5.0
KEPT_S = 1.0
"""How long the result of the database check is cached: anyone may call the probe, and a check is a query."""
MIN_LIMIT_S = 10.0
"""A leader ticks at least once per poll. Without a tick for this long, it hangs."""

Stuck = Callable[[float], Mapping[str, float]]
"""Returns the services that are stuck for longer than the given seconds, and for how many seconds."""


def silence_limit_s(poll_s: float, lease_ttl_s: float) -> float:
    """Return how many seconds work that is due at every poll or heartbeat may be missing."""
    return max(MIN_LIMIT_S, 3 * poll_s, 3 * lease_ttl_s)


class Pulse:
    """An observer that records the last activity of each shard led by this instance."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._last_sign_at: dict[int, float] = {}

    def notify(self, event: DomainEvent) -> None:
        match event:
            case LeaderElected():
                self._last_sign_at[event.shard] = self.clock.monotonic()
            case TickCompleted() | BatchFired():
                if event.shard in self._last_sign_at:
                    self._last_sign_at[event.shard] = self.clock.monotonic()
            case LeaseLost() | LeaseReleased():
                self._last_sign_at.pop(event.shard, None)

    def silent(self, limit_s: float) -> dict[int, float]:
        """Return the led shards without activity for longer than the limit, and for how many seconds."""
        now = self.clock.monotonic()
        ages = {shard: now - at for shard, at in sorted(self._last_sign_at.items())}
        return {shard: age for shard, age in ages.items() if age > limit_s}


class Readiness:
    def __init__(
        self,
        database: Database,
        pulse: Pulse,
        *,
        is_running: Callable[[], bool],
        limit_s: float,
        stuck: Stuck = lambda _limit_s: {},
        replica: ReplicaWatch | None = None,
    ) -> None:
        self._database = database
        self._pulse = pulse
        self._is_running = is_running
        self._limit_s = limit_s
        self._stuck = stuck
        self._replica = replica
        self._has_schema = False
        self._recent_database_problems = Recent(self._database_problems, KEPT_S, pulse.clock)

    async def problems(self) -> list[str]:
        """Return why work can't be done now. Empty: ready."""
        if not self._is_running():
            return ["the instance is starting or stopping"]
        found = list(await self._recent_database_problems.get())
        stuck = self._stuck(self._limit_s)
        if found and self._replica is not None and not self._replica.standing.is_replica_away:
            # The replica still serves reads: a load balancer must not take this instance out.
            found, stuck = [], {}
        for shard, age_s in self._pulse.silent(self._limit_s).items():
            found.append(f"shard {shard} is led from here, but has not ticked for {age_s:.1f} s")
        for service, age_s in stuck.items():
            found.append(f"service {service} has not come to a good end for {age_s:.1f} s")
        return found

    async def _database_problems(self) -> list[str]:
        # No address and no error text: this response needs no credentials. Details are in the log.
        try:
            async with asyncio.timeout(PROBE_LIMIT_S):
                await self._database.now(Pool.API)
                # Migrations only add, so a schema that was usable once stays usable.
                self._has_schema = self._has_schema or (await schema_status(self._database)).is_usable
        except TimeoutError:
            return ["the database does not answer"]
        except Exception:
            return ["the database can't be reached"]
        return [] if self._has_schema else ["the database's schema needs an upgrade"]
