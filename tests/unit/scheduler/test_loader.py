"""The loader on a virtual clock: what it keeps in memory while pages are read and schedules fire."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.engine import add, seen, spec
from tests.unit.scheduler.leader import HOUR, Leader

from foliot.model.event import BatchFired
from foliot.model.instance_events import LeaseLost
from foliot.model.lease import Lease
from foliot.planning.fire import Due, Fired, Firing
from foliot.timing.clock import VirtualClock


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
    load = leader.shard.statements.load

    async def load_while_firing(*arguments: Any, after: Any, **options: Any) -> Sequence[Due]:
        is_page = after is not None
        if is_page and fires == "before the page was read":
            await leader.shard.firing.step()
        page = await load(*arguments, after=after, **options)
        if is_page and fires == "after the page was read":
            await leader.shard.firing.step()
        return page

    monkeypatch.setattr(leader.shard.statements, "load", load_while_firing)
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
    monkeypatch.setattr("foliot.scheduler.backlog.MAX_RANGES", 2)
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


async def test_locked_schedules_do_not_keep_the_others_of_their_host_from_being_read(
    leader: Leader, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.scheduler.loader.POLL_PAGE", 2)
    monkeypatch.setattr("foliot.scheduler.backlog.MAX_ROWS", 2)
    monkeypatch.setattr("foliot.scheduler.backlog.MAX_RANGES", 1)
    minutely = {"kind": "interval", "minutes": 1}
    locked = {(await add(leader.store, spec(f"locked-{n}", minutely))).schedule_id for n in range(2)}
    fire = leader.shard.statements.fire

    async def fire_unlocked(lease: Lease, firings: Sequence[Firing], *, now: datetime) -> Fired:
        fired = await fire(lease, [each for each in firings if each.due.schedule_id not in locked], now=now)
        refused = [each.due for each in firings if each.due.schedule_id in locked]
        return replace(fired, refused=[*fired.refused, *refused])

    monkeypatch.setattr(leader.shard.statements, "fire", fire_unlocked)
    await leader.begin()
    # Without a hint: only the poll finds it.
    free = await add(leader.store, spec("free", minutely, start_ts=clock.now() + timedelta(seconds=62)))
    clock.advance(60)
    for _ in range(10):
        await leader.shard.firing.step()
        await leader.load()
        clock.advance(1)
    fired = [each.schedule_id for batch in seen(leader.recorder, BatchFired) for each in batch.fired]
    assert fired == [free.schedule_id]
    locked.clear()
    await leader.shard.firing.step()
    fired = [each.schedule_id for batch in seen(leader.recorder, BatchFired) for each in batch.fired]
    assert len(fired) == len(set(fired)) == 3
