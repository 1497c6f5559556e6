"""Due times that pass undecided are seen by those who watch, and told without a flood."""

from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.tables.schedules import schedule_t
from foliot.instance.store import SqlStore
from foliot.model.event import DomainEvent, OverdueCounted, OverdueEnded, OverdueFound
from foliot.scheduler.watchdog import REMIND_EVERY_S, Watchdog
from foliot.testing.app import Recorder
from foliot.timing.clock import ClusterClock, VirtualClock
from tests.engine import add, every_second

TTL_S = 3.0


class Stage:
    """A watchdog over a store in which nobody leads."""

    def __init__(self, store: SqlStore, now: datetime) -> None:
        self.store = store
        self.clock = VirtualClock(now)
        self.recorder = Recorder()
        clock = ClusterClock(self.clock)
        clock.observe(now, 0.0)
        self.watchdog = Watchdog(store.overviews, clock, self.recorder, ttl_s=TTL_S, every_s=1.0)

    async def due(self, ago: timedelta) -> None:
        """Let every schedule have been due so long ago, by the store's clock."""

        async def work(connection: AsyncConnection) -> None:
            now = (await connection.execute(select(self.store.database.dialect.now()))).scalar_one()
            await connection.execute(update(schedule_t).values(next_run_ts=now - ago))

        await self.store.database.write(Pool.API, work)

    async def look(self) -> list[DomainEvent]:
        self.recorder.events.clear()
        await self.watchdog.step()
        return list(self.recorder.events)


async def test_what_is_overdue_is_counted_always_and_told_when_it_begins_lasts_and_ends(
    store: SqlStore,
) -> None:
    stage = Stage(store, await store.now())
    schedule = await add(store, every_second("one"))
    await add(store, every_second("off", active=False))
    assert await stage.look() == [OverdueCounted(0)]
    # Within what a takeover and a load may take.
    await stage.due(timedelta(seconds=8))
    assert await stage.look() == [OverdueCounted(0)]

    await stage.due(timedelta(seconds=60))
    counted, found = await stage.look()
    assert isinstance(counted, OverdueCounted)
    assert isinstance(found, OverdueFound)
    assert (counted.count, counted.late_s) == (1, found.late_s)
    assert (found.count, found.is_capped, found.oldest_schedule_id) == (1, False, schedule.schedule_id)
    assert found.late_s > 50
    stage.clock.advance(REMIND_EVERY_S - 1)
    [counted] = await stage.look()
    assert isinstance(counted, OverdueCounted)
    assert (counted.count, counted.late_s > 100) == (1, True), "it grows while nobody decides"
    stage.clock.advance(1)
    assert [type(event) for event in await stage.look()] == [OverdueCounted, OverdueFound]

    await stage.due(timedelta(0))
    assert await stage.look() == [OverdueCounted(0), OverdueEnded()]
    assert await stage.look() == [OverdueCounted(0)]


async def test_a_long_ttl_gives_those_who_take_over_more_time(store: SqlStore) -> None:
    stage = Stage(store, await store.now())
    await add(store, every_second("one"))
    await stage.due(timedelta(seconds=60))
    assert (await store.overviews.overdue_anywhere(ttl_s=3.0)).count == 1
    assert (await store.overviews.overdue_anywhere(ttl_s=60.0)).count == 0
