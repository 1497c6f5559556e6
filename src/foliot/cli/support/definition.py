"""Define a schedule with options: given options become a patch, all other fields stay unchanged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

from foliot.cli.support.completion import calendar_names, queue_names
from foliot.cli.support.instants import instant_of
from foliot.cli.support.kind_options import chosen, fields_of, flags, pairs_of, value_of
from foliot.cli.support.options import one_of
from foliot.model.errors import InvalidError
from foliot.timing.duration import seconds_of

NONE = "none"
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = "ISO_TIME|DURATION"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    """Options of `create` and `set`, but for those of kinds of triggers and targets."""

    tz: Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="The trigger's time zone.")] = None

    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            metavar="NAME=VALUE",
            help="An argument. Its value is read as JSON if possible, else as text. Repeatable.",
        ),
    ] = None
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT")] = None
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="NAME=VALUE", help="Repeatable. NAME= removes a label."),
    ] = None
    queue: Annotated[str | None, typer.Option("--queue", metavar="NAME", autocompletion=queue_names)] = None
    priority: Annotated[str | None, typer.Option("--priority", **one_of("high", "medium", "low"))] = None
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="DURATION", help="How long an attempt may take.")
    ] = None
    retries: Annotated[
        int | None, typer.Option("--retries", metavar="N", min=0, help="Number of retries.")
    ] = None
    misfire: Annotated[
        str | None,
        typer.Option(
            "--misfire",
            help="What to do with fire times that were missed.",
            **one_of("fire_once", "fire_all", "skip"),
        ),
    ] = None
    grace: Annotated[
        str | None,
        typer.Option("--grace", metavar="DURATION", help="Fire times that are later than this are skipped."),
    ] = None
    max_catchup: Annotated[
        int | None,
        typer.Option(
            "--max-catchup", metavar="N", help="Maximum number of missed fire times that fire_all runs."
        ),
    ] = None
    overlap: Annotated[
        str | None,
        typer.Option(
            "--overlap",
            help="What to do if the previous run has not ended.",
            **one_of("skip", "queue", "cancel_running", "allow"),
        ),
    ] = None
    max_instances: Annotated[
        int | None,
        typer.Option("--max-instances", metavar="N", help="Maximum number of runs at the same time."),
    ] = None
    max_queued: Annotated[
        int | None,
        typer.Option("--max-queued", metavar="N", help="Maximum number of runs that may wait for another."),
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
        int | None,
        typer.Option("--max-runs", metavar="N", min=0, help="Maximum number of runs; 0: no limit."),
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

    def patch(
        self, now: datetime, known: Mapping[str, Any] | None = None, kinds: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the options as a JSON merge patch of the `known` schedule. Raises InvalidError.

        `kinds` are the options of triggers and targets, by flag.
        """
        kinds = kinds or {}
        known = known or {}
        changes: dict[str, Any] = {
            "description": self.description,
            "queue": self.queue,
            "priority": self.priority,
            "delivery": self.delivery,
            "active": self.active,
            "timeout_seconds": _seconds(self.timeout, "--timeout"),
            "jitter_seconds": _seconds(self.jitter, "--jitter"),
            "trigger": self._trigger(kinds, now, _mapping(known.get("trigger"))),
            "target": self._target(kinds, now, _mapping(known.get("target"))),
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
            labels = pairs_of(self.label, "--label", "=")
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

    def _trigger(
        self, kinds: Mapping[str, Any], now: datetime, known: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        from foliot.model.kind import TRIGGERS

        name, flag = chosen(TRIGGERS, kinds, known, "when")
        trigger: dict[str, Any] = {} if flag is None else {"kind": name}
        kind = TRIGGERS.get(name or "")
        if kind is not None:
            trigger |= fields_of(kind, kinds, known if flag is None else {}, now)
            if self.tz is not None and "timezone" not in kind.model_fields:
                what = flag or f"the trigger {name}"
                raise InvalidError.at("--tz", "option", f"has no effect on {what}")
        if self.tz is not None:
            trigger["timezone"] = self.tz
        return trigger or None

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

    def _target(
        self, kinds: Mapping[str, Any], now: datetime, known: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        from foliot.model.kind import TARGETS

        name, flag = chosen(TARGETS, kinds, known, "what")
        target: dict[str, Any] = {} if flag is None else {"kind": name}
        kind = TARGETS.get(name or "")
        old = known if known.get("kind") == name else {}
        if kind is not None:
            target |= fields_of(kind, kinds, old, now)
        given = arguments_of(self.arg or ())
        place = "" if kind is None else kind.arguments_field
        if given and not place:
            takers = {name: kind for name, kind in TARGETS.items() if kind.arguments_field}
            raise InvalidError.at("--arg", "option", f"is only for {' or '.join(flags(takers))}")
        if (
            kind is not None
            and kind.task_field in target
            and target[kind.task_field] != old.get(kind.task_field)
        ):
            # Remove arguments of the previous function: the new one would refuse them.
            given = {**{name: None for name in _mapping(old.get(place)) if name not in given}, **given}
        return (target | ({place: given} if given else {})) or None


# --- parts -----------------------------------------------------------------------------------------


def arguments_of(texts: Sequence[str]) -> dict[str, Any]:
    """Parse `NAME=VALUE` texts. A value is read as JSON if possible, else as text. Raises InvalidError."""
    return {name: value_of(text) for name, text in pairs_of(texts, "--arg", "=").items()}


def numbers_of(text: str, option: str, minimum: int, maximum: int, names: Sequence[str] = ()) -> list[int]:
    """Parse `1-5,7` or, with names, `mon-fri,sun`. A range may wrap around. Raises InvalidError."""
    found: set[int] = set()
    for part in text.lower().split(","):
        ends = [_number(each.strip(), minimum, names) for each in part.split("-")]
        first, last = ends[0], ends[-1]
        if (
            len(ends) > 2
            or first is None
            or last is None
            or not minimum <= min(first, last) <= max(first, last) <= maximum
        ):
            hint = (
                f"{names[0]}-{names[4]},{names[-1]}" if names else f"{minimum} to {maximum}, such as 9-16,20"
            )
            raise InvalidError.at(option, "numbers", f'"{text}" is not understood', hint)
        found.update(
            range(first, last + 1)
            if first <= last
            else {*range(first, maximum + 1), *range(minimum, last + 1)}
        )
    return sorted(found)


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one: a value from a file may be anything."""
    return value if isinstance(value, Mapping) else {}


def _number(text: str, minimum: int, names: Sequence[str]) -> int | None:
    if text.isascii() and text.isdecimal():
        return int(text[:4])
    return minimum + names.index(text[:3]) if text[:3] in names else None


def _some(**fields: Any) -> dict[str, Any] | None:
    return {name: value for name, value in fields.items() if value is not None} or None


def _seconds(text: str | None, option: str) -> float | None:
    return None if text is None else seconds_of(text, option)
