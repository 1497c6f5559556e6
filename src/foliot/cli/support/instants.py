"""Parse and format instants and durations for people."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from foliot.model.errors import InvalidError
from foliot.timing.duration import seconds_of

_PARTS_OF_INTERVAL = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks", "mo": "months"}
_WHOLE_PART = re.compile(r"(\d+)\s*(mo|s|m|h|d|w)\s*")
_STEPS = (
    ("ms", 0.001, 1.0),
    ("s", 1.0, 60.0),
    ("min", 60.0, 3600.0),
    ("h", 3600.0, 172800.0),
    ("days", 86400.0, float("inf")),
)


# --- parsing ---------------------------------------------------------------------------------------


def interval_of(text: str, option: str) -> dict[str, int]:
    """Parse an interval such as `5m`, `1h30m`, `1w`, `1mo` into its parts. Raises InvalidError."""
    parts = list(_WHOLE_PART.finditer(text.strip()))
    names = [_PARTS_OF_INTERVAL[part.group(2)] for part in parts]
    if "".join(part.group(0) for part in parts) != text.strip() or not parts or len(set(names)) < len(names):
        raise InvalidError.at(
            option, "interval", f'"{text}" is not an interval', "30s, 5m, 1h30m, 1d, 1w, 1mo"
        )
    return {name: int(part.group(1)) for name, part in zip(names, parts, strict=True)}


def instant_of(text: str, option: str, now: datetime, *, is_ahead: bool = False) -> str:
    """Parse an ISO time, a date, `now` or a duration; return an ISO time in UTC. Raises InvalidError.

    A time without an offset is local time. A duration counts back from now; with `is_ahead` or a `+`,
    forward.
    """
    stripped = text.strip()
    try:
        if stripped == "now":
            return now.astimezone(UTC).isoformat()
        if re.match(r"[+-]?\d+(\.\d+)?\s*[a-z]", stripped):
            seconds = seconds_of(stripped.lstrip("+-"), option)
            is_ahead = stripped.startswith("+") or (is_ahead and not stripped.startswith("-"))
            return (now + timedelta(seconds=seconds if is_ahead else -seconds)).astimezone(UTC).isoformat()
        return datetime.fromisoformat(stripped).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        hint = "2026-03-29, 2026-03-29T02:30, 2026-03-29T02:30+01:00, or 2h"
        raise InvalidError.at(option, "instant", f'"{text}" is not a time', hint) from None


# --- formatting ------------------------------------------------------------------------------------


def read_instant(value: Any) -> datetime | None:
    """Parse an instant of an API response. None: it is not an instant."""
    if not isinstance(value, str):
        return None
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None


def local(value: Any) -> str:
    """Format an instant in local time. Seconds are shown only if they are not 0."""
    instant = read_instant(value)
    if instant is None:
        return ""
    shown = instant.astimezone()
    return shown.strftime("%Y-%m-%d %H:%M:%S" if shown.second else "%Y-%m-%d %H:%M")


def relative(value: Any, now: datetime) -> str:
    """Format an instant relative to now: `in 3 min`, `2 h ago`."""
    instant = read_instant(value)
    if instant is None:
        return ""
    seconds = (instant - now).total_seconds()
    far = duration(abs(seconds), is_rough=True)
    if abs(seconds) < 1:
        return "now"
    return f"in {far}" if seconds > 0 else f"{far} ago"


def both(value: Any, now: datetime) -> str:
    """Format an instant as local and relative time: `2026-11-17 02:00 (in 3 min)`."""
    at = local(value)
    return f"{at} ({relative(value, now)})" if at else ""


def first_relative(value: Any, now: datetime) -> str:
    """Format an instant, relative time first, for columns that may be cut: `in 3 min (2026-11-17 02:00)`."""
    at = local(value)
    return f"{relative(value, now)} ({at})" if at else ""


def duration(seconds: Any, *, is_rough: bool = False) -> str:
    """Format a duration in seconds. `is_rough` rounds to whole units."""
    if not isinstance(seconds, int | float):
        return ""
    for unit, size, end in _STEPS:
        if seconds < end:
            amount = seconds / size
            if is_rough:
                return f"{int(amount)} {unit}"
            return f"{amount:.3g} {unit}" if amount < 100 else f"{amount:.0f} {unit}"
    return ""
