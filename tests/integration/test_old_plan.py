"""A leader that is stopped between plan and commit, and that nobody has replaced when it goes on."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.db.hints import LocalHints
from foliot.db.migrate import upgrade
from foliot.instance.store import open_store
from foliot.model.execution import Status
from foliot.model.lease import Shard
from foliot.planning.fire import plan_firing
from foliot.scheduler import firing
from foliot.scheduler.leases.database_lease import DatabaseLeases
from foliot.scheduler.shard import SchedulerOptions, ShardScheduler
from foliot.testing.app import Recorder
from foliot.timing.clock import ClusterClock, VirtualClock
from tests.engine import add, spec

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
STOPPED_S = 60.0


@pytest.mark.parametrize("where", ["after the plan", "before the transaction"])
async def test_it_plans_anew_and_does_not_fire_what_is_too_late_by_now(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock(START)
    store = open_store("memory", clock=clock)
    await upgrade(store.database)
    at = {"kind": "once", "at": (START + timedelta(seconds=5)).isoformat()}
    schedule = await add(store, spec("once", at, misfire={"policy": "skip"}))
    cluster = ClusterClock(clock)
    options = SchedulerOptions(ttl_s=600, heartbeat_s=200)
    shard = ShardScheduler(
        Shard(0, 1),
        DatabaseLeases(store.leases, "leader", options.ttl_s),
        store.database,
        cluster,
        LocalHints(),
        Recorder(),
        options,
    )
    await shard.leadership.step()
    await shard.loader.step()
    clock.advance(6.0)
    stops = iter([STOPPED_S])

    def stopping(act: Callable[..., Any]) -> Callable[..., Any]:
        def stopped(*arguments: Any, **named: Any) -> Any:
            found = act(*arguments, **named)
            clock.advance(next(stops, 0.0))
            return found

        return stopped

    if where == "after the plan":
        monkeypatch.setattr(firing, "plan_firing", stopping(plan_firing))
    else:
        monkeypatch.setattr(
            "foliot.scheduler.firing_sql.FiringStatements.fire", stopping(type(store.firing).fire)
        )
    for _ in range(5):
        await shard.firing.step()
        clock.advance(1.0)
        await shard.loader.step()
    [row] = await store.schedules.executions(schedule.schedule_id)
    assert (row.status, row.reason) == (Status.SKIPPED, "misfire")
    await store.close()
