"""What an import has found: schedules to make, and what was left out and why."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from foliot.model.errors import FoliotError, InvalidError
from foliot.model.schedule import ScheduleSpec
from foliot.model.trigger import OnceTrigger
from foliot.timing.compile import compile_trigger

LONGEST_NAME = 126
LONGEST_DESCRIPTION = 2000
RUN_LIMIT_S = 86400
"""What a run may take where the other scheduler set no limit. Foliot's own default of five minutes would end
work that used to be left alone."""

_SECRET = re.compile(r"\$\{secret:[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Item:
    """A schedule to make."""

    name: str
    document: dict[str, Any]
    """As a ScheduleSpec is written; only what differs from its defaults."""
    where: str
    """Where it stood, such as `line 7`."""
    notes: tuple[str, ...] = ()
    """What is not as it was, or should be looked at."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that no schedule is made of."""

    where: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    items: tuple[Item, ...] = ()
    problems: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    """What holds for all items."""


class LeftOutError(FoliotError):
    """This one can't be taken over; the text says why."""


class Finds:
    """Gathers a Found. What is added is checked first: one that could never be made is left out instead."""

    def __init__(self, now: datetime, prefix: str = "") -> None:
        self._now = now
        self._prefix = prefix
        self._items: list[Item] = []
        self._problems: list[LeftOut] = []
        self._notes: list[str] = []
        self._names: set[str] = set()

    def add(
        self,
        name: str,
        document: Mapping[str, Any],
        *,
        where: str,
        notes: Sequence[str] = (),
        what: str | None = None,
    ) -> None:
        """Take a schedule up, under this name or the nearest that is free; `what` is how it was written."""
        whole = {"name": self._free_name(name), **document}
        try:
            self._require_future(ScheduleSpec.parse(whole))
        except (InvalidError, LeftOutError) as error:
            self.leave_out(where, what or name, str(error))
            return
        self._names.add(whole["name"])
        self._items.append(Item(whole["name"], whole, where, (*notes, *_on_name(self._prefix + name, whole))))

    def leave_out(self, where: str, what: str, why: str) -> None:
        self._problems.append(LeftOut(where, what, why))

    def note(self, text: str) -> None:
        self._notes.append(text)

    def found(self, on_all: Sequence[str] = ()) -> ImportResult:
        """What there is; `on_all` are notes about all schedules, if there are any."""
        notes = [*self._notes, *(on_all if self._items else ())]
        return ImportResult(tuple(self._items), tuple(self._problems), tuple(notes))

    def _free_name(self, name: str) -> str:
        wanted = _cut(_printable(self._prefix + name) or "imported", LONGEST_NAME)
        free, number = wanted, 1
        while free in self._names:
            number += 1
            ending = f"-{number}"
            free = _cut(wanted, LONGEST_NAME - len(ending)) + ending
        return free

    def _require_future(self, spec: ScheduleSpec) -> None:
        now = self._now
        times = compile_trigger(spec.trigger, dst=spec.dst, anchor=spec.start_ts or now, key=spec.name)
        if not spec.active:
            return
        first = now
        if isinstance(spec.trigger, OnceTrigger):
            first = now - timedelta(seconds=spec.misfire.grace_seconds)
        elif spec.start_ts is not None:
            first = max(now, spec.start_ts - timedelta(microseconds=1))
        at = times.after(first)
        if at is None:
            raise LeftOutError("its time has passed")
        if spec.end_ts is not None and at > spec.end_ts:
            raise LeftOutError(f"it has ended: it has no time up to {spec.end_ts.isoformat()}")


def _printable(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _cut(text: str, most: int) -> str:
    return text[:most].rstrip()


def _on_name(wanted: str, document: Mapping[str, Any]) -> list[str]:
    return [] if document["name"] == wanted else [f'it was named "{wanted}"']


# --- values ---------------------------------------------------------------------------------------------


def plain_json(value: Any, what: str) -> Any:
    """The value as JSON holds it; a LeftOutError names what it can't hold."""
    match value:
        case None | bool() | int():
            return value
        case float():
            if math.isfinite(value):
                return value
        case str():
            return literal(value)
        case list() | tuple():
            return [plain_json(item, f"{what}[{index}]") for index, item in enumerate(value)]
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise LeftOutError(f"{what} has the name {key!r}, which is no text")
            return {key: plain_json(item, f"{what}.{key}") for key, item in value.items()}
    raise LeftOutError(f"{what} is {value!r}, which JSON can't hold")


def literal(text: str) -> str:
    """Text that is to stay as it is: what would be read as a reference to a secret is written as text."""
    return _SECRET.sub(lambda found: "$" + found[0], text)


def every(length: timedelta) -> dict[str, Any]:
    """A trigger that fires whenever so much time has passed. A day of it is 24 hours, whatever clocks do."""
    seconds, rest = divmod(length, timedelta(seconds=1))
    if rest or seconds <= 0:
        raise LeftOutError(
            f"it runs every {length.total_seconds():g} s; an interval is whole seconds, 1 or more"
        )
    for unit, size in (("HOURS", 3600), ("MINUTES", 60)):
        if seconds % size == 0:
            return {"kind": "interval", "frequency_unit": unit, "frequency_time": seconds // size}
    return {"kind": "interval", "frequency_unit": "SECONDS", "frequency_time": seconds}


def zone_name(zone: tzinfo | str | None) -> str | None:
    """What the time zone database calls a zone; None: it has no name there."""
    if zone is None or isinstance(zone, str):
        return zone or None
    for attribute in ("key", "zone"):  # of zoneinfo, and of pytz
        name = getattr(zone, attribute, None)
        if isinstance(name, str) and name:
            return name
    return "UTC" if str(zone) in ("UTC", "tzutc()") else None
