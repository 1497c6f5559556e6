"""What `event_data` may be."""

import pytest

from foliot.model.cloud_event import read_template
from foliot.model.errors import InvalidError
from foliot.model.schedule import ScheduleSpec

WHOLE = '{"specversion": "1.0", "type": "T", "id": "x", "time": "2000-01-01T00:00:00Z", "data": [1], "a": 7}'


def test_an_object_is_the_data() -> None:
    assert read_template({"specversion": "is only data here"}).data == {"specversion": "is only data here"}


def test_text_of_an_object_that_is_no_cloud_event_is_the_data() -> None:
    template = read_template('{"region": "eu"}')
    assert (template.data, template.attributes) == ({"region": "eu"}, {})


def test_a_cloud_event_keeps_what_does_not_depend_on_the_fire_time() -> None:
    template = read_template(WHOLE)
    assert (template.data, template.attributes) == ([1], {"type": "T", "a": 7})


def test_binary_data_is_kept_as_it_is() -> None:
    template = read_template('{"specversion": "1.0", "data_base64": "AAE="}')
    assert (template.data, template.data_base64) == (None, "AAE=")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not JSON",
        "[1]",
        '"text"',
        '{"specversion": "0.3"}',
        '{"specversion": "1.0", "type": ""}',
        '{"specversion": "1.0", "type": 5}',
        '{"specversion": "1.0", "subject": ""}',
        '{"specversion": "1.0", "Upper": "x"}',
        '{"specversion": "1.0", "with-dash": "x"}',
        '{"specversion": "1.0", "nested": {"x": 1}}',
        '{"specversion": "1.0", "fraction": 1.5}',
        '{"specversion": "1.0", "nothing": null}',
        '{"specversion": "1.0", "data": 1, "data_base64": "AAE="}',
        '{"specversion": "1.0", "data_base64": 5}',
        f'{{"specversion": "1.0", "type": "{"t" * 256}"}}',
        '{"token": "${secret:agent}"}',
    ],
)
def test_what_is_neither_is_refused_and_the_field_is_named(text: str) -> None:
    target = {"kind": "event", "event_topic": "t", "event_type": "T", "event_data": text}
    with pytest.raises(InvalidError) as caught:
        ScheduleSpec.parse({"name": "x", "trigger": {"kind": "interval", "hours": 1}, "target": target})
    assert [problem.pointer for problem in caught.value.problems] == ["/target/event_data"]


def test_secrets_have_no_place_in_events() -> None:
    with pytest.raises(ValueError, match="secrets"):
        read_template({"deep": [{"token": "x ${secret:agent}"}]})


@pytest.mark.parametrize("field", ["event_topic", "event_type"])
@pytest.mark.parametrize("value", ["", "two words", "line\nbreak", "x" * 127])
def test_a_topic_and_a_type_are_one_word(field: str, value: str) -> None:
    target = {"kind": "event", "event_topic": "t", "event_type": "T", field: value}
    with pytest.raises(InvalidError) as caught:
        ScheduleSpec.parse({"name": "x", "trigger": {"kind": "interval", "hours": 1}, "target": target})
    assert [problem.pointer for problem in caught.value.problems] == [f"/target/{field}"]
