"""What will happen: the times to come of a stored schedule, and how many there are when."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.planning.schedules import ANN, EVERY_SECOND, NOON, SCHEDULE_ID, at, created, spec_of

from foliot.model.calendar import CalendarSpec
from foliot.model.errors import InvalidError
from foliot.model.execution import SkipReason
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.policy import Window
from foliot.model.schedule import Schedule
from foliot.planning.change import create, delete, due_of, edit, pause
from foliot.planning.definition import compile_definition
from foliot.planning.fire import Due, plan_firing
from foliot.planning.forecast import MAX_RANGE, Allowance, Bins, Planned, count_per_bin, forecast
from foliot.timing.calendar import Calendar, is_excluded
from foliot.timing.window import is_inside
from foliot.timing.zone import zone

BERLIN = "Europe/Berlin"
CALENDARS: dict[str, dict[str, Any]] = {
    "weekends": {"weekdays": [6, 7]},
    "closed": {
        "timezone": BERLIN,
        "days": [{"from": "2026-03-03", "to": "2026-03-05"}, "2026-03-29", "2026-10-25"],
    },
    "odd": {"timezone": "Pacific/Auckland", "days": ["2026-03-02", "2026-03-28", "2026-03-30"]},
}
BOOK = {
    (DEFAULT_HOST_ID, name): Calendar(CalendarSpec.parse({"name": name, **fields}))
    for name, fields in CALENDARS.items()
}


def days(count: float) -> timedelta:
    return timedelta(days=count)


def fires(schedule: Schedule, to_ts: datetime, from_ts: datetime = NOON, **options: Any) -> list[datetime]:
    found = forecast(schedule, from_ts, to_ts, calendars=BOOK, **options)
    assert not found.is_cut
    return [each.fire_ts for each in found.times if each.reason is None]


# --- against the scheduler ------------------------------------------------------------------------------


def decided(schedule: Schedule, to_ts: datetime) -> Iterator[Planned]:
    """What the scheduler decides if it is always on time: it acts when a time is due, and on that alone."""
    if schedule.next_run_ts is None:
        return
    due = due_of(schedule)
    cadence = compile_definition(due.definition, due.schedule_id)
    while due.fire_ts < to_ts:
        firing = plan_firing(due, cadence, due.run_ts, BOOK)
        for decision in firing.decisions:
            yield Planned(decision.fire_ts, decision.reason)
        if firing.next is None or firing.is_delay:
            return
        due = due._replace(
            fire_ts=firing.next.fire_ts, run_ts=firing.next.run_ts, run_count=due.run_count + firing.fires
        )


TRIGGERS = [
    {"kind": "interval", "minutes": 7},
    {"kind": "interval", "hours": 5},
    {"kind": "interval", "days": 1, "timezone": BERLIN},
    {"kind": "interval", "months": 1},
    {"kind": "cron", "expression": "*/10 * * * *"},
    {"kind": "cron", "expression": "30 2 * * *", "timezone": BERLIN},
    {"kind": "cron", "expression": "H H * * *"},
    {"kind": "cron", "expression": "15,45 1-3 * * *", "timezone": BERLIN},
    {"kind": "cron", "expression": "0 9 * * mon-fri", "timezone": "America/New_York"},
    {"kind": "rrule", "rule": "FREQ=DAILY;BYHOUR=9,17;COUNT=9", "timezone": BERLIN},
    {"kind": "once", "at": (NOON + timedelta(hours=30)).isoformat()},
    {"kind": "delay", "seconds": 3000},
]
BEGINNINGS = [
    NOON,
    datetime(2026, 3, 27, 22, 17, 3, tzinfo=UTC),
    datetime(2026, 10, 23, 21, 0, 0, 250_000, tzinfo=UTC),
]
windows = st.none() | st.fixed_dictionaries(
    {
        "days_of_week": st.sampled_from([[1, 2, 3, 4, 5], [6, 7], [1, 2, 3, 4, 5, 6, 7]]),
        "hours_of_day": st.sampled_from([[2], [0, 1, 3], [9, 17, 22], list(range(24))]),
        "timezone": st.sampled_from(["UTC", BERLIN, "Australia/Lord_Howe"]),
    }
)
schedules = st.fixed_dictionaries(
    {
        "trigger": st.sampled_from(TRIGGERS),
        "window": windows,
        "calendars": st.lists(st.sampled_from(["weekends", "closed", "odd"]), max_size=2, unique=True),
        "jitter_seconds": st.sampled_from([0, 0, 400]),
        "max_runs": st.none() | st.integers(1, 60),
    }
)
hours = st.floats(min_value=-30, max_value=24 * 5)
soon = st.floats(min_value=-10, max_value=40)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(
    beginning=st.sampled_from(BEGINNINGS),
    fields=schedules,
    start=st.none() | soon,
    end=st.none() | hours.map(lambda hour: hour + 60),
    pause_h=st.none() | soon,
    retrigger=st.none() | st.sampled_from(TRIGGERS),
    first_h=soon,
    reach_h=st.floats(min_value=0, max_value=24 * 5),
    run_count=st.integers(0, 70),
)
def test_the_scheduler_decides_what_was_forecast_and_nothing_else(
    beginning: datetime,
    fields: dict[str, Any],
    start: float | None,
    end: float | None,
    pause_h: float | None,
    retrigger: dict[str, Any] | None,
    first_h: float,
    reach_h: float,
    run_count: int,
) -> None:
    def when(hour: float | None) -> datetime | None:
        return None if hour is None else beginning + timedelta(hours=hour)

    try:
        schedule = created(beginning, **fields, start_ts=when(start), end_ts=when(end))
        if fields["max_runs"] is not None:
            schedule = replace(schedule, run_count=min(run_count, fields["max_runs"] - 1))
        if retrigger is not None:
            spec = schedule.spec.model_copy(update={"trigger": spec_of(trigger=retrigger).trigger})
            # Half a minute after the first time: it is due, and kept whatever the new trigger says.
            now = (schedule.next_fire_ts or beginning) + timedelta(seconds=30)
            changed = edit(schedule, spec, now=now, author=ANN)
            schedule = schedule if changed is None else changed.schedule
    except InvalidError:
        return
    until = when(pause_h)
    if until is not None and until > beginning:
        changed = pause(schedule, now=beginning, author=ANN, until_ts=until)
        assert changed is not None
        schedule = changed.schedule
    from_ts = beginning + timedelta(hours=first_h)
    to_ts = from_ts + timedelta(hours=reach_h)
    expected = [each for each in decided(schedule, to_ts) if each.fire_ts >= from_ts]
    assert list(forecast(schedule, from_ts, to_ts, limit=10_000, calendars=BOOK).times) == expected

    if to_ts > from_ts:
        bins = Bins.over(max(from_ts, NOON), max(to_ts, NOON + timedelta(seconds=1)), limit=50)
        expected = [each for each in decided(schedule, bins.to_ts) if each.fire_ts >= bins.from_ts]
        counts = [0] * bins.count
        for each in expected:
            counts[bins.number_of(each.fire_ts)] += each.reason is None
        dues = [] if schedule.next_run_ts is None else [due_of(schedule)]
        assert list(count_per_bin(dues, bins, calendars=BOOK).counts) == counts


# --- one schedule ---------------------------------------------------------------------------------------


def test_times_are_nominal_whatever_the_jitter() -> None:
    schedule = created(jitter_seconds=50)
    assert schedule.next_run_ts != schedule.next_fire_ts
    assert fires(schedule, at(3)) == [at(1), at(2)]


def test_the_range_holds_its_start_and_not_its_end() -> None:
    assert fires(created(), at(4), at(2)) == [at(2), at(3)]


def test_a_time_that_window_or_calendar_forbids_says_so() -> None:
    trigger = {"kind": "cron", "expression": "0 */12 * * *"}
    window = {"hours_of_day": [12]}
    schedule = created(trigger=trigger, window=window, calendars=["closed"])
    found = forecast(schedule, NOON, NOON + days(1.5), calendars=BOOK)
    assert found.times == (
        Planned(NOON + days(0.5), SkipReason.WINDOW),
        Planned(NOON + days(1), SkipReason.CALENDAR),
    )


def test_a_schedule_that_is_not_going_to_fire_has_no_times() -> None:
    schedule = created()
    paused = pause(schedule, now=NOON, author=ANN)
    inactive = edit(schedule, spec_of(active=False), now=NOON, author=ANN)
    deleted = delete(schedule, now=NOON, author=ANN)
    for change in (paused, inactive, deleted):
        assert change is not None
        assert forecast(change.schedule, NOON, at(60)).times == ()


def test_a_pause_with_an_end_delays_the_first_time_to_it() -> None:
    change = pause(created(), now=NOON, author=ANN, until_ts=at(5))
    assert change is not None
    assert fires(change.schedule, at(7)) == [at(5), at(6)]


def test_the_end_is_the_last_time() -> None:
    assert fires(created(end_ts=at(2)), at(60)) == [at(1), at(2)]


def test_runs_that_are_left_are_counted_from_the_next_time_on() -> None:
    schedule = replace(created(max_runs=10), run_count=5)
    assert fires(schedule, at(60)) == [at(1), at(2), at(3), at(4), at(5)]
    assert fires(schedule, at(60), at(4)) == [at(4), at(5)]
    assert fires(schedule, at(90), at(60)) == []


def test_what_is_skipped_does_not_count_as_a_run() -> None:
    schedule = created(
        trigger={"kind": "cron", "expression": "0 * * * *"}, window={"hours_of_day": [13, 20]}, max_runs=3
    )
    assert fires(schedule, NOON + days(30)) == [at(60), at(8 * 60), at(25 * 60)]


def test_of_a_delay_only_the_next_time_is_known() -> None:
    schedule = created(trigger={"kind": "delay", "seconds": 60})
    assert fires(schedule, at(60)) == [at(1)]


def test_a_forecast_is_cut_at_the_most_and_says_so() -> None:
    found = forecast(created(), NOON, at(60), limit=2)
    assert [each.fire_ts for each in found.times] == [at(1), at(2)]
    assert found.is_cut
    assert not forecast(created(), NOON, at(3), limit=2).is_cut


@pytest.mark.parametrize(
    "fields", [{"calendars": ["gone"]}, {"trigger": {"kind": "cron", "expression": "H * * * *"}}]
)
def test_a_schedule_that_can_not_be_planned_will_be_parked_at_its_next_time(
    fields: dict[str, Any],
) -> None:
    schedule = created(**fields)
    if "trigger" in fields:
        document = {"kind": "cron", "expression": "61 * * * *", "timezone": "UTC"}
        broken = schedule.spec.trigger.model_copy(update=document)
        schedule = replace(schedule, spec=schedule.spec.model_copy(update={"trigger": broken}))
    assert schedule.next_fire_ts is not None
    found = forecast(schedule, NOON, at(600), calendars=BOOK)
    assert found.times == (Planned(schedule.next_fire_ts, SkipReason.ERROR),)
    assert forecast(schedule, at(600), at(900), calendars=BOOK).times == ()


def test_a_range_of_no_length_or_before_all_times_is_empty() -> None:
    first = datetime.min.replace(tzinfo=UTC)
    for from_ts, to_ts in ((at(5), at(5)), (at(5), at(1)), (first, first), (first, NOON)):
        assert forecast(created(), from_ts, to_ts).times == ()


def test_a_far_range_of_every_second_is_reached_at_once() -> None:
    schedule = created(trigger=EVERY_SECOND, max_runs=900_000_000, window={"hours_of_day": [3]})
    began = time.process_time()
    from_ts = NOON + days(2000) + timedelta(hours=15)
    found = forecast(schedule, from_ts, from_ts + days(1), limit=3)
    assert [each.fire_ts for each in found.times] == [from_ts + timedelta(seconds=n) for n in range(3)]
    assert time.process_time() - began < 0.5


# --- when it may fire -----------------------------------------------------------------------------------

ALLOWANCES = [
    Allowance(Window(hours_of_day=(2, 3), timezone=BERLIN)),
    Allowance(Window(days_of_week=(7,), hours_of_day=(1, 2), timezone="Australia/Lord_Howe")),
    Allowance(None, (BOOK[DEFAULT_HOST_ID, "odd"],)),
    Allowance(None, (BOOK[DEFAULT_HOST_ID, "closed"],)),
    Allowance(Window(timezone="America/Santiago"), tuple(BOOK.values()), zone("America/Santiago")),
    Allowance(
        Window(hours_of_day=(0, 23), timezone="America/Santiago"), (BOOK[DEFAULT_HOST_ID, "weekends"],)
    ),
]


@pytest.mark.parametrize("allowance", ALLOWANCES)
@pytest.mark.parametrize("month", [3, 4, 9, 10])
def test_stretches_hold_exactly_the_moments_that_are_allowed(allowance: Allowance, month: int) -> None:
    """Looked up quarter by quarter of an hour, through the clock changes of spring and autumn."""
    first, end = datetime(2026, month, 1, tzinfo=UTC), datetime(2026, month + 1, 10, tzinfo=UTC)
    inside: set[datetime] = set()
    step = timedelta(minutes=15)
    stretch = allowance.stretch_from(first, end)
    while stretch is not None:
        assert stretch.start < stretch.end <= end
        moment = first + -((first - stretch.start) // step) * step
        while moment < stretch.end:
            inside.add(moment)
            moment += step
        stretch = allowance.stretch_from(stretch.end, end)
    count = (end - first) // step
    by_hand = {moment for n in range(count) if _is_allowed(allowance, moment := first + n * step)}
    assert inside == by_hand


def _is_allowed(allowance: Allowance, moment: datetime) -> bool:
    is_open = allowance.window is None or is_inside(allowance.window, moment)
    return is_open and not is_excluded(allowance.calendars, moment, allowance.tz)


def test_a_window_that_never_opens_again_is_given_up() -> None:
    always = Calendar(
        CalendarSpec.parse({"name": "always", "days": [{"from": "1970-01-01", "to": "9999-12-31"}]})
    )
    assert Allowance(None, (always,)).stretch_from(NOON, datetime(9999, 1, 1, tzinfo=UTC)) is None


# --- many schedules -------------------------------------------------------------------------------------

HOUR_OF_MINUTES = Bins.over(NOON, at(60), limit=60)


def many(count: int, **fields: Any) -> list[Due]:
    found = []
    for number in range(count):
        schedule_id = UUID(int=SCHEDULE_ID.int + number)
        change = create(
            spec_of(**fields), host_id=DEFAULT_HOST_ID, now=NOON, author=ANN, schedule_id=schedule_id
        )
        found.append(due_of(change.schedule))
    return found


def test_times_are_counted_into_the_bins_they_lie_in() -> None:
    quarters = many(1, trigger={"kind": "cron", "expression": "*/15 * * * *"})
    load = count_per_bin(quarters, HOUR_OF_MINUTES)
    assert [number for number, count in enumerate(load.counts) if count] == [15, 30, 45]
    assert load.fires == {SCHEDULE_ID: 3}
    assert load.by_schedule == {SCHEDULE_ID: {15: 1, 30: 1, 45: 1}}


def test_schedules_with_the_same_times_are_counted_once() -> None:
    """However many they are and whatever else differs; the work allowed is enough for one of them."""
    trigger = {"kind": "cron", "expression": "* * * * * *"}
    dues = [
        *many(50, trigger=trigger),
        *many(50, trigger=trigger, retry={"max_attempts": 9}, timeout_seconds=9),
    ]
    load = count_per_bin(dues, HOUR_OF_MINUTES, max_work=70)
    assert load.left_out == 0
    assert load.counts == (100 * 59, *[100 * 60] * 59)


def test_what_would_take_too_long_is_left_out_and_told() -> None:
    dues = [
        *many(1, trigger={"kind": "interval", "seconds": 2}),
        *many(3, trigger={"kind": "cron", "expression": "* * * * *"}),
    ]
    load = count_per_bin(dues, HOUR_OF_MINUTES, max_work=70)
    assert load.left_out == 1
    assert load.counts == (0, *[3] * 59)


def test_a_schedule_that_can_not_be_planned_fires_nothing() -> None:
    load = count_per_bin(many(1, calendars=["gone"]), HOUR_OF_MINUTES)
    assert (sum(load.counts), load.fires, load.left_out) == (0, {SCHEDULE_ID: 0}, 0)


def test_a_month_of_seconds_is_counted_in_no_time() -> None:
    bins = Bins.over(NOON, NOON + MAX_RANGE, limit=2000)
    dues = many(
        1,
        trigger={"kind": "cron", "expression": "* * * * * *", "timezone": BERLIN},
        window={"hours_of_day": [9, 13]},
    )
    began = time.process_time()
    load = count_per_bin(dues, bins)
    assert sum(load.counts) == 31 * 2 * 3600
    assert time.process_time() - began < 1


# --- bins ------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**9), st.integers(1, MAX_RANGE // timedelta(microseconds=1)), st.integers(1, 2000))
def test_bins_hold_the_range_and_are_no_more_than_asked_for(offset: int, length: int, limit: int) -> None:
    from_ts = NOON + timedelta(microseconds=offset)
    to_ts = from_ts + timedelta(microseconds=length)
    bins = Bins.over(from_ts, to_ts, limit=limit)
    assert 1 <= bins.count <= limit
    assert bins.from_ts <= from_ts < bins.start_of(1)
    assert bins.start_of(bins.count - 1) < to_ts <= bins.to_ts
    assert bins.number_of(to_ts - timedelta(microseconds=1)) == bins.count - 1


def test_bins_are_round() -> None:
    bins = Bins.over(at(0.5), at(60), limit=60)
    assert (bins.from_ts, bins.width, bins.count) == (NOON, timedelta(minutes=1), 60)


@pytest.mark.parametrize(
    ("from_ts", "to_ts", "limit", "pointer"),
    [
        (at(1), at(1), 10, "/to"),
        (at(1), at(0), 10, "/to"),
        (NOON, NOON + days(31.1), 10, "/to"),
        (NOON, at(60), 0, "/bins"),
        (NOON, at(60), 2001, "/bins"),
        (datetime.min.replace(tzinfo=UTC), NOON, 10, "/from"),
        (NOON, datetime.max.replace(tzinfo=UTC), 10, "/from"),
    ],
)
def test_ranges_that_can_not_be_binned_are_refused(
    from_ts: datetime, to_ts: datetime, limit: int, pointer: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        Bins.over(from_ts, to_ts, limit=limit)
    assert [problem.pointer for problem in caught.value.problems] == [pointer]
