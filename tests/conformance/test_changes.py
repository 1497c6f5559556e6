"""What the stream reads, and the outbox by offsets, over both databases."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import false, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection
from tests.conformance.suites.scene import SOMEBODY, Scene
from tests.plans import explain, primary_key

from foliot.access.audit import Action
from foliot.db.dialect import Pool
from foliot.db.tables.access import audit_t
from foliot.db.tables.events import outbox_message_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_version_t
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID, ids_at, new_id
from foliot.model.schedule import Schedule
from foliot.queries import changes as changes_module
from foliot.queries.changes import OVERLAP, PROGRESS_LETTERS, ChangeBatch, ChangeFeed, Mark
from foliot.queries.outbox_list import OutboxList
from foliot.worker.journal_sql import Note

LONG_AGO = timedelta(hours=1)


@pytest.fixture
def changes(scene: Scene) -> ChangeFeed:
    return ChangeFeed(scene.store.database)


def told(batch: ChangeBatch) -> list[tuple[str, str, int]]:
    return [(each.name, each.change, each.aggregate_version) for each in batch.schedules]


def stands(batch: ChangeBatch) -> dict[UUID, str]:
    return {each.execution_id: each.status for each in batch.executions}


async def add(scene: Scene, name: str = "each", **fields: Any) -> Schedule:
    """One that was created now, and lets any number of runs at once."""
    return await scene.add(name, age_s=0, **{"overlap": {"policy": "allow"}, **fields})


async def execution_row(scene: Scene, schedule: Schedule, **fields: Any) -> dict[str, Any]:
    now = await scene.now()
    return {
        "execution_id": new_id(now),
        "schedule_id": schedule.schedule_id,
        "host_id": schedule.host_id,
        "aggregate_version": 1,
        "fire_ts": now,
        "status": Status.PENDING.value,
        "triggered_by": TriggeredBy.API.value,
        "queue": "default",
        "priority": "medium",
        "created_ts": now,
        **fields,
    }


async def version_row(scene: Scene, schedule: Schedule, version: int) -> dict[str, Any]:
    now = await scene.now()
    return {
        "schedule_id": schedule.schedule_id,
        "aggregate_version": version,
        "host_id": schedule.host_id,
        "change": "edited",
        "document": {"name": "late"},
        "paused": False,
        "effective_ts": now,
        "created_ts": now,
    }


@asynccontextmanager
async def under_way(scene: Scene) -> AsyncIterator[AsyncConnection]:
    """A transaction that commits when the block ends."""
    database = scene.store.database
    async with database.dialect.begin(database.engine(Pool.WORK)) as connection:
        yield connection


# --- schedules -----------------------------------------------------------------------------------------


async def test_what_was_there_before_is_not_told_as_a_change(scene: Scene, changes: ChangeFeed) -> None:
    schedule = await add(scene)
    ended = await scene.trigger(schedule)
    await scene.settle(await scene.claim_one(), Status.SUCCESS)
    begun = await changes.begin()
    assert (told(begun), stands(begun), begun.is_complete) == ([], {}, True)
    batch = await changes.read_changes(begun.mark, ())
    assert (told(batch), stands(batch)) == ([], {})
    assert ended in batch.mark.seen


async def test_each_version_of_a_schedule_is_told_once_and_in_order(
    scene: Scene, changes: ChangeFeed
) -> None:
    begun = await changes.begin()
    schedule = await add(scene, "report")
    await scene.pause(schedule)
    first = await changes.read_changes(begun.mark, ())
    assert told(first) == [("report", "created", 1), ("report", "paused", 2)]
    assert first.schedules[0].schedule_id == schedule.schedule_id
    assert first.schedules[0].host_id == DEFAULT_HOST_ID
    await scene.resume(schedule)
    await scene.edit(schedule, name="renamed")
    await scene.delete(schedule)
    second = await changes.read_changes(first.mark, ())
    assert told(second) == [("report", "resumed", 3), ("renamed", "edited", 4), ("renamed", "deleted", 5)]
    assert told(await changes.read_changes(second.mark, ())) == []


async def test_what_is_older_than_the_mark_is_not_read_again(scene: Scene, changes: ChangeFeed) -> None:
    schedule = await add(scene)
    await scene.trigger(schedule)
    later = Mark(await scene.now() + timedelta(seconds=1))
    batch = await changes.read_changes(later, ())
    assert (told(batch), stands(batch), batch.mark.seen) == ([], {}, frozenset())


async def test_a_mark_trails_behind_by_the_overlap(scene: Scene, changes: ChangeFeed) -> None:
    before = await scene.now()
    begun = await changes.begin()
    assert before <= begun.mark.since + OVERLAP <= await scene.now()


# --- executions ----------------------------------------------------------------------------------------


async def test_what_is_open_when_it_begins_is_given_with_how_it_stands(
    scene: Scene, changes: ChangeFeed
) -> None:
    schedule = await add(scene, "report")
    running = await scene.trigger(schedule)
    claim = await scene.claim_one()
    waiting = await scene.trigger(schedule)
    begun = await changes.begin()
    assert stands(begun) == {running: "running", waiting: "pending"}
    [first] = [each for each in begun.executions if each.execution_id == running]
    row = await scene.execution(running)
    assert first.schedule_name == "report"
    assert (first.attempt, first.started_ts, first.fire_ts) == (claim.attempt, row.started_ts, row.fire_ts)
    assert (first.ended_ts, first.duration_seconds, first.progress) == (None, None, None)


async def test_a_new_execution_is_told_once_and_then_only_when_it_is_followed(
    scene: Scene, changes: ChangeFeed
) -> None:
    begun = await changes.begin()
    execution_id = await scene.trigger(await add(scene))
    first = await changes.read_changes(begun.mark, ())
    assert stands(first) == {execution_id: "pending"}
    claim = await scene.claim_one()
    assert stands(await changes.read_changes(first.mark, ())) == {}
    assert stands(await changes.read_changes(first.mark, [execution_id])) == {execution_id: "running"}
    await scene.settle(claim, Status.FAILED, duration_s=1.5)
    last = await changes.read_changes(first.mark, [execution_id])
    assert [(each.status, each.duration_seconds) for each in last.executions] == [("failed", 1.5)]
    assert last.executions[0].ended_ts is not None


async def test_one_that_ended_before_it_was_looked_at_is_told(scene: Scene, changes: ChangeFeed) -> None:
    begun = await changes.begin()
    execution_id = await scene.trigger(await add(scene))
    await scene.settle(await scene.claim_one(), Status.SUCCESS)
    assert stands(await changes.read_changes(begun.mark, ())) == {execution_id: "success"}


async def test_executions_that_fire_are_told(scene: Scene, changes: ChangeFeed) -> None:
    schedule = await scene.add("each", age_s=90)
    lease = await scene.lead()
    begun = await changes.begin()
    await scene.fire(lease, schedule)
    [execution] = await scene.executions(schedule)
    assert stands(await changes.read_changes(begun.mark, ())) == {execution.execution_id: "pending"}


async def test_progress_is_told_and_its_text_cut(scene: Scene, changes: ChangeFeed) -> None:
    execution_id = await scene.trigger(await add(scene))
    claim = await scene.claim_one()
    begun = await changes.begin()
    for sent in ("half way", "x" * (PROGRESS_LETTERS + 1)):
        note = Note(execution_id, claim.attempt, f'{{"fraction": 0.5, "text": "{sent}"}}')
        await scene.store.notes.write("worker", [note])
        batch = await changes.read_changes(begun.mark, [execution_id])
        assert batch.executions[0].progress == {"fraction": 0.5, "text": sent[:PROGRESS_LETTERS]}


async def test_one_that_is_gone_is_left_out(scene: Scene, changes: ChangeFeed) -> None:
    begun = await changes.begin()
    assert stands(await changes.read_changes(begun.mark, [uuid4()])) == {}


async def test_the_executions_and_versions_of_all_hosts_are_read_with_whose_they_are(
    scene: Scene, changes: ChangeFeed
) -> None:
    other = await scene.add_host("other")
    begun = await changes.begin()
    ours = await scene.trigger(await add(scene))
    theirs = await scene.trigger(await add(scene, host_id=other))
    batch = await changes.read_changes(begun.mark, ())
    assert {each.execution_id: each.host_id for each in batch.executions} == {
        ours: DEFAULT_HOST_ID,
        theirs: other,
    }
    assert {each.host_id for each in batch.schedules} == {DEFAULT_HOST_ID, other}


# --- what commits late, or has an older id ---------------------------------------------------------------


async def test_a_transaction_that_commits_after_a_later_one_was_seen_is_not_missed(
    scene: Scene, changes: ChangeFeed
) -> None:
    schedule = await add(scene)
    begun = await changes.begin()
    execution, version = await execution_row(scene, schedule), await version_row(scene, schedule, 2)
    # SQLite has one writer at a time: there a later one can't be seen first, only an earlier poll be made.
    is_postgres = scene.store.database.dialect.name == "postgresql"
    async with under_way(scene) as connection:
        await connection.execute(insert(execution_t).values(execution))
        await connection.execute(insert(schedule_version_t).values(version))
        younger = await scene.trigger(schedule) if is_postgres else None
        before = await changes.read_changes(begun.mark, ())
        assert set(stands(before)) == ({younger} if younger else set())
        assert told(before) == []
    after = await changes.read_changes(before.mark, ())
    assert set(stands(after)) == {execution["execution_id"]}
    assert told(after) == [("late", "edited", 2)]


async def test_what_carries_an_earlier_time_than_what_was_seen_is_found_within_the_overlap(
    scene: Scene, changes: ChangeFeed
) -> None:
    schedule = await add(scene)
    begun = await changes.begin()
    await scene.trigger(schedule)
    seen = await changes.read_changes(begun.mark, ())
    earlier = await scene.now() - OVERLAP / 2
    row = await execution_row(scene, schedule, execution_id=new_id(earlier))
    await scene.execute(insert(execution_t).values(row))
    assert set(stands(await changes.read_changes(seen.mark, ()))) == {row["execution_id"]}


async def test_an_old_execution_that_is_tried_again_by_hand_is_told_once(
    scene: Scene, changes: ChangeFeed
) -> None:
    schedule = await add(scene)
    old = new_id(await scene.now() - LONG_AGO)
    row = await execution_row(scene, schedule, execution_id=old, status=Status.FAILED.value)
    await scene.execute(insert(execution_t).values(row))
    begun = await changes.begin()
    await scene.store.executions.retry(old, SOMEBODY)
    claim = await scene.claim_one()
    await scene.settle(claim, Status.SUCCESS)
    batch = await changes.read_changes(begun.mark, ())
    assert stands(batch) == {old: "success"}
    assert stands(await changes.read_changes(batch.mark, ())) == {}


async def test_one_that_is_triggered_under_an_older_id_is_told_once(
    scene: Scene, changes: ChangeFeed
) -> None:
    schedule = await add(scene)
    old = new_id(await scene.now() - LONG_AGO)
    begun = await changes.begin()
    await scene.store.schedules.trigger(
        schedule.schedule_id, by=TriggeredBy.API, author=SOMEBODY, execution_id=old
    )
    batch = await changes.read_changes(begun.mark, ())
    assert stands(batch) == {old: "pending"}
    assert stands(await changes.read_changes(batch.mark, ())) == {}


async def test_one_that_the_audit_was_quicker_to_name_is_not_told_again_for_its_id(
    scene: Scene, changes: ChangeFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = await add(scene)
    begun = await changes.begin()
    execution_id = await scene.trigger(schedule)
    with monkeypatch.context() as patched:
        # It committed after the ids were read, and before the audit was.
        nothing = select(execution_t.c.execution_id).where(false())
        patched.setattr(changes_module, "_executions", lambda _mark: nothing)
        batch = await changes.read_changes(begun.mark, ())
    assert stands(batch) == {execution_id: "pending"}
    assert stands(await changes.read_changes(batch.mark, ())) == {}


# --- more than is read -----------------------------------------------------------------------------------


async def test_where_more_is_open_than_is_read_it_says_so(
    scene: Scene, changes: ChangeFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = await add(scene)
    for _ in range(3):
        await scene.trigger(schedule)
    monkeypatch.setattr(changes_module, "MAX_OPEN", 3)
    begun = await changes.begin()
    assert (len(begun.executions), begun.is_complete) == (3, True)
    monkeypatch.setattr(changes_module, "MAX_OPEN", 2)
    begun = await changes.begin()
    assert (len(begun.executions), begun.is_complete) == (2, False)


async def test_where_more_is_new_than_is_read_it_says_so_and_does_not_tell_the_rest_later(
    scene: Scene, changes: ChangeFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await changes.begin()
    schedule = await add(scene)
    for _ in range(3):
        await scene.trigger(schedule)
    assert (await changes.read_changes(begun.mark, ())).is_complete
    monkeypatch.setattr(changes_module, "MAX_OPEN", 2)
    batch = await changes.read_changes(Mark(begun.mark.since, frozenset(await _entries(scene))), ())
    assert (len(batch.executions), batch.is_complete) == (2, False)
    assert stands(await changes.read_changes(batch.mark, ())) == {}


async def test_where_more_is_recent_than_is_read_the_latest_is_told_and_it_says_so(
    scene: Scene, changes: ChangeFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await changes.begin()
    schedule = await add(scene)
    next_id = ids_at(await scene.now())
    rows = [await execution_row(scene, schedule, execution_id=next_id()) for _ in range(3)]
    await scene.execute(insert(execution_t).values(rows))
    for _ in range(3):
        await scene.edit(schedule, description=str(uuid4()))
    monkeypatch.setattr(changes_module, "MAX_RECENT_EXECUTIONS", 2)
    batch = await changes.read_changes(begun.mark, ())
    assert (len(batch.executions), len(batch.schedules), batch.is_complete) == (3, 4, False)
    monkeypatch.setattr(changes_module, "MAX_RECENT_EXECUTIONS", 1)
    batch = await changes.read_changes(begun.mark, ())
    assert list(stands(batch)) == [each["execution_id"] for each in rows[1:]]
    monkeypatch.undo()
    monkeypatch.setattr(changes_module, "MAX_RECENT_CHANGES", 2)
    batch = await changes.read_changes(begun.mark, ())
    assert (told(batch)[-1], batch.is_complete) == (("each", "edited", 4), False)


async def _entries(scene: Scene) -> Sequence[UUID]:
    """What the audit names, as if it was seen already."""
    rows = await scene.rows(text("SELECT audit_id FROM audit_t"))
    return [row.audit_id if isinstance(row.audit_id, UUID) else UUID(row.audit_id) for row in rows]


# --- leading ---------------------------------------------------------------------------------------------


async def test_leaders_are_named_once_each(scene: Scene, changes: ChangeFeed) -> None:
    assert await changes.leaders() == ()
    await scene.lead(instance_id="one")
    assert await changes.leaders() == ("one",)


# --- how it is read --------------------------------------------------------------------------------------


async def test_a_look_scans_nothing_whatever_the_tables_hold(scene: Scene, changes: ChangeFeed) -> None:
    schedule = await add(scene)
    long_ago = await scene.now() - LONG_AGO
    next_id = ids_at(long_ago)
    execution = await execution_row(scene, schedule, status=Status.SUCCESS.value)
    version = {**await version_row(scene, schedule, 1), "created_ts": long_ago}
    entry = {"host_id": DEFAULT_HOST_ID, "audit_ts": long_ago, "action": Action.EXECUTION_RETRIED.value}
    executions = [{**execution, "execution_id": next_id()} for _ in range(20_000)]
    async with under_way(scene) as connection:
        await connection.execute(insert(execution_t), executions)
        await connection.execute(
            insert(schedule_version_t), [{**version, "schedule_id": next_id()} for _ in range(5_000)]
        )
        await connection.execute(
            insert(audit_t),
            [
                {**entry, "audit_id": next_id(), "resource_type": "execution", "resource_id": ""}
                for _ in range(5_000)
            ],
        )
    async with scene.store.database.read(Pool.API) as connection:
        await connection.exec_driver_sql("ANALYZE")
    large = ("execution_t", "schedule_version_t", "audit_t")
    begun, plan = await explain(scene.store, Pool.API, changes.begin())
    assert not [each for each in plan.scans if each.startswith(large)], plan.text
    followed = [each["execution_id"] for each in executions[:50]]
    batch, plan = await explain(scene.store, Pool.API, changes.read_changes(begun.mark, followed))
    assert len(batch.executions) == 50
    assert not [each for each in plan.scans if each.startswith(large)], plan.text
    keys = {primary_key(scene.store, table) for table in ("execution_t", "audit_t")}
    assert keys | {"idx_schedule_version_created"} <= plan.indexes, plan.text


# --- the outbox --------------------------------------------------------------------------------------------


async def put(scene: Scene, *offsets: int, host_id: UUID = DEFAULT_HOST_ID) -> None:
    now = await scene.now()
    rows = [
        {
            "id": uuid4(),
            "host_id": host_id,
            "user_id": uuid4(),
            "event_topic": "orders",
            "nonce": offset,
            "aggregate_id": "schedule",
            "aggregate_version": offset,
            "aggregate_type": "Schedule",
            "event_type": "fired",
            "event_ts": now,
            "payload": {"number": offset},
            "c_offset": offset,
            "transaction_id": uuid4(),
            "transaction_ordinal": 0,
            "transaction_count": 1,
        }
        for offset in offsets
    ]
    await scene.execute(insert(outbox_message_t).values(rows))


async def test_the_outbox_is_read_after_an_offset_oldest_first_a_page_at_a_time(scene: Scene) -> None:
    outbox = OutboxList(scene.store.database)
    await put(scene, 3, 1, 4, 2)
    page = await outbox.after(DEFAULT_HOST_ID, 1, limit=2)
    assert [each.c_offset for each in page] == [2, 3]
    assert page[0].payload == {"number": 2}
    assert [each.c_offset for each in await outbox.after(DEFAULT_HOST_ID, 3)] == [4]
    assert await outbox.after(DEFAULT_HOST_ID, 4) == []


async def test_a_host_sees_its_own_messages_and_its_own_latest_offset(scene: Scene) -> None:
    outbox = OutboxList(scene.store.database)
    other = await scene.add_host("other")
    await put(scene, 1, 3)
    await put(scene, 2, 4, host_id=other)
    assert [each.c_offset for each in await outbox.after(DEFAULT_HOST_ID, 0)] == [1, 3]
    assert await outbox.latest_offset(DEFAULT_HOST_ID) == 3
    assert await outbox.latest_offset(other) == 4


async def test_where_there_are_no_messages_there_is_nothing_to_complain_about(scene: Scene) -> None:
    outbox = OutboxList(scene.store.database)
    assert await outbox.after(uuid4(), 7) == []
    assert await outbox.latest_offset(uuid4()) == 0


async def test_the_outbox_is_read_by_its_index(scene: Scene) -> None:
    outbox = OutboxList(scene.store.database)
    other = await scene.add_host("other")
    await put(scene, *range(1, 1_500))
    await put(scene, 1_500, host_id=other)
    async with scene.store.database.read(Pool.API) as connection:
        await connection.exec_driver_sql("ANALYZE")
    for act in (outbox.after(other, 0), outbox.latest_offset(other)):
        _, plan = await explain(scene.store, Pool.API, act)
        assert plan.indexes == {"idx_outbox_host"}, plan.text
