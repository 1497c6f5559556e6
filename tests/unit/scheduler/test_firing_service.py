"""What a leader remembers of schedules after it has fired them, or could not."""

from typing import Any

import pytest
from sqlalchemy import insert, update
from tests.conformance.suites.scene import STALE
from tests.engine import add, seen, spec
from tests.unit.scheduler.leader import Leader

from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.event import BatchFired
from foliot.model.execution import SkipReason, Status, TriggeredBy
from foliot.model.ids import new_id
from foliot.model.instance_events import LeaseLost, WriteFenced
from foliot.model.schedule import Schedule, ScheduleState

MINUTELY = {"kind": "interval", "minutes": 1}


async def decide_next(leader: Leader, schedule: Schedule) -> None:
    """Write the row that decides the schedule's next time, as if somebody had done so before."""
    now = await leader.store.now()
    row: dict[str, Any] = {
        "execution_id": new_id(now),
        "schedule_id": schedule.schedule_id,
        "host_id": schedule.host_id,
        "aggregate_version": schedule.aggregate_version,
        "fire_ts": schedule.next_fire_ts,
        "status": Status.SKIPPED.value,
        "reason": SkipReason.MISFIRE.value,
        "triggered_by": TriggeredBy.SCHEDULER.value,
        "queue": schedule.spec.queue,
        "priority": schedule.spec.priority.value,
        "created_ts": now,
        "ended_ts": now,
    }

    await leader.execute(insert(execution_t).values(row))


@pytest.mark.parametrize("max_runs", [1, 2])
async def test_a_time_decided_before_does_not_count_towards_max_runs(leader: Leader, max_runs: int) -> None:
    schedule = await add(leader.store, spec("each", MINUTELY, max_runs=max_runs, overlap={"policy": "allow"}))
    await decide_next(leader, schedule)
    await leader.begin()
    for _ in range(max_runs + 1):
        assert (await leader.store.schedules.get(schedule.schedule_id)).state is ScheduleState.ACTIVE
        # Known before it is due: the poll would find it late.
        assert [due.schedule_id for due in leader.remembered] == [schedule.schedule_id]
        leader.clock.advance(60)
        await leader.shard.firing.step()
        await leader.load()
    completed = await leader.store.schedules.get(schedule.schedule_id)
    assert (completed.state, completed.run_count) == (ScheduleState.COMPLETED, max_runs)
    assert sum(len(batch.fired) for batch in seen(leader.recorder, BatchFired)) == max_runs


async def test_a_deposed_leader_that_can_not_plan_a_schedule_is_fenced_and_steps_down(leader: Leader) -> None:
    await add(leader.store, spec("each", MINUTELY))
    await leader.execute(update(schedule_t).values(priority="urgent"))
    await leader.begin()
    leader.clock.advance(60)
    taken = await leader.store.leases.take(leader.term.lease.shard, "other", STALE)
    assert taken.lease is not None
    await leader.shard.firing.step()
    assert len(seen(leader.recorder, WriteFenced)) == 1
    assert [lost.reason for lost in seen(leader.recorder, LeaseLost)] == ["a write was fenced"]
    assert leader.shard.leadership.lease is None


async def test_a_refused_schedule_that_is_not_due_any_more_is_forgotten(leader: Leader) -> None:
    schedule = await add(leader.store, spec("each", MINUTELY))
    await leader.begin()
    leader.clock.advance(60)
    # Nobody was told of it: the leader plans it and finds its write refused.
    changed = {"active": False, "aggregate_version": schedule.aggregate_version + 1}
    await leader.execute(update(schedule_t).values(changed))
    await leader.shard.firing.step()
    assert list(leader.term.refused) == [schedule.schedule_id]
    await leader.load()
    assert leader.term.refused == {}
    assert leader.remembered == []
