"""One run: a cluster, its load, the faults, and the verdict."""

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from foliot.db.migrate import upgrade
from foliot.instance.store import open_store
from foliot.timing.clock import SystemClock
from tests.chaos.cluster import TTL_S, Cluster, Provider
from tests.chaos.load import Operator
from tests.chaos.nemesis import Nemesis
from tests.chaos.plan import plan_faults
from tests.chaos.verdict import Verdict, judge, silent_after
from tests.servers import PostgresServer


@dataclass(frozen=True, slots=True)
class Run:
    seed: int
    seconds: float
    provider: Provider | None = None


async def carry_out(
    run: Run, server: PostgresServer, url: str, folder: Path, tell: Callable[[str], None]
) -> Verdict:
    """Run once on this database and return the verdict.

    The run restarts the server, and leaves its logs in the folder.
    """
    faults = plan_faults(run.seed, run.seconds, ttl_s=TTL_S, has_provider=run.provider is not None)
    async with AsyncExitStack() as stack:
        store = open_store(url, clock=SystemClock())
        stack.push_async_callback(store.close)
        await upgrade(store.database)
        cluster = Cluster(server, url, store, folder, run.provider)
        stack.push_async_callback(cluster.close)
        await cluster.start()
        operator = Operator(cluster, random.Random(run.seed))
        await operator.create_all()
        working = asyncio.create_task(operator.work())
        await Nemesis(cluster, tell).carry_out(faults)
        tell(f"{run.seconds:6.1f} s  the faults are over; {operator.acts} acts of the operator")
        silent = await silent_after(cluster, await cluster.now())
        await operator.pause_all()
        await working
        await cluster.settle()
        return await judge(cluster, await cluster.stop(), silent)
