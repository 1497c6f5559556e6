"""Applies planned faults to a running cluster, and ends each after its duration."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

import asyncpg
import httpx2

from tests.chaos.cluster import TTL_S, Cluster
from tests.chaos.members import WITHIN_S, Member
from tests.chaos.plan import Fault, Kind, Role
from tests.chaos.proxy import Way
from tests.chaos.staleness import FIRING, write_stale
from tests.engine import until
from tests.etcd import EtcdCluster

SETTLING = "UPDATE execution_t"
TELL = Callable[[str], None]


class Nemesis:
    def __init__(self, cluster: Cluster, tell: TELL) -> None:
        self._cluster = cluster
        self._tell = tell
        self._acts: dict[Kind, Callable[[Fault, Member], Awaitable[None]]] = {
            Kind.KILL: self._kill,
            Kind.STOP: self._stop,
            Kind.END: self._end,
            Kind.CUT: self._cut,
            Kind.REFUSE: self._refuse,
            Kind.DELAY: self._delay,
            Kind.HOLD_REQUESTS: self._hold,
            Kind.HOLD_REPLIES: self._hold,
            Kind.LOSE_COMMIT: self._lose_commit,
            Kind.STALE_WRITE: self._stale_write,
            Kind.CLOCK: self._clock,
            Kind.DRAIN: self._drain,
        }
        self._wide: dict[Kind, Callable[[Fault], Awaitable[None]]] = {
            Kind.RESTART_DATABASE: self._restart_database,
            Kind.CRASH_DATABASE: self._restart_database,
            Kind.TERMINATE_BACKENDS: self._terminate_backends,
            Kind.PROVIDER_AWAY: self._provider_away,
            Kind.RESHARD: self._reshard,
        }

    async def carry_out(self, faults: list[Fault]) -> None:
        """Apply all faults at their times.

        A fault is late if it must wait for its victim or for its moment.
        """
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                group.create_task(self._strike_at(fault))

    async def _strike_at(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at_s)
        self._tell(str(fault))
        if fault.role is None:
            async with self._cluster.database_turn:
                await self._wide[fault.kind](fault)
            return
        while True:
            member = await self._victim(fault)
            async with member.turn:
                # Another scheduler may have become the leader during the wait for the lock.
                if fault.role is not Role.LEADER or await self._victim(fault) is member:
                    await self._acts[fault.kind](fault, member)
                    return

    async def _victim(self, fault: Fault) -> Member:
        assert fault.role is not None
        if fault.role is not Role.LEADER:
            return self._cluster.of_role(fault.role)[fault.number]
        return await self._cluster.leader()

    # --- one process ------------------------------------------------------------------------------

    async def _kill(self, fault: Fault, member: Member) -> None:
        member.kill()
        await asyncio.sleep(fault.lasts_s)
        member.is_wanted = True

    async def _stop(self, fault: Fault, member: Member) -> None:
        node = member.node
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(fault.lasts_s)
        node.signal(signal.SIGCONT)

    async def _end(self, _fault: Fault, member: Member) -> None:
        node = member.node
        node.signal(signal.SIGTERM)
        await until(lambda: not node.is_running, within_s=WITHIN_S, every_s=0.1)

    async def _cut(self, _fault: Fault, member: Member) -> None:
        member.proxy.cut()

    async def _refuse(self, fault: Fault, member: Member) -> None:
        await member.proxy.refuse()
        await asyncio.sleep(fault.lasts_s)
        await member.proxy.accept()

    async def _delay(self, fault: Fault, member: Member) -> None:
        member.proxy.delay(fault.amount)
        await asyncio.sleep(fault.lasts_s)
        member.proxy.heal()

    async def _hold(self, fault: Fault, member: Member) -> None:
        member.proxy.hold(Way.REQUESTS if fault.kind is Kind.HOLD_REQUESTS else Way.REPLIES)
        await asyncio.sleep(fault.lasts_s)
        member.proxy.heal()

    async def _lose_commit(self, fault: Fault, member: Member) -> None:
        catch = member.proxy.lose_commit(of=SETTLING if fault.role is Role.WORKER else FIRING)
        try:
            await until(catch.caught.is_set, within_s=WITHIN_S)
        except TimeoutError:
            # The member is no longer the leader, or has nothing to do. The verdict counts the lost commits.
            self._tell(f"          {fault.kind}: there was none at {member.name}")
        member.proxy.heal()

    async def _stale_write(self, _fault: Fault, member: Member) -> None:
        _, epoch, _ = await self._cluster.lease()

        async def silent_s() -> float:
            return (await self._cluster.lease())[2]

        async def is_taken() -> bool:
            return (await self._cluster.lease())[1] > epoch

        async with self._cluster.database_turn:
            await write_stale(member.proxy, TTL_S, silent_s, is_taken)

    async def _clock(self, fault: Fault, member: Member) -> None:
        member.set_clock(fault.amount)
        await asyncio.sleep(fault.lasts_s)
        member.set_clock(0.0)

    async def _drain(self, fault: Fault, member: Member) -> None:
        instance_id = await member.instance_id()
        if await self._ask(f"instances/{instance_id}/drain"):
            await asyncio.sleep(fault.lasts_s)
            await self._ask(f"instances/{instance_id}/resume")

    # --- the whole cluster ------------------------------------------------------------------------

    async def _restart_database(self, fault: Fault) -> None:
        how = signal.SIGQUIT if fault.kind is Kind.CRASH_DATABASE else signal.SIGINT
        await asyncio.to_thread(self._cluster.server.stop, how)
        await asyncio.sleep(fault.lasts_s)
        await asyncio.to_thread(self._cluster.server.start)

    async def _terminate_backends(self, _fault: Fault) -> None:
        connection = await asyncpg.connect(self._cluster.server.url("postgres"))
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = $1 AND pid <> pg_backend_pid()",
            self._cluster.url.rpartition("/")[2],
        )
        await connection.close()

    async def _provider_away(self, fault: Fault) -> None:
        provider = self._cluster.provider
        if isinstance(provider, EtcdCluster):
            # A majority survives the loss of one node of three, but not of two.
            gone = range(1 + fault.number % 2)
            await asyncio.to_thread(provider.stop, gone)
        elif provider is not None:
            await asyncio.to_thread(provider.stop)
        await asyncio.sleep(fault.lasts_s)
        if provider is not None:
            await asyncio.to_thread(provider.start)

    async def _reshard(self, fault: Fault) -> None:
        await self._ask("cluster/reshard", shards=int(fault.amount))

    async def _ask(self, path: str, **body: int) -> bool:
        """Send a request to the API until it answers. Return whether the answer is a success."""
        answers: list[httpx2.Response] = []

        async def has_answered() -> bool:
            try:
                answer = await self._cluster.client.post(path, json=body)
            except httpx2.HTTPError:
                return False
            answers[:] = [answer]
            return not answer.is_server_error

        await until(has_answered, within_s=WITHIN_S, every_s=0.2)
        return answers[0].is_success
