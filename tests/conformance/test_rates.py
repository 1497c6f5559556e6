"""Counts of requests that a cluster shares: in either database, and in Redis where there is one."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, select, text
from tests.brokers import Broker
from tests.conformance.suites.scene import Scene
from tests.plans import explain

from foliot.access.rates_sql import Rates, RateWindow
from foliot.api.access.rate_limits import (
    DatabaseRates,
    RateKind,
    RateLimiter,
    RateStorage,
    RedisRates,
    parse_rate,
)
from foliot.db.dialect import Pool
from foliot.db.schema import rate_t
from foliot.timing.clock import Clock, SystemClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def rates(scene: Scene) -> Rates:
    return Rates(scene.store.database)


async def stored(scene: Scene) -> dict[RateWindow, int]:
    return {RateWindow(row.name, row.window_ts): row.amount for row in await scene.rows(select(rate_t))}


async def test_amounts_are_added_and_the_totals_told(rates: Rates, scene: Scene) -> None:
    a, b = RateWindow("a", NOON), RateWindow("b", NOON)
    assert await rates.add({a: 2, b: 1}) == {a: 2, b: 1}
    assert await rates.add({a: 3}) == {a: 5}
    assert await stored(scene) == {a: 5, b: 1}


async def test_windows_of_a_name_are_counted_apart(rates: Rates) -> None:
    this, last = RateWindow("a", NOON), RateWindow("a", NOON - MINUTE)
    assert await rates.add({last: 1, this: 2}) == {last: 1, this: 2}
    assert await rates.add({this: 0, last: 0}) == {last: 1, this: 2}


async def test_adding_nothing_is_a_way_to_ask(rates: Rates) -> None:
    window = RateWindow("a", NOON)
    assert await rates.add({window: 0}) == {window: 0}
    assert await rates.add({}) == {}


async def test_thousands_of_names_go_in_one_statement(rates: Rates, scene: Scene) -> None:
    amounts = {RateWindow(f"name-{number}", NOON): number for number in range(5000)}
    assert await rates.add(amounts) == amounts
    assert await stored(scene) == amounts


async def test_nothing_is_lost_when_instances_add_at_once_in_any_order(scene: Scene) -> None:
    names = [RateWindow(f"name-{number}", NOON) for number in range(50)]
    chance = random.Random(7)

    async def add_many(rates: Rates) -> None:
        for _ in range(10):
            await rates.add(dict.fromkeys(chance.sample(names, len(names)), 1))

    stores = await scene.stores(4)
    await asyncio.gather(*(add_many(Rates(store.database)) for store in stores for _ in range(2)))
    assert await stored(scene) == dict.fromkeys(names, 80)


async def test_old_windows_are_pruned_a_bounded_number_at_a_time_and_no_others(
    rates: Rates, scene: Scene
) -> None:
    windows = [RateWindow(f"name-{n % 3}", NOON - n * MINUTE) for n in range(10)]
    await rates.add(dict.fromkeys(windows, 1))
    before = NOON - 4 * MINUTE
    assert await rates.prune(before=before, limit=3) == 3
    assert set(await stored(scene)) == set(windows[:7]), "the oldest first"
    assert await rates.prune(before=before, limit=3) == 2
    assert await rates.prune(before=before, limit=3) == 0
    assert set(await stored(scene)) == set(windows[:5])


async def test_instances_that_prune_at_once_do_not_stand_in_each_others_way(
    rates: Rates, scene: Scene
) -> None:
    await rates.add({RateWindow(f"name-{number}", NOON): 1 for number in range(500)})
    others = [Rates(store.database) for store in await scene.stores(4)]
    pruned = await asyncio.gather(*(each.prune(before=NOON + MINUTE, limit=200) for each in others))
    assert all(count <= 200 for count in pruned)
    rest = await rates.prune(before=NOON + MINUTE, limit=1000)
    assert sum(pruned) + rest == 500
    assert await stored(scene) == {}


async def test_pruning_reads_no_more_than_it_deletes(rates: Rates, scene: Scene) -> None:
    rows = [
        {"name": f"name-{n}", "window_ts": NOON - n * timedelta(seconds=1), "amount": 1} for n in range(3000)
    ]
    await scene.execute(insert(rate_t).values(rows))
    await scene.execute(text("ANALYZE rate_t"))
    before = NOON - timedelta(seconds=2000)
    pruned, plan = await explain(scene.store, Pool.API, rates.prune(before=before, limit=10))
    assert pruned == 10
    assert "idx_rate_window" in plan.indexes, plan.text
    assert [each for each in plan.scans if each.startswith("rate_t")] == [], plan.text


# --- the limiter over them -----------------------------------------------------------------------------


def limiter_of(storage: RateStorage) -> RateLimiter:
    return RateLimiter(storage, {RateKind.CREDENTIAL: parse_rate("20/day")})


async def hits(limiter: RateLimiter, count: int) -> int:
    return [await limiter.hit("key:1", RateKind.CREDENTIAL) for _ in range(count)].count(None)


async def test_instances_share_a_rate_over_the_database(scene: Scene, clock: Clock) -> None:
    one, two = (limiter_of(DatabaseRates(clock, Rates(each.database))) for each in await scene.stores(2))
    assert await hits(one, 12) == 12
    await one.step()
    assert await hits(two, 1) == 1
    await two.step()
    assert await hits(two, 20) == 7
    await two.step()
    assert await hits(one, 1) == 1, "not heard of yet"
    await one.step()
    assert await hits(one, 5) == 0
    assert sum((await stored(scene)).values()) == 21


async def test_all_that_was_let_through_is_counted_once_however_exchanges_meet(
    scene: Scene, clock: Clock
) -> None:
    limiters = [limiter_of(DatabaseRates(clock, Rates(each.database))) for each in await scene.stores(4)]

    async def use(limiter: RateLimiter) -> int:
        let_through = 0
        for _ in range(10):
            let_through += await hits(limiter, 1)
            await limiter.step()
        return let_through

    let_through = sum(await asyncio.gather(*(use(each) for each in limiters)))
    assert sum((await stored(scene)).values()) == let_through
    assert 20 <= let_through <= 20 + len(limiters)


# --- Redis ---------------------------------------------------------------------------------------------


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
