"""The definition of a schedule alone, as somebody would have written it."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from foliot.model.schedule import ScheduleSpec

ALWAYS = frozenset({"name", "trigger", "target"})
FROM_TASK = frozenset({"queue", "timeout_seconds", "retry"})
"""Left out of the definition of a function's schedule, these would be filled in from the function."""


def exported(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """What of a schedule is definition, without what has its default anyway."""
    is_function = schedule.get("target", {}).get("kind") == "function"
    always = ALWAYS | FROM_TASK if is_function else ALWAYS
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
    """What of a schedule is definition, all of it."""
    return {name: schedule[name] for name in ScheduleSpec.model_fields if name in schedule}
