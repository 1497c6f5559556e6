"""Fields that a schedule takes from its task function if its author left them out."""

from dataclasses import dataclass
from typing import Any

from foliot.model.policy import RetryPolicy
from foliot.model.schedule import ScheduleSpec


@dataclass(frozen=True, slots=True)
class TaskDefaults:
    """Defaults of a task function for its runs; None: the defaults of schedules apply."""

    queue: str | None = None
    timeout_seconds: float | None = None
    retry: RetryPolicy | None = None


def fill_in(spec: ScheduleSpec, defaults: TaskDefaults | None) -> ScheduleSpec:
    """Take queue, timeout and retries from the task where the definition leaves them out.

    A field that the author gave stays, even if its value is the default. If `retry` is given in part, the
    rest of it comes from the task. Raises InvalidError if the result is no valid definition.
    """
    if defaults is None:
        return spec
    given = {name: getattr(spec, name) for name in spec.model_fields_set}
    filled: dict[str, Any] = {}
    if defaults.queue is not None and "queue" not in given:
        filled["queue"] = defaults.queue
    if defaults.timeout_seconds is not None and "timeout_seconds" not in given:
        filled["timeout_seconds"] = defaults.timeout_seconds
    if defaults.retry is not None:
        written = spec.retry.model_dump(include=spec.retry.model_fields_set) if "retry" in given else {}
        retry = {**defaults.retry.model_dump(), **written}
        if retry != spec.retry.model_dump():
            filled["retry"] = retry
    return ScheduleSpec.parse({**given, **filled}) if filled else spec
