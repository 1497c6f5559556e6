"""Import jobs that the user's code has added to APScheduler 3.

APScheduler need not be installed: objects are recognised by class names and attributes. A job store in a
database is never opened, because its jobs are pickles, and reading a pickle can run any code.
"""

import inspect
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from foliot.importers.cron_conversion import (
    DAY,
    HOUR,
    LAST_DAY,
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

_MEMORY = "MemoryJobStore"
_STOPPED = 0
_DEFAULTS: Mapping[str, Any] = {"misfire_grace_time": 1, "coalesce": True, "max_instances": 1}
_NO_LIMIT_S = 10 * 366 * 86400
"""The maximum grace in seconds, for jobs without a limit of lateness."""
_SHORT_GRACE_S = 10
_MADE_UP_ID = re.compile(r"[0-9a-f]{32}")
_ON_ALL = (
    "each job calls the task function that is named like its function: register it with @app.task",
    "nothing is retried (retry: max_attempts 1)",
    f"a run has no limit there; here each is stopped after {RUN_LIMIT_S // 3600} hours (timeout_seconds)",
)
_ON_SHORT_GRACE = (
    "times later than misfire_grace_time (1 s if you set none) are skipped (misfire.grace_seconds); while "
    "another scheduler takes over, times are up to 5 s late"
)


def read(scheduler: Any, *, now: datetime, prefix: str = "") -> ImportResult:
    """Return the schedules of a scheduler that was not started, or that keeps its jobs in memory."""
    finds = ImportBuilder(now, prefix)
    for alias in _unread_stores(scheduler):
        why = "its jobs are pickles in a database, which are never read; only jobs that your code adds are"
        finds.leave_out(f'job store "{alias}"', alias, why)
    jobs = list(_jobs(scheduler))
    defaults = {**_DEFAULTS, **(getattr(scheduler, "_job_defaults", None) or {})}
    shared = _shared_names(jobs)
    has_short_grace = False
    for job in jobs:
        where = f'job "{job.id}"'
        name = str(job.name if _MADE_UP_ID.fullmatch(str(job.id)) else job.id)
        try:
            document, notes = _schedule(job, defaults)
        except LeftOutError as error:
            finds.leave_out(where, name, str(error))
            continue
        task = document["target"]["name"]
        if task in shared:
            notes.append(f'several functions are named "{task}" ({", ".join(shared[task])}); here it is one')
        finds.add(name, document, where=where, notes=notes)
        has_short_grace |= document["misfire"]["grace_seconds"] < _SHORT_GRACE_S
    return finds.found((*_ON_ALL, _ON_SHORT_GRACE) if has_short_grace else _ON_ALL)


def _unread_stores(scheduler: Any) -> list[str]:
    stores = getattr(scheduler, "_jobstores", None) or {}
    return [alias for alias, store in stores.items() if type(store).__name__ != _MEMORY]


def _jobs(scheduler: Any) -> Iterable[Any]:
    if getattr(scheduler, "state", _STOPPED) == _STOPPED:
        return list(scheduler.get_jobs())
    # The scheduler is running: `get_jobs()` without a store would unpickle jobs from its databases.
    stores = getattr(scheduler, "_jobstores", None) or {}
    unread = set(_unread_stores(scheduler))
    return [job for alias in stores if alias not in unread for job in scheduler.get_jobs(alias)]


def _shared_names(jobs: Iterable[Any]) -> dict[str, list[str]]:
    """Return function names that refer to more than one function, with the references."""
    named: dict[str, set[str]] = {}
    for job in jobs:
        reference = getattr(job, "func_ref", None)
        if isinstance(reference, str):
            named.setdefault(reference.rpartition(":")[2], set()).add(reference)
    return {name: sorted(references) for name, references in named.items() if len(references) > 1}


def _schedule(job: Any, defaults: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    trigger = job.trigger
    notes: list[str] = []
    document: dict[str, Any] = {
        **_timing(trigger),
        "target": _target(job, notes),
        "timeout_seconds": RUN_LIMIT_S,
        "retry": {"max_attempts": 1},
        **_policies(job, defaults),
    }
    for attribute, name in (("start_date", "start_ts"), ("end_date", "end_ts")):
        at = getattr(trigger, attribute, None)
        if at is not None:
            document[name] = at.isoformat()
    if getattr(trigger, "jitter", None):
        document["jitter_seconds"] = trigger.jitter
    if getattr(job, "next_run_time", True) is None:
        document["active"] = False
        notes.append("the job is paused, so the schedule is inactive")
    if getattr(job, "executor", "default") != "default":
        notes.append(f'its executor "{job.executor}" is not taken over')
    return document, notes


def _policies(job: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:
    # A job has no default values before the scheduler starts.
    grace, coalesces, max_instances = (getattr(job, name, defaults[name]) for name in _DEFAULTS)
    return {
        "misfire": {
            "policy": "fire_once" if coalesces else "fire_all",
            "grace_seconds": _NO_LIMIT_S if grace is None else grace,
        },
        "overlap": {"policy": "skip", "max_instances": max_instances},
    }


# --- target ---------------------------------------------------------------------------------------------


def _target(job: Any, notes: list[str]) -> dict[str, Any]:
    reference = getattr(job, "func_ref", None)
    if not isinstance(reference, str):
        raise LeftOutError("its function has no name that others could find it by")
    args, kwargs = tuple(getattr(job, "args", ())), dict(getattr(job, "kwargs", {}))
    if args:
        kwargs = _named(job.func, args, kwargs)
        notes.append("its positional arguments got the names of the function's parameters")
    target: dict[str, Any] = {"kind": "function", "name": reference.rpartition(":")[2]}
    if kwargs:
        target["args"] = plain_json(kwargs, "kwargs")
    return target


def _named(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise LeftOutError(f"its arguments don't fit its function: {error}") from None
    kinds = {name: signature.parameters[name].kind for name in bound.arguments}
    for name, kind in kinds.items():
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise LeftOutError(
                f"its function takes {name} by position; a task function takes arguments by name"
            )
    rest = [name for name, kind in kinds.items() if kind is inspect.Parameter.VAR_KEYWORD]
    named = {name: value for name, value in bound.arguments.items() if name not in rest}
    return {**named, **{key: value for name in rest for key, value in bound.arguments[name].items()}}


# --- trigger --------------------------------------------------------------------------------------------


def _timing(trigger: Any) -> dict[str, Any]:
    match type(trigger).__name__:
        case "IntervalTrigger":
            return {"trigger": every(trigger.interval)}
        case "DateTrigger":
            return {"trigger": {"kind": "once", "at": trigger.run_date.isoformat()}}
        case "CronTrigger":
            return _cron(trigger)
        case "AndTrigger" | "OrTrigger":
            raise LeftOutError(f"{trigger} combines several triggers; a schedule has one")
        case other:
            raise LeftOutError(f"a trigger of class {other} is not known")


_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_POSITIONS = {"1st": "#1", "2nd": "#2", "3rd": "#3", "4th": "#4", "5th": "#5", "last": "L"}
_UNKNOWN_HERE = ("year", "week")
_SPANS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


def _cron(trigger: Any) -> dict[str, Any]:
    texts = {field.name: str(field).lower() for field in trigger.fields}
    for name in _UNKNOWN_HERE:
        if texts.get(name, "*") != "*":
            raise LeftOutError(f'it names a {name} ("{texts[name]}"), and cron has no such field here')
    timezone = zone_name(trigger.timezone)
    if timezone is None:
        raise LeftOutError(f"its time zone {trigger.timezone} has no name in the time zone database")
    terms = texts["day"].split(",")
    positions = [term for term in terms if " " in term]
    texts["day"] = ",".join(term for term in terms if " " not in term)
    if not positions:
        return timing_of({span: _field(span, texts[span.name]) for span in _SPANS}, timezone)
    expression = _with_positions(texts, positions)
    return {"trigger": {"kind": "cron", "expression": expression, "timezone": timezone}}


def _with_positions(texts: Mapping[str, str], positions: Iterable[str]) -> str:
    """Return an expression with days such as `1st mon`, which cron has in its weekday field."""
    if texts["day_of_week"] != "*":
        raise LeftOutError("it names weekdays of the month, and weekdays besides")
    weekdays = ",".join(_position(term) for term in positions)
    second, minute, hour, month = (
        _field(span, texts[span.name]).text for span in (SECOND, MINUTE, HOUR, MONTH)
    )
    day = "*"
    if texts["day"]:
        # Either field may match. In cron this holds only if neither field begins with *.
        field = _field(DAY, texts["day"])
        day = field_of(DAY, field.numbers).text
        weekdays = "*" if field.is_open else weekdays
    parts = [minute, hour, day, month, weekdays]
    return " ".join(parts if second == "0" else [second, *parts])


def _position(term: str) -> str:
    position, _, weekday = term.partition(" ")
    if position not in _POSITIONS or weekday.strip() not in _WEEKDAYS:
        raise LeftOutError(f'the day field has "{term}", which can\'t be read')
    return f"{weekday.strip().upper()}{_POSITIONS[position]}"


def _field(span: FieldRange, text: str) -> CronFieldValues:
    numbers = [number for term in text.split(",") for number in _term(span, term)]
    if span is WEEKDAY:  # APScheduler's 0 is Monday.
        numbers = [(number + 1) % 7 for number in numbers]
    return field_of(span, numbers, text)


def _term(span: FieldRange, term: str) -> Iterable[int]:
    if span is DAY and term == "last":
        return [LAST_DAY]
    body, slash, step = term.partition("/")
    first, dash, last = body.partition("-")
    if slash and (not step.isdecimal() or int(step) == 0):
        raise LeftOutError(f'the {span.name} field has "{term}", which can\'t be read')
    if body == "*":
        return range(span.low, span.high + 1, int(step or 1))
    low = _number(span, first)
    high = _number(span, last) if dash else (span.high if slash else low)
    return range(low, high + 1, int(step or 1))


def _number(span: FieldRange, text: str) -> int:
    if span is MONTH and text in _MONTHS:
        return _MONTHS.index(text) + 1
    if span is WEEKDAY and text in _WEEKDAYS:
        return _WEEKDAYS.index(text)
    if text.isdecimal():
        return int(text)
    raise LeftOutError(f'the {span.name} field has "{text}", which can\'t be read')
