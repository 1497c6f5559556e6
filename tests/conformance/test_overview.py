"""What happened, read back: the history of a schedule, the status of a host, load over time, statistics.

Rows are written by hand where the life of a cluster would be long; figures that the database works out are
worked out by hand beside it.
"""

import json
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, insert, text, update
from sqlalchemy.ext.asyncio import AsyncConnection
from tests.conformance.suites.scene import STALE, WHOLE, Scene

from foliot.db.dialect import Pool
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.errors import NotFoundError
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.lease import Shard
from foliot.model.schedule import ChangeKind, Schedule, ScheduleState
from foliot.planning.forecast import Bins, count_per_bin
from foliot.queries import overview, statistics, timeline
from foliot.queries.execution_history import ExecutionHistory
from foliot.queries.overview import Overview, Overviews
from foliot.queries.statistics import RecentExecution, Statistics
from foliot.queries.timeline import Timeline
from foliot.timing.clock import VirtualClock

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def row_of(
    schedule: Schedule,
    fire_ts: datetime,
    *,
    made_ts: datetime | None = None,
    status: Status = Status.SUCCESS,
    by: TriggeredBy = TriggeredBy.SCHEDULER,
    **fields: Any,
) -> dict[str, Any]:
    """A row of the ledger, as if it was made in time."""
    made_ts = made_ts or fire_ts
    values = {
        "missed_count": 0,
        "attempt": 1,
        **dict.fromkeys(("missed_from_ts", "reason", "error", "started_ts", "ended_ts", "duration_seconds")),
        **dict.fromkeys(("ready_ts", "due_by_ts", "lease_until")),
    }
    return {
        "execution_id": new_id(made_ts),
        "schedule_id": schedule.schedule_id,
        "host_id": schedule.host_id,
        "aggregate_version": 1,
        "fire_ts": fire_ts,
        "status": status.value,
        "triggered_by": by.value,
        "queue": "default",
        "priority": "medium",
        "created_ts": made_ts,
        **values,
        **fields,
    }


async def write(scene: Scene, rows: Iterable[dict[str, Any]]) -> None:
    rows = list(rows)

    async def work(connection: AsyncConnection) -> None:
        if rows:
            await connection.execute(insert(execution_t), rows)

    await scene.store.database.write(Pool.API, work)


def percentile(values: Iterable[float], percent: int) -> float:
    """The smallest value that so many of 100 do not exceed, by looking at each."""
    ordered = sorted(values)
    return next(
        value for value in ordered if sum(each <= value for each in ordered) * 100 >= percent * len(ordered)
    )


# --- history --------------------------------------------------------------------------------------------


