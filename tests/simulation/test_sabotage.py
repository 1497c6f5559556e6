"""An engine with a guard removed is found out: histories that can't fail would show nothing."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import String, Update, bindparam, null, update

from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.scheduler import advancing_sql, event_firing_sql, firing_sql, housekeeping_sql
from foliot.scheduler.leases.leadership import Leadership
from foliot.worker import work_sql
from tests.simulation.history import tell
from tests.simulation.memory import Memory

SEEDS = range(1, 81)

Sabotage = Callable[[pytest.MonkeyPatch], None]


def without_the_fence(patch: pytest.MonkeyPatch) -> None:
    async def anyone_may(*_: object) -> None:
        """Whoever has led once leads for ever."""

    patch.setattr(firing_sql, "require_lease", anyone_may)
    patch.setattr(housekeeping_sql, "require_lease", anyone_may)


def without_the_guard_of_the_update(patch: pytest.MonkeyPatch) -> None:
    def advance(dialect: Any, shard: Any, shape: Any, *, counts_events: bool = False) -> Update:
        table, planned = advancing_sql._PLANNED.table(dialect, shape)
        counted = {"event_seq": schedule_t.c.event_seq + planned["fires"]} if counts_events else {}
        return (
            update(schedule_t)
            .where(schedule_t.c.schedule_id == table.c.schedule_id)
            .values(
                next_fire_ts=planned["next_fire_ts"],
                next_run_ts=planned["next_run_ts"],
                run_count=schedule_t.c.run_count + planned["fires"],
                state=planned["state"],
                paused=False,
                paused_until_ts=null(),
                pause_reason=null(),
                **counted,
            )
        )

    patch.setattr(firing_sql, "advance_planned", advance)
    patch.setattr(event_firing_sql, "advance_planned", advance)


def without_the_attempt_and_its_worker(patch: pytest.MonkeyPatch) -> None:
    def is_mine(table: Any, _attempt: Any = None) -> tuple[Any, ...]:
        # The statement is run with the worker's name, so it has to be somewhere in it.
        is_anyones = bindparam("mine_by", type_=String()) != ""
        return (execution_t.c.execution_id == table.c.execution_id, is_anyones)

    patch.setattr(work_sql, "_is_mine", is_mine)


def without_the_trust_window(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leadership, "lease", property(lambda leadership: leadership._lease))


def without_waiting_for_a_worker_to_be_lost(patch: pytest.MonkeyPatch) -> None:
    rescue = housekeeping_sql.Upkeep.rescue

    async def rescue_all(self: Any, lease: Any, *, limit: int, until: Any = None) -> Any:
        true = self._dialect
        self._dialect = _Later(true)
        try:
            return await rescue(self, lease, limit=limit)
        finally:
            self._dialect = true

    patch.setattr(housekeeping_sql.Upkeep, "rescue", rescue_all)


class _Later:
    """A dialect whose clock is an hour ahead."""

    def __init__(self, true: Any) -> None:
        self.true = true

    def now(self) -> Any:
        return self.true.plus(self.true.now(), 3600.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.true, name)


@pytest.fixture(autouse=True)
def _fresh_statements() -> Iterator[None]:
    """Statements are kept once they are built, sabotaged ones too."""
    caches = (work_sql._settle, work_sql._renew)
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


@pytest.mark.parametrize(
    ("sabotage", "sign"),
    [
        (without_the_fence, r"not lead|without leading"),
        (without_the_guard_of_the_update, r"verify: (phantom|double|miscount|gap)|moved schedule .* back"),
        (without_the_attempt_and_its_worker, r"no such way|had been settled|settled by another"),
        (without_the_trust_window, r"its last heartbeat"),
        (without_waiting_for_a_worker_to_be_lost, r"whose lease has not run out"),
    ],
)
def test_an_engine_is_found_out(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, sabotage: Sabotage, sign: str
) -> None:
    sabotage(monkeypatch)
    accusations = (each for seed in SEEDS for each in tell(memory, seed).accusations)
    assert any(re.search(sign, each) for each in accusations), "the histories see nothing"
