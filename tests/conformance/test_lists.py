"""Lists of executions, schedules, queues, instances and task functions, over both databases."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import insert, select, update
from tests.conformance.suites.scene import LONG, SOMEBODY, Scene, spec_of

from foliot.db.rows.registry_rows import InstanceRecord, TaskRecord
from foliot.db.rows.schedule_rows import row_of
from foliot.db.tables.access import audit_t
from foliot.db.tables.cluster import instance_t, scheduler_lock_t
from foliot.db.tables.executions import execution_t, queue_t
from foliot.db.tables.schedules import schedule_status_t, schedule_t, schedule_text_t
from foliot.model.calendar import CalendarSpec
from foliot.model.errors import InvalidError, NotFoundError
from foliot.model.execution import OPEN, Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.lease import Shard
from foliot.model.policy import Priority
from foliot.model.schedule import ManagedBy, Schedule, ScheduleState
from foliot.planning.change import Author, create
from foliot.queries.execution_list import MAX_SCHEDULES, ExecutionList
from foliot.queries.execution_search import ExecutionFilter, ExecutionPosition
from foliot.queries.queues import Queues
from foliot.queries.registry_list import RegistryList, TaskFilter
from foliot.queries.schedule_list import (
    ListedSchedule,
    ScheduleFilter,
    ScheduleList,
    SchedulePosition,
    ScheduleReference,
    ScheduleSort,
)
from foliot.timing.clock import Clock, VirtualClock

OTHER_HOST = UUID(int=7)
OWN = [UUID(int=n) for n in range(1, 4)]
FOREIGN = [UUID(int=n) for n in range(11, 13)]
QUEUES = ("default", "fast")


# --- executions, against a list that is filtered by hand ------------------------------------------------


@dataclass(frozen=True)
class Made:
    """An execution as the lists are to see it."""

    execution_id: UUID
    schedule_id: UUID
    host_id: UUID
    fire_ts: datetime
    created_ts: datetime
    status: Status
    triggered_by: TriggeredBy
    queue: str

    @property
    def row(self) -> dict[str, Any]:
        is_ready = self.status in OPEN and self.queue == "fast"
        return {
            "execution_id": self.execution_id,
            "schedule_id": self.schedule_id,
            "host_id": self.host_id,
            "aggregate_version": 1,
            "fire_ts": self.fire_ts,
            "status": self.status.value,
            "triggered_by": self.triggered_by.value,
            "queue": self.queue,
            "priority": "medium",
            "due_by_ts": self.created_ts if is_ready else None,
            "lease_until": self.created_ts if self.status is Status.RUNNING else None,
            "created_ts": self.created_ts,
            "args": {"a": 1},
            "result": [1],
            "error": "bad",
            "traceback": "where",
        }


def some_executions(dice: random.Random, now: datetime, count: int) -> list[Made]:
    """Few times for many of them, so that much happens at once; some are made long after their fire time."""
    found: list[Made] = []
    taken: set[tuple[Any, ...]] = set()
    while len(found) < count:
        created_ts = now - timedelta(hours=dice.randrange(24 * 6))
        triggered_by = dice.choice(list(TriggeredBy))
        late_s = 0.0
        if triggered_by in (TriggeredBy.SCHEDULER, TriggeredBy.BACKFILL):
            late_s = dice.choice([0, 0, 0, 60, 3600, 86400, 86401, 2 * 86400, 9 * 86400])
        fire_ts = created_ts - timedelta(seconds=late_s)
        schedule_id = dice.choice(OWN + FOREIGN)
        identity = (schedule_id, fire_ts, triggered_by)
        if identity in taken and triggered_by in (TriggeredBy.SCHEDULER, TriggeredBy.BACKFILL):
            continue
        taken.add(identity)
        # The clock that ids are made by is not quite the database's.
        id_ts = created_ts + timedelta(minutes=dice.choice([-50, -1, 0, 0, 1, 50]))
        found.append(
            Made(
                execution_id=new_id(id_ts),
                schedule_id=schedule_id,
                host_id=DEFAULT_HOST_ID if schedule_id in OWN else OTHER_HOST,
                fire_ts=fire_ts,
                created_ts=created_ts,
                status=dice.choice(list(Status)),
                triggered_by=triggered_by,
                queue=dice.choice(QUEUES),
            )
        )
    return found


def some_filter(dice: random.Random, rows: Sequence[Made]) -> ExecutionFilter:
    def some(values: Sequence[Any], chance: float) -> list[Any]:
        return dice.sample(values, dice.randint(1, len(values))) if dice.random() < chance else []

    def instant() -> datetime | None:
        near = dice.choice(rows).fire_ts + timedelta(microseconds=dice.choice([-1, 0, 0, 1]))
        far = dice.choice([datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
        return dice.choice([None, None, near, near, far])

    return ExecutionFilter(
        host_id=dice.choice([None, DEFAULT_HOST_ID, DEFAULT_HOST_ID, OTHER_HOST]),
        schedule_ids=some(OWN + FOREIGN, 0.4),
        statuses=some(list(Status), 0.4) if dice.random() < 0.7 else some(list(OPEN), 1),
        queues=some(QUEUES, 0.3),
        triggered_by=some(list(TriggeredBy), 0.3),
        fire_from=instant(),
        fire_to=instant(),
    )


def by_hand(rows: Sequence[Made], wanted: ExecutionFilter) -> list[UUID]:
    """What a list must give, found the simple way."""
    found = [
        row
        for row in rows
        if (wanted.host_id is None or row.host_id == wanted.host_id)
        and (not wanted.schedule_ids or row.schedule_id in wanted.schedule_ids)
        and (not wanted.statuses or row.status in wanted.statuses)
        and (not wanted.queues or row.queue in wanted.queues)
        and (not wanted.triggered_by or row.triggered_by in wanted.triggered_by)
        and (wanted.fire_from is None or row.fire_ts >= wanted.fire_from)
        and (wanted.fire_to is None or row.fire_ts < wanted.fire_to)
    ]
    if wanted.schedule_ids:
        found.sort(key=lambda row: (row.fire_ts, row.execution_id), reverse=True)
    else:
        found.sort(key=lambda row: row.execution_id, reverse=True)
    return [row.execution_id for row in found]


async def keep(scene: Scene, rows: Sequence[Made]) -> None:
    await scene.execute(insert(execution_t).values([row.row for row in rows]))


async def all_pages(
    executions: ExecutionList, wanted: ExecutionFilter, limit: int
) -> tuple[list[UUID], list[int]]:
    """Everything, page by page, and how long the pages were."""
    found: list[UUID] = []
    lengths: list[int] = []
    after: ExecutionPosition | None = None
    while True:
        page = await executions.page(wanted, after=after, limit=limit)
        found += [row.execution_id for row in page.items]
        lengths.append(len(page.items))
        if page.next is None:
            return found, lengths
        assert page.next != after, "it goes on"
        after = page.next


class TestExecutions:
    @pytest.mark.parametrize("seed", range(4))
    async def test_pages_together_are_what_the_filter_lets_through_in_order(
        self, scene: Scene, seed: int
    ) -> None:
        dice = random.Random(seed)
        rows = some_executions(dice, await scene.now(), 250)
        await keep(scene, rows)
        for _ in range(20):
            executions = ExecutionList(
                scene.store.database,
                first_walked=dice.choice([1, 20, 500]),
                max_walked=dice.choice([1, 30, 100_000]),
                max_gathered=dice.choice([0, 20, 10_000]),
            )
            wanted = some_filter(dice, rows)
            limit = dice.choice([7, 30, 500])
            found, lengths = await all_pages(executions, wanted, limit)
            assert found == by_hand(rows, wanted), (wanted, limit)
            assert max(lengths) <= limit

    async def test_of_many_at_one_instant_none_is_lost_where_a_page_ends(self, scene: Scene) -> None:
        now = await scene.now()
        rows = [replace(made(OWN[0], now), triggered_by=TriggeredBy.API) for _ in range(40)]
        await keep(scene, rows)
        executions = ExecutionList(scene.store.database, first_walked=1, max_walked=1)
        wanted = ExecutionFilter(schedule_ids=OWN, queues=["default"])
        found, _ = await all_pages(executions, wanted, 3)
        assert found == sorted((row.execution_id for row in rows), reverse=True)

    async def test_an_id_from_a_clock_that_is_ahead_is_found_by_its_fire_time(self, scene: Scene) -> None:
        created_ts = await scene.now() - timedelta(days=3)
        fire_ts = created_ts - timedelta(days=1)
        ahead = new_id(created_ts + timedelta(minutes=59))
        row = replace(made(OWN[0], created_ts), fire_ts=fire_ts, execution_id=ahead)
        await keep(scene, [row])
        until = ExecutionFilter(fire_to=fire_ts + timedelta(microseconds=1))
        page = await ExecutionList(scene.store.database).page(until)
        assert [each.execution_id for each in page.items] == [ahead]

    async def test_what_two_indexes_know_is_listed_once(self, scene: Scene) -> None:
        now = await scene.now()
        fire_ts = now - timedelta(days=9)
        late = [
            replace(made(OWN[n], now), fire_ts=fire_ts, status=status)
            for n, status in enumerate([Status.FAILED, Status.RUNNING, Status.PENDING])
        ]
        await keep(scene, late)
        wanted = ExecutionFilter(
            host_id=DEFAULT_HOST_ID,
            statuses=[row.status for row in late],
            fire_to=fire_ts + timedelta(seconds=1),
        )
        page = await ExecutionList(scene.store.database).page(wanted)
        assert [row.execution_id for row in page.items] == by_hand(late, wanted)

    async def test_what_is_made_between_two_pages_moves_nothing(self, scene: Scene) -> None:
        dice = random.Random(0)
        now = await scene.now()
        rows = some_executions(dice, now - timedelta(days=20), 40)
        await keep(scene, rows)
        for wanted in (ExecutionFilter(), ExecutionFilter(schedule_ids=OWN + FOREIGN)):
            executions = ExecutionList(scene.store.database)
            first = await executions.page(wanted, limit=15)
            await keep(scene, some_executions(dice, now, 10))
            rest = await executions.page(wanted, after=first.next, limit=500)
            listed = [row.execution_id for row in (*first.items, *rest.items)]
            assert listed == [each for each in await everything(executions, wanted) if each in set(listed)]
            assert {row.execution_id for row in rows} <= set(listed)

    async def test_a_page_that_has_passed_over_enough_is_short_and_says_where_to_go_on(
        self, scene: Scene
    ) -> None:
        now = await scene.now()
        own = made(OWN[0], now - timedelta(hours=1))
        others = [made(FOREIGN[0], now - timedelta(minutes=n)) for n in range(30)]
        await keep(scene, [own, *others])
        executions = ExecutionList(scene.store.database, first_walked=1, max_walked=1)
        wanted = ExecutionFilter(host_id=DEFAULT_HOST_ID)
        found, lengths = await all_pages(executions, wanted, 9)
        assert found == [own.execution_id]
        assert lengths == [0, 0, 0, 1], "ten rows at a time"
        assert [row.execution_id for row in await executions.latest(wanted, limit=9)] == found

    async def test_a_schedule_of_another_host_is_not_even_walked_over(self, scene: Scene) -> None:
        now = await scene.now()
        other = await scene.add_host("other")
        schedule = await scene.add(host_id=other)
        await keep(scene, [made(schedule.schedule_id, now - timedelta(seconds=n), other) for n in range(9)])
        executions = ExecutionList(scene.store.database, first_walked=1, max_walked=1)
        mine = ExecutionFilter(host_id=DEFAULT_HOST_ID, schedule_ids=[schedule.schedule_id])
        page = await executions.page(mine, limit=2)
        assert (list(page.items), page.next) == ([], None)
        page = await executions.page(replace(mine, host_id=other), limit=2)
        assert len(page.items) == 2

    async def test_at_most_so_many_schedules_can_be_asked_for_at_once(self, scene: Scene) -> None:
        ids = [new_id() for _ in range(MAX_SCHEDULES + 1)]
        executions = ExecutionList(scene.store.database)
        assert (await executions.page(ExecutionFilter(schedule_ids=ids[1:]))).items == []
        with pytest.raises(InvalidError) as refused:
            await executions.page(ExecutionFilter(schedule_ids=ids))
        assert [problem.pointer for problem in refused.value.problems] == ["/schedule_id"]

    async def test_bodies_can_be_left_where_they_are(self, scene: Scene) -> None:
        await keep(scene, [made(OWN[0], await scene.now())])
        executions = ExecutionList(scene.store.database)
        [whole] = (await executions.page(ExecutionFilter())).items
        assert (whole.args, whole.result, whole.error, whole.traceback) == ({"a": 1}, [1], "bad", "where")
        [slim] = (await executions.page(ExecutionFilter(), with_bodies=False)).items
        assert slim == replace(whole, args=None, result=None, traceback=None)

    async def test_a_list_goes_on_behind_an_execution_that_is_gone(self, scene: Scene) -> None:
        now = await scene.now()
        rows = [made(OWN[0], now - timedelta(seconds=n)) for n in range(3)]
        await keep(scene, [rows[0], rows[2]])
        executions = ExecutionList(scene.store.database)
        gone = rows[1]
        position = ExecutionPosition(gone.fire_ts, gone.execution_id)
        for wanted in (ExecutionFilter(), ExecutionFilter(schedule_ids=OWN)):
            page = await executions.page(wanted, after=position)
            assert [row.execution_id for row in page.items] == [rows[2].execution_id]
        later = await executions.latest(ExecutionFilter(), after=gone.execution_id)
        assert [row.execution_id for row in later] == [rows[2].execution_id]


async def everything(executions: ExecutionList, wanted: ExecutionFilter) -> list[UUID]:
    return [row.execution_id for row in await executions.latest(wanted, limit=500)]


def made(schedule_id: UUID, at: datetime, host_id: UUID | None = None) -> Made:
    return Made(
        execution_id=new_id(at),
        schedule_id=schedule_id,
        host_id=host_id or (DEFAULT_HOST_ID if schedule_id in OWN else OTHER_HOST),
        fire_ts=at,
        created_ts=at,
        status=Status.SUCCESS,
        triggered_by=TriggeredBy.SCHEDULER,
        queue="default",
    )


# --- schedules ------------------------------------------------------------------------------------------


async def keep_schedules(scene: Scene, rows: Sequence[dict[str, Any]]) -> list[Schedule]:
    """Schedules as if stored with these columns; of each only the name must be given."""
    now = await scene.now()
    kept = []
    values = []
    for fields in rows:
        spec = spec_of(fields["schedule_name"])
        schedule = create(spec, host_id=DEFAULT_HOST_ID, now=now, author=SOMEBODY).schedule
        values.append(row_of(schedule) | fields)
        kept.append(schedule)
    await scene.execute(insert(schedule_t).values(values))
    texts = [
        {
            **{name: row[name] for name in ("schedule_id", "host_id", "schedule_name")},
            "search_text": f"{row['schedule_name']}\n{row['description']}".lower(),
        }
        for row in values
    ]
    await scene.execute(insert(schedule_text_t).values(texts))
    return kept


async def keep_status(scene: Scene, schedule_id: UUID, at: datetime, status: Status) -> UUID:
    execution_id = new_id()
    await scene.execute(
        insert(schedule_status_t).values(
            schedule_id=schedule_id, last_run_ts=at, last_status=status.value, last_execution_id=execution_id
        )
    )
    return execution_id


def names(listed: Sequence[ListedSchedule]) -> list[str]:
    return [each.schedule.spec.name for each in listed]


async def pages_of(
    schedules: ScheduleList, wanted: ScheduleFilter, limit: int, **order: Any
) -> list[ListedSchedule]:
    found: list[ListedSchedule] = []
    after: SchedulePosition | None = None
    while True:
        page = await schedules.page(wanted, after=after, limit=limit, **order)
        assert len(page.items) == limit or page.next is None
        found += page.items
        if page.next is None:
            return found
        after = page.next


ALL = ScheduleFilter(host_id=DEFAULT_HOST_ID)


class TestSchedules:
    async def test_every_filter_narrows_and_of_several_values_any_may_hold(self, scene: Scene) -> None:
        web = {"kind": "http", "url": "https://agent.example/run"}
        await scene.store.calendars.put(DEFAULT_HOST_ID, CalendarSpec(name="feasts"), SOMEBODY)
        one = await scene.add("one", queue="fast", priority="high", description="Pays the bills")
        two = await scene.add("two", target=web, labels={"team": "pay", "tier": "1"}, calendars=["feasts"])
        three = await scene.add("three", active=False, labels={"team": "ops", "tier": "1"})
        await scene.pause(two)
        await keep_status(scene, one.schedule_id, await scene.now(), Status.FAILED)
        await keep_status(scene, three.schedule_id, await scene.now(), Status.SUCCESS)
        other = await scene.add_host("other")
        await scene.add("one", host_id=other)
        await scene.delete(await scene.add("four"))
        schedules = ScheduleList(scene.store.database)

        async def found(**fields: Any) -> list[str]:
            wanted = replace(ALL, **fields)
            page = await schedules.page(wanted)
            references = await schedules.ids(wanted, limit=50)
            assert [each.name for each in references] == names(page.items)
            return names(page.items)

        assert await found() == ["one", "three", "two"]
        assert await found(names=["two", "one", "four", "five"]) == ["one", "two"]
        assert await found(q="BILLS") == ["one"]
        assert await found(q="T") == ["one", "three", "two"], "a letter of the description of one"
        assert await found(active=True) == ["one", "two"]
        assert await found(active=False) == ["three"]
        assert await found(queues=["fast"]) == ["one"]
        assert await found(queues=["fast", "default"]) == ["one", "three", "two"]
        assert await found(priorities=[Priority.HIGH, Priority.LOW]) == ["one"]
        assert await found(targets=["http"]) == ["two"]
        assert await found(targets=["http", "function"]) == ["one", "three", "two"]
        assert await found(last_statuses=[Status.FAILED]) == ["one"]
        assert await found(last_statuses=[Status.FAILED, Status.SUCCESS]) == ["one", "three"]
        assert await found(states=[ScheduleState.PAUSED, ScheduleState.INACTIVE]) == ["three", "two"]
        assert await found(managed_by=[ManagedBy.API]) == ["one", "three", "two"]
        assert await found(managed_by=[ManagedBy.CODE]) == []
        assert await found(calendars=["feasts", "none"]) == ["two"]
        assert await found(calendars=["feast"]) == []
        assert await found(labels={"tier": "1"}) == ["three", "two"]
        assert await found(labels={"tier": "1", "team": "pay"}) == ["two"]
        assert await found(labels={"pay": "team"}) == []
        assert await found(labels={"tier": "1"}, active=True, q="w") == ["two"]
        assert await found(host_id=other) == ["one"]

    async def test_signs_of_a_pattern_are_looked_for_as_they_stand(self, scene: Scene) -> None:
        await keep_schedules(
            scene, [{"schedule_name": name} for name in ("50%", "5050", "a_b", "acb", r"a\b/c")]
        )
        schedules = ScheduleList(scene.store.database)
        for text, expected in (
            ("50%", ["50%"]),
            ("%", ["50%"]),
            ("_", ["a_b"]),
            ("A_B", ["a_b"]),
            ("\\", [r"a\b/c"]),
            ("B/C", [r"a\b/c"]),
            ("', \"", []),
        ):
            assert names((await schedules.page(replace(ALL, q=text))).items) == expected, text

    async def test_labels_may_have_any_names(self, scene: Scene) -> None:
        labels = {'a"b': "1", "$.c": "2", "d'e": "%", "f\\g": "null"}
        await keep_schedules(scene, [{"schedule_name": "odd", "labels": labels}, {"schedule_name": "even"}])
        schedules = ScheduleList(scene.store.database)
        for name, value in labels.items():
            assert names((await schedules.page(replace(ALL, labels={name: value}))).items) == ["odd"]
            assert (await schedules.page(replace(ALL, labels={name: value + "."}))).items == []

    @pytest.mark.parametrize("is_descending", [False, True])
    async def test_every_order_can_be_paged_through(self, scene: Scene, is_descending: bool) -> None:
        dice = random.Random(1)
        now = await scene.now()

        def instant() -> datetime:
            return now + timedelta(hours=dice.randrange(6))

        rows = [
            {
                "schedule_name": f"schedule{n:02}",
                "priority": dice.choice(list(Priority)).value,
                "next_run_ts": dice.choice([None, instant(), instant()]),
                "created_ts": instant(),
                "updated_ts": instant(),
            }
            for n in range(40)
        ]
        kept = await keep_schedules(scene, rows)
        values: dict[UUID, dict[str, Any]] = {}
        for schedule, row in zip(kept, rows, strict=True):
            last_run_ts = dice.choice([None, instant(), instant()])
            if last_run_ts is not None:
                await keep_status(scene, schedule.schedule_id, last_run_ts, Status.SUCCESS)
            values[schedule.schedule_id] = row | {"name": row["schedule_name"], "last_run_ts": last_run_ts}
        schedules = ScheduleList(scene.store.database)
        for sort in ScheduleSort:
            ids = sorted(
                (each for each in values if values[each][sort] is not None),
                key=lambda each: (values[each][sort], each),
                reverse=is_descending,
            )
            ids += sorted((each for each in values if values[each][sort] is None), reverse=is_descending)
            for limit in (7, 40, 100):
                listed = await pages_of(schedules, ALL, limit, sort=sort, is_descending=is_descending)
                assert [each.schedule.schedule_id for each in listed] == ids, (sort, limit)
        high = replace(ALL, priorities=[Priority.HIGH, Priority.LOW])
        listed = await pages_of(schedules, high, 5, sort=ScheduleSort.NEXT_RUN)
        assert len(listed) == sum(row["priority"] != "medium" for row in rows)

    async def test_a_change_between_two_pages_moves_only_what_was_changed(self, scene: Scene) -> None:
        kept = [await scene.add(name) for name in "bcdefg"]
        schedules = ScheduleList(scene.store.database)
        page = await schedules.page(ALL, limit=3)
        assert names(page.items) == ["b", "c", "d"]
        await scene.delete(kept[2])
        await scene.edit(kept[1], name="z")
        await scene.add("a")
        page = await schedules.page(ALL, after=page.next, limit=3)
        assert names(page.items) == ["e", "f", "g"]
        page = await schedules.page(ALL, after=page.next, limit=3)
        assert (names(page.items), page.next) == (["z"], None)

    async def test_each_comes_with_how_its_last_run_went(self, scene: Scene) -> None:
        ran, new = await scene.add("ran"), await scene.add("new")
        now = await scene.now()
        execution_id = await keep_status(scene, ran.schedule_id, now, Status.TIMEOUT)
        schedules = ScheduleList(scene.store.database)
        expected = ListedSchedule(ran, now, Status.TIMEOUT, execution_id)
        assert (await schedules.page(ALL)).items == [ListedSchedule(new, None, None, None), expected]
        assert await schedules.get_with_status(ran.schedule_id, DEFAULT_HOST_ID) == expected
        assert await schedules.by_names(DEFAULT_HOST_ID, ["ran", "none", "ran"]) == [expected]
        assert await schedules.by_names(DEFAULT_HOST_ID, []) == []

    async def test_many_names_are_found_at_once(self, scene: Scene) -> None:
        wanted = [f"schedule{n:04}" for n in range(3000)]
        await keep_schedules(scene, [{"schedule_name": name} for name in wanted[:60]])
        found = await ScheduleList(scene.store.database).by_names(DEFAULT_HOST_ID, wanted)
        assert names(found) == wanted[:60]

    async def test_one_of_another_host_and_a_deleted_one_are_not_found(self, scene: Scene) -> None:
        other = await scene.add_host("other")
        foreign, gone = await scene.add("foreign", host_id=other), await scene.add("gone")
        await scene.delete(gone)
        schedules = ScheduleList(scene.store.database)
        for schedule in (foreign, gone):
            with pytest.raises(NotFoundError):
                await schedules.get_with_status(schedule.schedule_id, DEFAULT_HOST_ID)
            assert await schedules.by_names(DEFAULT_HOST_ID, [schedule.spec.name]) == []

    async def test_ids_go_on_behind_a_name_and_tell_the_version(self, scene: Scene) -> None:
        first = await scene.add("a")
        await scene.edit(first, description="changed")
        await scene.add("b")
        schedules = ScheduleList(scene.store.database)
        assert await schedules.ids(ALL, limit=1) == [ScheduleReference(first.schedule_id, "a", 2)]
        assert [each.name for each in await schedules.ids(ALL, after_name="a", limit=9)] == ["b"]

    @pytest.mark.parametrize(
        ("sort", "value"),
        [
            (ScheduleSort.NAME, None),
            (ScheduleSort.NAME, datetime(2026, 1, 1, tzinfo=UTC)),
            (ScheduleSort.CREATED, "a"),
            (ScheduleSort.UPDATED, None),
            (ScheduleSort.NEXT_RUN, "a"),
            (ScheduleSort.LAST_RUN, "a"),
        ],
    )
    async def test_a_position_of_another_order_is_refused(
        self, scene: Scene, sort: ScheduleSort, value: Any
    ) -> None:
        after = SchedulePosition(value, new_id())
        with pytest.raises(InvalidError) as refused:
            await ScheduleList(scene.store.database).page(ALL, sort=sort, after=after)
        assert [problem.pointer for problem in refused.value.problems] == ["/page_token"]


# --- queues ---------------------------------------------------------------------------------------------


async def wait_in(scene: Scene, queue: str, *ready_s: float | None, **fields: Any) -> None:
    """Executions that are ready since so many seconds; None: held."""
    now = await scene.now()
    priority = fields.get("priority", Priority.MEDIUM)
    rows: list[dict[str, Any]] = []
    for seconds in ready_s:
        ready_ts = None if seconds is None else now - timedelta(seconds=seconds)
        row = made(OWN[0], now - timedelta(seconds=len(rows))).row
        row |= {
            "queue": queue,
            "status": "pending",
            "triggered_by": "api",
            "priority": priority.value,
            "ready_ts": ready_ts,
            "due_by_ts": None if ready_ts is None else ready_ts + timedelta(seconds=priority.sla_s),
        }
        rows.append(row | {name: value for name, value in fields.items() if name != "priority"})
    await scene.execute(insert(execution_t).values(rows))


async def know_queues(scene: Scene, *queues: str, host_id: UUID = DEFAULT_HOST_ID) -> None:
    rows = [{"host_id": host_id, "queue": queue, "paused": queue == "paused"} for queue in queues]
    await scene.execute(insert(queue_t).values(rows))


class TestQueues:
    async def test_what_is_ready_is_counted_by_priority(self, scene: Scene, clock: Clock) -> None:
        # Half a second is soon over on a busy machine, unless the clock stands still.
        soon_s = 0.5 if isinstance(clock, VirtualClock) else 60
        await know_queues(scene, "fast", "idle", "paused")
        await wait_in(scene, "fast", 2, 100, None, priority=Priority.HIGH)
        await wait_in(scene, "fast", 20, 40, priority=Priority.LOW, status="retrying")
        await wait_in(scene, "fast", -60, status="retrying")
        await wait_in(scene, "fast", -soon_s, priority=Priority.HIGH)
        await wait_in(scene, "fast", 300, host_id=OTHER_HOST)
        await wait_in(scene, "paused", 3)
        await wait_in(scene, "fast", 5, 6, status="running", due_by_ts=None, lease_until=await scene.now())
        for queue in ("fast", "idle"):
            await wait_in(scene, queue, 5, status="running", due_by_ts=None, host_id=OTHER_HOST)
        fast, idle, paused = await Queues(scene.store.database).page(DEFAULT_HOST_ID)
        assert fast.depth == {Priority.HIGH: 2, Priority.MEDIUM: 0, Priority.LOW: 2}
        assert (fast.running_count, fast.sla_missed_count, fast.is_capped) == (2, 3, False)
        assert fast.oldest_ready_ts is not None
        age = await scene.now() - fast.oldest_ready_ts
        assert timedelta(seconds=100) <= age < timedelta(seconds=200)
        assert (idle.name, idle.is_paused, idle.oldest_ready_ts) == ("idle", False, None)
        assert (sum(idle.depth.values()), idle.running_count, idle.sla_missed_count) == (0, 0, 0)
        assert (paused.name, paused.is_paused, paused.depth[Priority.MEDIUM]) == ("paused", True, 1)

    async def test_a_backlog_is_counted_no_further_than_needed(self, scene: Scene) -> None:
        await know_queues(scene, "fast", "slow")
        await wait_in(scene, "fast", 1, 2, 3, 50)
        await wait_in(scene, "slow", 1, 2)
        await wait_in(scene, "slow", *[1] * 4, status="running", due_by_ts=None)
        queues = Queues(scene.store.database, max_counted=3)
        fast, slow = await queues.page(DEFAULT_HOST_ID)
        assert (sum(fast.depth.values()), fast.is_capped, fast.sla_missed_count) == (3, True, 1)
        assert (sum(slow.depth.values()), slow.is_capped) == (2, False)
        assert (slow.running_count, slow.is_running_capped) == (3, True)

    async def test_queues_come_in_order_a_page_at_a_time(self, scene: Scene) -> None:
        await know_queues(scene, *[f"queue-{n:03}" for n in range(120)])
        await know_queues(scene, "foreign", host_id=OTHER_HOST)
        await wait_in(scene, "queue-110", 1)
        queues = Queues(scene.store.database)
        found = await queues.page(DEFAULT_HOST_ID, limit=500)
        assert [each.name for each in found] == [f"queue-{n:03}" for n in range(120)]
        assert [each.name for each in found if sum(each.depth.values())] == ["queue-110"]
        rest = await queues.page(DEFAULT_HOST_ID, after="queue-004", limit=2)
        assert [each.name for each in rest] == ["queue-005", "queue-006"]

    async def test_a_single_queue_is_found_by_its_name(self, scene: Scene) -> None:
        await know_queues(scene, "fast", "slow")
        await wait_in(scene, "slow", 1)
        queues = Queues(scene.store.database)
        assert (await queues.get(DEFAULT_HOST_ID, "slow")).depth[Priority.MEDIUM] == 1
        for host_id, name in ((OTHER_HOST, "slow"), (DEFAULT_HOST_ID, "none")):
            with pytest.raises(NotFoundError):
                await queues.get(host_id, name)


# --- instances and task functions -----------------------------------------------------------------------


def instance(instance_id: str, *known: str, is_worker: bool = True) -> InstanceRecord:
    return InstanceRecord(
        instance_id=instance_id,
        hostname="machine",
        pid=7,
        roles=("scheduler", "worker") if is_worker else ("scheduler",),
        version="1.0",
        capacity=50,
        load=3,
        queues=("fast",) if is_worker else None,
        known_tasks=known if is_worker else None,
        clock_offset_s=0.25,
    )


async def silence(scene: Scene, instance_id: str, seconds: float) -> None:
    """Make an instance's last heartbeat older."""
    heartbeat = await scene.now() - timedelta(seconds=seconds)
    statement = update(instance_t).where(instance_t.c.instance_id == instance_id)
    await scene.execute(statement.values(last_heartbeat=heartbeat))


