"""Redact secrets in use from log lines, including lines of libraries and tasks."""

from collections.abc import Mapping, Set
from datetime import date
from typing import Any
from uuid import UUID

from structlog.typing import EventDict, WrappedLogger

from foliot.model.redaction import HIDDEN, Mask, current_mask

_HAS_NO_TEXT = (bool, UUID, date, type(None))


def hidden(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """Replace every secret in the names and values of a line, at any depth.

    Must run before texts are cut, since half of a secret would not be recognised. Runs before Foliot adds its
    own fields, which contain no secrets.
    """
    mask = current_mask()
    return line if mask is None else _without(line, mask)


def _without(value: Any, mask: Mask) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {_without(name, mask): _without(item, mask) for name, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_without(item, mask) for item in value]
    if isinstance(value, _HAS_NO_TEXT):
        return value
    if isinstance(value, int | float):
        return value if mask(str(value)) == str(value) else HIDDEN
    # Renderers would turn other types into text later, each in its own way.
    return mask(repr(value))
