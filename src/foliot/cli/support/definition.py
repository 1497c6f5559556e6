"""Define a schedule with options: given options become a patch, all other fields stay unchanged."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

from foliot.cli.support.completion import calendar_names, queue_names, task_names
from foliot.cli.support.instants import instant_of, interval_of, seconds_of
from foliot.cli.support.options import one_of
from foliot.model.errors import InvalidError

NONE = "none"
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = "ISO_TIME|DURATION"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """Options of `create` and `set`."""

    cron: Annotated[str | None, typer.Option("--cron", metavar="EXPRESSION", help='Such as "0 2 * * *".')] = (
        None
    )
    every: Annotated[
        str | None, typer.Option("--every", metavar="INTERVAL", help="30s, 5m, 1h30m, 1d, 1w, 1mo.")
    ] = None
    once: Annotated[
        str | None, typer.Option("--once", metavar=_TIME, help="At one time, or so long from now.")
    ] = None
    rrule: Annotated[str | None, typer.Option("--rrule", metavar="RULE", help="An RFC 5545 rule.")] = None
    delay: Annotated[
        str | None, typer.Option("--delay", metavar="DURATION", help="So long after the end of the last run.")
    ] = None
    tz: Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="The trigger's time zone.")] = None

    function: Annotated[
        str | None,
        typer.Option("--function", metavar="TASK", help="Run a task function.", autocompletion=task_names),
    ] = None
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            metavar="NAME=VALUE",
            help="An argument; JSON where it is JSON, else text. Repeatable.",
        ),
    ] = None
    http: Annotated[
        tuple[str, str] | None, typer.Option("--http", metavar="METHOD URL", help="Call an HTTP agent.")
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME:VALUE", help="A header of the request. Repeatable."),
    ] = None
    body: Annotated[
        str | None,
        typer.Option("--body", metavar="JSON|@FILE", help="The body of the request."),
    ] = None
    event: Annotated[
        tuple[str, str] | None,
        typer.Option("--event", metavar="TOPIC TYPE", help="Write an event; --arg gives its data."),
    ] = None
    celery: Annotated[
        str | None,
        typer.Option("--celery", metavar="TASK", help="Call a Celery task; --arg gives its kwargs."),
    ] = None

    description: Annotated[str | None, typer.Option("--description", metavar="TEXT")] = None
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME=VALUE", help="Repeatable; NAME= alone takes it away."),
    ] = None
    queue: Annotated[str | None, typer.Option("--queue", metavar="NAME", autocompletion=queue_names)] = None
    priority: Annotated[str | None, typer.Option("--priority", **one_of("high", "medium", "low"))] = None
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="DURATION", help="How long an attempt may take.")
    ] = None
    retries: Annotated[
        int | None, typer.Option("--retries", metavar="N", min=0, help="How often to try again.")
    ] = None
    misfire: Annotated[
        str | None,
        typer.Option(
            "--misfire", help="What to do with late times.", **one_of("fire_once", "fire_all", "skip")
        ),
    ] = None
    grace: Annotated[
        str | None, typer.Option("--grace", metavar="DURATION", help="Times later than this never fire.")
    ] = None
    max_catchup: Annotated[
        int | None, typer.Option("--max-catchup", metavar="N", help="How many late times fire_all fires.")
    ] = None
    overlap: Annotated[
        str | None,
        typer.Option(
            "--overlap",
            help="What to do while the last run goes on.",
            **one_of("skip", "queue", "cancel_running", "allow"),
        ),
    ] = None
    max_instances: Annotated[
        int | None, typer.Option("--max-instances", metavar="N", help="How many runs at once.")
    ] = None
    max_queued: Annotated[
        int | None, typer.Option("--max-queued", metavar="N", help="How many runs may be held at most.")
    ] = None
    delivery: Annotated[str | None, typer.Option("--delivery", **one_of("at_least_once", "at_most_once"))] = (
        None
    )
    start: Annotated[
        str | None, typer.Option("--start", metavar=_TIME, help=f"Not before this; {NONE}: no limit.")
    ] = None
    end: Annotated[
        str | None, typer.Option("--end", metavar=_TIME, help=f"Not after this; {NONE}: no limit.")
    ] = None
    max_runs: Annotated[
        int | None, typer.Option("--max-runs", metavar="N", min=0, help="At most so often; 0: no limit.")
    ] = None
    jitter: Annotated[
        str | None, typer.Option("--jitter", metavar="DURATION", help="Spread runs over this time.")
    ] = None
    days: Annotated[
        str | None,
        typer.Option("--days", metavar="DAYS", help=f"Only on these days: mon-fri,sun; {NONE}: on all."),
    ] = None
    hours: Annotated[
        str | None,
        typer.Option("--hours", metavar="HOURS", help=f"Only in these hours: 9-16,20; {NONE}: in all."),
    ] = None
    calendar: Annotated[
        list[str] | None,
        typer.Option(
            "--calendar",
            metavar="NAME",
            help=f"Not on the days of this calendar. Repeatable; {NONE}: of no calendar.",
            autocompletion=calendar_names,
        ),
    ] = None
    dst_gap: Annotated[str | None, typer.Option("--dst-gap", **one_of("shift", "skip"))] = None
    dst_repeat: Annotated[str | None, typer.Option("--dst-repeat", **one_of("first", "second", "both"))] = (
        None
    )
    active: Annotated[
        bool | None, typer.Option("--active/--no-active", help="Whether it fires.", show_default=False)
    ] = None

    def patch(self, now: datetime, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the options as a JSON merge patch of the `known` schedule. Raises InvalidError."""
        known = known or {}
        changes: dict[str, Any] = {
            "description": self.description,
            "queue": self.queue,
            "priority": self.priority,
            "delivery": self.delivery,
            "active": self.active,
            "timeout_seconds": _seconds(self.timeout, "--timeout"),
            "jitter_seconds": _seconds(self.jitter, "--jitter"),
            "trigger": self._trigger(now, _mapping(known.get("trigger"))),
            "target": self._target(_mapping(known.get("target"))),
            "misfire": _some(
                policy=self.misfire,
                grace_seconds=_seconds(self.grace, "--grace"),
                max_catchup=self.max_catchup,
            ),
            "overlap": _some(
                policy=self.overlap, max_instances=self.max_instances, max_queued=self.max_queued
            ),
            "retry": None if self.retries is None else {"max_attempts": self.retries + 1},
            "dst": _some(gap=self.dst_gap, repeat=self.dst_repeat),
            "calendars": None if self.calendar is None else [name for name in self.calendar if name != NONE],
        }
        changes = {name: value for name, value in changes.items() if value is not None}
        if self.label:
            labels = _pairs(self.label, "--label", "=")
            changes["labels"] = {name: value or None for name, value in labels.items()}
        changes |= self._limits(now)
        changes |= self._window(changes, known)
        return changes

    def _limits(self, now: datetime) -> dict[str, Any]:
        """Return the patch of the limits. A null in it removes a limit."""
        limits: dict[str, Any] = {}
        for name, text, option in (("start_ts", self.start, "--start"), ("end_ts", self.end, "--end")):
            if text is not None:
                limits[name] = None if text == NONE else instant_of(text, option, now, is_ahead=True)
        if self.max_runs is not None:
            limits["max_runs"] = self.max_runs or None
        return limits

    # --- trigger -----------------------------------------------------------------------------------

    def _trigger(self, now: datetime, known: Mapping[str, Any]) -> dict[str, Any] | None:
        given = {
            "--cron": self.cron,
            "--every": self.every,
            "--once": self.once,
            "--rrule": self.rrule,
            "--delay": self.delay,
        }
        option = _only(given, "when")
        if option is None:
            if self.tz is not None and known.get("kind") in ("once", "delay"):
                raise InvalidError.at("--tz", "option", f"means nothing to the trigger {known['kind']}")
            return None if self.tz is None else {"timezone": self.tz}
        text = given[option] or ""
        zoned = {} if self.tz is None else {"timezone": self.tz}
        match option:
            case "--cron":
                return {"kind": "cron", "expression": text, **zoned}
            case "--rrule":
                return {"kind": "rrule", "rule": text, **zoned}
            case "--every":
                return {"kind": "interval", **interval_of(text, option), **zoned}
        if zoned:
            raise InvalidError.at("--tz", "option", f"means nothing to {option}")
        if option == "--once":
            return {"kind": "once", "at": instant_of(text, option, now, is_ahead=True)}
        return {"kind": "delay", "seconds": seconds_of(text, option)}

    def _window(self, changes: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
        if self.days is None and self.hours is None:
            return {}
        old = _mapping(known.get("window"))
        parts: dict[str, Any] = {}
        if self.days is not None:
            parts["days_of_week"] = (
                None if self.days == NONE else numbers_of(self.days, "--days", 1, 7, _DAYS)
            )
        if self.hours is not None:
            parts["hours_of_day"] = None if self.hours == NONE else numbers_of(self.hours, "--hours", 0, 23)
        if all(value is None for value in parts.values()):
            is_all = set(parts) == {"days_of_week", "hours_of_day"} or not old
            return {"window": None if is_all else parts}
        trigger = {**_mapping(known.get("trigger")), **changes.get("trigger", {})}
        if "timezone" in trigger and ("timezone" not in old or self.tz is not None):
            parts["timezone"] = trigger["timezone"]
        return {"window": parts}

    # --- target ------------------------------------------------------------------------------------

    def _target(self, known: Mapping[str, Any]) -> dict[str, Any] | None:
        given = {
            "--function": self.function,
            "--http": self.http,
            "--event": self.event,
            "--celery": self.celery,
        }
        option = _only(given, "what")
        kind = known.get("kind") if option is None else option.removeprefix("--")
        target: dict[str, Any] = {} if option is None else {"kind": kind}
        match option:
            case "--function":
                target["name"] = self.function
            case "--celery":
                target["task"] = self.celery
            case "--http" if self.http is not None:
                target["method"], target["url"] = self.http[0].upper(), self.http[1]
            case "--event" if self.event is not None:
                target["event_topic"], target["event_type"] = self.event
        target |= self._arguments(kind, known) | self._request(kind, known)
        return target or None

    def _arguments(self, kind: str | None, known: Mapping[str, Any]) -> dict[str, Any]:
        place = {"function": "args", "event": "event_data", "celery": "kwargs"}.get(kind or "")
        given = arguments_of(self.arg or ())
        if given and place is None:
            raise InvalidError.at("--arg", "option", "goes with --function, --event or --celery")
        is_another = kind == "function" and self.function not in (None, known.get("name"))
        # Remove arguments of the previous function: the new one would refuse them.
        old = _mapping(known.get("args")) if is_another and known.get("kind") == kind else {}
        gone = {name: None for name in old if name not in given}
        return {place: {**gone, **given}} if place and (given or gone) else {}

    def _request(self, kind: str | None, known: Mapping[str, Any]) -> dict[str, Any]:
        request: dict[str, Any] = {}
        if self.header:
            headers = _pairs(self.header, "--header", ":")
            request["headers"] = {name: value.strip() for name, value in headers.items()}
        if self.body is not None:
            old = known.get("body") if known.get("kind") == kind else None
            request["body"] = replacing(old, _body(self.body))
        if request and kind != "http":
            raise InvalidError.at("--header" if self.header else "--body", "option", "goes with --http")
        return request


# --- parts -----------------------------------------------------------------------------------------


def arguments_of(texts: Sequence[str]) -> dict[str, Any]:
    """Parse `NAME=VALUE` texts. A value is read as JSON if possible, else as text. Raises InvalidError."""
    return {name: _value(text) for name, text in _pairs(texts, "--arg", "=").items()}


def numbers_of(text: str, option: str, least: int, most: int, names: Sequence[str] = ()) -> list[int]:
    """Parse `1-5,7` or, with names, `mon-fri,sun`. A range may wrap around. Raises InvalidError."""
    found: set[int] = set()
    for part in text.lower().split(","):
        ends = [_number(each.strip(), least, names) for each in part.split("-")]
        first, last = ends[0], ends[-1]
        if (
            len(ends) > 2
            or first is None
            or last is None
            or not least <= min(first, last) <= max(first, last) <= most
        ):
            hint = f"{names[0]}-{names[4]},{names[-1]}" if names else f"{least} to {most}, such as 9-16,20"
            raise InvalidError.at(option, "numbers", f'"{text}" is not understood', hint)
        found.update(
            range(first, last + 1) if first <= last else {*range(first, most + 1), *range(least, last + 1)}
        )
    return sorted(found)


def replacing(old: Any, new: Any) -> Any:
    """Return a merge patch that turns `old` into `new` and removes all other fields."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    gone = {name: None for name in old if name not in new}
    return {**gone, **{name: replacing(old.get(name), value) for name, value in new.items()}}


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one: a value from a file may be anything."""
    return value if isinstance(value, Mapping) else {}


def _number(text: str, least: int, names: Sequence[str]) -> int | None:
    if text.isascii() and text.isdecimal():
        return int(text[:4])
    return least + names.index(text[:3]) if text[:3] in names else None


def _only(given: Mapping[str, Any], what: str) -> str | None:
    named = [option for option, value in given.items() if value is not None]
    if len(named) > 1:
        raise InvalidError.at(named[1], "option", f"says {what} once more, after {named[0]}")
    return named[0] if named else None


def _some(**fields: Any) -> dict[str, Any] | None:
    return {name: value for name, value in fields.items() if value is not None} or None


def _seconds(text: str | None, option: str) -> float | None:
    return None if text is None else seconds_of(text, option)


def _pairs(texts: Sequence[str], option: str, sign: str) -> dict[str, str]:
    found = {}
    for text in texts:
        name, is_there, value = text.partition(sign)
        if not is_there or not name.strip():
            raise InvalidError.at(option, "pair", f'"{text}" is not NAME{sign}VALUE')
        found[name.strip()] = value
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text


def _no_number(name: str) -> Any:
    raise ValueError(name)


def _body(text: str) -> Any:
    if text.startswith("@"):
        from foliot.cli.support.documents import read_text

        text = read_text(text[1:])
    return _value(text)
