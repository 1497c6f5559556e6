"""Import the `beat_schedule` of a Celery application, including entries of `add_periodic_task`.

Celery need not be installed: objects are recognised by class names and attributes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from foliot.importers.cron_conversion import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    CronFieldValues,
    FieldRange,
    field_of,
    timing_of,
)
from foliot.importers.import_result import (
    RUN_LIMIT_S,
    ImportBuilder,
    ImportResult,
    LeftOutError,
    every,
    plain_json,
    zone_name,
)

AS_BEAT_DOES: Mapping[str, Any] = {
    "timeout_seconds": RUN_LIMIT_S,
    "overlap": {"policy": "allow"},
    "retry": {"max_attempts": 1},
}
ON_ALL = (
    "as with beat, a task is sent although the last one still runs (overlap: allow)",
    "what fails is not sent again (retry: max_attempts 1); how often Celery retries is the task's own matter",
    f"a run is given up after {RUN_LIMIT_S // 3600} hours (timeout_seconds)",
)
_OTHER_DATABASES = ("django_celery_beat", "redbeat")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    (MINUTE, "minute"),
    (HOUR, "hour"),
    (DAY, "day_of_month"),
    (MONTH, "month_of_year"),
    (WEEKDAY, "day_of_week"),
)


def read(
    app: Any, *, now: datetime, as_function: bool = False, timezone: str | None = None, prefix: str = ""
) -> ImportResult:
    """Return the schedules of an application. `timezone`: used for crontabs if the application has none."""
    finds = ImportBuilder(now, prefix)
    zone = _zone_of(app) or timezone
    for key, entry in dict(app.conf.beat_schedule or {}).items():
        where = f'beat_schedule["{key}"]'
        try:
            document, notes = _schedule(entry, zone, as_function)
        except LeftOutError as error:
            finds.leave_out(where, str(key), str(error))
            continue
        finds.add(str(key), document, where=where, notes=notes)
    scheduler = str(getattr(app.conf, "beat_scheduler", "") or "")
    if any(name in scheduler for name in _OTHER_DATABASES):
        finds.note(f"its beat also has schedules in a database ({scheduler}), which are not read here")
    return finds.found(ON_ALL)


def _zone_of(app: Any) -> str | None:
    try:
        return zone_name(app.timezone)
    except (LookupError, ValueError, OSError):  # it is set to an unknown zone
        return None


def _schedule(entry: Any, zone: str | None, as_function: bool) -> tuple[dict[str, Any], list[str]]:
    given = _given(entry)
    timing, notes = _timing(given.get("schedule"), zone)
    if given.get("relative"):
        notes.append(_RELATIVE)
    options = given.get("options") or {}
    call = BeatCall(
        str(given.get("task")), given.get("args") or (), given.get("kwargs") or {}, _queue(options)
    )
    target, more = target_of(call, as_function)
    return {**timing, **target, **AS_BEAT_DOES}, [*notes, *more, *on_options(options)]


def _given(entry: Any) -> Mapping[str, Any]:
    """Return an entry as a mapping. Beat accepts mappings and its own objects."""
    if isinstance(entry, Mapping):
        return entry
    names = ("task", "schedule", "args", "kwargs", "options")
    return {name: getattr(entry, name, None) for name in names}


def _queue(options: Mapping[str, Any]) -> str | None:
    queue = options.get("queue")
    return None if queue is None else str(getattr(queue, "name", queue))


# --- trigger --------------------------------------------------------------------------------------------

_RELATIVE = (
    "it ran at whole multiples of its interval (relative); here it counts from when the schedule is made"
)


def _timing(schedule: Any, zone: str | None) -> tuple[dict[str, Any], list[str]]:
    notes = ["its clock (nowfun) is not taken over"] if getattr(schedule, "nowfun", None) else []
    # Exact class names only: a subclass may behave differently.
    match type(schedule).__name__:
        case "int" | "float":
            return {"trigger": every(_length(schedule))}, notes
        case "timedelta":
            return {"trigger": every(schedule)}, notes
        case "schedule":
            if getattr(schedule, "relative", False):
                notes.append(_RELATIVE)
            return {"trigger": every(schedule.run_every)}, notes
        case "crontab":
            given = {name: getattr(schedule, f"_orig_{name}") for _span, name in _FIELDS}
            return crontab_timing(given, zone), notes
        case "TzAwareCrontab":
            given = {name: getattr(schedule, f"_orig_{name}") for _span, name in _FIELDS}
            return crontab_timing(given, zone_name(schedule.tz)), []
        case "clocked":
            return {"trigger": {"kind": "once", "at": schedule.clocked_time.isoformat()}}, notes
        case "solar":
            raise LeftOutError(f"it follows the sun ({schedule.event}), and there is no such trigger")
        case other:
            raise LeftOutError(f"a schedule of class {other} is not known")


def _length(seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise LeftOutError(f"{seconds} s is no interval") from None


def crontab_timing(given: Mapping[str, Any], zone: str | None) -> dict[str, Any]:
    """Return the timing fields of a schedule for a Celery crontab, in which all fields must match."""
    if zone is None:
        raise LeftOutError("its time zone is not known; give it by --tz")
    fields: dict[FieldRange, CronFieldValues] = {SECOND: field_of(SECOND, [0])}
    for span, name in _FIELDS:
        value = given.get(name, "*")
        text = "" if value is None else str(value).replace(" ", "") if isinstance(value, str | int) else ""
        fields[span] = field_of(span, _numbers(value, span), text)
    return timing_of(fields, zone)


def _numbers(value: Any, span: FieldRange) -> Iterable[int]:
    match value:
        case None:
            return span.all
        case bool():
            pass
        case int():
            return [value]
        case str():
            return [number for term in value.replace(" ", "").split(",") for number in _term(term, span)]
        case Iterable():
            numbers = list(value)
            if all(isinstance(number, int) for number in numbers):
                return numbers
    raise LeftOutError(f"the {span.name} field {value!r} can't be read")


def _term(term: str, span: FieldRange) -> Sequence[int]:
    body, slash, step = term.partition("/")
    first, dash, last = body.partition("-")
    if slash and (not step.isdecimal() or int(step) == 0 or not (dash or body == "*")):
        raise LeftOutError(f'the {span.name} field has "{term}", which can\'t be read')
    if body == "*":
        numbers = list(range(span.low, span.high + 1))
    elif not dash:
        numbers = [_number(first, span)]
    else:
        low, high = _number(first, span), _number(last, span)
        numbers = list(range(low, high + 1))
        if high < low:  # The range wraps around: 22-2 are five hours.
            numbers = [*range(low, span.high + 1), *range(span.low, high + 1)]
    return numbers[:: int(step)] if slash else numbers


def _number(text: str, span: FieldRange) -> int:
    name = text[:3].lower()
    if span is MONTH and name in _MONTHS:
        return _MONTHS.index(name) + 1
    if span is WEEKDAY and name in _DAYS:
        return _DAYS.index(name)
    if text.isdecimal() and span.low <= int(text) <= span.high:
        return int(text)
    raise LeftOutError(f'the {span.name} field has "{text}", which is not from {span.low} to {span.high}')


# --- target ---------------------------------------------------------------------------------------------


class BeatCall(NamedTuple):
    """The task and arguments that beat would send."""

    task: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}
    queue: str | None = None


def target_of(call: BeatCall, as_function: bool) -> tuple[dict[str, Any], list[str]]:
    """Return fields of a schedule that sends the Celery task, or calls the task function of that name."""
    args, kwargs = plain_json(call.args, "args"), plain_json(call.kwargs, "kwargs")
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise LeftOutError("args must be a list, and kwargs an object")
    if not as_function:
        target: dict[str, Any] = {"kind": "celery", "task": call.task}
        given = {"args": args, "kwargs": kwargs, "queue": call.queue}
        return {"target": {**target, **{name: value for name, value in given.items() if value}}}, []
    if args:
        raise LeftOutError(
            f"a task function takes arguments by name, and it has {len(args)} without one (args)"
        )
    fields: dict[str, Any] = {"target": {"kind": "function", "name": call.task}}
    if kwargs:
        fields["target"]["args"] = kwargs
    if call.queue:
        fields["queue"] = call.queue
    return fields, ([f'workers must serve the queue "{call.queue}"'] if call.queue else [])


_ON_OPTION = {
    "expires": "the age at which a message is dropped (expires) is not taken over",
    "expire_seconds": "the age at which a message is dropped (expire_seconds) is not taken over",
    "priority": "its priority is not taken over: with RabbitMQ 0 is the lowest, with Redis the highest",
}


def on_options(options: Mapping[str, Any]) -> list[str]:
    """Return notes about options of beat that are not taken over."""
    return [
        _ON_OPTION.get(name, f"the option {name}={value!r} is not taken over")
        for name, value in options.items()
        if name != "queue" and value not in (None, "", {}, [])
    ]