class TestLedger:
    async def test_what_was_decided_is_told_latest_first(self, scene: Scene) -> None:
        schedule = await scene.add()
        await scene.fire(await scene.lead(), schedule)
        claim = await scene.claim_one()
        await scene.settle(claim, Status.FAILED, error="broken", duration_s=2.5)
        paused = await scene.now() - HOUR
        await write(scene, [row_of(schedule, paused, status=Status.SKIPPED, reason="paused")])
        fired, skipped = await ExecutionHistory(scene.store.database).ledger(schedule.schedule_id)
        assert (fired.execution_id, fired.fire_ts) == (claim.execution_id, schedule.next_fire_ts)
        assert (fired.status, fired.is_skipped, fired.reason) == (Status.FAILED, False, None)
        assert (skipped.fire_ts, skipped.is_skipped, skipped.reason) == (paused, True, "paused")

    async def test_only_the_schedulers_own_rows_are_in_it(self, scene: Scene) -> None:
        schedule = await scene.add()
        now = await scene.now()
        kinds = [row_of(schedule, now, by=by) for by in TriggeredBy]
        await write(scene, [*kinds, row_of(await scene.add("other"), now)])
        [only] = await ExecutionHistory(scene.store.database).ledger(schedule.schedule_id)
        assert only.execution_id == kinds[0]["execution_id"]

    async def test_a_range_holds_its_start_and_not_its_end(self, scene: Scene) -> None:
        schedule = await scene.add()
        now = await scene.now()
        times = [now - number * MINUTE for number in range(6)]
        await write(scene, [row_of(schedule, each) for each in times])
        found = await ExecutionHistory(scene.store.database).ledger(
            schedule.schedule_id, from_ts=times[4], to_ts=times[1]
        )
        assert [each.fire_ts for each in found] == [times[2], times[3], times[4]]

    async def test_a_later_row_that_decides_times_of_the_range_is_in_it(self, scene: Scene) -> None:
        """After an outage one row stands for many times; whoever asks about those times must find it."""
        schedule = await scene.add()
        now = await scene.now()
        missed = row_of(schedule, now, missed_count=59, missed_from_ts=now - 59 * MINUTE)
        await write(scene, [row_of(schedule, now - 60 * MINUTE), missed])
        ledger = ExecutionHistory(scene.store.database).ledger
        within = await ledger(schedule.schedule_id, from_ts=now - 40 * MINUTE, to_ts=now - 20 * MINUTE)
        assert [each.fire_ts for each in within] == [now]
        before = await ledger(schedule.schedule_id, from_ts=now - 70 * MINUTE, to_ts=now - 59 * MINUTE)
        assert [each.fire_ts for each in before] == [now - 60 * MINUTE]

    async def test_pages_follow_each_other_without_gap_or_double(self, scene: Scene) -> None:
        schedule = await scene.add()
        now = await scene.now()
        rows = [
            row_of(
                schedule, now - 10 * n * MINUTE, missed_count=1, missed_from_ts=now - (10 * n + 1) * MINUTE
            )
            for n in range(7)
        ]
        await write(scene, rows)
        ledger = ExecutionHistory(scene.store.database).ledger
        found, before_ts = [], None
        while page := await ledger(schedule.schedule_id, to_ts=now, before_ts=before_ts, n=3):
            found += [each.fire_ts for each in page]
            before_ts = page[-1].fire_ts
        assert found == [row["fire_ts"] for row in rows]

    async def test_schedules_of_other_hosts_are_not_found(self, scene: Scene) -> None:
        other = await scene.add_host("other")
        schedule = await scene.add(host_id=other)
        history = ExecutionHistory(scene.store.database)
        for act in (
            history.ledger(schedule.schedule_id, host_id=DEFAULT_HOST_ID),
            history.ledger(new_id()),
            history.versions(schedule.schedule_id, host_id=DEFAULT_HOST_ID),
            history.version(schedule.schedule_id, 1, host_id=DEFAULT_HOST_ID),
        ):
            with pytest.raises(NotFoundError):
                await act
        assert await history.ledger(schedule.schedule_id, host_id=other) == []


class TestVersions:
    async def test_every_version_says_who_made_it_and_what_it_is(self, scene: Scene) -> None:
        schedule = await scene.add(description="one")
        await scene.edit(schedule, description="two")
        await scene.pause(schedule)
        await scene.delete(schedule)
        history = ExecutionHistory(scene.store.database)
        found = await history.versions(schedule.schedule_id, host_id=DEFAULT_HOST_ID)
        assert [(each.aggregate_version, each.change) for each in found] == [
            (4, ChangeKind.DELETED),
            (3, ChangeKind.PAUSED),
            (2, ChangeKind.EDITED),
            (1, ChangeKind.CREATED),
        ]
        assert [each.document["description"] for each in found] == ["two", "two", "two", "one"]
        assert [each.paused for each in found] == [True, True, False, False]
        assert {(each.author, each.reason) for each in found} == {("somebody", "because")}
        assert await history.version(schedule.schedule_id, 2) == found[2]

    async def test_versions_come_a_page_at_a_time(self, scene: Scene) -> None:
        schedule = await scene.add()
        for number in range(4):
            await scene.edit(schedule, description=str(number))
        versions = ExecutionHistory(scene.store.database).versions
        page = await versions(schedule.schedule_id, limit=2)
        rest = await versions(schedule.schedule_id, before_version=page[-1].aggregate_version, limit=9)
        assert [each.aggregate_version for each in (*page, *rest)] == [5, 4, 3, 2, 1]

    async def test_a_version_that_there_is_not_is_not_found(self, scene: Scene) -> None:
        schedule = await scene.add()
        with pytest.raises(NotFoundError, match="version 2"):
            await ExecutionHistory(scene.store.database).version(schedule.schedule_id, 2)


# --- overview -------------------------------------------------------------------------------------------


async def look(scene: Scene, host_id: UUID = DEFAULT_HOST_ID) -> Overview:
    return await Overviews(scene.store.database).of_host(host_id)


