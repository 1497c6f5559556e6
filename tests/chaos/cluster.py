"""A cluster of real processes: three schedulers, three workers, an API, a database and an agent."""

import asyncio
import secrets
import signal
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import httpx2
from sqlalchemy import Row, Select, func, select

from foliot.db.dialect import Pool
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.executions import execution_t
from foliot.instance.store import SqlStore
from foliot.model.errors import DatabaseUnreachableError
from tests.chaos.agent import Agent
from tests.chaos.members import WITHIN_S, Member, keep_running
from tests.chaos.plan import Role
from tests.engine import until
from tests.servers import PostgresServer, free_port

TTL_S = 2.0
SETTLED_WITHIN_S = 180.0
OPEN = ("pending", "running", "retrying")
SETTINGS = {
    "FOLIOT_LEASE_TTL_SECONDS": str(TTL_S),
    "FOLIOT_HEARTBEAT_SECONDS": "0.4",
    "FOLIOT_POLL_SECONDS": "0.2",
    "FOLIOT_WORKER_LEASE_SECONDS": "2",
    "FOLIOT_STOP_GRACE_SECONDS": "5",
    "FOLIOT_HTTP_ALLOW": "127.0.0.0/8",
    "FOLIOT_RATE_LIMIT": "off",
}


class Provider(Protocol):
    """etcd or Redis, with nodes that can be killed and started again."""

    name: str
    url: str

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Cluster:
    def __init__(
        self, server: PostgresServer, url: str, store: SqlStore, folder: Path, provider: Provider | None
    ) -> None:
        """Prepare the cluster; start nothing.

        `url` and `store` belong to one database on the server, with the schema in place.
        """
        self.server = server
        self.url = url
        self.store = store
        self.provider = provider
        self.agent = Agent(folder)
        self.database_turn = asyncio.Lock()
        key, port = secrets.token_hex(16), free_port()
        settings = dict(SETTINGS)
        if provider is not None:
            settings["FOLIOT_LEASE_PROVIDER"] = provider.name
            settings[f"FOLIOT_{provider.name.upper()}_URL"] = provider.url
        api = {"FOLIOT_API_PORT": str(port), "FOLIOT_ADMIN_KEY": key}
        tasks = ("--tasks", "tests.cluster.executing_tasks")
        self.members = [
            *(Member(Role.SCHEDULER, each, url, folder, "scheduler", **settings) for each in range(3)),
            *(Member(Role.WORKER, each, url, folder, "worker", *tasks, **settings) for each in range(3)),
            Member(Role.API, 0, url, folder, "api", *tasks, **settings, **api),
        ]
        self.client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}/api/v1/",
            headers={"Authorization": f"Bearer {key}"},
            trust_env=False,
            timeout=10,
        )
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start all processes, and wait until they run and the API answers."""
        for member in self.members:
            await member.start()
        for member in self.members:
            await member.instance_id()
        self._keeper = asyncio.create_task(keep_running(self.members))
        await until(self._answers, within_s=WITHIN_S, every_s=0.1)

    async def _answers(self) -> bool:
        try:
            answer = await self.client.get("status")
        except httpx2.HTTPError:
            return False
        return answer.status_code == httpx2.codes.OK

    def of_role(self, role: Role) -> list[Member]:
        return [member for member in self.members if member.role is role]

    async def read(self, statement: Select[Any]) -> Sequence[Row[Any]]:
        """Read from the database without a proxy. Retry while it is down or has ended the session."""
        found: list[Sequence[Row[Any]]] = []

        async def has_answered() -> bool:
            try:
                async with self.store.database.read(Pool.API) as connection:
                    found[:] = [(await connection.execute(statement)).all()]
            except DatabaseUnreachableError:
                return False
            return True

        await until(has_answered, within_s=WITHIN_S, every_s=0.05)
        return found[0]

    async def now(self) -> datetime:
        [row] = await self.read(select(self.store.database.dialect.now().label("now")))
        instant: datetime = row.now
        return instant

    # --- who leads --------------------------------------------------------------------------------

    async def lease(self) -> tuple[str, int, float]:
        """Return the leader of the first shard, its epoch and the age of its heartbeat in seconds."""
        [row] = await self.read(
            select(scheduler_lock_t, self.store.database.dialect.now().label("now"))
            .order_by(scheduler_lock_t.c.lock_id)
            .limit(1)
        )
        return row.instance_id, row.epoch, (row.now - row.last_heartbeat).total_seconds()

    async def leader(self) -> Member:
        """Wait until a scheduler of this cluster leads the first shard, and return it."""
        found: list[Member] = []

        async def is_led() -> bool:
            instance_id, _, silent_s = await self.lease()
            found[:] = [
                member
                for member in self.of_role(Role.SCHEDULER)
                # An instance id is host-pid-random.
                if instance_id.split("-")[-2:-1] == [str(member.node.pid)] and member.node.is_running
            ]
            return bool(found) and silent_s < TTL_S

        await until(is_led, within_s=WITHIN_S, every_s=0.05)
        return found[0]

    # --- the end ----------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Wait until no execution is open. Faults must be over, and nothing may become due any more."""

        async def nothing_is_open() -> bool:
            [row] = await self.read(
                select(func.count().label("open_count")).where(execution_t.c.status.in_(OPEN))
            )
            return bool(row.open_count == 0)

        await until(nothing_is_open, within_s=SETTLED_WITHIN_S, every_s=0.2)

    async def stop(self) -> dict[str, int]:
        """Stop all processes cleanly. Return their exit statuses."""
        for member in self.members:
            # A process that has just started may not handle signals yet.
            await member.instance_id()
        if self._keeper is not None:
            self._keeper.cancel()
        running = [member.node for member in self.members if member.node.is_running]
        for node in running:
            node.signal(signal.SIGTERM)
        return {node.name: await asyncio.to_thread(node.ended) for node in running}

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
        await self.client.aclose()
        for member in self.members:
            await member.close()
        self.agent.end()
