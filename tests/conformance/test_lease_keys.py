"""The witnesses of leadership against their contract, on real servers; and etcd with nodes that are away."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from redis.asyncio import Redis
from tests.brokers import Broker
from tests.conformance.suites.lease_key import LeaseKeyConformance
from tests.etcd import EtcdCluster

from foliot.scheduler.leases.etcd_gateway import encoded
from foliot.scheduler.leases.etcd_keys import EtcdLeases
from foliot.scheduler.leases.lease_provider import ExternalLeases, ProviderUnreachableError
from foliot.scheduler.leases.redis_keys import RedisLeases

CALL_S = 30.0


class RedisKeyScene:
    def __init__(self, url: str) -> None:
        self._url = url
        self._redis = Redis.from_url(url)
        self.opened: list[ExternalLeases] = []

    async def owner(self, name: str, *, ttl_s: float = 60.0) -> ExternalLeases:
        self.opened.append(RedisLeases(self._url, name, ttl_s=ttl_s, call_s=CALL_S))
        return self.opened[-1]

    async def remove(self, key: str) -> None:
        await self._redis.delete(key)

    async def clear(self) -> None:
        await self._redis.flushdb()

    async def close(self) -> None:
        for each in self.opened:
            await each.close()
        await self._redis.aclose()


class EtcdKeyScene:
    def __init__(self, url: str) -> None:
        self._url = url
        self.opened: list[ExternalLeases] = []

    async def owner(self, name: str, *, ttl_s: float = 60.0) -> ExternalLeases:
        self.opened.append(EtcdLeases(self._url, name, ttl_s=ttl_s, call_s=CALL_S))
        return self.opened[-1]

    async def remove(self, key: str) -> None:
        await self._delete({"key": encoded(key)})

    async def clear(self) -> None:
        everything = encoded("\0")
        await self._delete({"key": everything, "range_end": everything})

    async def close(self) -> None:
        for each in self.opened:
            await each.close()

    async def _delete(self, body: dict[str, Any]) -> None:
        await self.post("kv/deleterange", body)

    async def post(self, path: str, body: dict[str, Any], token: str = "") -> dict[str, Any]:
        async with httpx2.AsyncClient(trust_env=False, timeout=CALL_S) as client:
            headers = {"Authorization": token} if token else {}
            answer = await client.post(f"{self._url.split(',')[0]}/v3/{path}", json=body, headers=headers)
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
            return found


class TestRedisLeases(LeaseKeyConformance):
    @pytest.fixture
    async def key_scene(self, redis_broker: Broker) -> AsyncIterator[RedisKeyScene]:
        scene = RedisKeyScene(redis_broker.url)
        await scene.clear()
        yield scene
        await scene.close()

    async def test_one_that_is_away_is_said_to_be_and_serves_again_when_it_is_back(
        self, key_scene: RedisKeyScene, redis_broker: Broker
    ) -> None:
        one = await key_scene.owner("one")
        assert await one.acquire("a")
        redis_broker.stop()
        try:
            for call in (one.acquire("a"), one.extend({"a"}), one.extend(()), one.give_up("a")):
                with pytest.raises(ProviderUnreachableError):
                    await call
        finally:
            redis_broker.start()
        assert await one.extend({"a"}) == {"a"}

    async def test_an_address_with_a_password_is_never_said_back(self) -> None:
        owner = RedisLeases("redis://somebody:s3cret@127.0.0.1:1/0", "one", ttl_s=1, call_s=1)
        with pytest.raises(ProviderUnreachableError) as raised:
            await owner.acquire("a")
        assert "127.0.0.1:1" in str(raised.value)
        assert "s3cret" not in str(raised.value) + owner.address
        await owner.close()


class TestEtcdLeases(LeaseKeyConformance):
    @pytest.fixture
    async def key_scene(self, etcd_cluster: EtcdCluster) -> AsyncIterator[EtcdKeyScene]:
        scene = EtcdKeyScene(etcd_cluster.url)
        await scene.clear()
        yield scene
        await scene.close()

    @pytest.fixture
    def whole_again(self, etcd_cluster: EtcdCluster) -> Iterator[None]:
        yield
        etcd_cluster.start()

    @pytest.mark.usefixtures("whole_again")
    async def test_any_node_may_be_away_but_not_two(
        self, key_scene: EtcdKeyScene, etcd_cluster: EtcdCluster
    ) -> None:
        one = await key_scene.owner("one", ttl_s=600)
        hasty = EtcdLeases(etcd_cluster.url, "hasty", ttl_s=600, call_s=0.6)
        key_scene.opened.append(hasty)
        assert await one.acquire("a")
        for node in range(3):
            etcd_cluster.stop([node])
            assert await one.extend({"a"}) == {"a"}
            assert not await (await key_scene.owner(f"without-{node}")).acquire("a")
            etcd_cluster.start([node])
        etcd_cluster.stop([0, 1])
        with pytest.raises(ProviderUnreachableError):
            await hasty.extend(())
        with pytest.raises(ProviderUnreachableError):
            await hasty.acquire("b")
        etcd_cluster.start()
        assert await one.extend({"a"}) == {"a"}

    async def test_a_user_signs_in_and_again_when_the_token_is_worth_nothing_any_more(
        self, key_scene: EtcdKeyScene, etcd_cluster: EtcdCluster
    ) -> None:
        root = {"name": "root", "password": "p@ss/word"}
        await key_scene.post("auth/user/add", root)
        await key_scene.post("auth/role/add", {"name": "root"})
        await key_scene.post("auth/user/grant", {"user": "root", "role": "root"})
        await key_scene.post("auth/enable", {})
        stranger = await key_scene.owner("stranger")
        known = EtcdLeases(
            etcd_cluster.url.replace("//", "//root:p%40ss%2Fword@"), "known", ttl_s=60, call_s=CALL_S
        )
        try:
            with pytest.raises(ProviderUnreachableError):
                await stranger.acquire("a")
            assert await known.acquire("a")
            known._gateway._token = "of yesterday"
            assert await known.extend({"a"}) == {"a"}
        finally:
            token = (await key_scene.post("auth/authenticate", root))["token"]
            await known.close()
            await key_scene.post("auth/disable", {}, token)
            await key_scene.post("auth/user/delete", {"name": "root"})
            await key_scene.post("auth/role/delete", {"role": "root"})

    async def test_an_owner_that_closes_leaves_nothing_behind(self, key_scene: EtcdKeyScene) -> None:
        one, two = await key_scene.owner("one"), await key_scene.owner("two")
        assert await one.acquire("a")
        await one.close()
        key_scene.opened.remove(one)
        assert await two.acquire("a")

    @pytest.mark.parametrize(
        "body", ["{}", "[]", "<html>", '{"ID": 1, "responses": [{}]}', '{"error": "no"}']
    )
    @pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "503 Unavailable"])
    async def test_a_server_that_is_no_etcd_is_as_good_as_none(self, status: str, body: str) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            writer.write((head + body).encode())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            owner = EtcdLeases(f"http://127.0.0.1:{port}", "one", ttl_s=1, call_s=CALL_S)
            with pytest.raises(ProviderUnreachableError):
                await owner.acquire("a")
            await owner.close()

    async def test_an_address_with_a_password_is_never_said_back(self) -> None:
        owner = EtcdLeases("http://u:s3cret@127.0.0.1:1,http://127.0.0.1:2", "one", ttl_s=1, call_s=1)
        with pytest.raises(ProviderUnreachableError) as raised:
            await owner.acquire("a")
        assert "127.0.0.1:1,http://127.0.0.1:2" in str(raised.value)
        assert "s3cret" not in str(raised.value) + owner.address
        await owner.close()
