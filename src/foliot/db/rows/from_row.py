"""Build a value from a row."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def from_row(kind: Callable[..., T], row: Any, **converted: Any) -> T:
    """Build a dataclass from the columns that have the names of its fields. `converted`: other values."""
    return kind(**{name: getattr(row, name) for name in _names(kind) if name not in converted}, **converted)
