"""Instants as whole microseconds since 1970, for the timing wheel, SQLite and ids."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
"""The smallest difference between two instants."""
_DAY_US = 86_400_000_000


def micros_of(instant: datetime) -> int:
    # Integers, not timestamp(): a float of seconds has no exact microseconds. Three times as fast as dividing
    # the timedelta.
    since = instant - EPOCH
    return since.days * _DAY_US + since.seconds * 1_000_000 + since.microseconds


def instant_of(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)
