"""Figures about the whole database are right, bounded, and measured by whoever may fire."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.dialect import Pool
from foliot.db.tables.access import host_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.instance.store import SqlStore
from foliot.model.delivery_events import OutboxMeasured
from foliot.model.event import QueuesMeasured, SchedulesCounted
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.instance_events import ServiceFailed
from foliot.model.policy import Priority
from foliot.planning.change import Author, create, pause
from foliot.scheduler.measures import (
    MAX_REST_AFTER_FAILURE_S,
    MAX_REST_S,
    MIN_EVERY_S,
    MIN_REST,
    MeasureService,
)
from foliot.scheduler.measures_sql import Measures
from foliot.testing.app import Recorder
from foliot.timing.clock import VirtualClock
from tests.engine import AUTHOR, add, every_second, seen, spec

OTHER_HOST = UUID(int=7)
NEVER = {"kind": "cron", "expression": "0 0 29 2 *"}


async def trigger(
    store: SqlStore, name: str, *, count: int, host_id: UUID = DEFAULT_HOST_ID, **fields: str
) -> None:
    """So many executions that are ready, of a schedule with these fields."""
    definition = spec(name, NEVER, overlap={"policy": "allow"}, **fields)
    schedule = await store.schedules.create(
        lambda now: create(definition, host_id=host_id, now=now, author=AUTHOR), AUTHOR
    )
    for _ in range(count):
        await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())


async def test_what_is_ready_is_counted_by_queue_and_priority_over_all_hosts(store: SqlStore) -> None:
    now = await store.now()

    async def other_host(connection: AsyncConnection) -> None:
        await connection.execute(insert(host_t).values(host_id=OTHER_HOST, host_name="other", created_ts=now))

    await store.database.write(Pool.API, other_host)
    await trigger(store, "one", count=3, queue="mail", priority="high")
    await trigger(store, "two", count=2, queue="mail", priority="high", host_id=OTHER_HOST)
    await trigger(store, "three", count=1, queue="mail", priority="low")
    await trigger(store, "four", count=0, queue="idle")
    await trigger(store, "five", count=4, queue="later")

    async def put_off(connection: AsyncConnection) -> None:
        later = now + timedelta(hours=1)
        await connection.execute(
            update(execution_t)
            .where(execution_t.c.queue == "later")
            # Due by now, so that readiness alone holds it back.
            .values(status=Status.RETRYING.value, ready_ts=later, due_by_ts=now)
        )

    await store.database.write(Pool.API, put_off)
    measures = Measures(store.database)
    nothing = dict.fromkeys(Priority, 0)
    assert await measures.queue_depths() == {
        "mail": {**nothing, Priority.HIGH: 5, Priority.LOW: 1},
        "idle": nothing,
        "later": nothing,
    }
    # What somebody has taken waits no more.
    queues = await store.work.queues(["mail"])
    assert len(await store.work.claim("worker", queues, limit=6, lease_s=60)) == 6
    assert (await measures.queue_depths())["mail"] == nothing


async def test_a_queue_is_counted_up_to_a_cap(store: SqlStore) -> None:
    await trigger(store, "one", count=5, queue="mail", priority="high")
    depths = await Measures(store.database, max_of_queue=3).queue_depths()
    assert depths["mail"][Priority.HIGH] == 3


async def test_active_are_those_that_will_become_due(store: SqlStore) -> None:
    measures = Measures(store.database)
    assert await measures.active_schedules() == 0
    schedules = [await add(store, every_second(name)) for name in ("a", "b", "paused", "paused until")]
    await add(store, every_second("off", active=False))
    delayed = await add(store, spec("delayed", {"kind": "delay", "seconds": 60}))

    async def wait_for_its_run(connection: AsyncConnection) -> None:
        mine = schedule_t.c.schedule_id == delayed.schedule_id
        await connection.execute(update(schedule_t).where(mine).values(next_run_ts=None, next_fire_ts=None))

    await store.database.write(Pool.API, wait_for_its_run)
    assert await measures.active_schedules() == 5
    await store.schedules.change(
        schedules[2].schedule_id, lambda schedule, now: pause(schedule, now=now, author=AUTHOR), AUTHOR
    )
    until = await store.now() + timedelta(hours=1)
    await store.schedules.change(
        schedules[3].schedule_id,
        lambda schedule, now: pause(schedule, now=now, author=AUTHOR, until_ts=until),
        AUTHOR,
    )
    assert await measures.active_schedules() == 3


async def test_a_scheduler_tells_what_it_measured_and_rests_the_longer_the_longer_it_took(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, every_second("one"))
    clock, recorder, measures = VirtualClock(await store.now()), Recorder(), Measures(store.database)
    measuring = MeasureService(measures, store.leases, clock, recorder, every_s=0.1)
    assert await measuring.step() == MIN_EVERY_S
    assert seen(recorder, QueuesMeasured) == [QueuesMeasured({"default": dict.fromkeys(Priority, 0)})]
    assert seen(recorder, SchedulesCounted) == [SchedulesCounted(active=1, shards=1)]

    count = measures.active_schedules

    async def slowly() -> int:
        clock.advance(2)
        return await count()

    monkeypatch.setattr(measures, "active_schedules", slowly)
    assert await measuring.step() == 2 * MIN_REST


async def test_what_no_relay_has_shipped_is_measured_once_there_has_been_one(store: SqlStore) -> None:
    event = {"kind": "event", "event_topic": "orders", "event_type": "OrdersDue"}
    schedule = await add(store, spec("event", NEVER, target=event))
    for _ in range(3):
        await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=Author())
    clock, recorder, measures = VirtualClock(await store.now()), Recorder(), Measures(store.database)
    measuring = MeasureService(measures, store.leases, clock, recorder, every_s=0.1)
    await measuring.step()
    assert seen(recorder, OutboxMeasured) == [], "nobody waits for them"
    relay = await store.relays.take("relay", ttl_s=3)
    await measuring.step()
    await store.relays.advance("relay", relay.epoch, relay.next_offset + 2)
    await store.relays.release("relay", relay.epoch)
    await measuring.step()
    assert [measured.lag for measured in seen(recorder, OutboxMeasured)] == [3, 1]


async def test_a_scheduler_that_was_stopped_in_mid_measure_does_not_rest_for_hours(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, measures = VirtualClock(await store.now()), Measures(store.database)
    measuring = MeasureService(measures, store.leases, clock, Recorder(), every_s=1)

    async def stopped_meanwhile() -> int:
        clock.advance(3600)
        return 0

    monkeypatch.setattr(measures, "active_schedules", stopped_meanwhile)
    assert await measuring.step() == MAX_REST_S


@pytest.mark.parametrize(
    ("took_s", "rest_s"), [(0, MIN_EVERY_S), (0.3, 0.3 * MIN_REST), (30, MAX_REST_AFTER_FAILURE_S)]
)
async def test_a_database_that_is_too_slow_to_be_measured_is_not_asked_again_at_once(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, took_s: float, rest_s: float
) -> None:
    clock, recorder, measures = VirtualClock(await store.now()), Recorder(), Measures(store.database)
    measuring = MeasureService(measures, store.leases, clock, recorder, every_s=1)

    async def in_vain() -> int:
        clock.advance(took_s)
        raise TimeoutError("told to")

    monkeypatch.setattr(measures, "active_schedules", in_vain)
    assert await measuring.step() == pytest.approx(rest_s)
    [failed] = seen(recorder, ServiceFailed)
    assert (failed.service, failed.error) == ("measuring", "TimeoutError: told to")
