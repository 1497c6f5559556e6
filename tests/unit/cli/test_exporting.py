"""Schedules as files: a definition that is applied back is the same one."""

from typing import Any

from foliot.cli.support.export_form import exported
from foliot.model.schedule import ScheduleSpec


def stored(target: dict[str, Any], **fields: Any) -> dict[str, Any]:
    definition = {"name": "a", "trigger": {"kind": "interval", "hours": 1}, "target": target, **fields}
    return {**ScheduleSpec.parse(definition).model_dump(mode="json"), "schedule_id": "1"}


def test_what_has_its_default_is_left_out() -> None:
    http = {"kind": "http", "method": "POST", "url": "https://agent.example/run"}
    assert set(exported(stored(http))) == {"name", "trigger", "target"}
    assert exported(stored(http, queue="mail"))["queue"] == "mail"


def test_of_a_function_everything_stands_that_would_be_taken_from_the_function() -> None:
    document = exported(stored({"kind": "function", "name": "send"}))
    assert set(document) == {"name", "trigger", "target", "queue", "timeout_seconds", "retry"}
    assert (document["queue"], document["timeout_seconds"]) == ("default", 300)