class TestOverview:
    async def test_an_empty_host_has_nothing_to_tell(self, scene: Scene) -> None:
        told = await look(scene)
        assert (told.schedules.by_state, told.executions.by_status, told.executions.held) == ({}, {}, 0)
        assert (told.ended_badly.count, told.next_fires, told.recent_failures) == (0, [], [])
        assert (told.overdue.count, told.overdue.oldest) == (0, None)

    async def test_leaders_are_told_with_the_age_of_their_heartbeat(self, scene: Scene) -> None:
        await scene.store.leases.reshard(2)
        lease = (await scene.store.leases.take(Shard(0, 2), "one", STALE)).lease
        assert lease is not None
        overviews = Overviews(scene.store.database)
        led, free = await overviews.leaders(ttl_s=60)
        assert (led.shard, led.instance_id, led.epoch, led.is_fresh) == (0, "one", lease.epoch, True)
        assert 0 <= led.heartbeat_age_s < 60
        assert (free.shard, free.instance_id, free.is_fresh) == (1, None, False)
        assert not (await overviews.leaders(ttl_s=STALE))[0].is_fresh
        assert (await look(scene)).leaders[0].instance_id == "one"

    async def test_schedules_are_counted_by_state_each_host_for_itself(self, scene: Scene) -> None:
        other = await scene.add_host("other")
        await scene.add("a")
        await scene.add("b")
        await scene.pause(await scene.add("c"))
        await scene.add("d", active=False)
        await scene.delete(await scene.add("e"))
        await scene.add("theirs", host_id=other)
        told = (await look(scene)).schedules
        assert told.by_state == {
            ScheduleState.ACTIVE: 2,
            ScheduleState.PAUSED: 1,
            ScheduleState.INACTIVE: 1,
        }
        assert not told.is_capped
        assert (await look(scene, other)).schedules.by_state == {ScheduleState.ACTIVE: 1}

    async def test_counts_by_state_end_at_a_cap_and_say_so(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(overview, "MAX_SCHEDULES", 2)
        for name in "abc":
            await scene.add(name)
        told = (await look(scene)).schedules
        assert (told.by_state, told.is_capped) == ({ScheduleState.ACTIVE: 2}, True)

    async def test_open_executions_are_counted_by_status(self, scene: Scene) -> None:
        other = await scene.add_host("other")
        schedule, theirs = await scene.add(), await scene.add(host_id=other)
        now = await scene.now()
        ready: dict[str, Any] = {"ready_ts": now, "due_by_ts": now}
        amounts = {Status.PENDING: 3, Status.RETRYING: 2, Status.RUNNING: 4, Status.SUCCESS: 5}
        for status, amount in amounts.items():
            for owner in (schedule, theirs):
                amount += owner is theirs
                rows = [row_of(owner, now - n * MINUTE, status=status, **ready) for n in range(amount)]
                await write(scene, [{**row, "triggered_by": "api"} for row in rows])
        held = [row_of(schedule, now - n * MINUTE, status=Status.PENDING) for n in range(6)]
        await write(scene, held)
        told = (await look(scene)).executions
        assert told.by_status == {Status.PENDING: 3 + 6, Status.RETRYING: 2, Status.RUNNING: 4}
        assert (told.held, told.is_capped) == (6, False)
        assert (await look(scene, other)).executions.by_status == {
            Status.PENDING: 4,
            Status.RETRYING: 3,
            Status.RUNNING: 5,
        }

    async def test_counts_of_open_executions_end_at_a_cap_and_say_so(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(overview, "MAX_OPEN", 5)
        schedule, now = await scene.add(), await scene.now()
        await write(scene, [row_of(schedule, now - n * MINUTE, status=Status.RUNNING) for n in range(7)])
        told = (await look(scene)).executions
        assert (told.by_status, told.is_capped) == ({Status.RUNNING: 5}, True)

    async def test_what_ended_badly_in_the_last_day_is_counted(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        schedule, now = await scene.add(), await scene.now()
        theirs = await scene.add(host_id=await scene.add_host("other"))
        bad = [Status.FAILED, Status.FAILED, Status.TIMEOUT, Status.UNKNOWN]
        others = [Status.CANCELLED, Status.SKIPPED, Status.SUCCESS, Status.RETRYING]
        await write(
            scene,
            [
                *(row_of(schedule, now - n * HOUR, status=each) for n, each in enumerate([*bad, *others])),
                row_of(schedule, now - 25 * HOUR, status=Status.FAILED),
                row_of(theirs, now, status=Status.FAILED),
            ],
        )
        told = (await look(scene)).ended_badly
        assert (told.count, told.is_capped) == (4, False)
        monkeypatch.setattr(overview, "MAX_BAD", 3)
        told = (await look(scene)).ended_badly
        assert (told.count, told.is_capped) == (3, True)

    async def test_recent_failures_are_told_with_the_first_line_of_their_error(self, scene: Scene) -> None:
        schedule, now = await scene.add("nightly"), await scene.now()
        statuses = [Status.FAILED, Status.TIMEOUT, Status.UNKNOWN, Status.CANCELLED]
        rows = [
            row_of(
                schedule,
                now - n * MINUTE,
                status=statuses[n % 4],
                error=f"\nbroken {n}\nand more" if n else None,
                ended_ts=now,
            )
            for n in range(20)
        ]
        await write(scene, rows)
        told = (await look(scene)).recent_failures
        assert [each.execution_id for each in told] == [
            row["execution_id"] for row in rows if row["status"] != "cancelled"
        ][:10]
        assert [each.error for each in told][:3] == [None, "broken 1", "broken 2"]
        assert (told[0].schedule_name, told[0].status, told[0].ended_ts) == ("nightly", Status.FAILED, now)

    async def test_the_soonest_fires_are_told_whatever_their_priority(self, scene: Scene) -> None:
        priorities = ("low", "high", "medium")
        for n in range(12):
            trigger = {"kind": "interval", "minutes": 30 - n}
            await scene.add(f"s{n}", age_s=0, trigger=trigger, priority=priorities[n % 3])
        await scene.add("theirs", age_s=0, host_id=await scene.add_host("other"))
        told = (await look(scene)).next_fires
        assert [each.name for each in told] == [f"s{n}" for n in range(11, 1, -1)]
        assert [each.next_fire_ts for each in told] == sorted(each.next_fire_ts for each in told)

    async def test_what_should_have_fired_is_overdue_and_not_to_come(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await scene.add("late", age_s=90, priority="low")
        await scene.add("later", age_s=120, priority="high")
        await scene.add("just due", age_s=61)
        await scene.pause(await scene.add("paused", age_s=90))
        await scene.add("inactive", age_s=90, active=False)
        told = await look(scene)
        assert (told.overdue.count, told.overdue.is_capped) == (2, False)
        assert told.overdue.oldest is not None
        assert told.overdue.oldest.name == "later"
        assert [each.name for each in told.next_fires] == ["just due"]
        monkeypatch.setattr(overview, "MAX_OVERDUE", 1)
        told = await look(scene)
        assert (told.overdue.count, told.overdue.is_capped) == (1, True)

    async def test_a_pause_that_has_ended_leaves_a_schedule_as_overdue_as_any(self, scene: Scene) -> None:
        schedule = await scene.add("each", age_s=0)
        paused = await scene.pause(schedule, until_ts=await scene.now() + HOUR)
        assert (await look(scene)).overdue.count == 0
        ago = {"next_run_ts": await scene.now() - HOUR, "paused_until_ts": await scene.now() - HOUR}
        await scene.execute(
            update(schedule_t).where(schedule_t.c.schedule_id == paused.schedule_id).values(**ago)
        )
        assert (await look(scene)).overdue.count == 1


class TestManySchedules:
    databases = ("sqlite",)

    async def test_counts_of_many_schedules_are_kept_for_a_moment(
        self, scene: Scene, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(overview, "MANY_SCHEDULES", 2)
        overviews = Overviews(scene.store.database)

        async def counted() -> int:
            return sum((await overviews.of_host(DEFAULT_HOST_ID)).schedules.by_state.values())

        await scene.add("a")
        assert await counted() == 1
        await scene.add("b")
        assert await counted() == 2, "few are counted each time"
        await scene.add("c")
        assert await counted() == 2
        clock.advance(overview.REMEMBERED_FOR_S)
        assert await counted() == 3


# --- load over time -------------------------------------------------------------------------------------


def random_rows(
    schedules: Sequence[Schedule], now: datetime, count: int, reach: timedelta, seed: int
) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    rows: dict[Any, dict[str, Any]] = {}
    for _ in range(count):
        schedule = dice.choice(schedules)
        fire_ts = now - dice.random() * reach
        if dice.random() < 0.3:
            fire_ts -= (fire_ts - now) % MINUTE
        by = dice.choice([TriggeredBy.SCHEDULER] * 6 + list(TriggeredBy))
        late = dice.choice([0, 1, 30, 3000]) * dice.random()
        if by is TriggeredBy.BACKFILL or dice.random() < 0.05:
            late = dice.choice([3600, 86_399, 86_401, 40 * 86_400])
        made_ts = fire_ts + timedelta(seconds=late)
        has_started = dice.random() < 0.8
        started_ts = made_ts + timedelta(seconds=dice.random() * 3)
        rows[schedule.schedule_id, fire_ts, by] = row_of(
            schedule,
            fire_ts,
            made_ts=made_ts,
            status=dice.choice(list(Status)),
            by=by,
            attempt=dice.choice([1, 1, 1, 2]),
            ready_ts=made_ts,
            started_ts=started_ts if has_started else None,
            duration_seconds=dice.random() * 9 if has_started else None,
        )
    return list(rows.values())


async def three(scene: Scene) -> tuple[list[Schedule], Schedule]:
    other = await scene.add_host("other")
    return [await scene.add(name) for name in "abc"], await scene.add("theirs", host_id=other)


class TestTimeline:
    @pytest.mark.parametrize("limit", [7, 50, 2000])
    async def test_the_past_is_counted_as_if_by_hand(self, scene: Scene, limit: int) -> None:
        ours, theirs = await three(scene)
        now = await scene.now()
        rows = random_rows([*ours, theirs], now, 600, 3 * DAY, seed=limit)
        await write(scene, rows)
        bins = Bins.over(now - 2 * DAY, now - HOUR, limit=limit)
        told = await Timeline(scene.store.database).past(DEFAULT_HOST_ID, bins)

        counted = [
            row
            for row in rows
            if row["host_id"] == DEFAULT_HOST_ID
            and bins.from_ts <= row["fire_ts"] < bins.to_ts
            and row["created_ts"] - row["fire_ts"] <= DAY
        ]
        assert len(counted) > 100
        by_status: dict[str, list[int]] = {}
        for row in counted:
            by_status.setdefault(row["status"], [0] * bins.count)[bins.number_of(row["fire_ts"])] += 1
        assert {status.value: list(counts) for status, counts in told.by_status.items()} == by_status
        assert told.complete_from_ts == bins.from_ts

        amounts = Counter(row["schedule_id"] for row in counted)
        shown = [each.schedule_id for each in told.schedules]
        assert shown == sorted(amounts, key=lambda each: (-amounts[each], each))
        for each in told.schedules:
            own = [row for row in counted if row["schedule_id"] == each.schedule_id]
            numbers = Counter(bins.number_of(row["fire_ts"]) for row in own)
            assert each.counts == tuple(numbers[n] for n in range(bins.count))
            assert each.by_status == Counter(Status(row["status"]) for row in own)
            for status, counts in each.counts_by_status.items():
                within = Counter(bins.number_of(row["fire_ts"]) for row in own if row["status"] == status)
                assert counts == tuple(within[n] for n in range(bins.count))
            assert each.counts_by_status.keys() == each.by_status.keys()
        assert {each.name for each in told.schedules} == {"a", "b", "c"}

    async def test_nothing_is_shown_of_an_empty_past(self, scene: Scene) -> None:
        now = await scene.now()
        told = await Timeline(scene.store.database).past(DEFAULT_HOST_ID, Bins.over(now - DAY, now))
        assert (told.by_status, told.schedules) == ({}, [])

    async def test_the_finer_the_bins_the_fewer_schedules_are_shown(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(timeline, "MAX_CELLS", 100)
        ours, _ = await three(scene)
        now = await scene.now()
        rows = [
            row_of(each, now - n * MINUTE) for number, each in enumerate(ours) for n in range(1, 3 + number)
        ]
        await write(scene, rows)
        told = await Timeline(scene.store.database).past(DEFAULT_HOST_ID, Bins(now - 50 * MINUTE, MINUTE, 50))
        assert [each.name for each in told.schedules] == ["c", "b"]

    async def test_schedules_that_are_asked_for_follow_the_busiest(self, scene: Scene) -> None:
        [busy, _, idle], _ = await three(scene)
        now = await scene.now()
        await write(scene, [row_of(busy, now - MINUTE)])
        bins = Bins(now - HOUR, MINUTE, 60)
        asked = [idle.schedule_id, busy.schedule_id]
        told = await Timeline(scene.store.database).past(DEFAULT_HOST_ID, bins, including=asked)
        assert [(each.name, sum(each.counts)) for each in told.schedules] == [("a", 1), ("c", 0)]
        assert told.schedules[1].counts == (0,) * 60

    async def test_more_than_one_look_reads_is_told_from_the_end_on(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(timeline, "MAX_ROWS", 10)
        schedule, now = await scene.add(), await scene.now()
        await write(scene, [row_of(schedule, now - n * MINUTE) for n in range(1, 31)])
        bins = Bins(now - HOUR, MINUTE, 60)
        told = await Timeline(scene.store.database).past(DEFAULT_HOST_ID, bins)
        [counts] = told.by_status.values()
        assert counts == (0,) * 50 + (1,) * 10
        assert now - 11 * MINUTE < told.complete_from_ts <= now - 10 * MINUTE

    async def test_the_last_hour_is_told_by_the_minute(self, scene: Scene) -> None:
        ours, theirs = await three(scene)
        now = await scene.now()
        rows = random_rows([*ours, theirs], now, 500, 2 * HOUR, seed=1)
        await write(scene, rows)
        told = await Timeline(scene.store.database).last_hour(DEFAULT_HOST_ID)
        assert len(told.minutes) == 60
        assert told.minutes[-1].start_ts <= await scene.now() < told.minutes[-1].start_ts + 2 * MINUTE
        has_late = 0
        for minute in told.minutes:
            within = [
                row
                for row in rows
                if row["host_id"] == DEFAULT_HOST_ID
                and minute.start_ts <= row["fire_ts"] < minute.start_ts + MINUTE
                and row["created_ts"] - row["fire_ts"] <= DAY
            ]
            assert minute.by_status == Counter(Status(row["status"]) for row in within)
            late = [
                (row["started_ts"] - row["fire_ts"]).total_seconds()
                for row in within
                if row["started_ts"] and row["attempt"] == 1 and row["triggered_by"] != "backfill"
            ]
            has_late += len(late) > 1
            expected = (percentile(late, 50), percentile(late, 99)) if late else (None, None)
            assert (minute.late_p50_s, minute.late_p99_s) == pytest.approx(expected)
        assert has_late > 10

    async def test_what_is_to_come_is_what_firing_will_load(self, scene: Scene) -> None:
        await scene.add("hourly", age_s=0, trigger={"kind": "interval", "hours": 1}, priority="low")
        await scene.add("each", age_s=0, jitter_seconds=5, max_runs=3)
        await scene.add("far", age_s=0, trigger={"kind": "interval", "days": 9})
        await scene.pause(await scene.add("paused", age_s=0))
        await scene.add("theirs", age_s=0, host_id=await scene.add_host("other"))
        now = await scene.now()
        until = now + 2 * HOUR
        told = await Timeline(scene.store.database).upcoming(DEFAULT_HOST_ID, until)
        loaded = await scene.store.firing.load(WHOLE, until=until, after=None, limit=99)
        assert told == [due for due in loaded if due.host_id == DEFAULT_HOST_ID]
        assert len(told) == 2
        bins = Bins.over(now, now + HOUR + MINUTE, limit=70)
        load = count_per_bin(told, bins)
        assert sum(load.counts) == 3 + 1
        assert await Timeline(scene.store.database).upcoming(DEFAULT_HOST_ID, until, limit=1) == told[:1]


# --- statistics -----------------------------------------------------------------------------------------


def recent_of(rows: Iterable[dict[str, Any]]) -> list[RecentExecution]:
    """By hand: latest first."""
    ordered = sorted(rows, key=lambda row: (row["fire_ts"], row["execution_id"]), reverse=True)
    return [
        RecentExecution(row["execution_id"], Status(row["status"]), row["fire_ts"], row["duration_seconds"])
        for row in ordered
    ]


class TestStatistics:
    @pytest.mark.parametrize("limit", [40, 2000])
    async def test_figures_of_a_schedule_are_as_if_by_hand(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch, limit: int
    ) -> None:
        monkeypatch.setattr(statistics, "MAX_EXECUTIONS", limit)
        ours, _ = await three(scene)
        now = await scene.now()
        rows = random_rows(ours, now, 400, 100 * DAY, seed=limit)
        await write(scene, rows)
        schedule = ours[0]
        told = await Statistics(scene.store.database).of_schedule(schedule.schedule_id)

        own = [row for row in rows if row["schedule_id"] == schedule.schedule_id]
        near = [row for row in own if row["fire_ts"] >= now - statistics.REACH]
        latest = sorted(near, key=lambda row: (row["fire_ts"], row["execution_id"]), reverse=True)[:limit]
        assert told.by_status == Counter(Status(row["status"]) for row in latest)
        durations = [row["duration_seconds"] for row in latest if row["duration_seconds"] is not None]
        delays = [
            (row["started_ts"] - row["ready_ts"]).total_seconds() for row in latest if row["started_ts"]
        ]
        for spread, values in ((told.duration, durations), (told.start_delay, delays)):
            assert spread is not None
            expected = (percentile(values, 50), percentile(values, 95), max(values))
            assert (spread.p50_s, spread.p95_s, spread.max_s) == pytest.approx(expected)
        assert told.last == recent_of(latest)[:20]
        if limit == 40:
            assert told.since_ts == latest[-1]["fire_ts"]
        else:
            assert abs(told.since_ts - (now - statistics.REACH)) < MINUTE
        by_day: dict[Any, Counter[Status]] = {}
        for row in sorted(near, key=lambda row: row["fire_ts"]):
            by_day.setdefault(row["fire_ts"].date(), Counter())[Status(row["status"])] += 1
        assert [(each.day, each.by_status) for each in told.days] == list(by_day.items())

    async def test_days_that_are_not_counted_whole_are_told(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(statistics, "MAX_IN_DAYS", 5)
        schedule, now = await scene.add(), await scene.now()
        await write(scene, [row_of(schedule, now - n * HOUR) for n in range(9)])
        told = await Statistics(scene.store.database).of_schedule(schedule.schedule_id)
        assert told.days_since_ts == now - 4 * HOUR
        assert sum(sum(each.by_status.values()) for each in told.days) == 5

    async def test_a_schedule_that_never_ran_has_no_figures(self, scene: Scene) -> None:
        told = await Statistics(scene.store.database).of_schedule((await scene.add()).schedule_id)
        assert (told.by_status, told.days, told.last) == ({}, [], [])
        assert (told.duration, told.start_delay) == (None, None)

    async def test_schedules_of_other_hosts_have_none_either(self, scene: Scene) -> None:
        schedule = await scene.add(host_id=await scene.add_host("other"))
        of_schedule = Statistics(scene.store.database).of_schedule
        for schedule_id in (schedule.schedule_id, new_id()):
            with pytest.raises(NotFoundError):
                await of_schedule(schedule_id, host_id=DEFAULT_HOST_ID)

    @pytest.mark.parametrize("n", [1, 5, 20])
    async def test_the_latest_of_many_schedules_are_told_at_once(self, scene: Scene, n: int) -> None:
        ours, theirs = await three(scene)
        idle = await scene.add("idle")
        now = await scene.now()
        rows = random_rows([*ours, theirs], now, 200, 9 * DAY, seed=n)
        # Made by hand at the very same moment: nothing forbids it.
        rows += [row_of(ours[0], now, by=TriggeredBy.API) for _ in range(3)]
        plain = await scene.add("plain")
        rows += [row_of(plain, now - number * HOUR) for number in range(30)]
        await write(scene, rows)
        wanted = [each.schedule_id for each in (*ours, plain, idle)]
        told = await Statistics(scene.store.database).recent(wanted, n=n)
        assert told == {
            each.schedule_id: recent_of(row for row in rows if row["schedule_id"] == each.schedule_id)[:n]
            for each in (*ours, plain)
        }

    async def test_of_no_schedules_nothing_is_told(self, scene: Scene) -> None:
        assert await Statistics(scene.store.database).recent([]) == {}


# --- how they are read ----------------------------------------------------------------------------------

NUMBERS = {
    "postgresql": "SELECT n FROM generate_series(1, 20000) AS n",
    "sqlite": "WITH RECURSIVE each(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each WHERE n < 20000) "
    "SELECT n FROM each",
}
OF_FEW = re.compile("idx_execution_(lease|held)")
OWN = UUID("b0000000-0000-0000-0000-000000000007")


async def fill(scene: Scene) -> None:
    """20,000 executions of 200 schedules, a minute apart; one of a hundred failed, two are open."""
    database = scene.store.database
    name = database.dialect.name
    is_postgres = name == "postgresql"
    now = await scene.now()
    await scene.add()
    first_ms = int((now - 20_000 * MINUTE).timestamp() * 1000)
    made_ms = f"({first_ms} + n * CAST(60000 AS bigint))"
    if is_postgres:
        made = f"to_timestamp({made_ms} / 1000.0)"
        identity = f"CAST(lpad(to_hex({made_ms}), 12, '0') || '70008' || lpad(to_hex(n), 15, '0') AS uuid)"
        owner = "CAST('b' || lpad(to_hex(n % 200), 31, '0') AS uuid)"
        host = f"CAST('{DEFAULT_HOST_ID}' AS uuid)"
    else:
        made = f"{made_ms} * 1000"
        identity = f"printf('%012x', {made_ms}) || '70008' || printf('%015x', n)"
        owner = "'b' || printf('%031x', n % 200)"
        host = f"'{DEFAULT_HOST_ID.hex}'"
    status = (
        "CASE n % 100 WHEN 0 THEN 'failed' WHEN 1 THEN 'running' WHEN 2 THEN 'pending' ELSE 'success' END"
    )
    statement = f"""
        INSERT INTO execution_t (execution_id, schedule_id, host_id, aggregate_version, fire_ts, status,
            triggered_by, queue, priority, due_by_ts, created_ts)
        SELECT {identity}, {owner}, {host}, 1, {made}, {status},
            'scheduler', 'default', 'medium', {made}, {made}
        FROM ({NUMBERS[name]}) AS numbers
    """
    async with database.dialect.begin(database.engine(Pool.API)) as connection:
        await connection.exec_driver_sql(statement)
        owned = update(schedule_t).values(schedule_id=OWN)
        await connection.execute(owned)
    if is_postgres:
        # Rows that other tests deleted must not mislead the planner.
        async with database.engine(Pool.API).connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(text("VACUUM (FULL, ANALYZE) execution_t"))


class Reading:
    """What the statements that are issued read of `execution_t`."""

    def __init__(self, scene: Scene) -> None:
        self._database = scene.store.database
        self._issued: list[tuple[str, Any]] = []

    async def __aenter__(self) -> "Reading":
        self._engine = self._database.engine(Pool.API).sync_engine
        event.listen(self._engine, "before_cursor_execute", self._listen)
        return self

    async def __aexit__(self, *_: object) -> None:
        event.remove(self._engine, "before_cursor_execute", self._listen)

    def _listen(self, _conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "execution_t" in statement:
            self._issued.append((statement, parameters))

    async def scans(self) -> list[str]:
        """Reads of the whole table, or of an index that holds more than a few of its rows."""
        plans = [each async for each in self._plans()]
        return [each for each in plans if re.match("Seq Scan|SCAN", each) and not OF_FEW.search(each)]

    async def rows(self) -> int:
        """How many rows PostgreSQL reads of it, all together."""
        return sum([int(each.rpartition(" ")[2]) async for each in self._plans()])

    async def indexes(self) -> set[str]:
        found = [re.search(r"(?:INDEX|by) (\w+)", each) async for each in self._plans()]
        return {each[1] for each in found if each is not None}

    async def _plans(self) -> AsyncIterator[str]:
        assert self._issued
        is_postgres = self._database.dialect.name == "postgresql"
        command = "EXPLAIN (ANALYZE, FORMAT JSON)" if is_postgres else "EXPLAIN QUERY PLAN"
        for statement, parameters in self._issued:
            async with self._database.read(Pool.API) as connection:
                result = await connection.exec_driver_sql(f"{command} {statement}", parameters)
                rows = result.all()
            if not is_postgres:
                for row in rows:
                    if "execution_t" in row.detail:
                        yield row.detail
                continue
            document = rows[0][0]
            found = json.loads(document) if isinstance(document, str) else document
            for line in _reads(found[0]["Plan"]):
                yield line


def _reads(node: dict[str, Any]) -> Iterable[str]:
    if node.get("Relation Name") == "execution_t" or node["Node Type"] == "Bitmap Index Scan":
        rows = int(node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        yield f"{node['Node Type']} by {node.get('Index Name', 'nothing')} {rows}"
    for child in node.get("Plans", ()):
        yield from _reads(child)


class TestPlans:
    """However many executions there are, only those that matter are read."""

    async def test_nothing_reads_the_whole_table(self, scene: Scene) -> None:
        await fill(scene)
        database = scene.store.database
        now = await scene.now()
        bins = Bins.over(now - 2 * HOUR, now, limit=60)
        # Far under the 20,000 there are, and room for whichever index PostgreSQL's sample makes it choose.
        acts: dict[str, tuple[Callable[[], Awaitable[object]], int, str]] = {
            "overview": (
                lambda: Overviews(database).of_host(DEFAULT_HOST_ID),
                5_000,
                "idx_execution_not_well",
            ),
            "ledger": (
                lambda: ExecutionHistory(database).ledger(OWN, to_ts=now - DAY, n=20),
                30,
                "uq_execution_scheduled",
            ),
            "past": (lambda: Timeline(database).past(DEFAULT_HOST_ID, bins), 2_000, "execution_t"),
            "last hour": (lambda: Timeline(database).last_hour(DEFAULT_HOST_ID), 2_000, "execution_t"),
            "statistics": (lambda: Statistics(database).of_schedule(OWN), 1_000, "uq_execution_scheduled"),
            "recent": (lambda: Statistics(database).recent([OWN]), 200, "uq_execution_scheduled"),
        }
        for name, (act, limit, index) in acts.items():
            async with Reading(scene) as reading:
                await act()
            assert await reading.scans() == [], name
            assert any(index in each for each in await reading.indexes()), name
            if database.dialect.name == "postgresql":
                assert await reading.rows() <= limit, name
