"""A definition as users write it: what may be left out, what is refused, and how that is told."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.model.errors import InvalidError, Problem
from foliot.model.policy import Delivery, MisfirePolicy, OverlapPolicy, Priority
from foliot.model.schedule import ScheduleSpec

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINIMAL: dict[str, Any] = {
    "name": "nightly",
    "trigger": {"kind": "cron", "expression": "0 2 * * *"},
    "target": {"kind": "function", "name": "work"},
}


def problems(**fields: Any) -> list[Problem]:
    with pytest.raises(InvalidError) as told:
        ScheduleSpec.parse(MINIMAL | fields)
    return list(told.value.problems)


def test_only_name_trigger_and_target_are_required_and_the_rest_has_the_documented_defaults() -> None:
    spec = ScheduleSpec.parse(MINIMAL)
    assert (spec.active, spec.priority, spec.queue, spec.timeout_seconds) == (
        True,
        Priority.MEDIUM,
        "default",
        300,
    )
    assert (spec.misfire.policy, spec.misfire.grace_seconds, spec.misfire.max_catchup) == (
        MisfirePolicy.FIRE_ONCE,
        3600,
        100,
    )
    assert (spec.overlap.policy, spec.overlap.max_instances) == (OverlapPolicy.SKIP, 1)
    retry = spec.retry
    assert (retry.max_attempts, retry.initial_delay_seconds, retry.multiplier, retry.max_delay_seconds) == (
        3,
        1,
        2,
        30,
    )
    assert (spec.delivery, spec.dst.gap, spec.dst.repeat) == (Delivery.AT_LEAST_ONCE, "shift", "first")
    assert (spec.window, spec.calendars, spec.jitter_seconds) == (None, (), 0)


@pytest.mark.parametrize("name", MINIMAL)
def test_what_is_required_is_named_when_it_is_missing(name: str) -> None:
    with pytest.raises(InvalidError) as told:
        ScheduleSpec.parse({key: value for key, value in MINIMAL.items() if key != name})
    assert [problem.pointer for problem in told.value.problems] == [f"/{name}"]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"host_id": "x"}, "/host_id"),
        ({"epoch": 1}, "/epoch"),
        ({"name": ""}, "/name"),
        ({"name": " padded "}, "/name"),
        ({"name": "line\nbreak"}, "/name"),
        ({"name": "x" * 127}, "/name"),
        ({"description": "nul\0"}, "/description"),
        ({"queue": "with space"}, "/queue"),
        ({"priority": "urgent"}, "/priority"),
        ({"start_ts": "2026-01-01T00:00:00"}, "/start_ts"),
        ({"max_runs": 0}, "/max_runs"),
        ({"timeout_seconds": 0}, "/timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "/timeout_seconds"),
        ({"jitter_seconds": -1}, "/jitter_seconds"),
        ({"misfire": {"policy": "maybe"}}, "/misfire/policy"),
        ({"misfire": {"grace_seconds": -1}}, "/misfire/grace_seconds"),
        ({"overlap": {"max_instances": 0}}, "/overlap/max_instances"),
        ({"retry": {"max_attempts": 0}}, "/retry/max_attempts"),
        ({"retry": {"initial_delay_seconds": 9, "max_delay_seconds": 8}}, "/retry"),
        ({"window": {"days_of_week": []}}, "/window/days_of_week"),
        ({"window": {"days_of_week": [8]}}, "/window/days_of_week/0"),
        ({"window": {"hours_of_day": [24]}}, "/window/hours_of_day/0"),
        ({"trigger": {"kind": "cron", "expression": 5}}, "/trigger/expression"),
        ({"trigger": {"kind": "cron", "expression": "* * * * *", "more": 1}}, "/trigger/more"),
        ({"target": {"kind": "function", "name": "../etc"}}, "/target/name"),
        ({"target": {"kind": "http", "url": "ftp://example"}}, "/target/url"),
        ({"target": {"kind": "http", "url": "https://user:secret@example"}}, "/target/url"),
        (
            {"target": {"kind": "http", "url": "https://example", "headers": {"A": "x\r\ny"}}},
            "/target/headers",
        ),
        ({"target": {"kind": "http", "url": "https://example", "headers": {"A b": "x"}}}, "/target/headers"),
        ({"target": {"kind": "telepathy"}}, "/target"),
    ],
)
def test_each_wrong_field_is_named_by_its_pointer(fields: dict[str, Any], pointer: str) -> None:
    assert [problem.pointer for problem in problems(**fields)] == [pointer]


def test_several_wrong_fields_are_all_named() -> None:
    told = problems(priority="urgent", max_runs=0)
    assert {problem.pointer for problem in told} == {"/priority", "/max_runs"}


def test_an_unknown_kind_names_the_known_ones() -> None:
    [problem] = problems(trigger={"kind": "sometimes"})
    assert (problem.pointer, problem.detail) == ("/trigger", "is not a known kind")
    for kind in ("interval", "cron", "once", "rrule", "delay"):
        assert kind in problem.hint


def test_an_end_before_the_start_is_refused() -> None:
    assert problems(start_ts=NOON, end_ts=NOON - timedelta(seconds=1))
    assert ScheduleSpec.parse(MINIMAL | {"start_ts": NOON, "end_ts": NOON}).end_ts == NOON


def test_what_is_not_an_object_is_refused() -> None:
    documents: tuple[object, ...] = (None, [], "text", 5)
    for document in documents:
        with pytest.raises(InvalidError):
            ScheduleSpec.parse(document)


def test_a_definition_survives_being_written_and_read() -> None:
    spec = ScheduleSpec.parse(MINIMAL | {"window": {"days_of_week": [5, 1, 1]}, "labels": {"a": "b"}})
    assert ScheduleSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.window is not None
    assert spec.window.days_of_week == (1, 5)
