"""Counts of requests that processes share through Redis."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.brokers import Broker

from foliot.api.access.rate_limits import (
    RateKind,
    RateLimiter,
    RateStorage,
    RedisRates,
    parse_rate,
)
from foliot.timing.clock import SystemClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def limiter_of(storage: RateStorage) -> RateLimiter:
    return RateLimiter(storage, {RateKind.CREDENTIAL: parse_rate("20/day")})


async def hits(limiter: RateLimiter, count: int) -> int:
    return [await limiter.hit("key:1", RateKind.CREDENTIAL) for _ in range(count)].count(None)


@pytest.fixture
async def redis_pair(redis_broker: Broker) -> AsyncIterator[list[RedisRates]]:
    pair = [RedisRates(redis_broker.url, SystemClock()) for _ in range(2)]
    yield pair
    for each in pair:
        await each.close()


async def test_instances_share_a_rate_over_redis_exactly(redis_pair: list[RedisRates]) -> None:
    limiters = [limiter_of(each) for each in redis_pair]
    let_through = await asyncio.gather(*(hits(each, 5) for each in limiters * 4))
    assert sum(let_through) == 20
    wait = await limiters[0].hit("key:1", RateKind.CREDENTIAL)
    assert wait is not None
    assert 86_300 < wait <= 86_400, "until the first of them is a day ago"
    assert not any(each.is_away for each in redis_pair)
