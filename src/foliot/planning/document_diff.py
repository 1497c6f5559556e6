"""Compares two JSON documents: for versions, for the plan of an apply, for the audit log.

Objects are compared by name in any order, lists by position. Equal numbers are equal however they are written
(1 and 1.0), and never equal to true or false.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class DifferenceKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two documents differ."""

    pointer: str
    """RFC 6901 JSON pointer; "" is the whole document."""
    before: Any
    """The old value; None also if there was none (see `kind`)."""
    after: Any
    """The new value; None also if there is none (see `kind`)."""
    kind: DifferenceKind = DifferenceKind.CHANGED
    """Distinguishes a null value from no value."""


def diff(before: Any, after: Any) -> list[Difference]:
    """Return all differences, as deep in the documents as possible, sorted by names and positions."""
    found: list[Difference] = []
    # A worklist instead of recursion: a document may be nested deeper than the stack.
    waiting: list[Difference] = [Difference("", before, after)]
    while waiting:
        place = waiting.pop()
        parts = None if place.kind is not DifferenceKind.CHANGED else _parts(place)
        if parts is not None:
            waiting.extend(reversed(parts))
        elif place.kind is not DifferenceKind.CHANGED or not _is_same(place.before, place.after):
            found.append(place)
    return found


def _parts(place: Difference) -> list[Difference] | None:
    """Return the places within two objects or two lists; None: they can't be compared any deeper."""
    before, after = place.before, place.after
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        old, new = dict(before), dict(after)
        names: list[Any] = sorted(old.keys() | new.keys())
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple):
        old, new = dict(enumerate(before)), dict(enumerate(after))
        names = list(range(max(len(old), len(new))))
    else:
        return None
    return [
        Difference(f"{place.pointer}/{_escaped(name)}", old.get(name), new.get(name), _kind(name, old, new))
        for name in names
    ]


def _kind(name: Any, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> DifferenceKind:
    if name not in old:
        return DifferenceKind.ADDED
    return DifferenceKind.CHANGED if name in new else DifferenceKind.REMOVED


def _is_same(before: Any, after: Any) -> bool:
    # In Python True == 1.
    return isinstance(before, bool) == isinstance(after, bool) and bool(before == after)


def _escaped(name: object) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")
