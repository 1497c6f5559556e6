"""Three schedulers, three workers, hundreds of schedules, and leaders that are killed and stopped.

Afterwards every due time is decided by exactly one row, and each that fired ran.
"""

import signal
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from foliot.db.dialect import Pool
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.executions import execution_t
from foliot.instance.store import SqlStore
from foliot.model.execution import Status
from foliot.model.schedule import Schedule
from tests.cluster.processes import Node
from tests.conftest import OpenStore
from tests.engine import add, spec, until
from tests.ledger import assert_exact

pytestmark = pytest.mark.cluster

SECOND = timedelta(seconds=1)
TTL_S = 3.0
SCHEDULES = 240
ROUNDS = ("kill", "stop", "kill", "stop", "kill")


class Cluster:
    def __init__(self, url: str, store: SqlStore, folder: Path) -> None:
        self.store = store
        self._url = url
        self._folder = folder
        self._numbers = iter(range(100))
        self.schedulers = [self._scheduler() for _ in range(3)]
        self.workers = [self._node("worker", "--tasks", "tests.cluster.tasks") for _ in range(3)]
        self.stopped: list[Node] = []

    def _node(self, *arguments: str) -> Node:
        return Node(f"{arguments[0]}-{next(self._numbers)}", self._url, self._folder, *arguments)

    def _scheduler(self) -> Node:
        return self._node("scheduler")

    async def leader(self) -> tuple[Node, int]:
        """The process whose instance holds a fresh lease, and its epoch."""
        found: list[tuple[Node, int]] = []

        async def is_led() -> bool:
            async with self.store.database.read(Pool.LEASE) as connection:
                row = (await connection.execute(select(scheduler_lock_t))).one()
            for node in self.schedulers:
                # Instance ids are host-pid-random.
                if row.instance_id.split("-")[-2:-1] == [str(node.pid)] and node.is_running:
                    found[:] = [(node, row.epoch)]
            is_fresh = (await self.store.now() - row.last_heartbeat).total_seconds() < TTL_S
            return bool(found) and is_fresh

        await until(is_led)
        return found[0]

    async def fires_of_others(self, node: Node, since: datetime) -> datetime | None:
        """When the first row was written that another scheduler fired after this moment."""
        async with self.store.database.read(Pool.API) as connection:
            statement = select(func.min(execution_t.c.created_ts)).where(
                execution_t.c.created_ts > since,
                execution_t.c.scheduler_instance_id.not_like(f"%-{node.pid}-%"),
            )
            found: datetime | None = (await connection.execute(statement)).scalar_one_or_none()
        return found

    async def failover_s(self, node: Node, since: datetime) -> float:
        first: list[datetime] = []

        async def is_firing() -> bool:
            found = await self.fires_of_others(node, since)
            first[:] = [] if found is None else [found]
            return bool(first)

        await until(is_firing)
        return (first[0] - since).total_seconds()

    async def kill_leader(self) -> float:
        node, _ = await self.leader()
        since = await self.store.now()
        node.kill()
        self.schedulers.remove(node)
        self.schedulers.append(self._scheduler())
        return await self.failover_s(node, since)

    async def stop_leader(self) -> float:
        """SIGSTOP for three times the TTL, then SIGCONT: it wakes up and believes it still leads."""
        node, epoch = await self.leader()
        since = await self.store.now()
        node.signal(signal.SIGSTOP)
        self.stopped.append(node)
        try:
            took_s = await self.failover_s(node, since)

            async def long_enough() -> bool:
                return (await self.store.now() - since).total_seconds() >= 3 * TTL_S

            await until(long_enough)
        finally:
            node.signal(signal.SIGCONT)
        _, now = await self.leader()
        assert now > epoch
        return took_s

    def end(self) -> None:
        for node in (*self.schedulers, *self.workers):
            node.kill()


@pytest.fixture
async def cluster(
    postgres_url: str, open_test_store: OpenStore, tmp_path: Path
) -> AsyncIterator[tuple[Cluster, list[Schedule]]]:
    store = await open_test_store(postgres_url)
    schedules = []
    for number in range(SCHEDULES):
        trigger = (
            {"kind": "interval", "seconds": 1}
            if number % 2
            else {"kind": "cron", "expression": "* * * * * *", "timezone": "Europe/Berlin"}
        )
        # Times missed while nobody led are all made good, each by a row of its own.
        policies = {"misfire": {"policy": "fire_all"}, "overlap": {"policy": "allow"}}
        target = {"kind": "function", "name": "note"}
        schedules.append(await add(store, spec(f"s{number}", trigger, target=target, **policies)))
    found = Cluster(postgres_url, store, tmp_path)
    try:
        yield found, schedules
    finally:
        found.end()


async def test_leaders_are_killed_and_stopped_and_every_due_time_is_decided_once(
    cluster: tuple[Cluster, list[Schedule]], tmp_path: Path
) -> None:
    nodes, schedules = cluster
    store = nodes.store
    await nodes.leader()
    took = [await (nodes.kill_leader() if fault == "kill" else nodes.stop_leader()) for fault in ROUNDS]
    assert max(took) < 5.0, f"a new leader was firing after {took} s"

    for node in nodes.schedulers:
        # One that was started last may not even listen to signals yet.
        await until(lambda node=node: '"instance_started"' in node.told())  # type: ignore[misc]
        assert node.stop() == 0, node.told()[-2000:]

    async def nothing_is_open() -> bool:
        async with store.database.read(Pool.API) as connection:
            statement = select(func.count()).where(
                execution_t.c.status.in_(["pending", "running", "retrying"])
            )
            return (await connection.execute(statement)).scalar_one() == 0

    await until(nothing_is_open, within_s=90, every_s=0.2)
    for node in nodes.workers:
        assert node.stop() == 0, node.told()[-2000:]

    ran = Counter(
        line.split()[0] for line in (tmp_path / "runs.log").read_text().splitlines() if line.strip()
    )
    fired = 0
    for schedule in schedules:
        rows = await store.schedules.executions(schedule.schedule_id, limit=100_000)
        assert schedule.next_fire_ts is not None
        assert_exact(rows, SECOND, schedule.next_fire_ts)
        for row in rows:
            if row.status is Status.SKIPPED:
                continue
            fired += 1
            assert row.status is Status.SUCCESS, (row.status, row.error)
            # An attempt may run twice only when its worker was lost, and none was.
            assert ran[str(row.execution_id)] == 1
    assert sum(ran.values()) == fired
    # The faults really bit: a new epoch for each, and the stopped ones found out.
    _assert_stepped_down(nodes.stopped)


def _assert_stepped_down(stopped: list[Node]) -> None:
    for node in stopped:
        told = node.told()
        assert "lease_lost" in told or "write_fenced" in told, told[-2000:]
