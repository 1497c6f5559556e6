"""What all imports share: names, values, and that nothing is taken up that could never be made."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.access.secrets import resolve
from foliot.importers.import_result import ImportBuilder, LeftOutError, every, literal, plain_json
from foliot.model.schedule import ScheduleSpec

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAILY: dict[str, Any] = {
    "trigger": {"kind": "cron", "expression": "@daily"},
    "target": {"kind": "function", "name": "f"},
}


@settings(derandomize=True, deadline=None)
@given(st.lists(st.text(max_size=300) | st.sampled_from(["a", "a-2", "x" * 126, "x" * 124]), max_size=12))
def test_every_name_is_made_one_that_is_free_and_can_be_had(names: list[str]) -> None:
    finds = ImportBuilder(NOW)
    for name in names:
        finds.add(name, DAILY, where="here")
    found = finds.found()
    assert not found.problems
    assert len({item.name for item in found.items}) == len(names)
    for item, name in zip(found.items, names, strict=True):
        assert ScheduleSpec.parse(item.document).name == item.name
        assert (item.name == name) != bool(item.notes), "another name is told"


def test_one_that_is_left_out_takes_no_name() -> None:
    finds = ImportBuilder(NOW)
    finds.add("a", {**DAILY, "trigger": {"kind": "cron", "expression": "0 0 30 2 *"}}, where="first")
    finds.add("a", DAILY, where="second")
    assert [item.name for item in finds.found().items] == ["a"]


def test_notes_about_all_are_there_only_with_something_that_they_are_about() -> None:
    finds = ImportBuilder(NOW)
    assert finds.found(["on all"]).notes == ()
    finds.add("a", DAILY, where="here")
    assert finds.found(["on all"]).notes == ("on all",)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"trigger": {"kind": "once", "at": (NOW - timedelta(hours=2)).isoformat()}}, "its time has passed"),
        ({"end_ts": (NOW + timedelta(hours=1)).isoformat()}, "has ended"),
        ({"trigger": {"kind": "cron", "expression": "@daily", "timezone": "Nowhere"}}, "no time zone"),
        ({"queue": "no good"}, "queue"),
    ],
)
def test_what_could_never_be_made_is_left_out(fields: dict[str, Any], why: str) -> None:
    finds = ImportBuilder(NOW)
    finds.add("a", {**DAILY, **fields}, where="here")
    [problem] = finds.found().problems
    assert why in problem.why


def test_one_that_is_inactive_may_have_ended() -> None:
    finds = ImportBuilder(NOW)
    finds.add("a", {**DAILY, "end_ts": NOW.isoformat(), "active": False}, where="here")
    assert len(finds.found().items) == 1


def test_a_time_that_has_just_passed_is_still_taken() -> None:
    finds = ImportBuilder(NOW)
    at = (NOW - timedelta(minutes=5)).isoformat()
    finds.add("a", {**DAILY, "trigger": {"kind": "once", "at": at}}, where="here")
    assert len(finds.found().items) == 1


@settings(derandomize=True, deadline=None)
@given(st.text(alphabet="$${}secret:ab", max_size=40) | st.text())
def test_literal_text_comes_out_as_it_went_in(text: str) -> None:
    assert resolve(literal(text), {}) == text


def test_values_are_made_plain_json() -> None:
    given_value = {"a": (1, 2.5, None, True), "b": {"c": "${secret:x}"}}
    assert plain_json(given_value, "kwargs") == {"a": [1, 2.5, None, True], "b": {"c": "$${secret:x}"}}
    with pytest.raises(LeftOutError, match=r"kwargs\.a\[1\] is <object"):
        plain_json({"a": [1, object()]}, "kwargs")


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 10_000_000))
def test_an_interval_is_as_long_as_it_was(seconds: int) -> None:
    trigger = every(timedelta(seconds=seconds))
    size = {"SECONDS": 1, "MINUTES": 60, "HOURS": 3600}[trigger["frequency_unit"]]
    assert trigger["frequency_time"] * size == seconds
