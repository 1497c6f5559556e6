"""A leader on a virtual clock, for tests that call its steps."""

from datetime import timedelta

from sqlalchemy import Executable
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.hints import LocalHints
from foliot.instance.store import SqlStore
from foliot.model.lease import Shard
from foliot.planning.fire import Due
from foliot.scheduler.leader_term import LeaderState
from foliot.scheduler.leases.database_lease import DatabaseLeases
from foliot.scheduler.shard import SchedulerOptions, ShardScheduler
from foliot.testing.app import Recorder
from foliot.timing.clock import ClusterClock, VirtualClock

HOUR = timedelta(hours=1)


class Leader:
    """A leader whose steps are called by hand."""

    def __init__(self, store: SqlStore, clock: VirtualClock) -> None:
        self.store = store
        self.clock = clock
        self.recorder = Recorder()
        self._cluster_clock = ClusterClock(clock)
        options = SchedulerOptions(ttl_s=1e6, heartbeat_s=1e5, horizon_s=HOUR.total_seconds())
        provider = DatabaseLeases(store.leases, "one", options.ttl_s)
        self.shard = ShardScheduler(
            Shard(0, 1), provider, store.database, self._cluster_clock, LocalHints(), self.recorder, options
        )

    async def begin(self) -> None:
        self._cluster_clock.observe(await self.store.now(), self.clock.monotonic())
        await self.shard.leadership.step()
        await self.load()

    async def load(self) -> None:
        while await self.shard.loader.step() == 0:
            pass

    async def execute(self, statement: Executable) -> None:
        async def work(connection: AsyncConnection) -> None:
            await connection.execute(statement)

        await self.store.database.write(Pool.API, work)

    @property
    def remembered(self) -> list[Due]:
        return list(self.term.wheel)

    @property
    def term(self) -> LeaderState:
        assert self.shard.loader.term is not None
        return self.shard.loader.term
