"""In every document that users write, a number is a number: `true` is not 1."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

import foliot.api.build
import foliot.planning.definition  # noqa: F401 - for the documents that they define
from foliot.api.http.request_body import Form
from foliot.model.document import Document
from foliot.model.errors import InvalidError
from foliot.model.schedule import ScheduleSpec

MINIMAL: dict[str, Any] = {
    "name": "nightly",
    "trigger": {"kind": "cron", "expression": "0 2 * * *"},
    "target": {"kind": "function", "name": "work"},
}


def all_documents(base: type[Document] = Document) -> Iterator[type[Document]]:
    for each in base.__subclasses__():
        yield each
        yield from all_documents(each)


def kinds_of(schema: dict[str, Any]) -> set[str]:
    """The JSON types that a field takes."""
    either = schema.get("anyOf", [schema])
    return {each["type"] for each in either if "type" in each}


def numbers_of(model: type[Document]) -> list[str]:
    fields = model.model_json_schema().get("properties", {})
    return [
        name
        for name, schema in fields.items()
        if kinds_of(schema) & {"integer", "number"} and "boolean" not in kinds_of(schema)
    ]


NUMBERS = sorted(
    ((model, name) for model in set(all_documents()) for name in numbers_of(model)),
    key=lambda pair: (pair[0].__module__, pair[0].__name__, pair[1]),
)


def test_the_documents_of_schedules_and_of_bodies_are_among_those_tried() -> None:
    tried = {(model.__name__, name) for model, name in NUMBERS}
    assert tried >= {
        ("ScheduleSpec", "timeout_seconds"),
        ("ScheduleSpec", "max_runs"),
        ("IntervalTrigger", "frequency_time"),
        ("DelayTrigger", "seconds"),
        ("RetryPolicy", "max_attempts"),
        ("PreviewAsked", "n"),
        ("Progress", "fraction"),
    }
    assert issubclass(Form, Document)


@pytest.mark.parametrize(("model", "name"), NUMBERS, ids=lambda each: getattr(each, "__name__", each))
@pytest.mark.parametrize("value", [True, False])
def test_a_boolean_is_no_number(model: type[Document], name: str, value: bool) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate({name: value})
    assert {each["type"] for each in caught.value.errors() if each["loc"] == (name,)} == {"number_type"}


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"timeout_seconds": True}, "/timeout_seconds"),
        ({"trigger": {"kind": "delay", "seconds": True}}, "/trigger/seconds"),
        ({"trigger": {"kind": "interval", "hours": 1, "minutes": True}}, "/trigger/minutes"),
        (
            {"trigger": {"kind": "interval", "frequency_unit": "DAYS", "frequency_time": True}},
            "/trigger/frequency_time",
        ),
        ({"window": {"hours_of_day": [9, True]}}, "/window/hours_of_day/1"),
        ({"retry": {"jitter": True, "multiplier": True}}, "/retry/multiplier"),
    ],
)
def test_the_field_with_the_boolean_is_named(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidError) as caught:
        ScheduleSpec.parse(MINIMAL | fields)
    [problem] = caught.value.problems
    assert (problem.pointer, problem.code) == (pointer, "number_type")


def test_numbers_and_booleans_elsewhere_are_taken_as_before() -> None:
    target = {"kind": "function", "name": "work", "args": {"flag": True, "count": 1}}
    spec = ScheduleSpec.parse(MINIMAL | {"active": False, "target": target, "timeout_seconds": 30})
    assert (spec.active, spec.timeout_seconds) == (False, 30)
    assert spec.target.model_dump()["args"] == {"flag": True, "count": 1}


def test_what_a_document_says_in_the_openapi_is_not_changed_by_the_check() -> None:
    timeout = ScheduleSpec.model_json_schema()["properties"]["timeout_seconds"]
    assert (timeout["type"], timeout["default"], timeout["exclusiveMinimum"]) == ("number", 300, 0)
