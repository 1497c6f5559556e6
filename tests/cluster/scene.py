"""A database and the processes that use it, for tests of executing under faults."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import Table, select, text

from foliot.db.dialect import Pool
from foliot.db.tables.executions import execution_t
from foliot.instance.store import SqlStore
from foliot.model.execution import FINAL, Execution, Status, TriggeredBy
from foliot.model.schedule import Schedule
from foliot.planning.change import Author
from tests.cluster.agent import Agent
from tests.cluster.processes import Node, Nodes
from tests.engine import add, all_schedules, spec, until

SECOND = timedelta(seconds=1)
LEASE_S = 1.5
QUICK = {
    "FOLIOT_POLL_SECONDS": "0.2",
    "FOLIOT_WORKER_LEASE_SECONDS": str(LEASE_S),
    "FOLIOT_HTTP_ALLOW": "127.0.0.0/8",
}
WITHIN_S = 60.0
"""Timeout that only prevents a hanging test. No behaviour depends on it."""
NEVER = {"kind": "cron", "expression": "0 0 29 2 *"}
"""A trigger for schedules that run only when triggered by hand."""
HURRIED = {"initial_delay_seconds": 0.1, "max_delay_seconds": 0.1}


class Scene:
    """A database, and the processes that use it."""

    def __init__(self, url: str, store: SqlStore, folder: Path) -> None:
        self.url = url
        self.store = store
        self.folder = folder
        self.nodes = Nodes(url, folder, **QUICK)

    def scheduler(self, **settings: str) -> Node:
        return self.nodes.start("scheduler", **settings)

    def worker(self, *options: str, **settings: str) -> Node:
        return self.nodes.start("worker", "--tasks", "tests.cluster.executing_tasks", *options, **settings)

    def go(self) -> None:
        """Let the tasks end that wait for the file `go`."""
        (self.folder / "go").touch()

    # --- schedules and executions -----------------------------------------------------------------

    async def schedule_of(self, task: str, args: dict[str, Any] | None = None, **fields: Any) -> Schedule:
        target = {"kind": "function", "name": task, "args": args or {}}
        return await self._schedule(task, target, **fields)

    async def schedule_for(self, url: str, **fields: Any) -> Schedule:
        return await self._schedule(url, {"kind": "http", "url": url}, **fields)

    async def _schedule(self, name: str, target: dict[str, Any], **fields: Any) -> Schedule:
        fields = {"overlap": {"policy": "allow"}, "retry": {"max_attempts": 3, **HURRIED}, **fields}
        return await add(self.store, spec(name, NEVER, target=target, **fields))

    async def trigger(self, schedule: Schedule) -> UUID:
        return await self.store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())

    async def row(self, execution_id: UUID) -> Execution:
        return await self.store.executions.get(execution_id)

    async def stands(self, execution_id: UUID, *statuses: Status) -> Execution:
        """Wait until the execution has one of these statuses, and return it.

        Fail at once if it ends with another status.
        """

        async def does() -> bool:
            row = await self.row(execution_id)
            assert row.status in statuses or row.status not in FINAL, (row.status, row.error)
            return row.status in statuses

        await until(does, within_s=WITHIN_S)
        return await self.row(execution_id)

    async def ran(self, task: str = "nap") -> Execution:
        """Run a short task, to prove that a worker is active."""
        known = [each for each in await all_schedules(self.store) if each.spec.name == task]
        schedule = known[0] if known else await self.schedule_of(task)
        return await self.stands(await self.trigger(schedule), Status.SUCCESS)

    def lines(self, execution_id: UUID) -> list[tuple[int, int]]:
        """Return attempt and process id of each start of the execution."""
        return [(attempt, pid) for each, attempt, pid in self.all_lines() if each == execution_id]

    def all_lines(self) -> list[tuple[UUID, int, int]]:
        log = self.folder / "runs.log"
        lines = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [(UUID(each), int(attempt), int(pid)) for each, attempt, pid in lines]

    async def begun(self, execution_id: UUID) -> None:
        await until(lambda: bool(self.lines(execution_id)), within_s=WITHIN_S)

    async def more_begun(self, count: int) -> None:
        """Wait until `count` more runs have begun."""
        enough = len(self.all_lines()) + count
        await until(lambda: len(self.all_lines()) >= enough, within_s=WITHIN_S)

    @asynccontextmanager
    async def locked(self, execution_id: UUID) -> AsyncIterator[None]:
        """Lock the execution's row, so that nobody else can write it."""
        database = self.store.database
        async with database.dialect.begin(database.engine(Pool.API)) as connection:
            mine = execution_t.c.execution_id == execution_id
            await connection.execute(select(execution_t.c.execution_id).where(mine).with_for_update())
            yield

    @asynccontextmanager
    async def locked_table(self, table: Table) -> AsyncIterator[None]:
        """Lock the table, so that nobody else can use it."""
        database = self.store.database
        async with database.dialect.begin(database.engine(Pool.API)) as connection:
            await connection.execute(text(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE"))
            yield

    async def has_session(self, waiting_for: str, statement: str) -> bool:
        """Return whether another session in a transaction waits for this type of event.

        The session's last statement must contain `statement`.
        """
        async with self.store.database.read(Pool.LEASE) as connection:
            found = await connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND xact_start IS NOT NULL AND pid <> pg_backend_pid() "
                    "AND wait_event_type = :waiting_for AND strpos(query, :statement) > 0"
                ),
                {"waiting_for": waiting_for, "statement": statement},
            )
            return bool(found.scalar_one())

    async def asked(self, agent: Agent, execution_id: UUID) -> None:
        await until(lambda: bool(agent.requests(execution_id)), within_s=WITHIN_S)


def told(node: Node, event: str) -> list[dict[str, Any]]:
    """Return the lines of a node's log for one kind of event."""
    lines = [json.loads(line) for line in node.told().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == event]


async def tells(node: Node, event: str) -> list[dict[str, Any]]:
    await until(lambda: bool(told(node, event)), within_s=WITHIN_S)
    return told(node, event)


def is_of(row: Execution, node: Node) -> bool:
    """Return whether a worker of the node has the execution. An instance id is host-pid-random."""
    return row.worker_id is not None and row.worker_id.split("-")[-2] == str(node.pid)
