"""What is admitted, and when a new definition first fires."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.planning.schedules import NOON, SCHEDULE_ID, at, created, spec_of

from foliot.model.errors import InvalidError, Problem
from foliot.planning.admit import admit, admit_new
from foliot.planning.change import Author, edit
from foliot.timing.rule_parts import MAX_COUNT, MAX_COUNT_WITH_SETPOS


def refused(**fields: Any) -> Problem:
    with pytest.raises(InvalidError) as told:
        created(**fields)
    [problem] = told.value.problems
    return problem


# --- intervals -----------------------------------------------------------------------------------------


def test_an_interval_without_a_start_first_fires_one_interval_after_its_creation() -> None:
    assert created().next_fire_ts == at(1)


def test_an_interval_with_a_start_to_come_first_fires_then() -> None:
    assert created(start_ts=at(10, 30)).next_fire_ts == at(10, 30)


def test_an_interval_whose_start_is_now_fires_now() -> None:
    assert created(start_ts=NOON).next_fire_ts == NOON


def test_an_interval_whose_start_is_past_keeps_to_its_grid_and_fires_after_now() -> None:
    assert created(start_ts=at(-3, -20)).next_fire_ts == at(0, 40)
    assert created(start_ts=at(-3)).next_fire_ts == at(1), "now itself is past: it may have fired before"


def test_a_calendar_interval_counts_from_its_start() -> None:
    trigger = {"kind": "interval", "months": 1}
    start = datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert created(trigger=trigger, start_ts=start).next_fire_ts == datetime(2026, 3, 31, 8, tzinfo=UTC)


# --- cron, rrule, once, delay --------------------------------------------------------------------------


def test_cron_first_fires_after_now() -> None:
    trigger = {"kind": "cron", "expression": "*/5 * * * *"}
    assert created(trigger=trigger).next_fire_ts == at(5)
    assert created(at(4), trigger=trigger).next_fire_ts == at(5)


def test_cron_with_a_start_first_fires_at_or_after_it() -> None:
    trigger = {"kind": "cron", "expression": "*/5 * * * *"}
    assert created(trigger=trigger, start_ts=at(15)).next_fire_ts == at(15)
    assert created(trigger=trigger, start_ts=at(16)).next_fire_ts == at(20)
    assert created(trigger=trigger, start_ts=at(-60)).next_fire_ts == at(5)


def test_a_rule_begins_with_its_start() -> None:
    trigger = {"kind": "rrule", "rule": "FREQ=DAILY"}
    assert created(trigger=trigger, start_ts=at(7)).next_fire_ts == at(7)


def test_a_rule_without_a_start_begins_with_its_creation() -> None:
    trigger = {"kind": "rrule", "rule": "FREQ=DAILY"}
    assert created(at(0, 30), trigger=trigger).next_fire_ts == at(0, 30) + timedelta(days=1)


def test_a_rule_whose_start_is_past_is_counted_from_there() -> None:
    trigger = {"kind": "rrule", "rule": "FREQ=DAILY;INTERVAL=2"}
    start = NOON - timedelta(days=3)
    assert created(trigger=trigger, start_ts=start).next_fire_ts == NOON + timedelta(days=1)


def test_once_fires_at_its_instant() -> None:
    assert created(trigger={"kind": "once", "at": at(9)}).next_fire_ts == at(9)


def test_once_in_the_past_fires_if_within_grace() -> None:
    assert created(trigger={"kind": "once", "at": at(-60)}).next_fire_ts == at(-60)
    late = created(trigger={"kind": "once", "at": at(-90)}, misfire={"grace_seconds": 5400})
    assert late.next_fire_ts == at(-90)


def test_once_beyond_its_grace_is_refused() -> None:
    problem = refused(trigger={"kind": "once", "at": at(-60, -1)})
    assert (problem.pointer, problem.code) == ("/trigger/at", "in_the_past")
    problem = refused(trigger={"kind": "once", "at": at(0, -1)}, misfire={"grace_seconds": 0})
    assert problem.code == "in_the_past"


def test_once_is_spread_by_jitter_as_every_other_trigger() -> None:
    schedule = created(trigger={"kind": "once", "at": at(9)}, jitter_seconds=60)
    assert schedule.next_fire_ts == at(9)
    assert schedule.next_run_ts is not None
    assert at(9) < schedule.next_run_ts < at(10)


def test_a_delay_first_fires_one_delay_after_its_creation_or_at_its_start() -> None:
    trigger = {"kind": "delay", "seconds": 30}
    assert created(trigger=trigger).next_fire_ts == at(0, 30)
    assert created(trigger=trigger, start_ts=at(5)).next_fire_ts == at(5)
    assert created(trigger=trigger, start_ts=at(-5)).next_fire_ts == at(0, 30)


# --- the end -------------------------------------------------------------------------------------------


def test_the_end_itself_still_fires() -> None:
    assert created(end_ts=at(1)).next_fire_ts == at(1)


@pytest.mark.parametrize(
    "trigger",
    [
        {"kind": "interval", "minutes": 1},
        {"kind": "cron", "expression": "* * * * *"},
        {"kind": "rrule", "rule": "FREQ=MINUTELY"},
        {"kind": "delay", "seconds": 60},
        {"kind": "once", "at": at(1)},
    ],
)
def test_a_definition_that_ends_before_its_first_time_is_refused(trigger: dict[str, Any]) -> None:
    problem = refused(trigger=trigger, end_ts=at(0, 59))
    assert (problem.pointer, problem.code) == ("/end_ts", "never_fires")


def test_a_rule_that_is_over_is_refused() -> None:
    problem = refused(
        trigger={"kind": "rrule", "rule": "FREQ=DAILY;COUNT=2"}, start_ts=NOON - timedelta(days=9)
    )
    assert problem.code == "never_fires"


def test_an_inactive_definition_need_not_fire_and_has_no_next_time() -> None:
    schedule = created(active=False, end_ts=at(-1))
    assert (schedule.state, schedule.next_fire_ts, schedule.next_run_ts) == ("inactive", None, None)


# --- meaning -------------------------------------------------------------------------------------------


def test_every_field_that_is_wrong_is_named_at_once() -> None:
    spec = spec_of(
        trigger={"kind": "cron", "expression": "* * * * *", "timezone": "Mars/Olympus"},
        window={"timezone": "Europe/Berln"},
        calendars=["holidays"],
    )
    with pytest.raises(InvalidError) as told:
        admit(
            spec,
            SCHEDULE_ID,
            NOON,
            check_target=lambda _spec: [Problem("/target/name", "not_found", "?")],
            calendars=frozenset(),
        )
    assert {problem.pointer for problem in told.value.problems} == {
        "/trigger/timezone",
        "/window/timezone",
        "/calendars/0",
        "/target/name",
    }


@pytest.mark.parametrize(
    "expression", ["0 0 31 2 *", "0 0 30 2 *", "nonsense", "61 * * * *", "* * * * * * *"]
)
def test_an_expression_that_is_wrong_or_never_fires_is_refused(expression: str) -> None:
    problem = refused(trigger={"kind": "cron", "expression": expression})
    assert problem.pointer == "/trigger/expression"


def test_a_definition_that_is_too_large_is_refused() -> None:
    target = {"kind": "function", "name": "work", "args": {"text": "x" * 300_000}}
    assert refused(target=target).code == "too_large"


def test_what_is_admitted_is_compiled() -> None:
    cadence = admit_new(spec_of(end_ts=at(5), max_runs=3), SCHEDULE_ID, NOON)
    assert (cadence.end_ts, cadence.max_runs, cadence.delay_s) == (at(5), 3, None)
    assert cadence.recurrence.after(NOON) == at(1)


# --- system functions ----------------------------------------------------------------------------------


def test_a_system_function_is_refused_by_name() -> None:
    problem = refused(target={"kind": "function", "name": "foliot.prune_history"})
    assert (problem.pointer, problem.code) == ("/target/name", "system_task")


def test_an_edit_to_a_system_function_is_refused() -> None:
    with pytest.raises(InvalidError, match=r"target\.name"):
        admit(spec_of(target={"kind": "function", "name": "foliot.backfill"}), SCHEDULE_ID, NOON)


def test_a_name_that_only_begins_alike_is_no_system_function() -> None:
    assert created(target={"kind": "function", "name": "foliot_sync"}).spec.target.kind == "function"


# --- rules with a COUNT --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY;COUNT=31536000",
        f"FREQ=DAILY;COUNT={MAX_COUNT + 1}",
        f"FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=1;COUNT={MAX_COUNT_WITH_SETPOS + 1}",
    ],
)
def test_a_rule_with_too_many_times_is_refused(rule: str) -> None:
    problem = refused(trigger={"kind": "rrule", "rule": rule})
    assert (problem.pointer, problem.code) == ("/trigger/rule", "count_too_large")
    assert "UNTIL" in problem.hint


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=MINUTELY;COUNT=525600",
        f"FREQ=SECONDLY;COUNT={MAX_COUNT}",
        f"FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=1;COUNT={MAX_COUNT_WITH_SETPOS}",
    ],
)
def test_a_rule_with_as_many_times_as_the_maximum_is_taken(rule: str) -> None:
    assert created(trigger={"kind": "rrule", "rule": rule}).next_fire_ts is not None


def test_a_schedule_saved_with_a_larger_count_can_still_be_edited() -> None:
    fields = {"trigger": {"kind": "rrule", "rule": "FREQ=SECONDLY;COUNT=31536000"}}
    old = replace(created(trigger={"kind": "rrule", "rule": "FREQ=SECONDLY"}), spec=spec_of(**fields))
    changed = edit(old, spec_of(**fields, description="new"), now=at(1), author=Author("test"))
    assert changed is not None
    assert changed.schedule.spec.description == "new"
