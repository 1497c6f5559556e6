"""Conformance suite for events: written in the transaction that fires them, with offsets without gaps."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, text, update
from tests.conformance.suites.scene import SOMEBODY, Scene

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.rows.event_rows import write_events
from foliot.db.tables.events import event_store_t, outbox_message_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.errors import FencedError
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.lease import Lease
from foliot.model.schedule import Schedule, ScheduleState
from foliot.planning.backfill import plan_backfill
from foliot.planning.definition import compile_spec
from foliot.planning.events import NOBODY, NewEvent, UnreadableTargetError
from foliot.scheduler.backfills_sql import BackfillAdvance

EVENT = {"kind": "event", "event_topic": "orders", "event_type": "OrdersDue", "event_data": {"region": "eu"}}
CLOUD_EVENT = (
    '{"specversion": "1.0", "id": "theirs", "source": "/portal", "type": "TheirType", "subject": "order-7",'
    ' "user": "0195d3a8-0000-7000-8000-000000000007", "aggregatetype": "Order", "aggregateversion": 99,'
    ' "nonce": 98, "time": "2000-01-01T00:00:00Z", "theirs": "kept", "data": {"n": 1}}'
)


async def outbox(scene: Scene) -> Sequence[Any]:
    return await scene.rows(select(outbox_message_t).order_by(outbox_message_t.c.c_offset))


class EventConformance:
    """Tests for event schedules. Fixture: `scene`."""

    async def test_an_event_is_over_in_the_transaction_that_fires_it(self, scene: Scene) -> None:
        schedule = await scene.add(target=EVENT)
        fired = await scene.fire(await scene.lead(), schedule)
        [row] = await scene.executions(schedule)
        assert (row.status, row.attempt, row.duration_seconds) == (Status.SUCCESS, 1, 0)
        assert row.started_ts is not None
        assert row.ended_ts is not None
        assert row.started_ts <= row.ended_ts
        assert [each.execution_id for each in fired.fired] == [row.execution_id]
        assert await scene.claim() == [], "no worker has anything to do with it"
        listed = await scene.rows(text("SELECT last_status FROM schedule_status_t"))
        assert [each[0] for each in listed] == ["success"]

    async def test_what_is_written_is_a_whole_cloud_event(self, scene: Scene) -> None:
        schedule = await scene.add(target=EVENT)
        await scene.fire(await scene.lead(), schedule)
        [execution] = await scene.executions(schedule)
        [message] = await outbox(scene)
        assert message.payload == {
            "specversion": "1.0",
            "id": str(execution.execution_id),
            "source": f"/foliot/schedules/{schedule.schedule_id}",
            "type": "OrdersDue",
            "subject": str(schedule.schedule_id),
            "time": execution.fire_ts.isoformat().replace("+00:00", "Z"),
            "datacontenttype": "application/json",
            "host": str(DEFAULT_HOST_ID),
            "user": str(NOBODY),
            "nonce": 1,
            "aggregatetype": "Schedule",
            "aggregateversion": 1,
            "data": {"region": "eu"},
        }
        assert (message.id, message.event_ts) == (execution.execution_id, execution.fire_ts)
        assert (message.event_topic, message.event_type) == ("orders", "OrdersDue")
        assert (message.aggregate_id, message.aggregate_version) == (str(schedule.schedule_id), 1)
        assert (message.aggregate_type, message.host_id) == ("Schedule", DEFAULT_HOST_ID)
        assert (message.c_offset, message.transaction_ordinal, message.transaction_count) == (1, 0, 1)
        [stored] = await scene.rows(select(event_store_t))
        assert stored._asdict() == {name: getattr(message, name) for name in stored._fields}

    async def test_a_users_own_cloud_event_keeps_what_is_his(self, scene: Scene) -> None:
        schedule = await scene.add(target={**EVENT, "event_data": CLOUD_EVENT})
        await scene.fire(await scene.lead(), schedule)
        [message] = await outbox(scene)
        theirs = {
            "type": "TheirType",
            "subject": "order-7",
            "source": "/portal",
            "aggregatetype": "Order",
            "theirs": "kept",
            "data": {"n": 1},
        }
        assert {name: message.payload[name] for name in theirs} == theirs
        assert message.payload["id"] == str(message.id)
        assert (message.payload["nonce"], message.payload["aggregateversion"]) == (1, 1)
        assert not message.payload["time"].startswith("2000")
        assert (message.event_type, message.aggregate_type) == ("TheirType", "Order")
        assert message.user_id == UUID("0195d3a8-0000-7000-8000-000000000007")
        assert message.aggregate_id == str(schedule.schedule_id)

    async def test_offsets_have_no_gaps_and_a_batch_is_one_transaction(self, scene: Scene) -> None:
        schedules = [await scene.add(f"each {number}", target=EVENT) for number in range(5)]
        lease = await scene.lead()
        await scene.fire(lease, *schedules[:3])
        await scene.fire(lease, *schedules[3:])
        messages = await outbox(scene)
        assert [message.c_offset for message in messages] == [1, 2, 3, 4, 5]
        assert [message.transaction_ordinal for message in messages] == [0, 1, 2, 0, 1]
        assert [message.transaction_count for message in messages] == [3, 3, 3, 2, 2]
        assert len({message.transaction_id for message in messages[:3]}) == 1
        assert messages[0].transaction_id != messages[3].transaction_id

    async def test_a_schedules_events_are_numbered_and_its_own_version_stays(self, scene: Scene) -> None:
        schedule = await scene.add(
            target=EVENT, age_s=3 * 60 + 30, misfire={"policy": "fire_all", "max_catchup": 10}
        )
        await scene.fire(await scene.lead(), schedule)
        await scene.trigger(schedule)
        messages = await outbox(scene)
        assert [message.aggregate_version for message in messages] == [1, 2, 3, 4]
        times = [message.event_ts for message in messages]
        assert times == sorted(times)
        assert (await scene.get(schedule)).aggregate_version == 1

    async def test_a_time_that_is_skipped_is_no_event(self, scene: Scene) -> None:
        schedule = await scene.add(target=EVENT, misfire={"policy": "skip"})
        await scene.fire(await scene.lead(), schedule)
        [row] = await scene.executions(schedule)
        assert row.status is Status.SKIPPED
        assert await outbox(scene) == []
        await scene.trigger(schedule)
        [message] = await outbox(scene)
        assert message.aggregate_version == 1, "what was skipped is not counted"

    async def test_a_leader_that_was_replaced_writes_no_event(self, scene: Scene) -> None:
        schedule = await scene.add(target=EVENT)
        lease = await scene.lead(instance_id="one")
        firings = await scene.plan(schedule)
        await scene.lead(instance_id="two")
        with pytest.raises(FencedError):
            await scene.commit(lease, firings)
        assert await outbox(scene) == []
        assert await scene.rows(select(event_store_t)) == []

    async def test_of_two_firings_of_the_same_time_one_is_refused(self, scene: Scene) -> None:
        schedule = await scene.add(target=EVENT)
        lease = await scene.lead()
        firings = await scene.plan(schedule)
        first = await scene.commit(lease, firings)
        second = await scene.commit(lease, firings)
        assert (len(first.fired), len(second.fired), len(second.refused)) == (1, 0, 1)
        assert len(await outbox(scene)) == 1

    async def test_what_has_changed_since_is_refused_and_the_others_fire(self, scene: Scene) -> None:
        one, other = await scene.add("one", target=EVENT), await scene.add("other", target=EVENT)
        lease = await scene.lead()
        firings = await scene.plan(one, other)
        await scene.pause(one)
        fired = await scene.commit(lease, firings)
        assert [due.schedule_id for due in fired.refused] == [one.schedule_id]
        assert [message.aggregate_id for message in await outbox(scene)] == [str(other.schedule_id)]

    async def test_targets_that_can_not_be_read_are_all_named_and_nothing_is_written(
        self, scene: Scene
    ) -> None:
        schedules = [await scene.add(f"each {number}", target=EVENT) for number in range(3)]
        lease = await scene.lead()
        firings = await scene.plan(*schedules)
        unreadable = [schedule.schedule_id for schedule in schedules[1:]]
        await scene.execute(
            update(schedule_t)
            .where(schedule_t.c.schedule_id.in_(unreadable))
            .values(target={"kind": "event", "event_topic": 7})
        )
        before = await scene.everything()
        with pytest.raises(UnreadableTargetError) as caught:
            await scene.commit(lease, firings)
        assert set(caught.value.reasons) == set(unreadable)
        assert await scene.everything() == before

    async def test_writers_at_once_leave_no_gap_and_readers_never_see_one_later(self, scene: Scene) -> None:
        schedules = [await scene.add(f"each {number}", target=EVENT) for number in range(8)]
        stores = await scene.stores(4)
        seen: list[int] = []

        async def read(until: int) -> None:
            while len(seen) < until:
                after = seen[-1] if seen else 0
                page = await scene.store.outbox.after(DEFAULT_HOST_ID, after, limit=100)
                seen.extend(message.c_offset for message in page)
                await asyncio.sleep(0)

        async with asyncio.timeout(60):
            reading = asyncio.create_task(read(until=8 * 3))
            for _ in range(3):
                await asyncio.gather(
                    *(
                        scene.trigger(schedule, stores[number % 4])
                        for number, schedule in enumerate(schedules)
                    )
                )
            await reading
        assert seen == list(range(1, 8 * 3 + 1)), "a reader that goes on from the last it saw misses nothing"

    async def test_what_is_rolled_back_takes_its_offsets_with_it(self, scene: Scene) -> None:
        schedule = await scene.add(target=EVENT)
        await scene.trigger(schedule)
        with pytest.raises(RuntimeError, match="at the last moment"):
            await _write_and_fail(scene.store.database)
        await scene.trigger(schedule)
        assert [message.c_offset for message in await outbox(scene)] == [1, 2]

    async def test_a_manual_run_says_its_event_with_data_of_its_own(self, scene: Scene) -> None:
        schedule = await scene.add(target=EVENT, overlap={"policy": "skip"})
        execution_id = await scene.trigger(schedule, args={"region": "us", "why": "by hand"})
        row = await scene.execution(execution_id)
        assert (row.status, row.triggered_by, row.attempt) == (Status.SUCCESS, TriggeredBy.API, 1)
        [message] = await outbox(scene)
        assert message.id == execution_id
        assert message.payload["data"] == {"region": "us", "why": "by hand"}

    async def test_an_event_asked_for_again_is_said_once(self, scene: Scene) -> None:
        schedule = await scene.add(target=EVENT)
        wanted = UUID("0195d3a8-0000-7000-8000-000000000042")
        for _ in range(2):
            await scene.store.schedules.trigger(
                schedule.schedule_id, by=TriggeredBy.API, author=SOMEBODY, execution_id=wanted
            )
        assert [message.id for message in await outbox(scene)] == [wanted]

    async def test_a_backfill_says_an_event_for_every_time_and_none_twice(self, scene: Scene) -> None:
        schedule = await scene.add(target=EVENT, age_s=600)
        lease, now = await scene.lead(), await scene.now()
        for _ in range(2):
            backfill = await scene.store.backfills.create(
                schedule.schedule_id, now - timedelta(minutes=5), now, SOMEBODY
            )
            advance = await _step(scene, lease, backfill.backfill_id)
            assert advance.ready == 0
        messages = await outbox(scene)
        assert [message.aggregate_version for message in messages] == list(range(1, len(messages) + 1))
        assert len(messages) == 5
        rows = await scene.executions(schedule)
        assert {row.status for row in rows} == {Status.SUCCESS}
        assert {row.execution_id for row in rows} == {message.id for message in messages}

    async def test_a_delay_counts_from_the_event_itself(self, scene: Scene) -> None:
        schedule = await scene.add(trigger={"kind": "delay", "seconds": 30}, target=EVENT, age_s=60)
        await scene.fire(await scene.lead(), schedule)
        moved = await scene.get(schedule)
        now = await scene.now()
        assert moved.state is ScheduleState.ACTIVE
        assert moved.next_fire_ts is not None
        assert now < moved.next_fire_ts <= now + timedelta(seconds=30)

    async def test_light_portals_users_see_their_own_columns(self, scene: Scene) -> None:
        schedule = await scene.add("portal", target=EVENT)
        await scene.add("another kind")
        rows = await scene.rows(text("SELECT * FROM light_portal_schedule_v"))
        [row] = [each._asdict() for each in rows]
        assert list(row) == [
            "schedule_id",
            "host_id",
            "schedule_name",
            "frequency_unit",
            "frequency_time",
            "start_ts",
            "next_run_ts",
            "event_topic",
            "event_type",
            "event_data",
            "aggregate_version",
            "active",
        ]
        assert (row["schedule_name"], row["frequency_unit"], row["frequency_time"]) == (
            "portal",
            "MINUTES",
            1,
        )
        assert (row["event_topic"], row["event_type"], row["aggregate_version"]) == ("orders", "OrdersDue", 1)
        assert '"region"' in row["event_data"]
        assert row["active"]
        assert await scene.rows(select(func.count()).select_from(schedule_t)) == [(2,)]
        assert schedule.schedule_id is not None


async def _write_and_fail(database: Database) -> None:
    async def work(connection: Any) -> None:
        now = await database.now()
        event = NewEvent(
            UUID(int=5), DEFAULT_HOST_ID, NOBODY, 1, "other", 1, "Schedule", "Lost", now, "{}", "orders"
        )
        await write_events(connection, database.dialect, [event])
        raise RuntimeError("at the last moment")

    await database.write(Pool.API, work)


async def _step(scene: Scene, lease: Lease, backfill_id: UUID) -> BackfillAdvance:
    def plan(schedule: Schedule, position_ts: Any, to_ts: Any, limit: int) -> Any:
        cadence = compile_spec(schedule.spec, schedule.schedule_id, schedule.effective_ts)
        return plan_backfill(schedule, cadence, position_ts, to_ts, limit=limit)

    return await scene.store.backfills.step(lease, backfill_id, plan, limit=100, max_open=100)
