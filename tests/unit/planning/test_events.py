"""The event that a fire time says."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.kinds.event_target import EventTarget
from foliot.model.errors import InvalidError
from foliot.planning.events import NewEvent, UnreadableTargetError, plan_event

EXECUTION, SCHEDULE, HOST = (UUID(int=number) for number in (1, 2, 3))
AT = datetime(2026, 11, 16, 7, 30, tzinfo=UTC)


def event_of(event_data: Any, args: dict[str, Any] | None = None, **fields: str) -> NewEvent:
    target = EventTarget(event_topic="orders", event_type="Due", event_data=event_data, **fields)
    return plan_event(
        target.model_dump_json(),
        execution_id=EXECUTION,
        schedule_id=SCHEDULE,
        host_id=HOST,
        event_seq=5,
        fire_ts=AT,
        args=args,
    )


def payload(event: NewEvent) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.payload)
    return found


def test_the_time_is_the_fire_time_in_utc() -> None:
    assert payload(event_of({}))["time"] == "2026-11-16T07:30:00Z"


def test_the_id_is_the_executions() -> None:
    event = event_of({})
    assert (event.id, payload(event)["id"]) == (EXECUTION, str(EXECUTION))


def test_the_versions_are_the_schedules_count_of_its_events() -> None:
    event = event_of('{"specversion": "1.0", "aggregateversion": 77, "nonce": 78}')
    assert (event.nonce, event.aggregate_version) == (5, 5)
    assert (payload(event)["nonce"], payload(event)["aggregateversion"]) == (5, 5)


def test_arguments_go_over_the_data() -> None:
    assert payload(event_of({"a": 1, "b": 2}, {"b": 3, "c": 4}))["data"] == {"a": 1, "b": 3, "c": 4}


@pytest.mark.parametrize(
    ("event_data", "takes"),
    [
        ({}, True),
        ('{"a": 1}', True),
        ('{"specversion": "1.0", "data": [1]}', False),
        ('{"specversion": "1.0"}', False),
        ('{"specversion": "1.0", "data_base64": "AAE="}', False),
    ],
)
def test_only_an_object_takes_arguments(event_data: Any, takes: bool) -> None:
    target = EventTarget(event_topic="orders", event_type="Due", event_data=event_data)
    assert (not target.check_arguments({})) is takes


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists, max_leaves=10
        ),
        max_size=4,
    )
)
def test_whatever_the_data_is_the_payload_is_json_that_says_it(data: dict[str, Any]) -> None:
    if "${secret:" in json.dumps(data):
        return
    assert payload(event_of(data))["data"] == data


@given(st.text(st.characters(min_codepoint=33, exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_whatever_the_type_is_the_payload_says_it(name: str) -> None:
    if "\x7f" in name:
        return
    event = plan_event(
        EventTarget(event_topic="t", event_type=name).model_dump_json(),
        execution_id=EXECUTION,
        schedule_id=SCHEDULE,
        host_id=HOST,
        event_seq=1,
        fire_ts=AT,
    )
    assert (event.event_type, payload(event)["type"]) == (name, name)


@pytest.mark.parametrize("text", ["{}", "null", '{"kind": "event"}', "nothing"])
def test_a_target_that_can_not_be_read_names_its_schedule(text: str) -> None:
    with pytest.raises(UnreadableTargetError) as caught:
        plan_event(text, execution_id=EXECUTION, schedule_id=SCHEDULE, host_id=HOST, event_seq=1, fire_ts=AT)
    assert list(caught.value.reasons) == [SCHEDULE]


def test_a_target_with_a_number_that_no_event_can_hold_names_its_schedule() -> None:
    text = (
        '{"kind": "event", "event_topic": "t", "event_type": "T", "event_data": {"n": 123456789012345678901}}'
    )
    with pytest.raises(UnreadableTargetError) as caught:
        plan_event(text, execution_id=EXECUTION, schedule_id=SCHEDULE, host_id=HOST, event_seq=1, fire_ts=AT)
    assert list(caught.value.reasons) == [SCHEDULE]


@pytest.mark.parametrize("value", [2**70, [[[0]]], {1, 2}, "\ud800"], ids=["number", "depth", "set", "text"])
def test_arguments_that_no_event_can_hold_are_refused(value: Any) -> None:
    if isinstance(value, list):
        for _ in range(300):
            value = [value]
    target = EventTarget(event_topic="t", event_type="T", event_data={"a": 1}).model_dump_json()
    with pytest.raises(InvalidError) as caught:
        plan_event(
            target,
            execution_id=EXECUTION,
            schedule_id=SCHEDULE,
            host_id=HOST,
            event_seq=1,
            fire_ts=AT,
            args={"n": value},
        )
    assert [each.pointer for each in caught.value.problems] == ["/args"]
