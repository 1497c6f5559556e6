"""Time zones: which exist, when their clocks change, and which instants a wall-clock time means."""

import difflib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from foliot.model.errors import InvalidError
from foliot.model.policy import Dst, DstGap, DstRepeat

LOWEST = datetime(1, 1, 3)  # noqa: DTZ001
HIGHEST = datetime(9999, 12, 29)  # noqa: DTZ001
"""Instants stay within these (as naive UTC), so that adding any zone's offset can't overflow."""

_NOT_ZONES = frozenset({"localtime", "posixrules", "Factory"})
# The zone database's first offset change is in 1844; before it every zone has one constant offset.
_FIRST_YEAR = 1840
# Offsets are sampled this far apart. The shortest-lived one lasted 95 hours (Freetown, 1939).
_SAMPLE = timedelta(days=2)
_SECOND = timedelta(seconds=1)


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """Return the zone of a name that was checked before."""
    return ZoneInfo(name)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(available_timezones()) - _NOT_ZONES


def check_zone(name: str, pointer: str) -> ZoneInfo:
    """Return the zone, or raise an InvalidError at the pointer that suggests the most similar name."""
    # Checked against a list, because ZoneInfo would also accept `localtime`, paths below the database and,
    # on some file systems, any spelling.
    if name in _names():
        return zone(name)
    spelled = {known.casefold(): known for known in sorted(_names())}
    near = difflib.get_close_matches(name.casefold().replace(" ", "_"), spelled, n=1, cutoff=0.6)
    hint = f"did you mean {spelled[near[0]]}?" if near else "a name such as UTC or Europe/Berlin"
    shown = name if len(name) <= 64 else name[:64] + "…"
    raise InvalidError.at(pointer, "unknown_timezone", f'there is no time zone "{shown}"', hint)


def naive_utc(instant: datetime) -> datetime:
    """Return the instant as naive UTC; outside the range of datetime, the nearest that fits."""
    if instant.tzinfo is not UTC:
        try:
            instant = instant.astimezone(UTC)
        except OverflowError:
            return LOWEST if instant.year < 5000 else HIGHEST
    return instant.replace(tzinfo=None)


@dataclass(frozen=True, slots=True)
class OffsetSpan:
    """A span of UTC, `start` up to but not including `end`, in which a zone has one offset.

    Spans also end with the year, usually without a change: this bounds the search for their ends.
    """

    start: datetime
    end: datetime
    offset: timedelta
    offset_before: timedelta
    offset_after: timedelta


def spans_at(tz: ZoneInfo, instant: datetime) -> tuple[OffsetSpan, ...]:
    """Return the spans of the year of an instant (naive UTC), in order and without gaps."""
    if tz.key == "UTC" or tz.key.startswith("Etc/"):
        return _fixed_span(tz)
    return _spans_of_year(tz, max(instant.year, _FIRST_YEAR - 1))


@lru_cache(maxsize=64)
def _fixed_span(tz: ZoneInfo) -> tuple[OffsetSpan, ...]:
    offset = _offset(tz, LOWEST)
    return (OffsetSpan(LOWEST, HIGHEST, offset, offset, offset),)


@lru_cache(maxsize=8192)
def _spans_of_year(tz: ZoneInfo, year: int) -> tuple[OffsetSpan, ...]:
    start = LOWEST if year < _FIRST_YEAR else datetime(year, 1, 1)  # noqa: DTZ001
    end = min(HIGHEST, datetime(year + 1, 1, 1) if year < 9999 else HIGHEST)  # noqa: DTZ001
    first = _offset(tz, start)
    changes = [] if year < _FIRST_YEAR else _changes(tz, start, end)
    edges = [start, *changes, end]
    offsets = [first, *(_offset(tz, change) for change in changes)]
    around = [_offset(tz, start - _SECOND), *offsets, _offset(tz, end)]
    return tuple(
        OffsetSpan(edges[i], edges[i + 1], offsets[i], around[i], around[i + 2]) for i in range(len(offsets))
    )


def _changes(tz: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Return the instants strictly between start and end at which the offset changes."""
    found: list[datetime] = []
    low, offset = start, _offset(tz, start)
    while low < end:
        high = min(low + _SAMPLE, end - _SECOND)
        if _offset(tz, high) == offset:
            low = high if high > low else end
            continue
        while high - low > _SECOND:
            middle = low + (high - low) // 2
            middle -= timedelta(microseconds=middle.microsecond)
            if _offset(tz, middle) == offset:
                low = middle
            else:
                high = middle
        found.append(high)
        low, offset = high, _offset(tz, high)
    return found


def _offset(tz: ZoneInfo, instant: datetime) -> timedelta:
    offset = tz.fromutc(instant.replace(tzinfo=tz)).utcoffset()
    assert offset is not None
    return offset


def instants_of(wall: datetime, tz: ZoneInfo, dst: Dst) -> tuple[datetime, ...]:
    """Return the instants, in UTC, at which something planned for a wall-clock time (naive) happens.

    A time in a gap happens at the first instant after the gap, or not at all. A time in a repeated hour
    happens the first time, the second time, or both times.
    """
    first, second = (wall.replace(tzinfo=tz, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return (first,)
    if first > second:  # a gap: fold=0 uses the offset from before it, which leads past it
        if dst.gap is DstGap.SKIP:
            return ()
        return (_change_between(tz, naive_utc(second), naive_utc(first)).replace(tzinfo=UTC),)
    match dst.repeat:
        case DstRepeat.FIRST:
            return (first,)
        case DstRepeat.SECOND:
            return (second,)
        case DstRepeat.BOTH:
            return (first, second)


def _change_between(tz: ZoneInfo, before: datetime, past: datetime) -> datetime:
    # Search both years: Kiritimati skipped the last day of 1994.
    return next(
        span.start
        for span in (*spans_at(tz, before), *spans_at(tz, past))
        if before < span.start <= past and span.offset != span.offset_before
    )
