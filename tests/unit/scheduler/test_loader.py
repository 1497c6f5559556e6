"""The loader on a virtual clock: what it keeps in memory while pages are read and schedules fire."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.conftest import OpenStore
from tests.engine import add, seen, spec

from foliot.lease.database import DatabaseLeases
from foliot.model.event import BatchFired, LeaseLost
from foliot.model.lease import Shard
from foliot.planning.fire import Due
from foliot.scheduler.shard import SchedulerOptions, ShardScheduler
from foliot.store.hints import LocalHints
from foliot.store.sql import SqlStore
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
            Shard(0, 1), provider, store, self._cluster_clock, LocalHints(), self.recorder, options
        )

    async def begin(self) -> None:
        self._cluster_clock.observe(await self.store.now(), self.clock.monotonic())
        await self.shard.leadership.step()
        await self.load()

    async def load(self) -> None:
        while await self.shard.loader.step() == 0:
            pass

    @property
    def remembered(self) -> list[Due]:
        assert self.shard.loader.term is not None
        return list(self.shard.loader.term.wheel)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
async def leader(sqlite_url: str, open_test_store: OpenStore, clock: VirtualClock) -> Leader:
    return Leader(await open_test_store(sqlite_url, clock=clock), clock)


@pytest.mark.parametrize("fires", ["after the page was read", "before the page was read"])
async def test_what_fires_while_a_page_is_read_is_remembered_for_its_next_time(
    leader: Leader, clock: VirtualClock, fires: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = await add(leader.store, spec("hourly", {"kind": "interval", "hours": 1}))
    await leader.begin()
    assert [due.schedule_id for due in leader.remembered] == [schedule.schedule_id]
    clock.advance(HOUR.total_seconds())
    first_ts = schedule.next_fire_ts
    assert first_ts is not None
    load = leader.store.firing.load

    async def load_while_firing(*arguments: Any, after: Any, **options: Any) -> Sequence[Due]:
        is_page = after is not None
        if is_page and fires == "before the page was read":
            await leader.shard.firing.step()
        page = await load(*arguments, after=after, **options)
        if is_page and fires == "after the page was read":
            await leader.shard.firing.step()
        return page

    monkeypatch.setattr(leader.store.firing, "load", load_while_firing)
    await leader.load()
    assert [each.fire_ts for batch in seen(leader.recorder, BatchFired) for each in batch.fired] == [first_ts]
    # Else only the poll would find it, when it is late already.
    assert [(due.schedule_id, due.fire_ts) for due in leader.remembered] == [
        (schedule.schedule_id, first_ts + HOUR)
    ]
    assert not seen(leader.recorder, LeaseLost)


async def test_a_backlog_is_not_read_while_enough_is_queued(
    leader: Leader, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.scheduler.loader.POLL_PAGE", 5)
    monkeypatch.setattr("foliot.scheduler.loader.MAX_QUEUED", 12)
    monkeypatch.setattr("foliot.scheduler.backlog.MAX_ROWS", 6)
    monkeypatch.setattr("foliot.scheduler.backlog.MAX_LANES", 2)
    minutely = {"kind": "interval", "minutes": 1}
    ids = {(await add(leader.store, spec(f"n-{n}", minutely))).schedule_id for n in range(60)}
    clock.advance(90)
    await leader.begin()
    shard, sizes, fired = leader.shard, list[int](), 0
    for _ in range(200):
        await leader.load()
        assert shard.firing.term is not None
        sizes.append(len(shard.firing.term.queue))
        await shard.firing.step()
        fired = sum(len(batch.fired) for batch in seen(leader.recorder, BatchFired))
        if fired >= len(ids):
            break
    assert fired == len(ids)
    assert max(sizes) <= 12 + 6, "a bounded number waits in memory"
