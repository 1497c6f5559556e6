"""Log lines without the secrets of what runs here, through whatever they were logged."""

from collections.abc import Mapping, Set
from datetime import date
from typing import Any
from uuid import UUID

from structlog.typing import EventDict, WrappedLogger

from foliot.model.hiding import HIDDEN, Mask, current_mask

_HAS_NO_TEXT = (bool, UUID, date, type(None))


def hidden(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """The line with every secret replaced, wherever in its values it stands; as it is where there are none.

    Comes before texts are cut, since half of a secret would not be recognised, and before the fields that
    Foliot itself adds, which have none.
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
    # What else there is becomes text only when the line is written, each kind in a way of its own.
    return mask(repr(value))
