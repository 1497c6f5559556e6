"""Helpers for the store's conformance suite.

No test waits for time to pass. A due schedule is created with a creation time in the past. A stale lease has
a negative TTL. A lost worker has a lease that ended before it began. So the suite runs on a database's own
clock and also on a virtual clock that stands still.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Executable, exists, insert, literal, select, text, union_all, update
from sqlalchemy import delete as delete_rows
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.migrate import upgrade
from foliot.db.tables.access import host_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.metadata import metadata
from foliot.db.tables.schedules import schedule_t
from foliot.instance.store import SqlStore
from foliot.model.attempt import Claim, Settlement
from foliot.model.execution import Execution, Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.lease import Lease, Shard
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import Author, PlannedChange, create, delete, edit, pause, resume
from foliot.planning.definition import compile_definition
from foliot.planning.fire import Due, Fired, Firing, plan_firing

WHOLE = Shard(0, 1)
STALE = -1.0
"""A lease TTL that has already ended, on any clock."""
LONG = 3600.0
SOMEBODY = Author("somebody", "because")
EVERY_MINUTE = {"kind": "interval", "frequency_unit": "MINUTES", "frequency_time": 1}
FUNCTION = {"kind": "function", "name": "work"}


def spec_of(name: str = "each", **fields: Any) -> ScheduleSpec:
    return ScheduleSpec.parse({"name": name, "trigger": EVERY_MINUTE, "target": FUNCTION, **fields})


async def empty(store: SqlStore) -> None:
    """Reset a used database: delete all rows and insert the initial ones."""

    async def work(connection: AsyncConnection) -> None:
        # Most tables are empty. One statement finds the others, which is faster than a DELETE for each.
        filled = union_all(
            *[
                select(literal(table.name)).where(exists().select_from(table))
                for table in metadata.sorted_tables
            ]
        )
        names = set((await connection.execute(filled)).scalars())
        for table in metadata.sorted_tables:
            if table.name in names:
                await connection.execute(delete_rows(table))

    await store.database.write(Pool.API, work)
    await upgrade(store.database)


@dataclass(frozen=True)
class Scene:
    store: SqlStore
    open_another: Callable[[], Awaitable[SqlStore]]
    """Opens another store on the same database, as another process would."""

    async def now(self) -> datetime:
        return await self.store.now()

    async def stores(self, count: int) -> list[SqlStore]:
        """Open several stores and connect them, so that races between them do not depend on connecting."""
        stores = [await self.open_another() for _ in range(count)]
        for store in stores:
            for pool in Pool:
                await store.database.now(pool)
        return stores

    # --- schedules --------------------------------------------------------------------------------

    async def add(
        self, name: str = "each", *, age_s: float = 90, host_id: UUID = DEFAULT_HOST_ID, **fields: Any
    ) -> Schedule:
        """Create a schedule with a creation time `age_s` seconds ago.

        By default it fires every minute, and one fire time has been due for 30 s.
        """

        def plan(now: datetime) -> PlannedChange:
            then = now - timedelta(seconds=age_s)
            return create(spec_of(name, **fields), host_id=host_id, now=then, author=SOMEBODY)

        return await self.store.schedules.create(plan, SOMEBODY)

    async def add_host(self, name: str) -> UUID:
        host_id = new_id()
        row = {"host_id": host_id, "host_name": name, "created_ts": await self.now()}
        await self.execute(insert(host_t).values(row))
        return host_id

    async def get(self, schedule: Schedule) -> Schedule:
        return await self.store.schedules.get(schedule.schedule_id)

    async def edit(self, schedule: Schedule, **fields: Any) -> Schedule:
        def plan(known: Schedule, now: datetime) -> PlannedChange | None:
            document = known.spec.model_dump() | fields
            return edit(known, ScheduleSpec.parse(document), now=now, author=SOMEBODY)

        return await self.store.schedules.change(schedule.schedule_id, plan, SOMEBODY)

    async def pause(self, schedule: Schedule, until_ts: datetime | None = None) -> Schedule:
        return await self.store.schedules.change(
            schedule.schedule_id,
            lambda known, now: pause(known, now=now, author=SOMEBODY, until_ts=until_ts),
            SOMEBODY,
        )

    async def resume(self, schedule: Schedule) -> Schedule:
        return await self.store.schedules.change(
            schedule.schedule_id, lambda known, now: resume(known, now=now, author=SOMEBODY), SOMEBODY
        )

    async def delete(self, schedule: Schedule) -> Schedule:
        return await self.store.schedules.change(
            schedule.schedule_id, lambda known, now: delete(known, now=now, author=SOMEBODY), SOMEBODY
        )

    # --- leading and firing -----------------------------------------------------------------------

    async def lead(self, shard: Shard = WHOLE, instance_id: str = "leader") -> Lease:
        """Take the lease, even if another instance holds it."""
        standing = await self.store.leases.take(shard, instance_id, STALE)
        assert standing.lease is not None
        return standing.lease

    async def due(self, *schedules: Schedule) -> list[Due]:
        found = await self.store.firing.load_some(WHOLE, [each.schedule_id for each in schedules])
        by_id = {due.schedule_id: due for due in found}
        return [by_id[each.schedule_id] for each in schedules]

    async def plan(self, *schedules: Schedule) -> list[Firing]:
        now = await self.now()
        return [
            plan_firing(due, compile_definition(due.definition, due.schedule_id), now)
            for due in await self.due(*schedules)
        ]

    async def commit(self, lease: Lease, firings: Sequence[Firing]) -> Fired:
        now = await self.now()
        if firings and firings[0].due.definition.is_event:
            return await self.store.firing.fire_events(lease, firings, now=now)
        return await self.store.firing.fire(lease, firings, now=now)

    async def fire(self, lease: Lease, *schedules: Schedule) -> Fired:
        """Fire what is due on these schedules."""
        return await self.commit(lease, await self.plan(*schedules))

    async def trigger(
        self, schedule: Schedule, store: SqlStore | None = None, *, args: dict[str, Any] | None = None
    ) -> UUID:
        schedules = (store or self.store).schedules
        return await schedules.trigger(
            schedule.schedule_id, by=TriggeredBy.API, author=Author("somebody"), args=args
        )

    async def executions(self, schedule: Schedule) -> list[Execution]:
        """Return the executions of a schedule, oldest fire time first."""
        rows = await self.store.schedules.executions(schedule.schedule_id)
        return rows[::-1]

    async def execution(self, execution_id: UUID) -> Execution:
        return await self.store.executions.get(execution_id)

    # --- working ----------------------------------------------------------------------------------

    async def claim(
        self,
        worker_id: str = "worker",
        *,
        limit: int = 100,
        lease_s: float = LONG,
        queues: Sequence[str] | None = None,
        store: SqlStore | None = None,
    ) -> list[Claim]:
        work = (store or self.store).work
        return await work.claim(worker_id, await work.queues(queues), limit=limit, lease_s=lease_s)

    async def claim_one(self, worker_id: str = "worker", *, lease_s: float = LONG) -> Claim:
        [claim] = await self.claim(worker_id, limit=1, lease_s=lease_s)
        return claim

    async def settle(
        self, claim: Claim, status: Status, worker_id: str = "worker", **fields: Any
    ) -> frozenset[UUID]:
        settlement = Settlement(claim, fields.pop("attempt_status", status), status, **fields)
        return (await self.store.work.settle(worker_id, [settlement])).refused

    async def rescue(
        self, lease: Lease, *, limit: int = 10, store: SqlStore | None = None
    ) -> dict[UUID, Status]:
        """Rescue executions whose worker is lost. Return the new status of each."""
        lost = await (store or self.store).upkeep.rescue(lease, limit=limit)
        return {each.execution_id: each.status for each in lost}

    async def make_due(self, schedule: Schedule) -> None:
        """Set the next run of the schedule to now."""
        await self.execute(
            update(schedule_t)
            .where(schedule_t.c.schedule_id == schedule.schedule_id, schedule_t.c.next_run_ts.is_not(None))
            .values(next_run_ts=await self.now())
        )

    async def release(self, lease: Lease, *, limit: int = 100) -> int:
        """Release held executions as the overlap policy allows. Return how many."""
        return (await self.store.upkeep.release_held(lease, limit=limit)).released

    async def hold(self, schedule: Schedule, count: int) -> None:
        """Add `count` held executions, as manual triggers create them."""
        now = await self.now()
        rows = [
            {
                "execution_id": new_id(now),
                "schedule_id": schedule.schedule_id,
                "host_id": schedule.host_id,
                "aggregate_version": schedule.aggregate_version,
                "fire_ts": now,
                "status": Status.PENDING.value,
                "triggered_by": TriggeredBy.API.value,
                "queue": schedule.spec.queue,
                "priority": schedule.spec.priority.value,
                "created_ts": now,
            }
            for _ in range(count)
        ]

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(insert(execution_t), rows)

        await self.store.database.write(Pool.API, work)

    # --- looking and meddling by hand -------------------------------------------------------------

    async def rows(self, statement: Executable) -> Sequence[Any]:
        async with self.store.database.read(Pool.API) as connection:
            return (await connection.execute(statement)).all()

    async def execute(self, statement: Executable) -> None:
        async def work(connection: AsyncConnection) -> None:
            await connection.execute(statement)

        await self.store.database.write(Pool.API, work)

    async def everything(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return all schedules and executions, to assert that nothing was written."""
        return (
            await self.rows(select(schedule_t).order_by(schedule_t.c.schedule_id)),
            await self.rows(select(execution_t).order_by(execution_t.c.execution_id)),
        )

    async def is_kept_waiting(self, task: asyncio.Task[Any]) -> bool:
        """Return True once the task waits for a lock, False if it ends first."""
        if self.store.database.dialect.name != "postgresql":
            done, _ = await asyncio.wait({task}, timeout=0.2)
            return not done
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while not task.done():
            if (await self.rows(waiting))[0][0]:
                return True
            await asyncio.wait({task}, timeout=0.005)
        return False
