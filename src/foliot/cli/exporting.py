"""The definition of a schedule alone, as somebody would have written it."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from foliot.model.schedule import ScheduleSpec

ALWAYS = ("name", "trigger", "target")


def exported(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """What of a schedule is definition, without what has its default anyway."""
    return {
        name: schedule[name]
        for name, field in ScheduleSpec.model_fields.items()
        if name in schedule
        and (
            name in ALWAYS
            or schedule[name] != to_jsonable_python(field.get_default(call_default_factory=True))
        )
    }


def definition(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """What of a schedule is definition, all of it."""
    return {name: schedule[name] for name in ScheduleSpec.model_fields if name in schedule}
