"""The engine with executions travelling over real brokers: as they should, without a broker, and mixed.

What must not happen is hard to see in a test that waits for it. So the worker's own look into the database is
watched: it is told apart by the claims that it makes.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from foliot.instance.runtime import Instance
from foliot.instance.spec import ENGINE, InstanceRole, InstanceSpec
from foliot.instance.store import SqlStore
from foliot.kinds.function_target import TaskRegistry
from foliot.model.attempt import Claim
from foliot.model.delivery_events import TicketsRepublished, TransportLost, TransportRecovered
from foliot.model.execution import Status, TriggeredBy
from foliot.model.policy import Priority
from foliot.model.schedule import Schedule
from foliot.planning.change import Author
from foliot.testing.app import Recorder
from foliot.transport.intervals import TransportIntervals
from foliot.transport.transport_protocol import ExecutionMessage
from tests.brokers import Broker, GivenKafka, MockKafka
from tests.conformance.transports import wait_until_kept
from tests.conftest import OpenStore
from tests.engine import WORKER, add, noop, quick_settings, registry, running, seen, spec, until

NEVER = {"kind": "cron", "expression": "0 0 29 2 *"}
SOON = {"kind": "interval", "seconds": 1}
LONG = 3600.0
LANES = [f"foliot.default.{priority}" for priority in Priority]
PATIENT = TransportIntervals(untaken_s=LONG, safety_s=LONG)
"""Nothing is made good: what arrives has come over the broker."""
HURRIED = TransportIntervals(patience_s=0.2, untaken_s=1.0, safety_s=1.0)


@pytest.fixture(params=["redis", "nats", "rabbitmq", "kafka"])
def broker(request: pytest.FixtureRequest) -> Broker:
    found: Broker = request.getfixturevalue(f"{request.param}_broker")
    return found


@pytest.fixture
async def store(postgres_url: str, open_test_store: OpenStore) -> SqlStore:
    return await open_test_store(postgres_url)


@asynccontextmanager
async def engine(
    url: str,
    transport: str,
    pace: TransportIntervals,
    *,
    roles: frozenset[InstanceRole] = ENGINE,
    tasks: TaskRegistry | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[Instance, Recorder]]:
    recorder = Recorder()
    plan = InstanceSpec(
        settings=quick_settings(url, transport=transport, **settings),
        roles=roles,
        tasks=registry(noop) if tasks is None else tasks,
        observers=[recorder],
        transport_pace=pace,
    )
    instance = Instance(plan)
    await instance.start()
    try:
        yield instance, recorder
    finally:
        await instance.stop()


class Looks:
    """How a worker came to what it claimed."""

    def __init__(self, instance: Instance, patch: pytest.MonkeyPatch) -> None:
        work = instance.store.work
        self.by_message: set[UUID] = set()
        self.by_itself: set[UUID] = set()
        claim, claim_some = work.claim, work.claim_some

        async def watched(*arguments: Any, **named: Any) -> list[Claim]:
            found = await claim(*arguments, **named)
            self.by_itself.update(each.execution_id for each in found)
            return found

        async def watched_some(*arguments: Any, **named: Any) -> list[Claim]:
            found = await claim_some(*arguments, **named)
            self.by_message.update(each.execution_id for each in found)
            return found

        patch.setattr(work, "claim", watched)
        patch.setattr(work, "claim_some", watched_some)


async def trigger(store: SqlStore, schedule: Schedule) -> UUID:
    return await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())


async def succeed(store: SqlStore, execution_ids: set[UUID], within_s: float = 40.0) -> None:
    async def have() -> bool:
        rows = [await store.executions.get(each) for each in execution_ids]
        return all(row.status is Status.SUCCESS for row in rows)

    await until(have, within_s=within_s)


async def on_any_priority(store: SqlStore, name: str, trigger: Any, **fields: Any) -> list[Schedule]:
    fields = {"overlap": {"policy": "allow"}, **fields}
    return [await add(store, spec(f"{name}-{each}", trigger, priority=each, **fields)) for each in Priority]


# --- as it should be ------------------------------------------------------------------------------


async def test_executions_travel_over_the_broker(
    store: SqlStore, postgres_url: str, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fired ones, and those that somebody triggers."""
    fired = await on_any_priority(store, "fired", SOON, max_runs=1)
    by_hand = await on_any_priority(store, "by-hand", NEVER)
    async with engine(postgres_url, broker.url, PATIENT) as (instance, _):
        looks = Looks(instance, monkeypatch)
        wanted = {await trigger(store, schedule) for schedule in by_hand}

        async def have_fired() -> bool:
            rows = [await store.schedules.executions(each.schedule_id) for each in fired]
            wanted.update(row.execution_id for row, *_ in filter(None, rows))
            return all(rows)

        await until(have_fired)
        await succeed(store, wanted)
    assert looks.by_message == wanted
    assert looks.by_itself == set()


