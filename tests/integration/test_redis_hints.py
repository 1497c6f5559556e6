"""Redis between processes: hints, rates and answers kept for a second. Losing it costs latency alone."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from prometheus_client import CollectorRegistry
from redis import Redis

from foliot.api.access import response_cache
from foliot.api.access.response_cache import AWAY_S, ResponseCache
from foliot.db.hints import Hint
from foliot.db.redis_hints import RedisHints
from foliot.instance.settings import load_settings
from foliot.instance.spec import InstanceRole
from foliot.model.errors import SettingError
from foliot.model.execution import Status, TriggeredBy
from foliot.model.instance_events import RedisFailed
from foliot.service import Loop
from foliot.telemetry.metrics import MetricsObserver
from foliot.testing.app import Recorder
from foliot.timing.clock import VirtualClock
from tests.api.served import OPERATOR_KEY, V1, served
from tests.brokers import Broker
from tests.conftest import OpenStore
from tests.engine import AUTHOR, SCHEDULER, WORKER, add, make_instance, running, seen, spec, until

WITHIN_S = 60.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEVER = {"kind": "cron", "expression": "0 0 29 2 *"}
RARELY_S = 3600.0
"""Nothing that a test waits for is found by polling as rarely as this."""


class Ear:
    """Hints over Redis, and what was heard of them."""

    def __init__(self, url: str) -> None:
        self.recorder = Recorder()
        self.hints = RedisHints(url, self.recorder)
        self.heard: list[tuple[Hint, tuple[UUID, ...]]] = []
        for hint in Hint:
            self.hints.listen(hint, lambda ids, hint=hint: self.heard.append((hint, ids)))  # type: ignore[misc]
        self.loop = Loop(self.hints, self.recorder)
        self.task = asyncio.create_task(self.loop.run())

    async def close(self) -> None:
        self.loop.stop()
        await self.task
        await self.hints.close()


@pytest.fixture
async def ears(redis_broker: Broker) -> AsyncIterator[tuple[Ear, Ear]]:
    made = (Ear(redis_broker.url), Ear(redis_broker.url))
    await _listening(made)
    yield made
    for ear in made:
        await ear.close()


async def _listening(ears: tuple[Ear, Ear]) -> None:
    """Until each has been told to look for itself, which is when it listens; that is then forgotten."""
    for ear in ears:
        await until(lambda ear=ear: len(ear.heard) >= len(Hint), within_s=WITHIN_S)  # type: ignore[misc]
        ear.heard.clear()


async def test_a_hint_reaches_the_other_process_and_its_sender_once(ears: tuple[Ear, Ear]) -> None:
    here, there = ears
    ids = tuple(uuid4() for _ in range(400))
    here.hints.send(Hint.SCHEDULES, ids)
    here.hints.send(Hint.READY)
    there.hints.send(Hint.CANCEL)
    await until(lambda: (Hint.CANCEL, ()) in here.heard, within_s=WITHIN_S)
    await until(lambda: (Hint.READY, ()) in there.heard, within_s=WITHIN_S)
    assert here.heard == [(Hint.SCHEDULES, ids), (Hint.READY, ()), (Hint.CANCEL, ())]
    told = [each for hint, some in there.heard if hint is Hint.SCHEDULES for each in some]
    assert sorted(told) == sorted(ids)


async def test_hints_of_another_database_of_redis_are_not_heard(
    redis_broker: Broker, ears: tuple[Ear, Ear]
) -> None:
    here, there = ears
    other = Ear(redis_broker.url.removesuffix("/0") + "/1")
    try:
        await until(lambda: len(other.heard) >= len(Hint), within_s=WITHIN_S)
        other.hints.send(Hint.ENDED)
        # Its step is over when it has come back to itself: whoever else were to hear it has heard it.
        await until(lambda: not other.hints.wake.is_set and not other.hints._outgoing, within_s=WITHIN_S)
        here.hints.send(Hint.READY)
        await until(lambda: (Hint.READY, ()) in there.heard, within_s=WITHIN_S)
        assert there.heard == [(Hint.READY, ())]
    finally:
        await other.close()


async def test_after_redis_was_away_everyone_looks_for_themselves_and_hears_again(
    redis_broker: Broker, ears: tuple[Ear, Ear]
) -> None:
    here, there = ears
    registry = CollectorRegistry()
    metrics = MetricsObserver(registry)
    redis_broker.stop()
    try:
        for _ in range(3):
            here.hints.send(Hint.READY, (uuid4(),))
        for ear in ears:
            await until(lambda ear=ear: bool(seen(ear.recorder, RedisFailed)), within_s=WITHIN_S)  # type: ignore[misc]
        # They are dropped, and not kept until the memory is full of them.
        await until(lambda: not here.hints._outgoing, within_s=WITHIN_S)
        for failed in seen(here.recorder, RedisFailed):
            metrics.notify(failed)
        assert (registry.get_sample_value("foliot_redis_errors_total", {"what": "hints"}) or 0) >= 1
        here.heard.clear()
        there.heard.clear()
    finally:
        redis_broker.start()
    await _listening(ears)
    here.hints.send(Hint.LEASE)
    await until(lambda: (Hint.LEASE, ()) in there.heard, within_s=WITHIN_S)


async def test_hints_over_redis_wake_the_other_instance_without_sessions_of_the_database(
    redis_broker: Broker, postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    schedule = await add(store, spec("woken", NEVER))
    options = {"hints": "redis", "redis_url": redis_broker.url, "worker_poll_seconds": RARELY_S}
    async with (
        running(postgres_url, roles=WORKER, **options),
        running(postgres_url, roles=SCHEDULER, **options) as (scheduler, _),
    ):
        # The first may be found by looking when the subscription began; not those after it.
        for _ in range(3):
            made = await scheduler.commands.schedules.trigger(
                schedule.schedule_id, AUTHOR, by=TriggeredBy.API
            )

            async def has_run(execution_id: UUID = made.execution_id) -> bool:
                return (await store.executions.get(execution_id)).status is Status.SUCCESS

            await until(has_run, within_s=WITHIN_S)


async def test_without_redis_work_is_found_by_polling(
    redis_broker: Broker, postgres_url: str, open_test_store: OpenStore
) -> None:
    store = await open_test_store(postgres_url)
    schedule = await add(store, spec("polled", NEVER))
    redis_broker.stop()
    try:
        async with running(postgres_url, roles=SCHEDULER | WORKER, hints="redis", redis_url=redis_broker.url):
            execution_id = await store.schedules.trigger(
                schedule.schedule_id, by=TriggeredBy.API, author=AUTHOR
            )

            async def has_run() -> bool:
                return (await store.executions.get(execution_id)).status is Status.SUCCESS

            await until(has_run, within_s=WITHIN_S)
    finally:
        redis_broker.start()


def test_hints_over_redis_need_to_know_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_HINTS", "redis")
    with pytest.raises(SettingError, match="FOLIOT_HINTS=redis needs FOLIOT_REDIS_URL"):
        load_settings()
    monkeypatch.setenv("FOLIOT_REDIS_URL", "redis://127.0.0.1:1/0")
    assert load_settings().hints_redis_url == "redis://127.0.0.1:1/0"
    assert not load_settings().uses_hints, "no sessions are expected of the database"
    monkeypatch.setenv("FOLIOT_HINTS", "off")
    assert load_settings().hints_redis_url is None


def test_what_is_no_url_of_redis_is_refused_by_name(sqlite_url: str) -> None:
    with pytest.raises(SettingError, match="FOLIOT_REDIS_URL is not a URL of Redis"):
        make_instance(sqlite_url, redis_url="redis://127.0.0.1:no-port/0")


# --- answers -------------------------------------------------------------------------------------------


class Maker:
    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> bytes:
        self.count += 1
        await asyncio.sleep(0)
        return b"made %d" % self.count


async def test_an_answer_is_made_once_for_all_who_ask_in_all_processes(
    redis_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_cache, "KEPT_S", 600.0)
    cluster, clock, make = uuid4().hex, VirtualClock(NOW), Maker()
    processes = [ResponseCache(redis_broker.url, clock, Recorder(), cluster) for _ in range(2)]
    other = ResponseCache(redis_broker.url, clock, Recorder(), uuid4().hex)
    try:
        answers = await asyncio.gather(*[processes[0].get("status", make) for _ in range(50)])
        assert set(answers) == {b"made 1"}
        assert await processes[1].get("status", make) == b"made 1"
        assert await processes[1].get("another", make) == b"made 2"
        assert await other.get("status", make) == b"made 3", "another cluster's"
        assert await processes[0].get("stale", make, may_keep=lambda: False) == b"made 4"
        assert await processes[0].get("stale", make) == b"made 5"
        with Redis.from_url(redis_broker.url) as redis:
            assert 0 < redis.pttl(f"foliot:kept:{cluster}:status") <= 600_000
    finally:
        for each in (*processes, other):
            await each.close()


async def test_without_redis_everybody_makes_their_own_answer_and_waits_for_nothing(
    redis_broker: Broker,
) -> None:
    clock, make, recorder = VirtualClock(NOW), Maker(), Recorder()
    answers = ResponseCache(redis_broker.url, clock, recorder, uuid4().hex)
    redis_broker.stop()
    try:
        for _ in range(3):
            await answers.get("status", make)
        assert make.count == 3
        assert [each.what for each in seen(recorder, RedisFailed)] == ["cache"], "left alone for a while"
        clock.advance(AWAY_S)
        await answers.get("status", make)
        assert len(seen(recorder, RedisFailed)) == 2
    finally:
        redis_broker.start()
    clock.advance(AWAY_S)
    try:
        assert await answers.get("status", make) == b"made 5"
        assert len(seen(recorder, RedisFailed)) == 2
    finally:
        await answers.close()


def test_the_api_counts_rates_and_keeps_its_status_in_redis(redis_broker: Broker, postgres_url: str) -> None:
    with (
        served(
            postgres_url,
            roles=frozenset({InstanceRole.API}),
            redis_url=redis_broker.url,
            rate_limit="6000/minute",
        ) as server,
        Redis.from_url(redis_broker.url) as redis,
    ):
        redis.flushdb()
        by = server.by(OPERATOR_KEY)
        first = by.get(f"{V1}/status")
        assert first.status_code == 200, first.text
        assert (first.json()["stale"], first.json()["replica"]) == (False, None)
        assert any(key.startswith(b"foliot:rates") for key in redis.scan_iter())
        for _ in range(20):
            if by.get(f"{V1}/status").json()["now"] == by.get(f"{V1}/status").json()["now"]:
                break
        else:
            raise AssertionError("never were two in a row the same")
        redis_broker.stop()
        try:
            assert by.get(f"{V1}/status").status_code == 200
            assert {"cache", "rates"} & {each.what for each in seen(server.recorder, RedisFailed)}
        finally:
            redis_broker.start()
