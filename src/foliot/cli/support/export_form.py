"""Extract the definition from a schedule of the API."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from foliot.model.kind import TARGETS
from foliot.model.schedule import ScheduleSpec

ALWAYS = frozenset({"name", "trigger", "target"})
FROM_TASK = frozenset({"queue", "timeout_seconds", "retry"})
"""Always exported for function targets: if left out, the function's own values would be used."""


def exported(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schedule's definition: required fields, and fields that differ from their defaults."""
    kind = TARGETS.get(schedule.get("target", {}).get("kind"))
    always = ALWAYS | FROM_TASK if kind is not None and kind.task_field else ALWAYS
    return {
        name: schedule[name]
        for name, field in ScheduleSpec.model_fields.items()
        if name in schedule
        and (
            name in always
            or schedule[name] != to_jsonable_python(field.get_default(call_default_factory=True))
        )
    }


def definition(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """Return all fields of a schedule's definition."""
    return {name: schedule[name] for name in ScheduleSpec.model_fields if name in schedule}
