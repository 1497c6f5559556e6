"""An instance that is a relay among other things, from firing to the broker."""

from functools import partial
from typing import Any

import pytest
from redis.asyncio import Redis

from foliot.instance.spec import InstanceRole
from foliot.model.delivery_events import RelayConfirmed, RelayReleased, RelayTookOver
from foliot.model.ids import new_id
from foliot.outbox.redis import STREAM
from tests.brokers import Broker
from tests.cluster.processes import Node
from tests.engine import add, every_second, running, seen, until

ROLES = frozenset({InstanceRole.SCHEDULER, InstanceRole.RELAY})


async def arrived(broker: Broker, topic: str) -> list[dict[bytes, bytes]]:
    async with Redis.from_url(broker.url) as redis:
        entries: Any = await redis.xrange(STREAM + topic)
    return [fields for _entry_id, fields in entries]


async def test_what_fires_arrives_and_a_restart_goes_on_without_sending_again(
    database_url: str, redis_broker: Broker
) -> None:
    topic = f"orders-{new_id()}"
    target = {"kind": "event", "event_topic": topic, "event_type": "OrdersDue"}

    async def has_more_than(count: int) -> bool:
        return len(await arrived(redis_broker, topic)) > count

    for count in (0, 2):
        async with running(database_url, roles=ROLES, relay=redis_broker.url) as (instance, recorder):
            if not count:
                await add(instance.store, every_second("event", target=target))
            await until(partial(has_more_than, count))
        assert seen(recorder, RelayTookOver)
        assert sum(each.count for each in seen(recorder, RelayConfirmed)) > 0
        assert seen(recorder, RelayReleased)
    versions = [int(fields[b"aggregate_version"]) for fields in await arrived(redis_broker, topic)]
    assert versions == list(range(1, len(versions) + 1))


async def test_a_relay_that_is_stopped_is_followed_at_once(postgres_url: str, redis_broker: Broker) -> None:
    """Long before its lease would have run out."""
    relay = frozenset({InstanceRole.RELAY})
    slow = {"lease_ttl_seconds": 600, "heartbeat_seconds": 300, "relay": redis_broker.url}
    async with running(postgres_url, roles=relay, **slow) as (one, told):
        await until(lambda: bool(seen(told, RelayTookOver)))
        async with running(postgres_url, roles=relay, **slow) as (_other, told_two):
            assert not seen(told_two, RelayTookOver)
            assert one.relay is not None
            one.relay.wind_up()
            await one.relay.release()
            await until(lambda: bool(seen(told_two, RelayTookOver)))


def test_the_command_says_what_is_missing(postgres_url: str, tmp_path: Any) -> None:
    node = Node("relay", postgres_url, tmp_path, "relay")
    assert node.ended() != 0
    assert "FOLIOT_RELAY is not set" in node.told()


@pytest.mark.parametrize("address", ["redis://user:hunter2@:6379", "http://user:hunter2@host"])
def test_the_command_does_not_tell_the_password(postgres_url: str, tmp_path: Any, address: str) -> None:
    node = Node("relay", postgres_url, tmp_path, "relay", FOLIOT_RELAY=address)
    assert node.ended() != 0
    assert "FOLIOT_RELAY" in node.told()
    assert "hunter2" not in node.told()
