"""Which times of the past a backfill fires."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.planning.schedules import NOON, at, cadence_of, created

from foliot.model.errors import InvalidError
from foliot.model.instant import INSTANT
from foliot.model.schedule import Schedule
from foliot.planning.backfill import MAX_EXAMINED, MAX_TIMES, BackfillStep, admit_backfill, plan_backfill

DAY = timedelta(days=1)
HOURLY = {"kind": "cron", "expression": "0 * * * *"}


def count(schedule: Schedule, from_ts: datetime, to_ts: datetime, now: datetime = NOON) -> int:
    return admit_backfill(schedule, cadence_of(schedule), from_ts, to_ts, now)


def step(schedule: Schedule, from_ts: datetime, to_ts: datetime, limit: int = 1000) -> BackfillStep:
    return plan_backfill(schedule, cadence_of(schedule), from_ts, to_ts, limit=limit)


def refusal(schedule: Schedule, from_ts: datetime, to_ts: datetime, now: datetime = NOON) -> tuple[str, str]:
    with pytest.raises(InvalidError) as caught:
        count(schedule, from_ts, to_ts, now)
    [problem] = caught.value.problems
    return (problem.pointer, problem.code)


# --- admitting ---------------------------------------------------------------------------------------


def test_a_range_is_half_open_so_that_neighbours_share_no_time() -> None:
    schedule = created(trigger=HOURLY)
    assert count(schedule, NOON - DAY, NOON) == 24
    assert step(schedule, NOON - DAY, NOON).fire_times == tuple(
        NOON - DAY + timedelta(hours=number) for number in range(24)
    )


def test_a_cron_has_times_before_it_was_created() -> None:
    schedule = created(trigger=HOURLY)
    assert step(schedule, NOON - 365 * DAY, NOON, 1).fire_times == (NOON - 365 * DAY,)


def test_an_interval_has_none_before_it_was_defined_nor_at_that_moment() -> None:
    schedule = created()
    assert count(schedule, NOON - DAY, at(3), now=at(10)) == 2
    assert step(schedule, NOON - DAY, at(3)).fire_times == (at(1), at(2))


def test_a_start_itself_fires_and_nothing_before_it() -> None:
    schedule = created(start_ts=NOON - timedelta(minutes=30))
    assert step(schedule, NOON - DAY, NOON).fire_times[0] == NOON - timedelta(minutes=30)
    assert count(schedule, NOON - DAY, NOON) == 30


def test_nothing_fires_after_the_end_of_the_schedule() -> None:
    schedule = created(trigger=HOURLY, end_ts=NOON + DAY)
    later = NOON + 3 * DAY
    assert count(schedule, NOON, later, now=later) == 25
    assert step(schedule, NOON, later).fire_times[-1] == NOON + DAY


@pytest.mark.parametrize(
    ("from_ts", "to_ts", "told"),
    [
        (NOON, NOON, ("/to_ts", "out_of_range")),
        (NOON, NOON - DAY, ("/to_ts", "out_of_range")),
        (NOON - DAY, NOON + INSTANT, ("/to_ts", "in_the_future")),
        (datetime(1969, 12, 31, tzinfo=UTC), NOON, ("/from_ts", "out_of_range")),
        (NOON - timedelta(minutes=30), NOON - timedelta(minutes=20), ("/from_ts", "no_times")),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(
    from_ts: datetime, to_ts: datetime, told: tuple[str, str]
) -> None:
    assert refusal(created(trigger=HOURLY), from_ts, to_ts) == told


def test_a_range_with_too_many_times_is_refused() -> None:
    schedule = created(trigger={"kind": "interval", "seconds": 1}, start_ts=NOON - 30 * DAY)
    limit = timedelta(seconds=MAX_TIMES)
    assert count(schedule, NOON - limit, NOON) == MAX_TIMES
    assert refusal(schedule, NOON - limit - timedelta(seconds=1), NOON) == ("/from_ts", "too_many")


def test_a_delay_has_no_times_to_fire_again() -> None:
    schedule = created(trigger={"kind": "delay", "seconds": 30})
    assert refusal(schedule, NOON - DAY, NOON) == ("/trigger", "no_times")


def test_an_interval_without_times_says_what_it_counts_from() -> None:
    with pytest.raises(InvalidError, match="count from 2026-03-02T12:00:00"):
        count(created(), NOON - DAY, NOON)


# --- stepping ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 7, 24, 100])
def test_steps_of_any_size_fire_every_time_once_and_in_order(limit: int) -> None:
    schedule = created(trigger=HOURLY)
    position, fired = NOON - DAY, list[datetime]()
    for _ in range(100):
        planned = step(schedule, position, NOON, limit)
        assert len(planned.fire_times) <= limit
        fired += planned.fire_times
        position = planned.position_ts
        if planned.is_last:
            break
    assert fired == [NOON - DAY + timedelta(hours=number) for number in range(24)]
    assert position == NOON


def test_times_outside_the_window_are_passed_over_and_counted() -> None:
    window = {"hours_of_day": [9, 10], "timezone": "UTC"}
    planned = step(created(trigger=HOURLY, window=window), NOON - DAY, NOON)
    assert [each.hour for each in planned.fire_times] == [9, 10]
    assert (planned.passed_over, planned.is_last) == (22, True)


def test_a_narrow_window_does_not_make_a_step_long() -> None:
    schedule = created(
        trigger={"kind": "interval", "seconds": 1},
        start_ts=NOON - DAY,
        window={"hours_of_day": [3], "timezone": "UTC"},
    )
    planned = step(schedule, NOON - DAY, NOON)
    assert (planned.fire_times, planned.passed_over, planned.is_last) == ((), MAX_EXAMINED, False)
    assert planned.position_ts == NOON - DAY + timedelta(seconds=MAX_EXAMINED - 1) + INSTANT


def test_a_trigger_that_has_lost_its_times_ends_the_backfill() -> None:
    schedule = created(trigger={"kind": "delay", "seconds": 30})
    planned = step(schedule, NOON - DAY, NOON)
    assert (planned.fire_times, planned.position_ts, planned.is_last) == ((), NOON, True)


def test_being_late_is_no_reason_to_skip() -> None:
    schedule = created(trigger=HOURLY, misfire={"policy": "skip", "grace_seconds": 0})
    assert len(step(schedule, NOON - 10 * DAY, NOON).fire_times) == 240