async def register(scene: Scene, *tasks: tuple[str, str, bool]) -> None:
    await scene.store.registry.register_tasks(
        [
            TaskRecord(name, name.title(), description, f"module:{name}", "sync", None, 60.0, {}, is_system)
            for name, description, is_system in tasks
        ]
    )


class TestRegistry:
    async def test_an_instance_tells_all_that_is_known_of_it(self, scene: Scene) -> None:
        registry = scene.store.registry
        await registry.heartbeat(instance("one", "a", "b"))
        await registry.heartbeat(instance("two", is_worker=False))
        await silence(scene, "two", 60)
        one, two = await RegistryList(scene.store.database).instances(lease_ttl_s=LONG)
        assert (one.instance_id, one.hostname, one.pid, one.version) == ("one", "machine", 7, "1.0")
        assert (one.roles, one.queues, one.known_tasks) == (("scheduler", "worker"), ("fast",), ("a", "b"))
        assert (one.capacity, one.load, one.clock_offset_s, one.leader_since) == (50, 3, 0.25, None)
        assert (one.is_live, one.started_ts <= one.last_heartbeat, one.leads) == (True, True, ())
        assert 0 <= one.heartbeat_age_s < 15
        assert (two.queues, two.known_tasks, two.is_live) == (None, None, False)
        assert 60 <= two.heartbeat_age_s < 75

    async def test_whose_lease_is_fresh_leads(self, scene: Scene) -> None:
        await scene.store.leases.reshard(3)
        for name in ("one", "two"):
            await scene.store.registry.heartbeat(instance(name))
        for number, name in ((0, "one"), (1, "two"), (2, "one")):
            await scene.lead(Shard(number, 3), name)
        listed = RegistryList(scene.store.database)
        assert [each.leads for each in await listed.instances(lease_ttl_s=LONG)] == [(0, 2), (1,)]
        long_ago = await scene.now() - timedelta(seconds=2 * LONG)
        gone = update(scheduler_lock_t).where(scheduler_lock_t.c.lock_id == Shard(2, 3).lock_id)
        await scene.execute(gone.values(last_heartbeat=long_ago))
        assert [each.leads for each in await listed.instances(lease_ttl_s=LONG)] == [(0,), (1,)]

    async def test_instances_come_in_order_a_page_at_a_time(self, scene: Scene) -> None:
        for name in ("c", "a", "d", "b"):
            await scene.store.registry.heartbeat(instance(name))
        listed = RegistryList(scene.store.database)
        first = await listed.instances(lease_ttl_s=LONG, limit=3)
        assert [each.instance_id for each in first] == ["a", "b", "c"]
        rest = await listed.instances(lease_ttl_s=LONG, after="c", limit=3)
        assert [each.instance_id for each in rest] == ["d"]

    async def test_task_functions_tell_how_many_workers_can_run_them(self, scene: Scene) -> None:
        await register(scene, ("a", "", False), ("b", "", False), ("c", "", False))
        registry = scene.store.registry
        for name, known in (
            ("one", ("a", "b")),
            ("two", ("a",)),
            ("gone", ("a", "c")),
            ("drained", ("a", "c")),
        ):
            await registry.heartbeat(instance(name, *known))
        await RegistryList(scene.store.database).set_draining("drained", True, SOMEBODY)
        await registry.heartbeat(instance("leader", is_worker=False))
        await silence(scene, "gone", 60)
        tasks = await RegistryList(scene.store.database).tasks(TaskFilter())
        assert [(each.name, each.worker_count) for each in tasks] == [("a", 2), ("b", 1), ("c", 0)]
        assert (tasks[0].display_name, tasks[0].handler_path, tasks[0].is_active) == ("A", "module:a", True)

    async def test_task_functions_can_be_filtered_and_paged(self, scene: Scene) -> None:
        await register(scene, ("a_b", "Sends mail", False), ("acb", "", False), ("prune", "Tidies", True))
        tasks = RegistryList(scene.store.database)
        await tasks.set_task_active("acb", False, SOMEBODY)

        async def found(after: str = "", limit: int = 50, **fields: Any) -> list[str]:
            listed = await tasks.tasks(TaskFilter(**fields), after=after, limit=limit)
            return [each.name for each in listed]

        assert await found() == ["a_b", "acb", "prune"]
        assert await found(after="a_b", limit=1) == ["acb"]
        assert await found(names=["prune", "a_b", "none"]) == ["a_b", "prune"]
        assert await found(q="A_B") == ["a_b"]
        assert await found(q="MAIL") == ["a_b"]
        assert await found(is_active=False) == ["acb"]
        assert await found(is_system=True) == ["prune"]
        assert await found(is_system=False, is_active=True) == ["a_b"]

    async def test_switching_a_task_function_is_audited_once(self, scene: Scene) -> None:
        await register(scene, ("a", "", False))
        tasks = RegistryList(scene.store.database)
        author = Author("ann", "too slow", credential="key:1", request_id="request", address="::1")
        assert (await tasks.set_task_active("a", False, author)).is_active is False
        assert (await tasks.set_task_active("a", False, author)).is_active is False
        assert await scene.store.work.inactive_tasks() == {"a"}
        [row] = await scene.rows(select(audit_t))
        assert (row.action, row.resource_id, row.host_id) == ("task_function.changed", "a", DEFAULT_HOST_ID)
        assert (row.actor, row.reason, row.request_id) == ("ann", "too slow", "request")
        assert (row.before, row.after) == ({"is_active": True}, {"is_active": False})
        assert (await tasks.set_task_active("a", True, author)).is_active is True
        with pytest.raises(NotFoundError):
            await tasks.set_task_active("none", False, author)
        assert len(await scene.rows(select(audit_t))) == 2
