"""Calendars in planning: what is admitted, and what becomes of times on excluded days."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.planning.schedules import ANN, NOON, at, briefs, cadence_of, created, spec_of

from foliot.model.calendar import CalendarSpec
from foliot.model.errors import InvalidError, Problem
from foliot.model.execution import SkipReason
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.schedule import Schedule
from foliot.planning.change import create, due_of, edit
from foliot.planning.definition import MissingCalendarError
from foliot.planning.fire import Firing, plan_firing
from foliot.timing.calendar import Calendar, CalendarBook, compile_calendar

CALENDAR, WINDOW, MISFIRE = SkipReason.CALENDAR, SkipReason.WINDOW, SkipReason.MISFIRE
HOURLY = {"kind": "cron", "expression": "0 * * * *"}
LONG = {"grace_seconds": 30 * 86400}


def calendar(name: str = "holidays", **fields: Any) -> Calendar:
    return compile_calendar(CalendarSpec.parse({"name": name, **fields}))


def book(*calendars: Calendar) -> CalendarBook:
    return {(DEFAULT_HOST_ID, each.spec.name): each for each in calendars}


TODAY = book(calendar(days=["2026-03-02"]))
TOMORROW = book(calendar(days=["2026-03-03"]))


def named(now: datetime = NOON, **fields: Any) -> Schedule:
    return created(now, **{"calendars": ["holidays"], **fields})


def plan(schedule: Schedule, now: datetime, calendars: CalendarBook) -> Firing:
    return plan_firing(due_of(schedule), cadence_of(schedule), now, calendars)


def on(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


# --- firing --------------------------------------------------------------------------------------------


def test_a_time_on_an_excluded_day_is_skipped_and_the_next_is_the_next() -> None:
    firing = plan(named(), at(1), TODAY)
    assert briefs(firing) == [(at(1), CALENDAR, 0, None)]
    assert firing.next == (at(2), at(2))
    assert firing.fires == 0


def test_a_time_on_another_day_fires() -> None:
    assert briefs(plan(named(), at(1), TOMORROW)) == [(at(1), None, 0, None)]


def test_a_schedule_that_names_no_calendar_is_not_concerned() -> None:
    assert briefs(plan(created(), at(1), TODAY)) == [(at(1), None, 0, None)]


def test_one_of_several_calendars_is_enough() -> None:
    both = book(calendar("holidays", days=["2026-03-03"]), calendar("closed", weekdays=[1]))
    assert briefs(plan(named(calendars=["holidays", "closed"]), at(1), both))[0][1] is CALENDAR
    assert briefs(plan(named(), at(1), both))[0][1] is None


@pytest.mark.parametrize(
    ("own", "trigger", "is_excluded"),
    [
        (None, "UTC", False),
        (None, "Pacific/Auckland", True),
        ("Pacific/Auckland", "UTC", True),
        ("UTC", "Pacific/Auckland", False),
    ],
)
def test_the_day_is_that_of_the_calendars_zone_else_of_the_triggers(
    own: str | None, trigger: str, is_excluded: bool
) -> None:
    calendars = book(calendar(days=["2026-03-03"], timezone=own))  # noon in UTC is 01:00 of the 3rd there
    schedule = named(trigger={"kind": "interval", "minutes": 1, "timezone": trigger})
    assert briefs(plan(schedule, at(1), calendars))[0][1] is (CALENDAR if is_excluded else None)


@pytest.mark.parametrize("trigger", [{"kind": "once", "at": at(1)}, {"kind": "delay", "seconds": 60}])
def test_without_any_zone_the_day_is_that_of_utc(trigger: dict[str, Any]) -> None:
    assert briefs(plan(named(trigger=trigger), at(1), TODAY))[0][1] is CALENDAR
    assert briefs(plan(named(trigger=trigger), at(1), TOMORROW))[0][1] is None


def test_a_delay_on_an_excluded_day_is_counted_again_from_now() -> None:
    firing = plan(named(trigger={"kind": "delay", "seconds": 60}), at(1, 5), TODAY)
    assert firing.next == (at(2, 5), at(2, 5))
    assert not firing.is_completed


def test_the_calendar_is_asked_of_the_nominal_time() -> None:
    schedule = named(on(2, 23, 58), trigger={"kind": "interval", "minutes": 1}, jitter_seconds=59)
    assert schedule.next_fire_ts == on(2, 23, 59)
    assert briefs(plan(schedule, on(2, 23, 59) + timedelta(seconds=59.9), TODAY))[0][1] is CALENDAR


def test_the_window_comes_before_the_calendar_and_both_before_lateness() -> None:
    late = at(61)
    strict: dict[str, Any] = {"misfire": {"grace_seconds": 0}, "trigger": {"kind": "once", "at": at(1)}}
    assert briefs(plan(named(window={"hours_of_day": [3]}, **strict), late, TODAY))[0][1] is WINDOW
    assert briefs(plan(named(**strict), late, TODAY))[0][1] is CALENDAR
    assert briefs(plan(named(**strict), late, TOMORROW))[0][1] is MISFIRE


# --- several at once -----------------------------------------------------------------------------------


def test_fire_once_falls_back_to_the_latest_on_a_day_that_is_not_excluded() -> None:
    firing = plan(named(trigger=HOURLY, misfire=LONG), on(3, 2, 30), TOMORROW)
    assert briefs(firing) == [(on(2, 23), None, 10, on(2, 13)), (on(3, 2), CALENDAR, 2, on(3, 0))]
    assert firing.next == (on(3, 3), on(3, 3))


def test_fire_once_with_all_on_excluded_days_is_one_row() -> None:
    firing = plan(named(trigger=HOURLY, misfire=LONG), on(2, 20, 30), TODAY)
    assert briefs(firing) == [(on(2, 20), CALENDAR, 7, on(2, 13))]


def test_fire_once_finds_the_latest_allowed_before_window_and_calendar_in_turn() -> None:
    weekdays = {"days_of_week": [1, 2, 3, 4, 5]}
    friday_and_monday = book(calendar(days=["2026-03-06", "2026-03-09"]))
    schedule = named(trigger=HOURLY, misfire=LONG, window=weekdays)
    assert briefs(plan(schedule, on(9, 5, 30), friday_and_monday)) == [
        (on(5, 23), None, 82, on(2, 13)),
        (on(9, 5), CALENDAR, 77, on(6, 0)),
    ]
    assert briefs(plan(schedule, on(8, 5, 30), friday_and_monday)) == [
        (on(5, 23), None, 82, on(2, 13)),
        (on(8, 5), WINDOW, 53, on(6, 0)),
    ]


def test_a_long_outage_by_the_second_looks_past_excluded_days_however_many_times_they_hold() -> None:
    calendars = book(calendar(days=[{"from": "2026-03-03", "to": "2026-03-20"}]))
    schedule = named(trigger={"kind": "interval", "seconds": 1}, misfire=LONG)
    first, second = briefs(plan(schedule, on(20, 12), calendars))
    midnight = on(3)
    assert first[:3] == (midnight - timedelta(seconds=1), None, 12 * 3600 - 2)
    assert second == (on(20, 12), CALENDAR, int((on(20, 12) - midnight).total_seconds()), midnight)


def test_fire_all_skips_each_time_on_an_excluded_day_by_itself() -> None:
    schedule = named(on(2, 21), trigger=HOURLY, misfire={**LONG, "policy": "fire_all"})
    assert [row[:2] for row in briefs(plan(schedule, on(3, 1, 30), TOMORROW))] == [
        (on(2, 22), None),
        (on(2, 23), None),
        (on(3, 0), CALENDAR),
        (on(3, 1), CALENDAR),
    ]


def test_excluded_times_do_not_count_as_runs() -> None:
    firing = plan(named(max_runs=1), at(1), TODAY)
    assert (firing.fires, firing.is_completed, firing.next) == (0, False, (at(2), at(2)))


# --- calendars that are not there ----------------------------------------------------------------------


@pytest.mark.parametrize("calendars", [{}, {(new_id(), "holidays"): calendar(weekdays=[7])}])
def test_a_calendar_that_the_host_does_not_have_can_not_be_planned_with(calendars: CalendarBook) -> None:
    with pytest.raises(MissingCalendarError, match=r'calendars\.0: there is no calendar named "holidays"'):
        plan(named(), at(1), calendars)


# --- admitting -----------------------------------------------------------------------------------------


def refused(spec_calendars: list[str], known: frozenset[str]) -> list[Problem]:
    spec = spec_of(calendars=spec_calendars)
    with pytest.raises(InvalidError) as told:
        create(spec, host_id=DEFAULT_HOST_ID, now=NOON, author=ANN, calendars=known)
    return list(told.value.problems)


def test_a_name_that_is_not_known_is_refused_with_the_nearest() -> None:
    [problem] = refused(["holidays", "Closd"], frozenset({"holidays", "closed"}))
    assert (problem.pointer, problem.code, problem.hint) == (
        "/calendars/1",
        "not_found",
        'did you mean "closed"?',
    )


def test_without_any_calendar_the_hint_is_to_make_one() -> None:
    [problem] = refused(["holidays"], frozenset())
    assert problem.hint == "make the calendar first, or leave it out"


def test_known_names_are_admitted_and_unknown_ones_where_nobody_can_tell() -> None:
    spec = spec_of(calendars=["holidays"])
    for known in (frozenset({"holidays"}), None):
        change = create(spec, host_id=DEFAULT_HOST_ID, now=NOON, author=ANN, calendars=known)
        assert change.schedule.spec.calendars == ("holidays",)


def test_an_edit_is_asked_the_same() -> None:
    spec = spec_of(calendars=["holidays"])
    with pytest.raises(InvalidError, match="holidays"):
        edit(created(), spec, now=at(1), author=ANN, calendars=frozenset())
    change = edit(created(), spec, now=at(1), author=ANN, calendars=frozenset({"holidays"}))
    assert change is not None


def test_naming_a_calendar_does_not_move_the_cadence() -> None:
    schedule = created()
    change = edit(schedule, spec_of(calendars=["holidays"]), now=at(0, 30), author=ANN)
    assert change is not None
    assert change.schedule.next_fire_ts == schedule.next_fire_ts
