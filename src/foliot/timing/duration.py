"""Reads durations as people write them."""

import re
from datetime import timedelta

from foliot.model.errors import InvalidError

Duration = str | float | timedelta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*")


def seconds_of(duration: Duration, where: str) -> float:
    """Convert a duration to seconds: a number, a timedelta, or text such as `30s` or `1h30m`.

    Raises an InvalidError that names the field or option `where`.
    """
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, int | float):
        return float(duration)
    text = duration.strip() if isinstance(duration, str) else ""  # type: ignore[redundant-expr] # users err
    parts = list(_PART.finditer(text))
    if parts and "".join(part.group(0) for part in parts) == text:
        return sum(float(part.group(1)) * _UNITS[part.group(2)] for part in parts)
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    shown = f'"{duration}"' if isinstance(duration, str) else repr(duration)  # type: ignore[redundant-expr]
    raise InvalidError.at(where, "duration", f"{shown} is not a duration", "30s, 10m, 1h30m, 2d")
