"""The providers that have a witness beside the database, against the contract of all of them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from uuid import uuid4

import pytest
from sqlalchemy import update
from tests.brokers import Broker
from tests.conformance.suites.lease import LeaseConformance
from tests.conformance.suites.scene import Scene
from tests.etcd import EtcdCluster

from foliot.db.tables.cluster import scheduler_lock_t
from foliot.model.event import Observers
from foliot.model.lease import Lease, Shard
from foliot.scheduler.leases.lease_provider import LeaseProvider, LeaseReply
from foliot.scheduler.leases.open_lease import LeaseOptions, open_leases
from foliot.scheduler.leases.second_witness import Witness
from foliot.timing.clock import ClusterClock, VirtualClock

TTL_S = 60.0
HEARTBEAT_S = 20.0


class WitnessedScene:
    def __init__(self, scene: Scene, kind: Literal["etcd", "redis"], address: str) -> None:
        self._scene = scene
        self._kind = kind
        self._address = address
        self._cluster = uuid4().hex
        self.opened: list[Witness] = []

    async def provider(self, instance_id: str) -> LeaseProvider:
        clock = ClusterClock(VirtualClock(await self._scene.now()))
        clock.observe(await self._scene.now(), 0)
        options = LeaseOptions(instance_id, TTL_S, HEARTBEAT_S, self._kind, self._address)
        store = await self._scene.open_another()
        provider, witness = open_leases(options, store.leases, clock, Observers())
        assert witness is not None
        witness.cluster = self._cluster
        self.opened.append(witness)
        await witness.step()
        return _Kept(provider, witness)

    async def expire(self) -> None:
        long_ago = await self._scene.now() - timedelta(seconds=TTL_S + 40)
        await self._scene.execute(update(scheduler_lock_t).values(last_heartbeat=long_ago))


@dataclass(frozen=True)
class _Kept:
    """A provider whose witness is stepped after everything that is asked of it."""

    provider: LeaseProvider
    witness: Witness

    async def acquire(self, shard: Shard) -> LeaseReply:
        answer = await self.provider.acquire(shard)
        await self.witness.step()
        return answer

    async def renew(self, lease: Lease) -> LeaseReply:
        answer = await self.provider.renew(lease)
        await self.witness.step()
        return answer

    async def release(self, lease: Lease) -> None:
        await self.provider.release(lease)
        await self.witness.step()


class TestRedisProvider(LeaseConformance):
    databases = ("sqlite",)

    @pytest.fixture
    async def lease_scene(self, scene: Scene, redis_broker: Broker) -> AsyncIterator[WitnessedScene]:
        found = WitnessedScene(scene, "redis", redis_broker.url)
        yield found
        for each in found.opened:
            await each.close()


class TestEtcdProvider(LeaseConformance):
    databases = ("postgres",)

    @pytest.fixture
    async def lease_scene(self, scene: Scene, etcd_cluster: EtcdCluster) -> AsyncIterator[WitnessedScene]:
        found = WitnessedScene(scene, "etcd", etcd_cluster.url)
        yield found
        for each in found.opened:
            await each.close()
