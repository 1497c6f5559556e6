"""Lists of executions, schedules, queues, instances and task functions, over both databases."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import insert

from foliot.model.errors import InvalidError
from foliot.model.execution import OPEN, Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.store.execution_list import MOST_SCHEDULES, ExecutionList, ExecutionPosition
from foliot.store.protocol import ExecutionFilter
from foliot.store.schema import execution_t
from foliot.testing.conformance.scene import Scene

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
        far = dice.choice([datetime.min, datetime.max]).replace(tzinfo=UTC)
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
    @pytest.mark.parametrize("seed", range(5))
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
                most_walked=dice.choice([1, 30, 100_000]),
                most_gathered=dice.choice([0, 20, 10_000]),
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
        executions = ExecutionList(scene.store.database, first_walked=1, most_walked=1)
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
        executions = ExecutionList(scene.store.database, first_walked=1, most_walked=1)
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
        executions = ExecutionList(scene.store.database, first_walked=1, most_walked=1)
        mine = ExecutionFilter(host_id=DEFAULT_HOST_ID, schedule_ids=[schedule.schedule_id])
        page = await executions.page(mine, limit=2)
        assert (list(page.items), page.next) == ([], None)
        page = await executions.page(replace(mine, host_id=other), limit=2)
        assert len(page.items) == 2

    async def test_at_most_so_many_schedules_can_be_asked_for_at_once(self, scene: Scene) -> None:
        ids = [new_id() for _ in range(MOST_SCHEDULES + 1)]
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
