"""Reading a schedule's document back: what may come back, and what may not be changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic_core import to_jsonable_python

from foliot.api.documents import READ_ONLY, definition_of, schedule_document
from foliot.model.errors import InvalidError
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.schedule import Schedule, ScheduleSpec, ScheduleState
from foliot.planning.change import Author, create

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPEC = ScheduleSpec.parse(
    {
        "name": "nightly",
        "trigger": {"kind": "interval", "minutes": 5},
        "target": {"kind": "function", "name": "clean"},
    }
)


SCHEDULE_ID = new_id(NOW)


def schedule(**changes: Any) -> Schedule:
    made = create(
        SPEC, host_id=DEFAULT_HOST_ID, now=NOW, author=Author("ann"), schedule_id=SCHEDULE_ID
    ).schedule
    return replace(made, **changes)


def shown(known: Schedule, **status: Any) -> dict[str, Any]:
    return schedule_document(known, NOW, **status)


def as_read(document: dict[str, Any]) -> dict[str, Any]:
    """What a client gets to see."""
    found: dict[str, Any] = to_jsonable_python(document)
    return found


def test_a_document_that_was_read_can_be_sent_back_as_it_is() -> None:
    document = shown(schedule(), last_run_ts=NOW, last_status=Status.SUCCESS, last_execution_id=new_id())
    assert ScheduleSpec.parse(definition_of(as_read(document), document, NOW)) == SPEC


@pytest.mark.parametrize("name", READ_ONLY)
def test_every_field_that_foliot_sets_is_refused_when_it_was_changed(name: str) -> None:
    document = shown(schedule())
    edited = {**as_read(document), name: "something else"}
    with pytest.raises(InvalidError) as refused:
        definition_of(edited, document, NOW)
    assert [(each.pointer, each.code) for each in refused.value.problems] == [(f"/{name}", "read_only")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run_count", 99),
        ("run_count", True),
        ("paused", 0),
        ("next_fire_ts", "2030-01-01T00:00:00Z"),
        ("paused", None),
    ],
)
def test_a_value_that_it_never_had_is_refused(name: str, value: Any) -> None:
    document = shown(schedule(run_count=1))
    with pytest.raises(InvalidError, match=name):
        definition_of({**as_read(document), name: value}, document, NOW)


def test_the_same_instant_may_come_back_in_another_spelling() -> None:
    document = shown(schedule())
    written = as_read(document) | {"created_ts": "2026-03-01T13:00:00+01:00"}
    assert definition_of(written, document, NOW)["name"] == "nightly"


def test_a_schedule_that_ran_while_somebody_edited_it_can_still_be_written_back() -> None:
    before = as_read(shown(schedule()))
    later = NOW + timedelta(minutes=5, seconds=1)
    ran = schedule(
        run_count=1, next_fire_ts=NOW + timedelta(minutes=10), next_run_ts=NOW + timedelta(minutes=10)
    )
    after = shown(ran, last_run_ts=later, last_status=Status.FAILED, last_execution_id=new_id())
    assert definition_of(before, after, later)["name"] == "nightly"


def test_a_schedule_that_completed_meanwhile_can_still_be_written_back() -> None:
    before = as_read(shown(schedule()))
    later = NOW + timedelta(minutes=6)
    over = schedule(run_count=1, state=ScheduleState.COMPLETED, next_fire_ts=None, next_run_ts=None)
    assert definition_of(before, shown(over), later)["name"] == "nightly"


def test_a_pause_whose_end_has_passed_is_shown_as_over() -> None:
    paused = schedule(paused=True, paused_until_ts=NOW, pause_reason="moving", state=ScheduleState.PAUSED)
    document = shown(paused)
    assert (document["paused"], document["state"], document["pause_reason"]) == (False, "active", None)
