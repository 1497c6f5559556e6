"""Each overlap policy as the target sees it: how many of its runs there are at once, and which are held."""

import asyncio
from collections import Counter

import pytest

from foliot.instance.store import SqlStore
from foliot.model.execution import Execution, SkipReason, Status
from tests.engine import SCHEDULER, WORKER, add, every_second, registry, running, until

TIMES = 4
"""Fire times to be decided, a second apart, before the work may end."""


class Watched:
    """A task that knows how many of it run at once; each goes on until all may end."""

    def __init__(self) -> None:
        self.now = 0
        self.highest = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> None:
        self.now += 1
        self.highest = max(self.highest, self.now)
        try:
            await self.may_end.wait()
        finally:
            self.now -= 1


async def watch(
    store: SqlStore, database_url: str, policy: str, **fields: object
) -> tuple[Watched, list[Execution]]:
    watched = Watched()

    async def noop() -> None:
        await watched()

    overlap = {"policy": policy, **fields}
    schedule = await add(store, every_second("watched", overlap=overlap, retry={"max_attempts": 1}))
    async with (
        running(database_url, roles=SCHEDULER),
        running(database_url, roles=WORKER, tasks=registry(noop)),
    ):

        async def are_decided() -> bool:
            return watched.now > 0 and len(await store.schedules.executions(schedule.schedule_id)) >= TIMES

        async def has_ended() -> bool:
            rows = await store.schedules.executions(schedule.schedule_id)
            return any(row.status is Status.SUCCESS for row in rows)

        await until(are_decided, within_s=60)
        rows = (await store.schedules.executions(schedule.schedule_id))[::-1]
        watched.may_end.set()
        await until(has_ended, within_s=60)
    return watched, rows


@pytest.mark.parametrize("limit", [1, 2])
async def test_skip_leaves_out_what_would_be_one_too_many(
    store: SqlStore, database_url: str, limit: int
) -> None:
    watched, rows = await watch(store, database_url, "skip", max_instances=limit)
    assert watched.highest == limit
    assert {row.reason for row in rows if row.status is Status.SKIPPED} == {SkipReason.OVERLAP}


async def test_queue_holds_what_would_be_one_too_many(store: SqlStore, database_url: str) -> None:
    watched, rows = await watch(store, database_url, "queue")
    assert watched.highest == 1
    counts = Counter(row.status for row in rows)
    assert counts[Status.SKIPPED] == 0
    assert counts[Status.PENDING] >= 1


async def test_allow_lets_them_run_beside_each_other(store: SqlStore, database_url: str) -> None:
    watched, rows = await watch(store, database_url, "allow")
    assert watched.highest >= 2
    assert Status.SKIPPED not in {row.status for row in rows}


async def test_cancel_running_lets_only_the_latest_run(store: SqlStore, database_url: str) -> None:
    watched = Watched()

    async def noop() -> None:
        await watched()

    schedule = await add(store, every_second("watched", overlap={"policy": "cancel_running"}))
    async with (
        running(database_url, roles=SCHEDULER),
        running(database_url, roles=WORKER, tasks=registry(noop)),
    ):

        async def are_cancelled() -> bool:
            rows = await store.schedules.executions(schedule.schedule_id)
            return sum(row.status is Status.CANCELLED for row in rows) >= 2

        await until(are_cancelled, within_s=60)
    assert watched.highest == 1
