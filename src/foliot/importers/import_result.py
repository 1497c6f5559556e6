"""The result of an import: schedules to create, and what was left out and why."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from foliot.model.errors import FoliotError, InvalidError
from foliot.model.schedule import ScheduleSpec

LONGEST_NAME = 126
LONGEST_DESCRIPTION = 2000
RUN_LIMIT_S = 86400
"""Timeout of a run if the other scheduler sets none. Foliot's default of five minutes would stop work that
had no limit before."""

_SECRET = re.compile(r"\$\{secret:[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Item:
    """A schedule to create."""

    name: str
    document: dict[str, Any]
    """The fields of a ScheduleSpec that differ from its defaults."""
    where: str
    """Its place in the source, such as `line 7`."""
    notes: tuple[str, ...] = ()
    """Differences from the original, and points to check."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry that is not imported."""

    where: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    items: tuple[Item, ...] = ()
    problems: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes about all items."""


class LeftOutError(FoliotError):
    """An entry can't be imported. The text says why."""


class ImportBuilder:
    """Builds an ImportResult. Checks each added schedule; one that can't be created is left out."""

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
        """Add a schedule. If the name is taken, a number is appended. `what`: the original text."""
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
        """Return the result. `on_all`: notes about all schedules, added if there are any schedules."""
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
        times = spec.trigger.compile(dst=spec.dst, anchor=spec.start_ts or now, key=spec.name)
        if not spec.active:
            return
        first = now
        if spec.trigger.fires_once:
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


def _cut(text: str, limit: int) -> str:
    return text[:limit].rstrip()


def _on_name(wanted: str, document: Mapping[str, Any]) -> list[str]:
    return [] if document["name"] == wanted else [f'it was named "{wanted}"']


# --- values ---------------------------------------------------------------------------------------------


def plain_json(value: Any, what: str) -> Any:
    """Return the value as JSON. Raises LeftOutError, which names the value that JSON can't represent."""
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
    """Escape references to secrets in a text, so that they are not replaced."""
    return _SECRET.sub(lambda found: "$" + found[0], text)


def every(length: timedelta) -> dict[str, Any]:
    """Return an interval trigger in hours, minutes or seconds: a day is 24 hours, even if clocks change."""
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
    """Return a zone's name in the time zone database. None: it has no name there."""
    if zone is None or isinstance(zone, str):
        return zone or None
    for attribute in ("key", "zone"):  # of zoneinfo, and of pytz
        name = getattr(zone, attribute, None)
        if isinstance(name, str) and name:
            return name
    return "UTC" if str(zone) in ("UTC", "tzutc()") else None