async def test_a_failed_attempt_is_tried_again_over_the_broker(
    store: SqlStore, postgres_url: str, redis_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def fails_once() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ValueError("not yet")

    target = {"kind": "function", "name": "fails_once"}
    retry = {"max_attempts": 3, "initial_delay_seconds": 0.05, "max_delay_seconds": 0.1}
    schedule = await add(store, spec("once", NEVER, target=target, retry=retry))
    tasks = registry(fails_once)
    async with engine(postgres_url, redis_broker.url, PATIENT, tasks=tasks) as (instance, _):
        looks = Looks(instance, monkeypatch)
        execution_id = await trigger(store, schedule)
        await succeed(store, {execution_id})
    assert (await store.executions.get(execution_id)).attempt == 2
    assert looks.by_itself == set()


async def test_only_the_priorities_that_are_told_to_travel_over_the_broker(
    store: SqlStore, postgres_url: str, redis_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules = await on_any_priority(store, "mixed", NEVER)
    transport = f"high={redis_broker.url};low=database"
    async with engine(postgres_url, transport, PATIENT) as (instance, _):
        looks = Looks(instance, monkeypatch)
        ran = {each.spec.priority: await trigger(store, each) for each in schedules}
        await succeed(store, set(ran.values()))
        record = instance.record()
    assert looks.by_message == {ran[Priority.HIGH]}
    assert looks.by_itself == {ran[Priority.MEDIUM], ran[Priority.LOW]}
    assert record.transports is not None
    kinds = {name: each["kind"] for name, each in record.transports.items()}
    assert kinds == {"high": "redis", "medium": "database", "low": "database"}


async def test_a_paused_queue_is_not_served_over_the_broker(
    store: SqlStore, postgres_url: str, redis_broker: Broker
) -> None:
    [schedule, other, _] = await on_any_priority(store, "paused", NEVER, queue="still")
    pace = TransportIntervals(untaken_s=0.2, safety_s=0.2)
    await store.work.pause_queue(schedule.host_id, "still", Author(), is_paused=True)
    async with engine(postgres_url, redis_broker.url, pace) as (instance, _recorder):
        held, free = await trigger(store, schedule), await on_any_priority(store, "free", NEVER)
        await instance.transports[Priority.HIGH].publish([ExecutionMessage(held, "still", Priority.HIGH)])
        await succeed(store, {await trigger(store, each) for each in free})
        assert (await store.executions.get(held)).status is Status.PENDING
        await store.work.pause_queue(schedule.host_id, "still", Author(), is_paused=False)
        await succeed(store, {held, await trigger(store, other)})


async def test_a_worker_runs_no_more_than_it_has_room_for_however_work_comes_to_it(
    store: SqlStore, postgres_url: str, redis_broker: Broker
) -> None:
    running_now, highest = 0, 0

    async def busy() -> None:
        nonlocal running_now, highest
        running_now += 1
        highest = max(highest, running_now)
        try:
            await asyncio.sleep(0.02)
        finally:
            running_now -= 1

    target = {"kind": "function", "name": "busy"}
    schedules = await on_any_priority(store, "busy", NEVER, target=target)
    wanted = {await trigger(store, schedule) for schedule in schedules for _ in range(15)}
    transport = f"high={redis_broker.url};low={redis_broker.url}"
    async with engine(
        postgres_url, transport, TransportIntervals(), tasks=registry(busy), worker_concurrency=3
    ) as (instance, _):
        messages = [ExecutionMessage(each, "default", Priority.HIGH) for each in wanted]
        await instance.transports[Priority.HIGH].publish(messages)
        await succeed(store, wanted)
    assert highest == 3


async def test_a_held_execution_travels_when_it_is_released(
    store: SqlStore, postgres_url: str, redis_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was fired while another ran: its message would be worth nothing before."""
    go = asyncio.Event()

    async def wait() -> None:
        await go.wait()

    target = {"kind": "function", "name": "wait"}
    schedule = await add(store, spec("held", SOON, max_runs=1, target=target, overlap={"policy": "queue"}))
    async with engine(postgres_url, redis_broker.url, PATIENT, tasks=registry(wait, noop)) as (instance, _):
        looks = Looks(instance, monkeypatch)
        await trigger(store, schedule)

        async def is_held() -> bool:
            rows = await store.schedules.executions(schedule.schedule_id)
            return {row.status for row in rows} == {Status.RUNNING, Status.PENDING}

        await until(is_held)
        # Whatever was published too early has been seen to when another has run.
        await succeed(store, {await trigger(store, await add(store, spec("other", NEVER)))})
        go.set()
        rows = await store.schedules.executions(schedule.schedule_id)
        await succeed(store, {row.execution_id for row in rows})
    assert looks.by_itself == set()


# --- what is lost on the way ----------------------------------------------------------------------


async def test_a_ticket_that_was_lost_is_published_again(
    store: SqlStore, postgres_url: str, redis_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    [schedule, *_] = await on_any_priority(store, "lost", NEVER)
    pace = TransportIntervals(untaken_s=0.3, safety_s=LONG)
    # A worker looks for what was left lying when it starts; this one finds nothing then.
    async with engine(postgres_url, redis_broker.url, pace) as (instance, recorder):
        looks = Looks(instance, monkeypatch)
        transport = instance.transports[Priority.HIGH].transport
        publish, lost = transport.publish, asyncio.Event()

        async def lose(messages: Any) -> None:
            if messages and not lost.is_set():
                lost.set()
                return
            await publish(messages)

        monkeypatch.setattr(transport, "publish", lose)
        execution_id = await trigger(store, schedule)
        await succeed(store, {execution_id})
        assert lost.is_set()
        assert [each.count for each in seen(recorder, TicketsRepublished)] == [1]
    assert looks.by_message == {execution_id}


async def test_what_nobody_publishes_is_claimed_by_its_age(
    store: SqlStore, postgres_url: str, redis_broker: Broker
) -> None:
    """No leader is there at all."""
    [schedule, *_] = await on_any_priority(store, "aged", NEVER)
    pace = TransportIntervals(untaken_s=0.2, safety_s=0.2)
    async with engine(postgres_url, redis_broker.url, pace, roles=WORKER):
        await succeed(store, {await trigger(store, schedule)})


async def test_a_ticket_that_comes_twice_runs_once(
    store: SqlStore, postgres_url: str, broker: Broker
) -> None:
    [schedule, *_] = await on_any_priority(store, "twice", NEVER)
    async with engine(postgres_url, broker.url, PATIENT) as (instance, _):
        execution_id = await trigger(store, schedule)
        message = ExecutionMessage(execution_id, schedule.spec.queue, schedule.spec.priority)
        await instance.transports[Priority.HIGH].publish([message] * 5)
        await succeed(store, {execution_id})
        # Whatever was published before it has been seen to when this one has run.
        await succeed(store, {await trigger(store, schedule)})
        assert (await store.executions.get(execution_id)).attempt == 1


# --- without a broker -----------------------------------------------------------------------------


async def test_without_a_broker_workers_look_for_themselves_until_it_is_back(
    store: SqlStore, postgres_url: str, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(broker, GivenKafka | MockKafka):
        pytest.skip("it can't be stopped")
    schedules = await on_any_priority(store, "away", NEVER)
    async with AsyncExitStack() as stack:
        instance, recorder = await stack.enter_async_context(engine(postgres_url, broker.url, HURRIED))
        looks = Looks(instance, monkeypatch)
        await succeed(store, {await trigger(store, schedules[0])})
        wait_until_kept(broker, *LANES)
        broker.stop()
        try:
            meanwhile = {await trigger(store, schedule) for schedule in schedules}
            await succeed(store, meanwhile)
            assert meanwhile & looks.by_itself
            await until(lambda: bool(seen(recorder, TransportLost)))
            told = [each for each in recorder.events if isinstance(each, TransportLost | TransportRecovered)]
            assert len(told) == 1, "\n".join(map(repr, told))
            [lost] = seen(recorder, TransportLost)
            assert lost.kind == broker.name
            assert "guest" not in lost.address
            await until(lambda: _states(instance) == {"away"})
        finally:
            broker.start()

        async def is_used_again() -> bool:
            afterwards = {await trigger(store, schedule) for schedule in schedules}
            await succeed(store, afterwards)
            return afterwards <= looks.by_message

        # A broker that has just started may stumble a few times before all of it is there.
        await until(is_used_again, within_s=60)
        assert seen(recorder, TransportRecovered)
        assert _states(instance) == {"up"}


async def test_an_engine_starts_and_works_while_its_broker_is_not_there(
    store: SqlStore, postgres_url: str
) -> None:
    [schedule, *_] = await on_any_priority(store, "alone", NEVER)
    pace = TransportIntervals(patience_s=0.2, untaken_s=LONG, safety_s=LONG)
    async with engine(postgres_url, "redis://127.0.0.1:1/0", pace) as (_, recorder):
        await succeed(store, {await trigger(store, schedule)})
        assert seen(recorder, TransportLost)


async def test_with_the_database_as_transport_there_is_nothing_to_tell(
    store: SqlStore, postgres_url: str
) -> None:
    async with running(postgres_url, roles=ENGINE) as (instance, _):
        assert instance.record().transports is None
        assert instance.transports == {}
        names = {service.name for service in instance.services}
        assert not {name for name in names if name.startswith(("dispatching", "receiving", "publishing"))}


def _states(instance: Instance) -> set[str | None]:
    told = instance.record().transports
    assert told is not None
    return {each["state"] for each in told.values()}
